package mmo

import (
	"time"

	"opscope/dissect"
	"opscope/reassembly"
	"opscope/schema"
)

// pair is packets that ask, and the one that answers them. Item 33.
type pair struct {
	asks   []string
	answer string
	how    matching
	field  string // for byField, of both
}

// matching says which request an answer is for.
type matching uint8

const (
	inOrder  matching = iota // the oldest that waits: TCP keeps the order
	anyCopy                  // all that wait: they are copies of one
	atLatest                 // the latest, with the same body if there is one
	byField                  // those with the same value of a field
)

var pairs = []pair{
	{[]string{"EnterGameReq"}, "EnterGameRes", inOrder, ""},
	{[]string{"UdpHelloReq"}, "UdpHelloRes", anyCopy, ""},
	{[]string{"Ping"}, "Pong", atLatest, ""},
	{[]string{"AttackReq"}, "AttackAck", byField, "attack_sequence"},
	{[]string{"InventoryMoveReq", "InventoryUseReq"}, "InventoryOperationResult", byField, "client_request_id"},
}

// role is what a packet is to the answers.
type role struct {
	part part
	pair int // index of the pair, for asks and answers
}

type part uint8

const (
	noPart    part = iota
	asks           // a request of a pair
	replies        // its answer
	steers         // MoveReq
	moves          // MoveNotify: says which input counts
	movesMany      // MoveBatchNotify: likewise, for each character
	refuses        // ErrorRes: about the latest packet with an id
)

// single are the packets that play a part alone.
var single = map[string]part{"MoveReq": steers, "MoveNotify": moves, "MoveBatchNotify": movesMany, "ErrorRes": refuses}

// answers follows who answers whom in a session.
type answers struct {
	c        *conversation
	kinds    []*kind             // those met, and those with a part; the first is of all other ids
	index    []uint16            // where an id is among the kinds, for small ids
	others   map[uint64]uint16   // likewise, for large ones
	requests []*dissect.Requests // by pair
	inputs   *dissect.Requests
	stream   *dissect.SequenceStream // of the inputs
	batch    batch
	seen     [3]int // by direction, how many kinds have a latest packet
}

// batch is where the entries of a batch have what is looked at, in a layout in which they
// all have one size.
type batch struct {
	layout               *schema.Layout
	character, processed *schema.Column // nil for another layout
}

// batchIn returns where that is in a layout.
func (a *answers) batchIn(l *schema.Layout) *batch {
	if l != a.batch.layout {
		a.batch = batch{l, l.Column("entries", "character_id"), l.Column("entries", "last_processed_input_sequence")}
	}
	return &a.batch
}

func (b *batch) known() bool { return b.character != nil && b.processed != nil }

// entry returns the bytes of the entry of a character, nil where there is none. They are looked
// for in the bytes, because the record may have room for few entries.
func (b *batch) entry(t *schema.Tree, list int, character uint64) []byte {
	n := &t.Nodes[list]
	for rest := t.Data[n.Off/8:][:n.Len/8]; len(rest) >= b.character.Size; rest = rest[b.character.Size:] {
		if b.character.Read(rest) == character {
			return rest
		}
	}
	return nil
}

// kind is what is known of the packets with one id.
type kind struct {
	role        role
	development bool
	heartbeat   bool
	latest      [3]sent // by direction
}

// sent is the last packet with an id, which an error may be about.
type sent struct {
	packet int
	time   time.Time
}

// smallIDs is how many ids are found without a search: more than a game has.
const smallIDs = 1 << 10

// maxLatest is how many ids are remembered in each direction: more than a game has, and
// not all that garbage may have.
const maxLatest = 512

// inputSerial is what input_sequence counts in.
var inputSerial = reassembly.Serial{Modulus: 1 << 32}

func (a *answers) init(c *conversation) {
	a.c, a.kinds, a.index, a.others = c, []*kind{{}}, make([]uint16, smallIDs), map[uint64]uint16{}
	hold := c.session.Hold()
	for _, g := range c.schema.Groups {
		for _, id := range g.Opcodes {
			k := a.kind(id)
			k.development = k.development || g.Name == "development"
			k.heartbeat = k.heartbeat || g.Name == "heartbeat"
		}
	}
	for i, p := range pairs {
		a.requests = append(a.requests, dissect.NewRequests(hold))
		for _, name := range p.asks {
			a.is(name, role{asks, i})
		}
		a.is(p.answer, role{replies, i})
	}
	for name, part := range single {
		a.is(name, role{part: part})
	}
	a.inputs = dissect.NewRequests(hold)
	a.stream = dissect.NewSequenceStream(hold, dissect.Rules{Serial: inputSerial, Delivery: dissect.Ordered}, true)
}

// kind returns what is known of an id, which is kept.
func (a *answers) kind(id uint64) *kind {
	if k := a.known(id); k != a.kinds[0] {
		return k
	}
	if id < smallIDs {
		a.index[id] = uint16(len(a.kinds))
	} else {
		a.others[id] = uint16(len(a.kinds))
	}
	k := &kind{}
	a.kinds = append(a.kinds, k)
	return k
}

// known returns what is known of an id, to be read only.
func (a *answers) known(id uint64) *kind {
	if id < smallIDs {
		return a.kinds[a.index[id]]
	}
	return a.kinds[a.others[id]]
}

func (a *answers) is(name string, r role) {
	if p := a.c.schema.PacketNamed(name); p != nil {
		a.kind(p.Opcode).role = r
	}
}

// follow takes a whole record, whose direction is known.
func (a *answers) follow(r *dissect.Record, k *kind, f *piece) {
	var is role
	d := f.at.Direction
	if p := r.Packet; p != nil && (p.From == schema.AnySender || p.From == d.Sender()) {
		is = k.role
	}
	switch {
	case is.part == asks:
		a.requests[is.pair].Asked(r, a.key(r, is.pair))
	case is.part == replies:
		a.replied(r, is.pair)
	case is.part == steers:
		a.steered(r)
	case is.part == moves && r.Err == nil:
		if id, _ := r.Body.Value("character_id"); id == a.c.character {
			seq, _ := r.Body.Value("last_processed_input_sequence")
			a.moved(r, seq)
		}
	case is.part == movesMany:
		a.movedMany(r)
	case is.part == refuses:
		a.refused(r, d.Reverse())
	}
	if k.latest[d].packet == 0 {
		if a.seen[d] == maxLatest {
			return
		}
		a.seen[d]++
		k = a.kind(uint64(r.Opcode))
	}
	k.latest[d] = sent{packetOf(r), r.Time}
}

// key returns what an answer repeats of a request.
func (a *answers) key(r *dissect.Record, i int) uint64 {
	q := a.requests[i]
	switch pairs[i].how {
	case atLatest:
		return q.KeyOf(r.Raw[min(a.c.tcp.Envelope.Size(), len(r.Raw)):])
	case byField:
		at := r.Body.Field(pairs[i].field)
		if at < 0 {
			return 0
		}
		if k := r.Body.Nodes[at].Kind; k == schema.Bytes || k == schema.Text {
			n := &r.Body.Nodes[at]
			return q.KeyOf(r.Body.Data[n.Body/8:][:n.BodyLen])
		}
		return r.Body.Nodes[at].Num
	}
	return 0
}

func (a *answers) replied(r *dissect.Record, i int) {
	q, found := a.requests[i], false
	switch pairs[i].how {
	case inOrder:
		found = q.AnsweredFirst(r)
	case atLatest:
		found = q.AnsweredLast(r, a.key(r, i))
	default:
		found = q.Answered(r, a.key(r, i))
	}
	if !found {
		r.Unasked(a.c.session.Joined)
	}
	if seq, ok := r.Body.Value(pairs[i].field); ok && pairs[i].how == byField && r.Body.Nodes[r.Body.Field(pairs[i].field)].Kind == schema.Uint {
		r.Acks.Seq = int(seq)
	}
}

// steered takes a MoveReq: input that the server processes in its order. Whether it did
// can be seen only where it is known which character is the client's.
func (a *answers) steered(r *dissect.Record) {
	seq, ok := r.Body.Value("input_sequence")
	if !ok || r.Err != nil {
		return
	}
	a.stream.Sent(r, seq, r.Raw, dissect.NoCopy)
	if a.c.character != 0 {
		a.inputs.Asked(r, seq)
	}
}

// moved takes what the server says of the own character.
func (a *answers) moved(r *dissect.Record, seq uint64) {
	if a.c.character != 0 {
		a.inputs.AnsweredUpTo(r, inputSerial, seq)
	}
}

// movedMany takes a batch, for its entry of the own character.
func (a *answers) movedMany(r *dissect.Record) {
	if a.c.character == 0 || !a.inputs.Waiting() {
		return
	}
	t := &r.Body
	list := t.Field("entries")
	if list < 0 {
		return
	}
	if b := a.batchIn(r.Layout); b.known() {
		if entry := b.entry(t, list, a.c.character); entry != nil {
			a.moved(r, b.processed.Read(entry))
		}
		return
	}
	for i := list + 1; i < t.Next(list); i = t.Next(i) {
		if t.Uint(t.Member(i, "character_id")) == a.c.character {
			a.moved(r, t.Uint(t.Member(i, "last_processed_input_sequence")))
			return
		}
	}
}

// refused takes an ErrorRes, which may answer any request.
func (a *answers) refused(r *dissect.Record, of dissect.Direction) {
	id, _ := r.Body.Value("request_packet_id")
	if id == 0 {
		return
	}
	opcode := int(min(id, maxPort+1))
	k := a.known(uint64(opcode))
	switch last := &k.latest[of]; {
	case k.role.part == asks && a.requests[k.role.pair].Refused(r, opcode):
	case k.role.part == steers && a.inputs.Refused(r, opcode):
	case last.packet > 0:
		r.Acks = dissect.Acks{Seq: -1, Message: a.c.schema.OpcodeName(uint64(opcode)), Packet: last.packet, RTT: max(r.Time.Sub(last.time), -1)}
	default:
		r.Unasked(a.c.session.Joined)
	}
}

// packetOf returns the number of the packet that completed r, or 0.
func packetOf(r *dissect.Record) int {
	if len(r.Packets) == 0 {
		return 0
	}
	return r.Packets[len(r.Packets)-1]
}
