package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opscope/schema/wire"
)

// vector is one entry of testdata/vectors/wulfram/vectors.json: bytes out of a
// public source, and what they mean.
type vector struct {
	Name        string
	Transport   string // tcp: frames; udp: a datagram; payload: opcode and body
	Direction   string // c2s, s2c or both
	Hex         string
	Source      string
	Context     []string           // names of what earlier packets taught
	Tolerance   map[string]float64 // of numbers, by the name of their field, or of every one
	Unconfirmed bool               // its sources contradict each other
	Records     []expected
	Error       string // of the framing, instead of records
}

type expected struct {
	Message  string
	Layout   int // of the packet's alternatives
	Sequence *int
	Length   *int
	Fields   map[string]any
	Rest     string // bytes after the opcode of an unknown message, in hex
}

func loadVectors(t testing.TB) []*vector {
	t.Helper()
	var all []*vector
	readJSON(t, "../testdata/vectors/wulfram/vectors.json", &all)
	return all
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func (v *vector) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// senders returns who may have sent the vector.
func (v *vector) senders() []Sender {
	return map[string][]Sender{"c2s": {Client}, "s2c": {Server}, "both": {Client, Server}}[v.Direction]
}

func wulfram(t testing.TB) *Protocol {
	t.Helper()
	p, err := Builtin("wulfram")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// translation returns one of the tables of protocols/wulfram.md, section 7.3.
func translation(p *Protocol, name string) *Table {
	t := p.NewState().Table("translation")
	set := func(a, b, top, span float64, slots ...int64) {
		for _, s := range slots {
			t.Set(s, Entry{Values: []float64{a, b, top, span}, Origin: Learned, Packet: 1})
		}
	}
	for slot := range int64(28) {
		set(16, 0, 1000, 2000, slot)
	}
	set(5, 0, 0, 0, 1)
	set(8, 0, 0, 0, 2, 3, 4)
	set(10, 0, 1, 1, 5, 8)
	set(8, 0, 1, 1, 13, 14)
	set(4, 16, 8192, 16384, 16, 20, 24)
	set(4, 16, 1000, 2000, 17, 21, 25)
	set(4, 16, 6.3, 12.6, 18, 22, 26)
	set(4, 16, 200, 400, 19, 23, 27)
	switch name {
	case "QT-WF":
	case "QT-CPP":
		set(16, 0, 1, 2, 10, 11)
	case "QT-ES":
		set(5, 0, 1000, 2000, 1)
		set(8, 0, 1, 1, 2, 3)
		set(16, 0, 1000, 2000, 4)
		set(4, 16, 200, 400, 17, 21, 25)
	default:
		return nil
	}
	return t
}

// clientModes are the pairs of the original client's handshake, section 5.
var clientModes = map[uint64]int{
	0x19: 1, 0x26: 1, 0x2b: 1, 0x35: 1,
	0x20: 3, 0x25: 3, 0x2e: 3, 0x33: 3, 0x3a: 3, 0x3b: 3, 0x42: 3, 0x46: 3, 0x49: 3, 0x4a: 3, 0x4f: 3,
}

// context returns what earlier packets taught: tables, and modes by opcode. No
// weapon slot is enabled, as in every capture.
func context(t testing.TB, p *Protocol, names []string) (*State, map[uint64]int) {
	t.Helper()
	s := p.NewState()
	for table := range int64(32) {
		s.Table("weapon_slots").Set(table, Entry{Values: []float64{0}, Origin: Learned, Packet: 2})
	}
	modes := map[uint64]int{}
	for _, name := range names {
		switch table := translation(p, name); {
		case table != nil:
			s.Replace(table)
		case name == "client modes":
			modes = clientModes
		case name == "server acknowledgements in mode 1":
			modes = map[uint64]int{0x02: 1}
		default:
			t.Fatalf("unknown context %q", name)
		}
	}
	return s, modes
}

// decoded is one frame or record of a vector.
type decoded struct {
	packet   *Packet
	message  string
	layouts  []*Layout
	chosen   int // among the layouts
	envelope *Envelope
	frame    Frame
	mode     int // of the stream, -1 on TCP
	state    *State
	data     []byte // the frame; the tree's positions count from its start
	tree     Tree
	end      int // bytes
	remarks  []Remark
	origin   Origin
	err      *wire.Error
}

// walk cuts bytes into frames, or records, and decodes them. It stops at the first
// error, which the last of them has.
func walk(t testing.TB, p *Protocol, transport string, by Sender, names []string, data []byte) (all []*decoded) {
	t.Helper()
	state, modes := context(t, p, names)
	for len(data) > 0 {
		d := &decoded{state: state, mode: -1}
		all = append(all, d)
		via := UDP
		switch transport {
		case "tcp":
			via = TCP
			d.envelope = p.Framing("tcp").Envelope
			d.frame, d.err = p.Framing("tcp").Find(data, p.Name)
		case "udp":
			d.mode = modes[uint64(data[0])]
			d.envelope = p.Framing("udp").Modes[d.mode]
			d.frame, d.err = d.envelope.Parse(data, p.Name)
		case "payload":
			d.envelope = p.Framing("udp").Modes[0]
			d.frame, d.err = d.envelope.Parse(data, p.Name)
		}
		if d.err != nil {
			return all
		}
		d.data = data
		if d.frame.Size > 0 {
			d.data = data[:d.frame.Size]
		}
		d.packet = p.Packet(d.frame.Opcode, by, via)
		d.message = p.OpcodeName(d.frame.Opcode)
		if d.layouts = d.packet.Of(by); len(d.layouts) > 0 {
			d.choose(p)
		} else {
			d.end = len(d.data)
		}
		if d.err != nil {
			return all
		}
		if d.frame.Size == 0 {
			d.data = d.data[:d.end]
		}
		data = data[len(d.data):]
	}
	return all
}

// choose decodes with the first layout, or with another one when only that fits.
func (d *decoded) choose(p *Protocol) {
	for i := range d.layouts {
		d.decode(p, i, d.data)
		if d.err == nil && d.end == len(d.data) && !slices.ContainsFunc(d.remarks, func(r Remark) bool { return r.Code == "out_of_range" }) {
			return
		}
	}
	d.decode(p, 0, d.data)
}

func (d *decoded) decode(p *Protocol, layout int, data []byte) {
	dec := Decoder{State: d.state, Short: wire.Truncated}
	d.chosen = layout
	d.tree.Reset(data)
	d.err = dec.Decode(p, d.message, d.layouts[layout], &d.tree, 8*d.frame.Head, 8*len(data))
	d.end, d.remarks, d.origin = (dec.End+7)/8, dec.Remarks, dec.Origin
}

// values returns the values of a tree as JSON would: numbers as float64, text as
// string, bytes in hex. What has no name is left out.
func values(t *Tree, from, to int) map[string]any {
	m := map[string]any{}
	for i := from; i < to; i = t.Next(i) {
		if f := t.Nodes[i].Field; !f.Hidden && !f.Part {
			m[f.Name] = value(t, i)
		}
	}
	return m
}

func value(t *Tree, i int) any {
	n := &t.Nodes[i]
	switch n.Kind {
	case Null:
		return nil
	case Uint, Int, Float, IPv4:
		return n.Float()
	case Text, String:
		return string(t.AppendText(nil, i))
	case Struct:
		return values(t, i+1, t.Next(i))
	case Array:
		list := []any{}
		for k := i + 1; k < t.Next(i); k = t.Next(k) {
			list = append(list, value(t, k))
		}
		return list
	}
	return hex.EncodeToString(t.AppendBytes(nil, i))
}

// diff lists where got is not what is wanted. Numbers may be off by the tolerance
// of the field that they belong to. With partly, got may have more members.
func diff(path string, got, want any, tolerance map[string]float64, off float64, partly bool) []string {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: got %v, want %v", path, got, want)}
		}
		var out []string
		for name, w := range want {
			off := off
			if o, ok := tolerance[name]; ok {
				off = o
			}
			if _, ok := g[name]; !ok {
				out = append(out, fmt.Sprintf("%s.%s: got nothing, want %v", path, name, w))
				continue
			}
			out = append(out, diff(path+"."+name, g[name], w, tolerance, off, partly)...)
		}
		for name := range g {
			if _, ok := want[name]; !ok && !partly {
				out = append(out, fmt.Sprintf("%s.%s: got %v, want nothing", path, name, g[name]))
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return []string{fmt.Sprintf("%s: got %v, want %v", path, got, want)}
		}
		var out []string
		for i := range want {
			out = append(out, diff(fmt.Sprintf("%s[%d]", path, i), g[i], want[i], tolerance, off, partly)...)
		}
		return out
	case float64:
		if g, ok := got.(float64); !ok || !(math.Abs(g-want) <= off) {
			return []string{fmt.Sprintf("%s: got %v, want %v (off by at most %v)", path, got, want, off)}
		}
		return nil
	}
	if got != want {
		return []string{fmt.Sprintf("%s: got %#v, want %#v", path, got, want)}
	}
	return nil
}

// check compares what a vector's bytes decode to with what it says.
func (v *vector) check(t *testing.T, all []*decoded) {
	t.Helper()
	if v.Error != "" {
		if len(all) != 1 || all[0].err == nil || all[0].err.Error() != v.Error {
			t.Errorf("got  %v\nwant %s", all, v.Error)
		}
		return
	}
	if len(all) != len(v.Records) {
		t.Fatalf("got %d records, want %d", len(all), len(v.Records))
	}
	for i, d := range all {
		want := &v.Records[i]
		if d.err != nil {
			t.Errorf("record %d: %v", i, d.err)
			continue
		}
		if d.message != want.Message || d.chosen != want.Layout {
			t.Errorf("record %d: got %s, layout %d; want %s, layout %d", i, d.message, d.chosen, want.Message, want.Layout)
		}
		if want.Sequence != nil && d.frame.Seq != *want.Sequence || want.Length != nil && d.frame.Length != *want.Length {
			t.Errorf("record %d: got sequence %d, length %d", i, d.frame.Seq, d.frame.Length)
		}
		if len(d.layouts) == 0 {
			if got := hex.EncodeToString(d.data[d.frame.Head:]); got != want.Rest {
				t.Errorf("record %d: got body %s, want %s", i, got, want.Rest)
			}
			continue
		}
		if d.end != len(d.data) || len(d.remarks) > 0 {
			t.Errorf("record %d: %d bytes left over, remarks %v", i, len(d.data)-d.end, d.remarks)
		}
		for _, line := range diff(d.message, any(values(&d.tree, 0, len(d.tree.Nodes))), any(want.Fields), v.Tolerance, v.Tolerance["every"], false) {
			t.Errorf("record %d: %s\n%s", i, line, hex.Dump(d.data))
		}
	}
}

func TestVectors(t *testing.T) {
	p := wulfram(t)
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			if v.Source == "" {
				t.Error("a vector without a source")
			}
			for _, by := range v.senders() {
				v.check(t, walk(t, p, v.Transport, by, v.Context, v.bytes(t)))
			}
		})
	}
}

// eachDecoded runs f over every record of every vector that has a layout.
func eachDecoded(t *testing.T, f func(t *testing.T, p *Protocol, v *vector, i int, d *decoded)) {
	p := wulfram(t)
	for _, v := range loadVectors(t) {
		for _, by := range v.senders() {
			t.Run(v.Name+" from "+by.String(), func(t *testing.T) {
				for i, d := range walk(t, p, v.Transport, by, v.Context, v.bytes(t)) {
					if len(d.layouts) > 0 {
						f(t, p, v, i, d)
					}
				}
			})
		}
	}
}

func TestVectorsEncodeToTheirBytes(t *testing.T) {
	eachDecoded(t, func(t *testing.T, p *Protocol, _ *vector, _ int, d *decoded) {
		e := Encoder{State: d.state, Head: d.frame.Head}
		body, err := e.Append(nil, p, d.message, d.layouts[d.chosen], &d.tree)
		if err != nil {
			t.Fatal(err)
		}
		if want := d.data[d.frame.Head:]; !bytes.Equal(body, want) {
			t.Errorf("body: got\n%swant\n%s", hex.Dump(body), hex.Dump(want))
		}
		if got := d.envelope.Append([]byte{0xee}, d.frame.Opcode, d.frame.Seq, body, CountsFrame); !bytes.Equal(got[1:], d.data) || got[0] != 0xee {
			t.Errorf("whole: got\n%swant ee and\n%s", hex.Dump(got), hex.Dump(d.data))
		}
	})
}

// TestVectorsEncodeFromTheirValues builds each body from what the vector says of
// it. Quantised values that are stated with a tolerance are those of the pose, not
// of the wire; the encoding of these is checked against the same rule.
func TestVectorsEncodeFromTheirValues(t *testing.T) {
	eachDecoded(t, func(t *testing.T, p *Protocol, v *vector, i int, d *decoded) {
		counts := []string{"count", "group_count", "mode_count", "host_count", "sample_count"}
		if v.Unconfirmed {
			t.Skip("its sources contradict each other")
		}
		if d.message == "CARRYING_INFO" {
			counts = nil // its count is of cargo
		}
		for _, without := range [][]string{nil, counts} {
			fields := asValues(v.Records[i].Fields, without).(Values)
			e := Encoder{State: d.state, Head: d.frame.Head}
			body, err := e.Append(nil, p, d.message, d.layouts[d.chosen], NewTree(fields))
			if err != nil {
				t.Fatal(err)
			}
			if want := d.data[d.frame.Head:]; !bytes.Equal(body, want) && v.Tolerance == nil {
				t.Errorf("without %v: got\n%swant\n%s", without, hex.Dump(body), hex.Dump(want))
			}
			again := &decoded{message: d.message, layouts: d.layouts, state: d.state, envelope: d.envelope}
			again.frame.Head = d.frame.Head
			again.decode(p, d.chosen, append(bytes.Clone(d.data[:d.frame.Head]), body...))
			if again.err != nil {
				t.Fatal(again.err)
			}
			for _, line := range diff(d.message, any(values(&again.tree, 0, len(again.tree.Nodes))), any(v.Records[i].Fields), v.Tolerance, v.Tolerance["every"], false) {
				t.Errorf("without %v: %s", without, line)
			}
		}
	})
}

// asValues turns values of JSON into those of a tree, without some names.
func asValues(v any, without []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := Values{}
		for name, x := range v {
			if !slices.Contains(without, name) {
				out[name] = asValues(x, without)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, asValues(x, without))
		}
		return out
	}
	return v
}

// TestEveryPrefixOfAVector cuts frames, datagrams and bodies short at every byte.
func TestEveryPrefixOfAVector(t *testing.T) {
	p := wulfram(t)
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			whole := v.bytes(t)
			for _, by := range v.senders() {
				full := walk(t, p, v.Transport, by, v.Context, whole)
				for n := range whole {
					all := walk(t, p, v.Transport, by, v.Context, whole[:n])
					if len(all) > len(full) {
						t.Errorf("%x: got %d records, more than the whole has", whole[:n], len(all))
					}
					if len(all) > 0 && all[len(all)-1].err == nil && len(all) == len(full) && v.Error == "" && len(full[len(full)-1].layouts) > 0 {
						t.Errorf("%x: got no error", whole[:n])
					}
				}
				for _, d := range full {
					for layout := range d.layouts {
						d.checkPrefixes(t, p, layout)
					}
				}
			}
		})
	}
}

var subscript = regexp.MustCompile(`\[\d+\]`)

// checkPrefixes decodes every proper prefix of a body with a layout.
func (d *decoded) checkPrefixes(t *testing.T, p *Protocol, layout int) {
	t.Helper()
	whole := d.data
	d.decode(p, layout, whole)
	end, failed := d.end, d.err != nil
	for n := d.frame.Head; n < len(whole); n++ {
		d.decode(p, layout, whole[:n])
		if !fits(&d.tree, 0, len(d.tree.Nodes), 8*d.frame.Head, 8*n) {
			t.Errorf("%x, layout %d: a field reaches beyond the bytes: %+v", whole[:n], layout, d.tree.Nodes)
		}
		switch {
		case d.err == nil && (failed || n < end):
			t.Errorf("%x, layout %d: got no error", whole[:n], layout)
		case d.err != nil:
			path := strings.Split(subscript.ReplaceAllString(d.err.Path, ""), ".")
			if path[0] != d.message || d.layouts[layout].FieldAt(path[1:]...) == nil {
				t.Errorf("%x, layout %d: the error names no field: %v", whole[:n], layout, d.err)
			}
			if d.err.Kind != wire.Truncated || d.err.Offset > n || d.err.Size != n {
				t.Errorf("%x, layout %d: got %v, want a truncation within %d bytes", whole[:n], layout, d.err, n)
			}
		}
	}
	d.decode(p, layout, whole)
}

// fits reports whether the nodes from index from to index to lie between two bits,
// and what they hold within them.
func fits(t *Tree, from, to, low, high int) bool {
	for i := from; i < to; i = t.Next(i) {
		n := &t.Nodes[i]
		if t.Next(i) > to || int(n.Off) < low || int(n.Off+n.Len) > high {
			return false
		}
		if (n.Kind == Text || n.Kind == Bytes) && (int(n.Body) < low || int(n.Body)+8*int(n.BodyLen) > high) {
			return false
		}
		if n.Size > 0 && !fits(t, i+1, t.Next(i), int(n.Off), int(n.Off+n.Len)) {
			return false
		}
	}
	return true
}

func TestDefaultsAreThoseOfTheFacts(t *testing.T) {
	p := wulfram(t)
	modes := p.DefaultTable("stream_modes", Client)
	if modes.Len() != len(clientModes) {
		t.Errorf("got %d modes, want %d", modes.Len(), len(clientModes))
	}
	for op, mode := range clientModes {
		if e := modes.Get(int64(op)); e == nil || e.Values[0] != float64(mode) || e.Origin != Default {
			t.Errorf("mode of 0x%02X: got %+v, want %d, default", op, e, mode)
		}
	}
	if p.DefaultTable("stream_modes", Server) != nil {
		t.Error("a default for the server's modes, which nobody states")
	}
	want := translation(p, "QT-WF")
	for _, slot := range want.Keys() {
		got := p.DefaultTable("translation", AnySender).Get(slot)
		if got == nil || !slices.Equal(got.Values, want.Get(slot).Values) {
			t.Errorf("slot %d: got %+v, want %v", slot, got, want.Get(slot).Values)
		}
	}
}
