package wulfram

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"opscope/schema"
)

// Numbers by hand from section 7.1.
func TestQuantise(t *testing.T) {
	w := translation()
	tests := []struct {
		name  string
		slot  int
		value float64
		bits  int
		raw   uint64
		read  float64
	}{
		{"zero is raw 0", slotPosition, 0, 16, 0, 0},
		{"the most is raw 1", slotPosition, 8192, 16, 1, 8192},
		{"beyond it likewise", slotPosition, 9999, 16, 1, 8192},
		{"the least is raw 2^n - 1", slotPosition, -8192, 16, 65535, -8192},
		{"health of ten bits", slotHealth, 1, 10, 1, 1},
		{"half a health", slotHealth, 0.5, 10, 512, 0.5},
		{"a full turn of an input is truncated", slotAnalogue, 1, 16, 32735, 1000 - 32734*2000.0/65534},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := w[test.slot].quantise(test.value, test.bits)
			if q.raw != test.raw || math.Abs(q.value-test.read) > 1e-9 {
				t.Errorf("raw %d, read as %v; want %d, %v", q.raw, q.value, test.raw, test.read)
			}
		})
	}
	if got := w[slotPosition].bits(15); got != 16 {
		t.Errorf("the finest position has %d bits, want 16", got)
	}
	// n = max(1, b - 2^a + 1) + selector: 1 + selector for a = 4 and b = 16.
	if got := w[slotPosition].bits(3); got != 4 {
		t.Errorf("selector 3 gives %d bits, want 4", got)
	}
}

// bodyOf encodes a body as the side sends it.
func bodyOf(t *testing.T, side schema.Sender, message string, f fields) []byte {
	t.Helper()
	c := newClerk(side, nil)
	(&rules{widths: translation()}).teach(c.state)
	_, body, err := c.compose(message, f)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Sizes that the facts state.
func TestSizesOfBodies(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Name: "Ada"})
	w.run(30 * time.Second)
	w.run(time.Second)
	sizes := map[string]map[int]bool{}
	for _, s := range []*station{w.server, w.bots[0]} {
		for _, r := range s.sent {
			if sizes[r.Message] == nil {
				sizes[r.Message] = map[int]bool{}
			}
			sizes[r.Message][r.Size] = true
		}
	}
	for message, want := range map[string][]int{
		"BEHAVIOR": {3566}, "ACTION_DUMP": {23}, "ACTION_UPDATE": {13, 14}, "PING_REQUEST": {7, 9}, "D_ACK": {5, 6},
		"D_IGNORE": {4}, "TANK_RESEND_REQUEST": {5}, "VIEWPOINT_INFO": {9}, "UPDATE_STATS": {35}, "SUPPLY_SHIP_INFO": {46},
		"REINCARNATE": {14, 22, 4, 5, 24, 28}, "IDENTIFIED_UDP": {1}, "ACK2": {9},
	} {
		for size := range sizes[message] {
			found := false
			for _, w := range want {
				found = found || w == size
			}
			if !found {
				t.Errorf("%s of %d bytes, want one of %v", message, size, want)
			}
		}
		if len(sizes[message]) == 0 {
			t.Errorf("no %s was sent", message)
		}
	}
}

// Bytes that were published elsewhere, encoded by this package: the vectors'
// names are in the comments. They use the table QT-WF and no weapon slots.
func TestPublishedBytes(t *testing.T) {
	tests := []struct {
		name    string // of the vector
		side    schema.Sender
		message string
		fields  fields
		want    string
	}{
		{"hello-udp-config", schema.Server, "HELLO", fields{{"subcommand", 1}, {"udp_port", 2627}, {"host_count", 1}, {"hosts", list{"127.0.0.1"}}},
			"010a430001000a3132372e302e302e3100"},
		{"ship-status", schema.Server, "SHIP_STATUS", fields{{"ship_id", 0x12345678}, {"team", 2}, {"name", "Supply Ship"}},
			"123456780002000c537570706c79205368697000"},
		{"world-stats", schema.Server, "WORLD_STATS", fields{{"map", "bpass"}, {"byte_a", 1}, {"byte_b", 1}, {"fixed", 1.0}},
			"0006627061737300010100010000"},
		{"og-action-release", schema.Client, "ACTION_UPDATE", fields{{"count", 1}, {"timestamp", 134103}, {"pending", 0},
			{"changes", list{fields{{"channel", 8}, {"value", table.input(8, 0)}}}}}, "0100020bd700000000000800"},
		{"transient-fx-0", schema.Server, "TRANSIENT_ARRAY", fields{{"count", 1}, {"events", list{fields{{"type", 1}, {"has_position", 1},
			{"position_raw", list{table[slotPosition].quantise(5050, 16).raw, table[slotPosition].quantise(4950, 16).raw, table[slotPosition].quantise(3.5, 16).raw}},
			{"has_entity", 1}, {"entity", 1337}}}}}, "010001988c19543ff9414e40"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := hex.EncodeToString(bodyOf(t, test.side, test.message, test.fields)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// What is encoded decodes to the values that the record names, widths and all.
func TestRecordsNameWhatTheWireCarries(t *testing.T) {
	w := newCable(t, ServerConfig{Entities: 20}, BotConfig{Name: "Ada"})
	w.run(10 * time.Second)
	s := w.server.machine.(*server)
	for _, e := range s.world.entities {
		f := fields{{"sequence", 1}, {"local_state", s.world.rules.localState(e)}, {"count", 1}, {"entities", list{s.world.rules.record(e, 0x3FF)}}}
		sent, body, err := s.compose("UPDATE_ARRAY", f)
		if err != nil {
			t.Fatal(err)
		}
		got := schema.Tree{Data: body}
		d := schema.Decoder{State: s.state}
		if err := d.Decode(s.protocol, "UPDATE_ARRAY", s.protocol.PacketNamed("UPDATE_ARRAY").Of(schema.Server)[0], &got, 0, 8*len(body)); err != nil {
			t.Fatal(err)
		}
		if len(got.Nodes) != len(sent.Body.Nodes) {
			t.Fatalf("entity of type %d: %d values, want %d", e.kind, len(got.Nodes), len(sent.Body.Nodes))
		}
		for i := range got.Nodes {
			a, b := &got.Nodes[i], &sent.Body.Nodes[i]
			if a.Float() != b.Float() && a.Num != b.Num || a.Field.Name != b.Field.Name && b.Field.Name != "" {
				t.Errorf("type %d: %s = %v, want %s = %v", e.kind, a.Field.Name, a.Float(), b.Field.Name, b.Float())
			}
		}
	}
}

func TestWrapperOf(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want wrapper
	}{
		{"a size that counts itself", "0006190001ff", prefixed},
		{"a size that does not", "0005190001ff", bare},
		{"FF FF", "ffff08", delimited},
		{"a lone FF FF is no datagram", "ffff", bare},
		{"an ordinary record", "0c00000000", bare},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, _ := hex.DecodeString(test.hex)
			if got := wrapperOf(b); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	ack := make([]byte, 0x0201)
	ack[0], ack[1] = 0x02, 0x01
	if wrapperOf(ack) != bare {
		t.Error("a D_ACK at the start of 513 bytes is taken for their size")
	}
}
