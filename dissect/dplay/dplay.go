// Package dplay dissects DirectPlay 3 and 4: the frames by which the games of the 1990s
// find each other, join and talk. What players say to each other it hands to a Game.
//
//	UDP 47624   discovery, by broadcast              one frame in a datagram
//	UDP 2350    Ping and Pong
//	TCP 2300    all else, over two connections       frames end to end
//	            that each carry one way
//
// A session is two hosts with all that runs between them. The host of the game is its
// server, whoever dialled and whatever the ports are; what is said tells. Bytes are
// borrowed from the caller, but for frames that wait until it is known which game it is.
package dplay

import (
	"net/netip"
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Game is a game that speaks in DirectPlay's player messages.
type Game interface {
	// Application returns the GUID of the game as it stands on the wire.
	Application() [16]byte
	// Open begins a session, which may turn out to be another game's.
	Open(s *dissect.Session, p *Players) Talk
}

// Talk is what a Game knows of one session. Data is what stands behind the ids of a
// player message, borrowed.
type Talk interface {
	// Largest returns the most bytes that data may have.
	Largest() int
	// Passes judges whether data is beyond doubt the game's. That is how it is recognised
	// where nothing named it.
	Passes(data []byte) bool
	// Host reports whether only the host of the session says this.
	Host(data []byte) bool
	// Message decodes a message into r, which has the envelope of DirectPlay.
	Message(r *dissect.Record, m *Message)
	// Reset forgets what was learned, for a new session.
	Reset()
}

// Message is a player message as a Talk takes it.
type Message struct {
	Frame   []byte    // from its size on, as far as it was captured, borrowed
	Start   int       // of the data in Frame
	Missing int       // bytes at its end that were not captured
	Short   wire.Kind // what running out of data means
	From    uint64    // the player who sends it
}

// Recognize judges the first bytes of a flow, for the games: any DirectPlay frame is
// taken, since the session may tell later whose it is.
func Recognize(t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	p, err := schema.Builtin("dplay")
	if err != nil {
		return schema.AnySender, dissect.Foreign
	}
	l := layoutsOf(p)
	if !l.headed(data) {
		if t == schema.TCP && l.inside(data, 1) {
			return schema.AnySender, dissect.Familiar // joined in the middle of a frame
		}
		return schema.AnySender, dissect.Foreign
	}
	if t == schema.UDP && l.size(data) != len(data) {
		return schema.AnySender, dissect.Foreign
	}
	if !l.isSystem(data) {
		return schema.AnySender, dissect.Familiar
	}
	opcode := l.header.opcode.Read(data)
	k := p.Packet(opcode, schema.AnySender, t)
	switch {
	case k == nil:
		return schema.AnySender, dissect.Familiar
	case opcode == enumSessions, opcode == enumSessionsReply, opcode == requestPlayerID:
		return k.From, dissect.Opening
	}
	return k.From, dissect.Familiar
}

// The commands with a meaning for the session.
const (
	enumSessionsReply     = 0x01
	enumSessions          = 0x02
	enumPlayersReply      = 0x03
	enumPlayers           = 0x04
	requestPlayerID       = 0x05
	requestPlayerReply    = 0x07
	playerMessage         = 0x0a
	addForwardRequest     = 0x13
	packet                = 0x15
	ping                  = 0x16
	pong                  = 0x17
	youAreDead            = 0x18
	sessionDescChanged    = 0x1a
	superEnumPlayersReply = 0x29
	addForward            = 0x2e
	addForwardAck         = 0x2f
	packet2Data           = 0x30
)

// layouts are the parts of the schema that cut frames.
type layouts struct {
	*schema.Protocol
	tcp       *schema.Framing
	system    envelope
	player    envelope
	from      *schema.EnvelopeField // of player: who sends it
	tokens    *schema.Enum
	signature uint64
	header    header
}

// envelope is one of the two, with the field that is the end of its sockaddr.
type envelope struct {
	*schema.Envelope
	zero *schema.EnvelopeField
}

func envelopeOf(e *schema.Envelope) envelope { return envelope{e, e.Field("_")} }

// header is what a frame is known by: fields of the envelope.
type header struct{ size, token, family, zero, signature, opcode *schema.EnvelopeField }

func headerOf(e *schema.Envelope) header {
	return header{
		size: e.Field("size"), token: e.Field("token"), family: e.Field("family"), zero: e.Field("_"),
		signature: e.Field("signature"), opcode: e.Field("opcode"),
	}
}

func layoutsOf(p *schema.Protocol) layouts {
	l := layouts{Protocol: p, tcp: p.Framing("tcp"), system: envelopeOf(p.Framing("tcp").Envelope), signature: uint64(p.Limit("signature"))}
	l.player, l.tokens, l.header = l.system, l.system.Layout.FieldAt("token").Enum, headerOf(l.system.Envelope)
	if i := slices.IndexFunc(p.Envelopes, func(e *schema.Envelope) bool { return e.Name == "player" }); i >= 0 {
		l.player = envelopeOf(p.Envelopes[i])
	}
	l.from = l.player.Field("from_id")
	return l
}

// Open begins a session of a game.
func Open(s *dissect.Session, g Game) dissect.Conversation {
	c := &conversation{session: s, layouts: layoutsOf(s.Below()), game: g, scratch: s.Scratch()}
	c.players.init(c.Protocol)
	c.talk = g.Open(s, &c.players)
	s.Name = c.Protocol.Name
	return c
}

const (
	discoveryPort = 47624
	// several is how many player messages that pass the game's tests make a session the
	// game's where nothing named it. Section 8, item 19.
	several = 3
)

// conversation is what one session has learned.
type conversation struct {
	layouts
	session *dissect.Session
	scratch *dissect.Scratch
	game    Game
	talk    Talk

	verdict   verdict
	passed    int // player messages in a row that passed the game's tests
	waiting   []*waiting
	instance  [16]byte       // GUID of the session, zero while it is not known
	broadcast netip.Addr     // to which the client sent its question
	listens   netip.AddrPort // where it waits for the answer
	players   Players
	asked     uint64 // flags of the last RequestPlayerId
	requests  []*request
	puzzles   []*puzzle
	heard     Message // scratch
	covered   []uint8 // likewise
	joint     []byte  // likewise
}

// verdict is whose session it is.
type verdict uint8

const (
	undecided verdict = iota
	foreign           // another game's
	claimed           // the game's
)

// Cut finds one frame. A large size of one that is not all there counts only once its
// envelope is, because that may belie it.
func (c *conversation) Cut(_ dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	f, err := c.tcp.Cut(data)
	switch {
	case err != nil && err.Kind != wire.Incomplete:
		return f, err
	case len(data) < c.system.Size() && f.Size > roomy:
		return schema.Frame{}, errHead
	case len(data) < c.system.Size():
		return f, err
	}
	if f.Size > c.most(data, f.Size) {
		return schema.Frame{}, errTooLarge
	}
	return f, err
}

// Fault says why data does not begin with a whole frame.
func (c *conversation) Fault(d dissect.Direction, data []byte) *wire.Error {
	if _, err := c.Cut(d, data); err == errHead {
		return err
	} else if err == errTooLarge {
		return c.tooLarge(data, c.most(data, c.size(data)))
	}
	_, err := c.tcp.Find(data, c.Protocol.Name)
	return err
}

// The answers for less than an envelope, and for a size that cannot be.
var (
	errHead     = &wire.Error{Layer: "dplay", Path: "envelope", Want: "an envelope", Got: "its start", Kind: wire.Incomplete}
	errTooLarge = &wire.Error{Layer: "dplay", Path: "envelope.size", Want: "a smaller size", Got: "this one", Kind: wire.Malformed}
)

// roomy is the size from which a frame that is not all there is looked through for
// another one: larger than all that the games here send, but for pieces.
const roomy = 8 << 10

// most returns the size that a frame may have which says a size, by what there is of it.
func (c *conversation) most(data []byte, size int) int {
	switch {
	case c.verdict == claimed && !c.isSystem(data):
		return c.player.Size() + c.talk.Largest()
	case size > roomy && size > len(data) && (!c.headed(data) || c.inside(data, c.system.Size())):
		return len(data)
	}
	return size
}

func (c *conversation) tooLarge(data []byte, most int) *wire.Error {
	return c.fault("envelope.size", len(data), "a size of at most "+strconv.Itoa(most), strconv.Itoa(c.size(data)))
}

// fault is an error at the size of a frame.
func (c *conversation) fault(path string, size int, want, got string) *wire.Error {
	return &wire.Error{Layer: c.Protocol.Name, Path: path, Size: size, Want: want, Got: got, Kind: wire.Malformed}
}

// Doubt finds a frame to be none when another begins inside it, and none behind it.
func (c *conversation) Doubt(_ dissect.Direction, frame, after []byte) *wire.Error {
	if len(after) > 0 && c.begins(after) || !c.inside(frame, c.system.Size()) && !c.across(frame, after) {
		return nil
	}
	return c.fault("envelope.size", len(frame), "a frame that another follows", strconv.Itoa(c.size(frame))+", and another begins inside it")
}

// across reports whether a frame begins near the end of one and goes on behind it.
func (c *conversation) across(frame, after []byte) bool {
	if len(frame) < c.system.Size()+headerSize || len(after) == 0 {
		return false
	}
	c.joint = append(append(c.joint[:0], frame[len(frame)-headerSize+1:]...), after[:min(len(after), headerSize)]...)
	return c.inside(c.joint, 0)
}

// Plausible is certain of a frame whose sockaddr is one: family, and eight zeros.
func (c *conversation) Plausible(_ dissect.Direction, frame []byte) dissect.Plausibility {
	if c.headed(frame) {
		return dissect.Certain
	}
	return dissect.Implausible
}

// size returns the size that a frame says.
func (l *layouts) size(data []byte) int { return int(l.header.size.Read(data)) }

// isSystem reports whether a frame is one of DirectPlay's own, by the word behind its
// sockaddr.
func (l *layouts) isSystem(data []byte) bool {
	return l.header.signature.Read(data) == l.signature
}

const (
	inet       = 2  // address family of a sockaddr_in
	headerSize = 20 // of size, token and sockaddr
)

// headed reports whether data begins with the size, token and sockaddr of a frame.
func (l *layouts) headed(data []byte) bool {
	if len(data) < headerSize {
		return false
	}
	return l.header.family.Read(data) == inet && l.header.zero.Read(data) == 0 && l.size(data) >= l.tcp.Min &&
		l.tokens.NameOf(l.header.token.Read(data)) != ""
}

// begins reports whether what there is of data may begin a frame.
func (l *layouts) begins(data []byte) bool {
	if len(data) >= headerSize {
		return l.headed(data)
	}
	_, err := l.tcp.Cut(data)
	return err == nil || err.Kind == wire.Incomplete
}

// inside reports whether a frame begins within data, at an offset or behind it.
func (l *layouts) inside(data []byte, from int) bool {
	for off := from; off+headerSize <= len(data); off++ {
		if off = l.header.family.Search(data, off, inet); off < 0 {
			return false
		}
		if l.headed(data[off:]) {
			return true
		}
	}
	return false
}

// Connects takes every connection between the two hosts, and the one with which a host
// answers a broadcast: it goes to where the sockaddr of the question says.
func (c *conversation) Connects(f *dissect.Flow) bool {
	a, b := f.Ends[0].Addr(), f.Ends[1].Addr()
	client, server := c.session.Client.Addr(), c.session.Server.Addr()
	if c.broadcast.IsValid() && server == c.broadcast {
		return f.Ends[0] == c.listens || f.Ends[1] == c.listens
	}
	return a == client && b == server || a == server && b == client
}

// Claim takes the datagrams between the two hosts, and those by which the client looks
// for sessions.
func (c *conversation) Claim(d *dissect.Datagram) dissect.Claim {
	client, server := c.session.Client.Addr(), c.session.Server.Addr()
	src, dst := d.Ends()
	switch {
	case c.session.Over():
		return dissect.Disowned
	case src.Addr() == client && dst.Addr() == server, src.Addr() == server && dst.Addr() == client:
		return dissect.Owned
	case src.Addr() == client && dst.Port() == discoveryPort && c.isSystem(d.Data):
		return dissect.Owned
	}
	return dissect.Disowned
}

// Tables returns the players and the key of their ids.
func (c *conversation) Tables() []dissect.LearnedTable { return c.players.tables() }
