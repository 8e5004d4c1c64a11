package schema

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// FuzzLoad loads arbitrary text as a schema. Whatever loads must decode anything
// within its bounds.
func FuzzLoad(f *testing.F) {
	_ = fs.WalkDir(builtin, "protocols", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, _ := builtin.ReadFile(path)
			f.Add(data)
		}
		return err
	})
	broken, _ := filepath.Glob("../testdata/broken/schema/*.yaml")
	for _, name := range broken {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range notation {
		f.Add([]byte(inFields(c.head, c.fields)))
	}
	for _, text := range []string{sized, placed, stateful, framed, quantised, typed} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		all, err := LoadFile(fstest.MapFS{"f.yaml": {Data: text}}, "f.yaml")
		if err != nil {
			if !IsSchemaError(err) {
				t.Fatalf("no *Error: %v", err)
			}
			return
		}
		data := bytes.Repeat([]byte{0x01, 0xff, 0x00, 0x5a}, 16)
		for _, p := range all {
			for _, k := range p.Packets {
				for _, l := range k.Of(Client) {
					l.Items()
					tree, d, _ := decodeBody(p, l, p.NewState(), data)
					if d.End > 8*len(data) || !bounded(tree, 8*len(data)) {
						t.Fatalf("%s reaches beyond the bytes, bit %d", k.Name, d.End)
					}
					if l.code != nil {
						comparePlans(t, p, l, data)
					}
				}
			}
			for _, g := range p.Framings {
				switch g.Kind {
				case Records:
				case Typed:
					for i := range data {
						_, _ = g.FindTyped(&Decoder{}, p, Client, data[i:])
					}
				default:
					_, _ = g.Find(data, p.Name)
				}
			}
			for _, e := range p.Envelopes {
				_, _ = e.Parse(data, p.Name)
				_ = e.Verify(data, p.Name)
			}
		}
	})
}

// comparePlans compares following the plans of a layout with decoding field by field.
func comparePlans(t *testing.T, p *Protocol, l *Layout, data []byte) {
	t.Helper()
	state := p.NewState()
	for _, table := range state.Tables {
		for key := range int64(70) {
			e := Entry{Origin: Origin(1 + key%4)}
			for i := range table.Decl.Columns {
				e.Values = append(e.Values, float64(1+(int(key)+3*i)%7))
			}
			table.Set(key, e)
		}
	}
	d := Decoder{State: state}
	if len(p.Envelopes) > 0 {
		d.Envelope = p.Envelopes[0]
	}
	all := func() (list []outcome) {
		for _, size := range []int{len(data), len(data) / 2, 7} {
			d.Outline = 0
			list = append(list, d.outcome(p, l, data[:size], 0, false), d.outcome(p, l, data[:size], 0, true))
			d.Outline = 2
			list = append(list, d.outcome(p, l, data[:size], 0, false))
		}
		return list
	}
	planned, c := all(), *l.code
	l.code.full, l.code.skim = planless(), planless()
	plain := all()
	*l.code = c
	for i := range plain {
		if i%3 == 1 { // what is left of skimming where it fails is for nobody
			plain[i].nodes, planned[i].nodes = nil, nil
		}
		if !reflect.DeepEqual(planned[i], plain[i]) {
			t.Fatalf("%d: along the plan\n%+v, field by field\n%+v", i, planned[i], plain[i])
		}
	}
}

// bounded reports whether every node lies within some bits. With `at`, members need
// not lie within what holds them.
func bounded(t *Tree, bits int) bool {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Off < 0 || n.Size < 0 || t.Next(i) > len(t.Nodes) || int(n.Off+n.Len) > bits || int(n.Body)+8*int(n.BodyLen) > bits {
			return false
		}
	}
	return true
}

// FuzzExpr parses and evaluates arbitrary text as an expression, which is the same when
// it is folded.
func FuzzExpr(f *testing.F) {
	for _, s := range []string{
		"a + b * 2", "not a == 5", "choose(a > b, 10, 20)", "min(max(a, 1), popcount(7) + 1)", "round_up(a, 4)", "0x10 << 3",
		"state.t[a].x + state.n", "m.flag and m.low == 3", "next(8) == 5 or left > 2", "-9223372036854775808 / -1", "1.5e300 * 1e300",
		"~-~-~0", "((((a))))", "a % b / 0", "1 << -1", "index", "a.b.c[1]", "16 + 4 * a",
		"a - 3", "3 - b", "a >= 0 and 9 > a", "b >= 0 and 9 > b", "2 < a and a < 1", "2 * b + 1", "a == 1.5", "state.t[2 * 3].x", "m > 0x7fffffffffffffff", "18446744073709551615", "1e", "0x",
	} {
		f.Add(s, int64(6), 1.5)
	}
	f.Fuzz(func(t *testing.T, text string, a int64, b float64) {
		e, err := parseExpr(text, Pos{"f.yaml", 1, 1})
		if err != nil {
			return
		}
		d := &draft{Protocol: &Protocol{State: []TableDecl{{Name: "t", Key: "k", Columns: []string{"x", "y"}}, {Name: "n", Columns: []string{"n"}}}}}
		c := d.compiler()
		s := c.newScope(nil)
		bits := &Flags{Name: "m", Bits: []Flag{{0, 2, "low"}, {63, 63, "flag"}}}
		for _, name := range []string{"a", "b", "m"} {
			s.names[name] = &binding{slot: c.newSlot()}
		}
		s.names["m"].flags = bits
		if err := e.bind(s); err != nil {
			return
		}
		r := wire.NewReader([]byte{1, 2, 3}, "f", wire.Malformed)
		m := machine{slots: []number{integer(a), {f: b, float: true}, integer(a)}, p: d.Protocol, state: d.NewState(), r: &r}
		m.state.Tables[0].Set(a, Entry{Values: []float64{b, math.Inf(1)}})
		first := m.eval(e)
		_, _ = first.asInt(), first.isTrue()
		if second := m.eval(e); first != second && first.f == first.f {
			t.Fatalf("%q is %+v, and then %+v", text, first, second)
		}
		m.r = nil // as while encoding
		first, fault := m.eval(e), m.fault
		m.fault = ""
		e.fold()
		if folded := m.eval(e); folded != first && first.f == first.f || m.fault != fault {
			t.Fatalf("%q is %+v (%q), and folded %+v (%q)", text, first, fault, folded, m.fault)
		}
	})
}

// FuzzDecode decodes arbitrary bytes as any packet of Wulfram. What decodes must
// encode to the same bytes, and these decode to the same tree.
func FuzzDecode(f *testing.F) {
	p := wulfram(f)
	for _, v := range loadVectors(f) {
		for _, by := range v.senders() {
			for _, d := range walk(f, p, v.Transport, by, v.Context, v.bytes(f)) {
				if d.err == nil && d.packet != nil {
					f.Add(uint8(d.packet.Opcode), uint8(d.chosen), by == Server, false, d.data[d.frame.Head:])
				}
			}
		}
	}
	for _, s := range encodedSeeds(f, p) {
		f.Add(s.opcode, uint8(0), true, true, s.body)
	}
	plain, _ := context(f, p, []string{"QT-CPP"})
	armed, _ := context(f, p, []string{"QT-ES"})
	for id := range int64(32) {
		armed.Table("weapon_slots").Set(id, Entry{Values: []float64{0x1fff}})
	}
	f.Fuzz(func(t *testing.T, opcode, layout uint8, server, weapons bool, body []byte) {
		by, state := Client, plain
		if server {
			by = Server
		}
		if weapons {
			state = armed
		}
		k := p.Packet(uint64(opcode), by, UDP)
		layouts := k.Of(by)
		if len(layouts) == 0 {
			return
		}
		l := layouts[int(layout)%len(layouts)]
		tree, d, err := decodeBody(p, l, state, body)
		if !fits(tree, 0, len(tree.Nodes), 0, 8*len(body)) || d.End > 8*len(body) {
			t.Fatalf("%s: a field reaches beyond the bytes", k.Name)
		}
		if err != nil {
			// A bank beyond 2 has no entries in translation; all else is taught.
			if m, missing := d.Missing(); err.Offset > len(body) || missing && (m.Table != "translation" || m.Key <= 27) {
				t.Fatalf("%s: %v", k.Name, err)
			}
			return
		}
		e := Encoder{State: state}
		again, fault := e.Append(nil, p, k.Name, l, tree)
		if want := body[:(d.End+7)/8]; fault != nil || !bytes.Equal(again, want) {
			t.Fatalf("%s: encoded to %x (%v), want %x", k.Name, again, fault, want)
		}
		second, _, err := decodeBody(p, l, state, again)
		if err != nil || !reflect.DeepEqual(second.Nodes, tree.Nodes) && show(tree) != show(second) {
			t.Fatalf("%s: decoded to %s (%v), and first to %s", k.Name, show(second), err, show(tree))
		}
	})
}

type seed struct {
	opcode uint8
	body   []byte
}

// encodedSeeds makes bodies that no vector has: with weapons, every part of an
// entity, and strings beyond the common ones.
func encodedSeeds(t testing.TB, p *Protocol) (seeds []seed) {
	state, _ := context(t, p, []string{"QT-ES"})
	for id := range int64(32) {
		state.Table("weapon_slots").Set(id, Entry{Values: []float64{0x1fff}})
	}
	vector := []float64{1, -2, 3}
	local := Values{"weapon": 1, "health": 0.5, "energy": 1, "active": 0x1555, "pulse_charge": 0.25, "repair_charge": 0}
	entity := Values{
		"id": 7, "manned": 1, "mask": 0x3ff, "bank": 0, "type": 37, "team_a": 1, "team_b": 2, "decoration": []int{1, 2}, "snap": 1,
		"position": vector, "velocity": vector, "rotation": vector, "spin": vector, "health": 1,
		"weapon_state": Values{"weapon": 3, "active": 5}, "energy": 0.5, "owner": 9,
	}
	cargo := Values{"id": 8, "manned": 0, "mask": 1, "bank": 0, "type": 19, "team_a": 0, "team_b": 0, "cargo": 13, "snap": 0}
	for _, c := range []struct {
		message string
		v       Values
	}{
		{"VIEW_UPDATE", Values{"timestamp": 1, "sequence": 2, "local_state": local, "entities": []Values{entity, cargo}}},
		{"UPDATE_ARRAY", Values{"sequence": 2, "entities": []Values{cargo}, "trailer": Values{"magic": 0x57505231, "values": []int{1, 2, 3}}}},
		{"HELLO", Values{"subcommand": 1, "udp_port": 2627, "hosts": []string{"a", "", "ü"}}},
		{"COMM_MESSAGE", Values{"type": "chat", "source_id": 1, "scope": "team", "recipient": 0, "text": "hello there"}},
		{"DELETE_OBJECT", Values{"time": 1, "objects": []Values{{"id": 1, "effect": 2}, {"id": 3, "effect": 4}}}},
		{"TANK", Values{"sequence": 1, "local_state": nil, "unit_type": "scout", "net_id": 2, "team": "blue", "position": vector, "rotation": vector}},
	} {
		k := p.PacketNamed(c.message)
		e := Encoder{State: state}
		body, err := e.Append(nil, p, c.message, k.Of(Server)[0], NewTree(c.v))
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, seed{uint8(k.Opcode), body})
	}
	return seeds
}
