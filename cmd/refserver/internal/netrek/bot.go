package netrek

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/reassembly"
	"opscope/schema"
)

const (
	// answerWithin is how long a bot waits for a server before it gives up,
	// patience how long a command of its script waits for what it has asked for.
	answerWithin = 20 * time.Second
	patience     = 15 * time.Second
	// verifyEvery is how often a bot knocks on the server's UDP port, verifyTimes
	// how often at most.
	verifyEvery = 500 * time.Millisecond
	verifyTimes = 10
	// leaveWithin is how long it waits for the server to hang up.
	leaveWithin = time.Second
)

// circle is the circle of sequence numbers.
var circle = reassembly.Serial{Modulus: 1 << 16}

// BotConfig is what a bot is to be.
type BotConfig struct {
	Name   string // "bot"; guest has no password
	Server netip.AddrPort
	Local  netip.AddrPort // of its datagrams: the port that it announces
	Script []Command      // nil for the built-in "play"
	Seed   uint64
	// SocketVersion and UDPVersion are what CP_SOCKET says; 0 for the right ones.
	SocketVersion, UDPVersion int
}

// bot is a Netrek client that follows a script.
type bot struct {
	*clerk
	machine.Visit
	cfg   BotConfig
	state *schema.State
	in    []byte // the start of a packet that is not whole
	tcp   machine.Parcel
	udp   flow

	slot     int // -1 before it is known
	asked    bool
	accepted bool
	waiting  waiting // for what the script waits, if it waits for something

	status status
	masked bool // it may choose a team
	short  int  // version of short packets, 0 for none
	wanted int  // the version that it has asked for
	tries  int  // how often it had to wait for its turn to choose
	ships  [MaxSlots]sight
}

// sight is what a bot knows of a player.
type sight struct {
	status status
	team   int
	x, y   int
	known  bool // x and y are
}

// flow is the bot's end of the UDP flow.
type flow struct {
	asked    bool
	on       bool
	remote   netip.AddrPort // once it is known
	sequence uint16
	counted  bool // a sequence has come
	knocks   int
	knocked  time.Time
	sent     int
	received int
}

// waiting is what a script may wait for.
type waiting uint8

const (
	awaitShip waiting = iota
	awaitDead
	awaitEnemy
	awaitOutfit
	awaitUDP
	awaitShort
)

// NewBot returns a bot. It asks for a Tick at once, and dials then.
func NewBot(cfg BotConfig, o machine.Observer) machine.Machine {
	if cfg.Name == "" {
		cfg.Name = "bot"
	}
	if cfg.Script == nil {
		cfg.Script, _ = Scripts.Builtin("play")
	}
	if cfg.SocketVersion == 0 {
		cfg.SocketVersion = socketVersion
	}
	if cfg.UDPVersion == 0 {
		cfg.UDPVersion = udpVersion
	}
	b := &bot{clerk: newClerk(schema.Client, o), cfg: cfg, slot: -1}
	b.Visit = machine.Visit{Name: cfg.Name, Observer: o, Script: script.Begin(cfg.Script), AnswerWithin: answerWithin, LeaveWithin: leaveWithin}
	b.state = b.newState()
	return b
}

// Handle takes one input and returns what to do.
func (b *bot) Handle(now time.Time, in machine.Input) []machine.Output {
	if b.Over {
		return nil
	}
	b.Dial(now, &b.Desk, b.cfg.Server)
	switch in.Kind {
	case machine.Opened:
		b.tell("CP_SOCKET", schema.Values{"version": b.cfg.SocketVersion, "udp_version": b.cfg.UDPVersion, "socket": int(b.cfg.Local.Port())})
		b.askFeature("FEATURE_PACKETS")
	case machine.Refused, machine.Closed:
		b.HungUp(now)
	case machine.Stream:
		b.stream(now, in.Data)
	case machine.Datagram:
		b.datagram(now, in)
	}
	b.act(now)
	b.flush()
	return b.Settled(&b.Desk)
}

// Deadline returns when the bot has something to do. Before it has begun that is at
// once.
func (b *bot) Deadline() time.Time {
	when := b.Visit.Deadline()
	if !b.Over && b.knocking() {
		when = machine.Earlier(when, b.udp.knocked.Add(verifyEvery))
	}
	return when
}

// act does what the time asks for.
func (b *bot) act(now time.Time) {
	if b.Over {
		return
	}
	if b.knocking() && now.Sub(b.udp.knocked) >= verifyEvery {
		b.knock(now)
	}
	if b.Follows(now) {
		b.follow(now)
	}
}

// knocking reports whether the bot waits for the server's first datagram.
func (b *bot) knocking() bool {
	return b.udp.asked && !b.udp.on && b.udp.remote.IsValid() && b.udp.knocks < verifyTimes
}

// knock sends the verification (section 7, step 3).
func (b *bot) knock(now time.Time) {
	b.udp.knocks++
	b.udp.knocked = now
	b.sendDatagram("CP_UDP_REQ", schema.Values{"request": requestVerify, "connmode": 0, "port": 0})
}

// clientOverUDP is the packets that a client sends over UDP while that is on
// (section 7).
var clientOverUDP = newClientOverUDP()

func newClientOverUDP() map[string]bool {
	set := map[string]bool{}
	for _, name := range []string{
		"SPEED", "DIRECTION", "PHASER", "PLASMA", "TORP", "QUIT", "PRACTR", "SHIELD", "REPAIR", "ORBIT", "PLANLOCK", "PLAYLOCK", "BOMB", "BEAM",
		"CLOAK", "DET_TORPS", "DET_MYTORP", "REFIT", "TRACTOR", "REPRESS", "COUP", "DOCKPERM", "SCAN", "PING_RESPONSE",
	} {
		set["CP_"+name] = true
	}
	return set
}

// send sends a packet by the transport that its type has.
func (b *bot) send(message string, v schema.Values) {
	if b.udp.on && clientOverUDP[message] {
		b.sendDatagram(message, v)
		return
	}
	b.tell(message, v)
}

// tell queues a packet for the connection.
func (b *bot) tell(message string, v schema.Values) {
	r, data, err := b.append(nil, b.state, message, v)
	if err != nil {
		b.observer.Event(b.Began, "dropped", err.Error())
		return
	}
	b.tcp.Add(&b.clerk.Desk, r, data)
}

// sendDatagram sends one packet as a datagram.
func (b *bot) sendDatagram(message string, v schema.Values) {
	r, data, err := b.append(nil, b.state, message, v)
	if err != nil {
		b.observer.Event(b.Began, "dropped", err.Error())
		return
	}
	b.udp.sent++
	var p machine.Parcel
	p.Add(&b.clerk.Desk, r, data)
	b.flush() // in the order in which it was said
	b.Do(p.Take(machine.Output{Kind: machine.SendDatagram, Peer: b.udp.remote}))
}

func (b *bot) flush() { b.tcp.Flush(&b.Desk, machine.BotConn) }
