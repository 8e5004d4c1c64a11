package transport

import (
	"fmt"
	"strings"
	"testing"
)

const (
	latestOp  = 0x35
	orderedOp = 0x20
	beaconA   = 0x3A
	beaconB   = 0x3B
)

var testTable = Table{
	Groups: []Group{{Name: "Beacon Stream", Members: []uint8{beaconA, beaconB}}},
	Pairs:  []Pair{{latestOp, Latest}, {orderedOp, Ordered}, {beaconA, Ordered}, {beaconB, Ordered}},
}

// receive feeds steps such as "20:3" (opcode:sequence), "ignore 20:4" and "start
// 35:9", and describes what came of each: what was delivered, the verdict, "ack".
func receive(t *testing.T, r *Receiver, steps ...string) (got []string) {
	t.Helper()
	for _, step := range steps {
		verb, arg := "", step
		if i := strings.IndexByte(step, ' '); i > 0 {
			verb, arg = step[:i], step[i+1:]
		}
		var opcode uint8
		var seq uint16
		if _, err := fmt.Sscanf(arg, "%x:%d", &opcode, &seq); err != nil {
			t.Fatalf("step %q: %v", step, err)
		}
		got = append(got, outcome(r, verb, opcode, seq))
	}
	return got
}

func outcome(r *Receiver, verb string, opcode uint8, seq uint16) string {
	var out []Delivery
	var words []string
	var ack bool
	switch verb {
	case "ignore":
		out, ack = r.Ignore(opcode, seq)
	case "start":
		r.SetStart(opcode, seq)
	default:
		var v Verdict
		out, v, ack = r.Receive(opcode, seq, []byte{byte(seq)})
		words = append(words, v.String())
	}
	for _, d := range out {
		words = append(words, fmt.Sprint(d.Seq))
	}
	if ack {
		words = append(words, "ack")
	}
	return strings.Join(words, " ")
}

func TestReceiver(t *testing.T) {
	tests := []struct {
		name  string
		first uint16
		steps []string
		wants []string
	}{
		{"ordered records are delivered in order and acknowledged", 1,
			[]string{"20:1", "20:2", "20:3"}, []string{"delivered 1 ack", "delivered 2 ack", "delivered 3 ack"}},
		{"a future one waits, is acknowledged, and follows its predecessor", 1,
			[]string{"20:2", "20:4", "20:1", "20:3"}, []string{"queued ack", "queued ack", "delivered 1 2 ack", "delivered 3 4 ack"}},
		{"of two copies that wait the first is kept", 1,
			[]string{"20:2", "20:2", "20:1"}, []string{"queued ack", "duplicate ack", "delivered 1 2 ack"}},
		{"a stale ordered one is acknowledged and dropped", 1,
			[]string{"20:1", "20:1", "20:0"}, []string{"delivered 1 ack", "duplicate ack", "duplicate ack"}},
		{"five ahead of the cursor is inside, six is not", 1,
			[]string{"20:7", "20:6"}, []string{"out_of_window", "queued ack"}},
		{"the first sequence is 1, so 0 is stale", 1,
			[]string{"20:0"}, []string{"duplicate ack"}},
		{"after 65534 comes 0", 65533,
			[]string{"20:65533", "20:0", "20:65534", "20:1"}, []string{"delivered 65533 ack", "queued ack", "delivered 65534 0 ack", "delivered 1 ack"}},
		{"the window reaches over the wrap", 65532,
			[]string{"20:2", "20:3"}, []string{"queued ack", "out_of_window"}},
		{"65535 is rejected, also where a window of 65536 numbers would hold it", 65533,
			[]string{"20:65535", "35:65535", "ignore 20:65535"}, []string{"invalid_sequence", "invalid_sequence", ""}},
		{"a newer mode 1 record passes over the missing ones", 1,
			[]string{"35:1", "35:4", "35:2", "35:5"}, []string{"delivered 1 ack", "delivered 4 ack", "duplicate", "delivered 5 ack"}},
		{"mode 1 skips what is older or beyond the window, unacknowledged", 1,
			[]string{"35:1", "35:1", "35:8", "35:7"}, []string{"delivered 1 ack", "duplicate", "out_of_window", "delivered 7 ack"}},
		{"mode 1 wraps", 65534,
			[]string{"35:65534", "35:0", "35:65534"}, []string{"delivered 65534 ack", "delivered 0 ack", "duplicate"}},
		{"opcodes have streams of their own", 1,
			[]string{"20:1", "35:1", "3A:1"}, []string{"delivered 1 ack", "delivered 1 ack", "delivered 1 ack"}},
		{"the members of a group share one", 1,
			[]string{"3A:1", "3B:2", "3B:1", "3A:3"}, []string{"delivered 1 ack", "delivered 2 ack", "duplicate ack", "delivered 3 ack"}},
		{"an ignored sequence is skipped at once when it is next", 1,
			[]string{"20:2", "ignore 20:1", "20:1", "20:3"}, []string{"queued ack", "2 ack", "duplicate ack", "delivered 3 ack"}},
		{"an ignored future sequence drains when it becomes next", 1,
			[]string{"ignore 20:2", "20:3", "20:1"}, []string{"ack", "queued ack", "delivered 1 3 ack"}},
		{"a stale mark is acknowledged, one far away is not", 1,
			[]string{"20:1", "ignore 20:1", "ignore 20:17"}, []string{"delivered 1 ack", "ack", ""}},
		{"a mark means nothing to mode 1", 1,
			[]string{"ignore 35:1", "35:1"}, []string{"", "delivered 1 ack"}},
		{"a start moves the cursor of mode 1, and only there", 1,
			[]string{"start 35:40", "35:40", "start 20:40", "20:40", "20:1"}, []string{"", "delivered 40 ack", "", "out_of_window", "delivered 1 ack"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := NewReceiver(test.first)
			r.Learn(testTable)
			got := receive(t, r, test.steps...)
			for i := range got {
				if got[i] != test.wants[i] {
					t.Errorf("%s: %q, want %q", test.steps[i], got[i], test.wants[i])
				}
			}
		})
	}
}

func TestReceiverKeepsNothingOfItsCaller(t *testing.T) {
	r := NewReceiver(1)
	r.Learn(testTable)
	body := []byte("two")
	r.Receive(orderedOp, 2, body)
	copy(body, "changed")
	out, _, _ := r.Receive(orderedOp, 1, []byte("one"))
	if len(out) != 2 || string(out[1].Body) != "two" {
		t.Errorf("delivered %v, want one and two", out)
	}
}

func TestLearnBeginsAnewOnlyForAnotherTable(t *testing.T) {
	r := NewReceiver(1)
	if r.Mode(orderedOp) != Raw {
		t.Errorf("mode before a handshake = %d, want raw", r.Mode(orderedOp))
	}
	if !r.Learn(testTable) {
		t.Error("the first table is none")
	}
	receive(t, r, "20:1")
	if r.Learn(testTable) {
		t.Error("the same table again counts as another one")
	}
	if got := receive(t, r, "20:2")[0]; got != "delivered 2 ack" {
		t.Errorf("after the same table: %q", got)
	}
	r.Learn(Table{Pairs: []Pair{{orderedOp, Ordered}}})
	if got := receive(t, r, "20:1")[0]; got != "delivered 1 ack" {
		t.Errorf("after another table: %q", got)
	}
}
