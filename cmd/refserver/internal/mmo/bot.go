package mmo

import (
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

const (
	// answerWithin is how long a bot waits for a server before it gives up, and how
	// long a command of its script waits for what it has asked for.
	answerWithin = 20 * time.Second
	patience     = 15 * time.Second
	// leaveWithin is how long it waits for the last answers before it hangs up.
	leaveWithin = 200 * time.Millisecond
)

// BotConfig is what a bot is to be.
type BotConfig struct {
	Name     string // "bot"
	Server   netip.AddrPort
	Script   []Command // nil for the built-in "play"
	Seed     uint64
	Settings *testserver.Settings // nil for those of server.yaml
	Mute     bool                 // it does not answer pings
}

// bot is a client of the MMO that follows a script.
type bot struct {
	*clerk
	machine.Visit
	cfg      BotConfig
	settings *testserver.Settings
	random   *rand.Rand
	in       []byte // the start of a frame that is not whole
	tcp      machine.Parcel

	account   uint64
	character uint64
	hello     hello

	waiting string // the message that the script waits for, if it waits for one
	heard   map[string]int

	walking  *direction // nil for not
	stepped  time.Time
	sequence uint32 // of its inputs
	attacks  uint32
	combo    uint32
	bag      bag
}

// hello is what a bot knows of the UDP endpoint of the server.
type hello struct {
	token    string
	remote   netip.AddrPort // once the server has told it
	attempts int
	said     time.Time
	answered bool
}

// NewBot returns a bot. It asks for a Tick at once, and dials then.
func NewBot(cfg BotConfig, o machine.Observer) machine.Machine {
	if cfg.Name == "" {
		cfg.Name = "bot"
	}
	if cfg.Script == nil {
		cfg.Script, _ = Scripts.Builtin("play")
	}
	if cfg.Settings == nil {
		cfg.Settings = testserver.Default()
	}
	b := &bot{clerk: newClerk(schema.Client, cfg.Settings, o), cfg: cfg, settings: cfg.Settings, heard: map[string]int{}}
	b.Visit = machine.Visit{Name: cfg.Name, Observer: o, Script: script.Begin(cfg.Script), AnswerWithin: answerWithin, LeaveWithin: leaveWithin}
	b.random = rand.New(rand.NewPCG(cfg.Seed, 13))
	b.account = accountOf(cfg.Name, cfg.Seed)
	b.character = b.account*10 + 1
	return b
}

// accountOf returns the account of a bot: the same for a name and a seed, and most
// likely another one for others.
func accountOf(name string, seed uint64) uint64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return 1_000_000 + (uint64(h.Sum32())+seed*7919)%9_000_000
}

// Handle takes one input and returns what to do.
func (b *bot) Handle(now time.Time, in machine.Input) []machine.Output {
	if b.Over {
		return nil
	}
	b.Dial(now, &b.Desk, b.cfg.Server)
	switch in.Kind {
	case machine.Opened:
		if b.inLobby() {
			b.Ready = true
		} else {
			b.enter(now, "")
		}
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
	if b.Over {
		return when
	}
	if b.knocking() {
		when = machine.Earlier(when, b.hello.said.Add(b.settings.Hello.Retry))
	}
	if b.walking != nil {
		when = machine.Earlier(when, b.stepped.Add(tickEvery))
	}
	return when
}

// act does what the time asks for.
func (b *bot) act(now time.Time) {
	if b.Over {
		return
	}
	if b.knocking() && now.Sub(b.hello.said) >= b.settings.Hello.Retry {
		b.knock(now)
	}
	if b.walking != nil && now.Sub(b.stepped) >= tickEvery {
		b.step(now)
	}
	if b.Follows(now) {
		b.follow(now)
	}
}

// knocking reports whether the bot waits for the answer to its UdpHelloReq.
func (b *bot) knocking() bool {
	return b.hello.remote.IsValid() && !b.hello.answered && b.Leaving.IsZero()
}

// knock says hello by UDP, until it is answered or was said often enough. Then the
// bot goes on without UDP.
func (b *bot) knock(now time.Time) {
	h := &b.hello
	if h.attempts >= b.settings.Hello.Attempts {
		b.observer.Event(now, "no_udp", b.cfg.Name+": nobody answers its datagrams")
		h.remote = netip.AddrPort{}
		b.Ready = true
		return
	}
	h.attempts++
	h.said = now
	b.sendDatagram("UdpHelloReq", schema.Values{"udp_token": h.token, "character_id": b.character, "attempt": h.attempts})
}

// enter asks to be let in. How says what is wrong with it: the signature, the time
// or the character; "" for nothing.
func (b *bot) enter(now time.Time, how string) {
	issued, character := now, b.character
	switch how {
	case "expired":
		issued = now.Add(-2 * b.settings.EnterToken.Lifetime)
	case "stranger":
		character++
	}
	token := enterToken(b.settings, issued, claims{Account: b.account, Name: b.cfg.Name, Characters: []uint64{b.character}})
	if how == "wrong" {
		token = token[:len(token)-8] + "AAAAAAAA"
	}
	b.send("EnterGameReq", schema.Values{"enter_token": token, "character_id": character})
}

// step sends the input that is in force.
func (b *bot) step(now time.Time) {
	b.stepped = now
	b.input(now, *b.walking)
}

func (b *bot) input(now time.Time, d direction) {
	if !b.hello.answered {
		return
	}
	b.sequence++
	b.sendDatagram("MoveReq", schema.Values{
		"input_sequence": b.sequence, "move_x": d.x, "move_y": d.y, "yaw": d.yaw, "client_time_ms": b.clock(now),
	})
}

// clock is the time of the client: since it was started.
func (b *bot) clock(now time.Time) uint64 { return 1 + uint64(now.Sub(b.Began).Milliseconds()) }

// send queues a message for the connection.
func (b *bot) send(message string, v schema.Values) {
	r, data, err := b.compose(message, v)
	if err != nil {
		b.observer.Event(b.Began, "dropped", err.Error())
		return
	}
	b.tcp.Add(&b.clerk.Desk, r, data)
}

// sendDatagram sends a message as a datagram.
func (b *bot) sendDatagram(message string, v schema.Values) {
	r, data, err := b.compose(message, v)
	if err != nil {
		b.observer.Event(b.Began, "dropped", err.Error())
		return
	}
	var p machine.Parcel
	p.Add(&b.clerk.Desk, r, data)
	b.post(p)
}

// post sends a datagram, in the order in which things are said.
func (b *bot) post(p machine.Parcel) {
	if !b.hello.remote.IsValid() {
		return
	}
	b.flush()
	b.Do(p.Take(machine.Output{Kind: machine.SendDatagram, Peer: b.hello.remote}))
}

func (b *bot) flush() { b.tcp.Flush(&b.Desk, machine.BotConn) }
