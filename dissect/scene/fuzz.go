package scene

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"opscope/dissect"
)

// Vectors hands over the byte vectors that a protocol has for one transport, and whether
// the client sends them. It is called from a package two folders below the project's.
func Vectors(f *testing.F, protocol, transport string, add func(data []byte, client bool)) {
	f.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/vectors", protocol, "vectors.json"))
	if err != nil {
		f.Fatal(err)
	}
	var list []struct{ Hex, Transport, Direction string }
	if err := json.Unmarshal(b, &list); err != nil {
		f.Fatal(err)
	}
	added := 0
	for _, v := range list {
		if data, err := hex.DecodeString(v.Hex); err == nil && v.Transport == transport {
			add(data, v.Direction == "c2s")
			added++
		}
	}
	if added == 0 {
		f.Fatalf("no vectors of %s over %s", protocol, transport)
	}
}

// SendCut sends bytes in segments of 1 to 256 bytes, whose lengths less one are those of
// cuts, again and again.
func (c *Connection) SendCut(from Side, data, cuts []byte) {
	for i := 0; len(data) > 0; i++ {
		n := min(int(cuts[i%len(cuts)])+1, len(data))
		c.Send(from, string(data[:n]))
		data = data[n:]
	}
}

// Accounts wants each byte of a stream to be in one record, or counted as not decoded.
func (o *Output) Accounts(t *testing.T, total int) {
	t.Helper()
	seen := int(o.Result.Summary.UndecodedBytes)
	for _, r := range o.Frames() {
		Sound(t, r)
		if !slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == "reassembled" }) {
			seen += len(r.Raw)
		}
		seen -= len(r.Rest) // the summary counts it
	}
	if seen != total {
		t.Errorf("%d of %d bytes are accounted for\n%s", seen, total, o)
	}
}

// AccountsDatagrams wants the records of each packet with a datagram to hold so many bytes.
func (o *Output) AccountsDatagrams(t *testing.T, want int, packets ...int) {
	t.Helper()
	seen := map[int]int{}
	for _, r := range o.Frames() {
		if n := r.Packets[0]; slices.Contains(packets, n) {
			Sound(t, r)
			seen[n] += len(r.Raw)
		}
	}
	for _, n := range packets {
		if seen[n] != want {
			t.Errorf("packet %d: %d of %d bytes are in records", n, seen[n], want)
		}
	}
}

// Sound wants the parts of a record to lie within it.
func Sound(t *testing.T, r *dissect.Record) {
	t.Helper()
	if r.Size < len(r.Raw) || r.Offset < 0 || len(r.Rest) > len(r.Raw) {
		t.Errorf("%s: %d bytes at %d, %d captured, %d left over", Line(r), r.Size, r.Offset, len(r.Raw), len(r.Rest))
	}
	for i := range r.Body.Nodes {
		if n := &r.Body.Nodes[i]; int(n.Off+n.Len) > 8*len(r.Raw) {
			t.Errorf("%s: %s ends at bit %d of %d bytes", Line(r), n.Field.Name, n.Off+n.Len, len(r.Raw))
		}
	}
}
