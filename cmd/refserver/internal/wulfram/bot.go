package wulfram

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/cmd/refserver/internal/transport"
	"opscope/schema"
)

// How often a client says what it says by itself (section 6, 14; the last two are
// this bot's own choice).
const (
	dumpEvery     = 800 * time.Millisecond
	feedbackEvery = 200 * time.Millisecond
	roundEvery    = 2 * time.Second // between PING_REQUESTs
	samplesEvery  = time.Second     // between ACK1s
)

const (
	// answerWithin is how long a bot waits for a server before it gives up.
	answerWithin = 20 * time.Second
	// spawnWithin is how long it waits for a vehicle.
	spawnWithin = 5 * time.Second
	// leaveWithin is how long it waits for its last acknowledgements.
	leaveWithin = 2 * time.Second
	helloEvery  = 500 * time.Millisecond // between keys, until it is known by UDP
)

// BotConfig is what a bot is to be.
type BotConfig struct {
	Name    string // "bot"
	Server  netip.AddrPort
	Script  []Command // nil for the built-in "play"
	Seed    uint64
	Variant Variant
}

// Variant is what a bot does on purpose unlike an ordinary client.
type Variant struct {
	Prefixed  bool // a size prefix in front of every datagram
	Delimited bool // FF FF in front of every datagram
	// FirstSeq is where all sequences begin that it sends or expects; 1. The server
	// has to begin there as well.
	FirstSeq uint16
	Oversize bool // it tries to send what is too large, before its script begins
}

// bot is a Wulfram client that follows a script.
type bot struct {
	*clerk
	machine.Visit
	cfg    BotConfig
	random *rand.Rand
	tcp    frames
	udp    *link

	key        string
	identified bool
	accepted   bool
	translated bool // it can read what the widths of TRANSLATION describe

	vehicle  bool
	inputs   inputs
	feedback uint32
	samples  []sample
	timers   map[chore]time.Time // when each was last done
}

// chore is something that is done again and again.
type chore uint8

const (
	choreHello chore = iota
	choreDump
	choreFeedback
	choreRound
	choreSamples
)

var choreEvery = [...]time.Duration{helloEvery, dumpEvery, feedbackEvery, roundEvery, samplesEvery}

// sample is when updates of an entity came, for an ACK1.
type sample struct {
	id    uint32
	times []uint32
}

// NewBot returns a bot. It asks for a Tick at once, and dials then.
func NewBot(cfg BotConfig, o machine.Observer) machine.Machine {
	if cfg.Name == "" {
		cfg.Name = "bot"
	}
	if cfg.Script == nil {
		cfg.Script, _ = Scripts.Builtin("play")
	}
	b := &bot{clerk: newClerk(schema.Client, o), cfg: cfg, timers: map[chore]time.Time{}}
	b.Visit = machine.Visit{Name: cfg.Name, Observer: o, Script: script.Begin(cfg.Script), AnswerWithin: answerWithin, LeaveWithin: leaveWithin}
	b.random = rand.New(rand.NewPCG(cfg.Seed, 3))
	b.tcp = frames{clerk: b.clerk, conn: machine.BotConn}
	b.udp = &link{clerk: b.clerk, number: transport.InFlight, heard: b.heard, wrap: cfg.Variant.wrapper(),
		sender:   transport.NewSender[*letter](clientTable(), cfg.Variant.FirstSeq),
		receiver: transport.NewReceiver(cfg.Variant.FirstSeq)}
	return b
}

func (v Variant) wrapper() wrapper {
	switch {
	case v.Prefixed:
		return prefixed
	case v.Delimited:
		return delimited
	}
	return bare
}

// Handle takes one input and returns what to do.
func (b *bot) Handle(now time.Time, in machine.Input) []machine.Output {
	if b.Over {
		return nil
	}
	if b.Dial(now, &b.Desk, b.cfg.Server) {
		b.udp.started = now
	}
	switch in.Kind {
	case machine.Refused, machine.Closed:
		b.HungUp(now)
	case machine.Stream:
		b.stream(now, in.Data)
	case machine.Datagram:
		b.datagram(now, in)
	}
	b.act(now)
	b.tcp.flush()
	b.udp.flush()
	return b.Settled(&b.Desk)
}

// Deadline returns when the bot has something to do. Before it has begun that is
// at once.
func (b *bot) Deadline() time.Time {
	when := b.Visit.Deadline()
	if b.Over {
		return when
	}
	when = machine.Earlier(when, b.udp.deadline())
	for c := range chore(len(choreEvery)) {
		if b.wants(c) {
			when = machine.Earlier(when, b.timers[c].Add(choreEvery[c]))
		}
	}
	return when
}

// wants reports whether a chore is to be done at this stage.
func (b *bot) wants(c chore) bool {
	if c == choreHello {
		return b.key != "" && b.udp.remote.IsValid() && !b.identified
	}
	return b.Ready && (c != choreSamples || len(b.samples) > 0)
}

// act does what the time asks for.
func (b *bot) act(now time.Time) {
	if b.Over {
		return
	}
	for c := range chore(len(choreEvery)) {
		if b.wants(c) && now.Sub(b.timers[c]) >= choreEvery[c] {
			b.timers[c] = now
			b.chore(now, c)
		}
	}
	b.udp.tick(now)
	switch {
	case b.udp.failed != nil:
		b.Finish(now, "backlog", b.udp.failed.Error())
	case !b.Leaving.IsZero() && b.udp.sender.Idle():
		b.Finish(now, "left", "the script is over")
	case b.Follows(now):
		b.follow(now)
	}
}

func (b *bot) chore(now time.Time, c chore) {
	t := b.udp.clock(now)
	switch c {
	case choreHello:
		b.udp.send(now, "ROOT", fields{{"text", "Hello There"}})
		b.udp.send(now, "HELLO", fields{{"subcommand", 1}, {"key", b.key}})
	case choreDump:
		var all list
		for channel := 1; channel < channels; channel++ {
			all = append(all, table.input(channel, b.inputs[channel]))
		}
		b.udp.send(now, "ACTION_DUMP", fields{{"timestamp", t}, {"pending", 0}, {"values", all}})
	case choreFeedback:
		b.feedback += 1 + b.random.Uint32N(9)
		b.udp.send(now, "INPUT_FEEDBACK", fields{{"accumulator", b.feedback}})
	case choreRound:
		b.udp.send(now, "PING_REQUEST", fields{{"timestamp", t}, {"accumulator", b.feedback}})
	case choreSamples:
		b.sendSamples(now)
	}
}

// table is the TRANSLATION that bots write with: their server's.
var table = translation()
