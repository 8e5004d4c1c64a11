package wulfram

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/transport"
	"opscope/schema"
)

// The schema states the same limits; both were read out of the facts.
func TestLimitsAreTheSchemas(t *testing.T) {
	p := newClerk(schema.Server, nil).protocol
	for name, got := range map[string]int64{
		"datagram": maxDatagram, "payload": maxPayload, "tcp_payload": maxTCPPayload, "entities": maxEntities,
		"window": transport.Window, "in_flight": transport.InFlight, "sequence_modulus": transport.Modulus,
		"first_sequence": transport.First, "retry_first_ms": transport.RetrySeed.Milliseconds(),
		"retry_min_ms": transport.RetryMin.Milliseconds(), "retry_max_ms": transport.RetryMax.Milliseconds(),
		"retry_samples": transport.RetrySamples, "handshake_groups": maxGroups, "handshake_members": maxMembers,
		"handshake_pairs": maxPairs, "last_opcode": lastOpcode,
	} {
		if want := p.Limit(name); got != want {
			t.Errorf("%s = %d, the schema says %d", name, got, want)
		}
	}
}

// checkSizes fails for any output beyond the limits of section 4.5, and for
// records that do not cover their output.
func checkSizes(t testing.TB, from *station, o machine.Output) {
	if o.Kind == machine.SendDatagram && len(o.Data) > 3072 {
		t.Errorf("%s sends a datagram of %d bytes", from.name, len(o.Data))
	}
	end := 0
	for i, r := range o.Records {
		if i == 0 {
			end = r.Offset
		}
		if r.Offset != end {
			t.Errorf("%s: %s is at byte %d, want %d", from.name, r.Message, r.Offset, end)
		}
		end += r.Size
		if o.Kind == machine.SendStream && r.Size > 10242 {
			t.Errorf("%s: %s is a frame of %d bytes", from.name, r.Message, r.Size)
		}
		if r.Seq >= 0 && (r.Seq == 65535 || r.Length != r.Size || r.Size-4 > 3068) {
			t.Errorf("%s: %s has sequence %d, length %d, %d bytes", from.name, r.Message, r.Seq, r.Length, r.Size)
		}
	}
	if end != len(o.Data) {
		t.Errorf("%s: the records end at byte %d of %d", from.name, end, len(o.Data))
	}
}

func TestSizesOfAFullWorld(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 3, Entities: 700, Welcome: strings.Repeat("welcome to the world ", 1000)},
		BotConfig{Name: "Ada", Script: scripted(t, "team red\nspawn 1 tank\nlong 9000\noversize\nsay /long 20000\nwait 5s")})
	times := map[uint64]int{}     // entities by publication time
	snapshot := map[uint64]bool{} // ids in the views by TCP
	w.seen = func(from *station, o machine.Output) {
		checkSizes(t, from, o)
		for _, r := range o.Records {
			v := values{r.Body}
			entities := v.elements("entities")
			if len(entities) > 255 {
				t.Errorf("%s holds %d entities", r.Message, len(entities))
			}
			switch {
			case r.Message == "UPDATE_ARRAY":
				times[uint64(v.Number("sequence"))] += len(entities)
			case r.Message == "VIEW_UPDATE" && r.Mode < 0:
				for _, i := range entities {
					snapshot[uint64(v.member(i, "id"))] = true
				}
			}
		}
	}
	w.run(20 * time.Second)
	if len(snapshot) != 700 {
		t.Errorf("the views by TCP hold %d entities, want 700", len(snapshot))
	}
	full := 0
	for _, n := range times {
		if n == 700 {
			full++
		}
	}
	if full == 0 {
		t.Errorf("no publication time is shared by datagrams with all 700 entities: %v", times)
	}
	if got := strings.Count(strings.Join(w.bots[0].events, "\n"), "dropped"); got != 2 {
		t.Errorf("%d records of the bot were dropped as too large, want 2: %q", got, w.bots[0].events)
	}
	for _, text := range texts(w.server, "COMM_MESSAGE_REQUEST") {
		if len(text) > maxText {
			t.Errorf("a chat of %d bytes", len(text))
		}
	}
	if got := strings.Join(texts(w.bots[0], "COMM_MESSAGE"), ""); len(got) != 21000+9000+20000 {
		t.Errorf("the bot has heard %d bytes of text", len(got))
	}
}

func TestPieces(t *testing.T) {
	word := strings.Repeat("x", 3050)
	tests := []struct {
		name string
		text string
		want []int // lengths of the parts
	}{
		{"an empty text is one part", "", []int{0}},
		{"3052 bytes fit", strings.Repeat("x", 3052), []int{3052}},
		{"3053 without a break are cut at 3052", strings.Repeat("x", 3053), []int{3052, 1}},
		{"a space that ends the part stays in it", word + "x y", []int{3052, 1}},
		{"a word is moved on whole", word + " yy", []int{3051, 2}},
		{"a line break counts like a space", strings.Repeat("x", 3000) + "\n" + strings.Repeat("y", 100), []int{3001, 100}},
		{"the last break counts", "a b\n" + word, []int{4, 3050}},
		{"three parts", strings.Repeat("x", 7000), []int{3052, 3052, 896}},
		{"a letter beyond ASCII is one byte in Latin-1", strings.Repeat("é", 3053), []int{3052, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			parts := pieces(test.text)
			var got []int
			for _, p := range parts {
				got = append(got, len([]rune(p)))
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("parts of %v, want %v", got, test.want)
			}
			if strings.Join(parts, "") != test.text {
				t.Error("the parts together are not the text")
			}
		})
	}
}

// A part of the full size makes the largest ordered payload, and no larger one.
func TestAFullPartIsTheLargestPayload(t *testing.T) {
	c := newClerk(schema.Server, nil)
	_, body, err := c.compose("COMM_MESSAGE", fields{{"type", 0}, {"source_id", 0}, {"scope", 0}, {"recipient", 0}, {"text", strings.Repeat("x", maxText)}})
	if err != nil || 1+len(body) != maxPayload {
		t.Errorf("payload of %d bytes, %v; want %d", 1+len(body), err, maxPayload)
	}
}

// Each format at its limit, and one byte beyond.
func TestOversizeIsDroppedNotTruncated(t *testing.T) {
	tests := []struct {
		name string
		send func(s *session, extra int)
		size int // of the output at the limit
	}{
		{"a raw record in a datagram of 3072", func(c *session, extra int) {
			c.udp.send(epoch, "REINCARNATE", fields{{"code", 0}, {"message", strings.Repeat("x", 3067+extra)}})
		}, 3072},
		{"an ordered record with a payload of 3068", func(c *session, extra int) {
			c.udp.inForce = true
			c.chat(epoch, 0, 0, 0, "")
			c.udp.pending = machine.Output{}
			c.udp.send(epoch, "COMM_MESSAGE", fields{{"type", 0}, {"source_id", 0}, {"scope", 0}, {"recipient", 0}, {"text", strings.Repeat("x", 3052+extra)}})
		}, 3072},
		{"a TCP frame with a payload of 10240", func(c *session, extra int) {
			c.tcp.tell(epoch, "MOTD", fields{{"text", strings.Repeat("x", 10236+extra)}})
		}, 10242},
	}
	for _, test := range tests {
		for extra := range 2 {
			t.Run(fmt.Sprint(test.name, " and ", extra), func(t *testing.T) {
				o := &station{name: "server", acked: map[int]bool{}}
				s := NewServer(ServerConfig{Addr: serverAddr}, o).(*server)
				s.Handle(epoch, machine.Input{Kind: machine.Opened, Conn: 1})
				s.sessions[0].udp.remote = serverAddr
				test.send(s.sessions[0], extra)
				s.settle(epoch)
				size := 0
				for _, out := range s.Take() {
					size += len(out.Data)
				}
				dropped := len(o.events) == 1 && strings.HasPrefix(o.events[0], "dropped")
				if extra == 0 && (size != test.size || dropped) || extra == 1 && (size != 0 || !dropped) {
					t.Errorf("sent %d bytes, told %q", size, o.events)
				}
			})
		}
	}
}

// A client that acknowledges nothing is disconnected, not forgotten.
func TestBacklogDisconnects(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Script: scripted(t, "say /flood 2000\nwait 30s")})
	w.run(30 * time.Second)
	if got := strings.Join(w.server.events, "\n"); !strings.Contains(got, "session_end") || !strings.Contains(got, "backlog") {
		t.Errorf("the server told %q", got)
	}
	if len(w.server.machine.(*server).sessions) != 0 {
		t.Error("the session is still there")
	}
}
