package wulfram

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// What an ACK1 holds at most: entities by this bot's choice, samples by the width
// of their count (section 10.5).
const (
	maxSampled = 4
	maxSamples = 7
)

// stream takes bytes of the connection.
func (b *bot) stream(now time.Time, data []byte) {
	b.tcp.in = append(b.tcp.in, data...)
	for !b.Over {
		frame, err := b.tcp.next()
		if err != nil {
			b.Finish(now, "malformed", err.Error())
			return
		}
		if frame == nil {
			return
		}
		r, err := b.tcp.frame(frame)
		if err != nil {
			b.observer.Event(now, "malformed", err.Error())
			continue
		}
		b.observer.Received(now, b.cfg.Server, r)
		b.handle(now, r)
	}
}

func (b *bot) datagram(now time.Time, in machine.Input) {
	if in.Peer != b.udp.remote {
		b.observer.Event(now, "stranger", in.Peer.String())
		return
	}
	if err := b.udp.receive(now, in.Data); err != nil {
		b.observer.Event(now, "malformed", err.Error())
	}
}

func (b *bot) heard(now time.Time, r machine.Record) {
	b.observer.Received(now, b.udp.remote, r)
	b.handle(now, r)
}

// handle does what a client does about a record.
func (b *bot) handle(now time.Time, r machine.Record) {
	v := values{r.Body}
	switch r.Message {
	case "HELLO":
		b.helloed(now, v)
	case "IDENTIFIED_UDP":
		b.login(now)
	case "LOGIN_STATUS":
		b.loginStatus(now, v.Number("code"))
	case "TRANSLATION":
		b.translated = learnTranslation(b.state, v)
	case "BEHAVIOR":
		learnBehavior(b.state, v)
	case "WORLD_STATS":
		b.want(now)
	case "BPS":
		if b.udp.greeting.IsZero() {
			b.udp.greet(now)
		}
	case "PING_REQUEST":
		b.udp.send(now, "PING", fields{{"timestamp", v.Number("timestamp")}, {"accumulator", b.feedback}})
	case "TANK":
		b.vehicle, b.Until = true, time.Time{}
	case "REINCARNATE":
		if v.Number("code") != spawnDone {
			b.Until = time.Time{}
		}
	case "UPDATE_ARRAY", "VIEW_UPDATE":
		b.sampled(v)
	}
	b.begin(now)
}

// helloed is the client's half of steps 1 to 3 of section 6.
func (b *bot) helloed(now time.Time, v values) {
	switch v.Number("subcommand") {
	case 1:
		b.udp.remote = netip.AddrPortFrom(b.cfg.Server.Addr(), uint16(v.Number("udp_port")))
	case 2:
		b.key = v.Text("key")
		b.tcp.tell(now, "HELLO", fields{{"subcommand", 0}, {"version", protocolVersion}})
	}
}

// login is steps 5 and 6: the confirmation, and who it is.
func (b *bot) login(now time.Time) {
	if b.identified {
		return
	}
	b.identified = true
	b.tcp.tell(now, "HELLO", fields{{"subcommand", 2}})
	b.sendLogin(now, "")
}

func (b *bot) sendLogin(now time.Time, password secret) {
	b.tcp.tell(now, "LOGIN", fields{{"subtype", 0}, {"user", b.cfg.Name}, {"password", password}})
}

func (b *bot) loginStatus(now time.Time, code int) {
	switch code {
	case askPassword:
		b.sendLogin(now, "swordfish")
	case accepted:
		b.accepted = true
	default:
		b.Finish(now, "refused", "the server wants another name")
	}
}

// want is step 9, once the last of step 8 has come. A WORLD_STATS that comes later
// is another map's.
func (b *bot) want(now time.Time) {
	if b.accepted && b.udp.greeting.IsZero() {
		b.tcp.tell(now, "BPS", fields{{"rate", 28800}})
		b.tcp.tell(now, "WANT_UPDATES", nil)
	}
}

// begin is step 11: with both handshakes answered, the script may begin.
func (b *bot) begin(now time.Time) {
	if b.Ready || !b.udp.inForce || !b.udp.learned || b.Over {
		return
	}
	b.Ready = true
	for c := choreDump; c <= choreSamples; c++ {
		b.timers[c] = now
	}
	b.udp.send(now, "ACK2", fields{{"value", 1}})
	if b.cfg.Variant.Oversize {
		b.oversize(now)
	}
}

// sampled notes when updates came.
func (b *bot) sampled(v values) {
	at := uint32(v.Number("sequence"))
	for _, i := range v.elements("entities") {
		b.sample(uint32(v.member(i, "id")), at)
	}
}

func (b *bot) sample(id, at uint32) {
	for i := range b.samples {
		if s := &b.samples[i]; s.id == id {
			if len(s.times) < maxSamples {
				s.times = append(s.times, at)
			}
			return
		}
	}
	if len(b.samples) < maxSampled {
		b.samples = append(b.samples, sample{id, []uint32{at}})
	}
}

func (b *bot) sendSamples(now time.Time) {
	var entities list
	for _, s := range b.samples {
		var times list
		for _, t := range s.times {
			times = append(times, t)
		}
		entities = append(entities, fields{{"id", s.id}, {"sample_count", len(times)}, {"timestamps", times}})
	}
	b.samples = nil
	b.udp.send(now, "ACK1", fields{{"count", len(entities)}, {"entities", entities}})
}
