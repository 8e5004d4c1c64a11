package schema

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// A run reads its fields without looking at each, skimming makes no nodes, and an outline
// few. All must tell what decoding field by field tells, whatever the bytes are and wherever
// they end.

// runs is a layout with what may stand in a run, in both orders.
const runs = `
protocol: runs
order: ORDER
align: bit
state:
  translation: {slot: [a, b, max, range]}
flags:
  m: {0: low, 1-2: two, 7: high}
types:
  pair: [{a: u16}, {b: i16}]
  seen(k):
    - p: u8
      valid: p <= k
    - q: = k * 2 + p
packets:
  A:
    opcode: 1
    fields:
      - m:     u8 m
        valid: m == 3 or m >= 4 and m < 60
      - x:     i16
        valid: x >= -100 and x <= 1200
        if: m.low
      - y:     u32
        valid: y < 0x80000000
        if: m.low
      - z:     f32
        valid: z > 0
        if: m.high
      - n:     u3
      - wide:  u64
      - i61:   i61
      - f:     f64
      - fix:   fx
        valid: fix <= 1.5
      - same:  fx[2]
      - small: i5
        valid: small > -3 and small != n
      - pairs: pair[n]
      - nums:  i24[m.two]
      - fill
      - text:  text(3)
      - raw:   bytes(2)
        valid: n > 1
      - seen:  seen(n)[m.two]
      - id:    guid
        if: m.two == 1
      - host:  ipv4
        if: m.two == 2
      - more:  u8
        valid: left > 3
      - q:     quant(n)
      - v:     quant_vec3(16 + 4 * small)
        if: m.high and n > 2
      - last:  u16[3]
      - fill
      - tail:  text(rest)
        valid: n > 3
`

// planless makes a plan that is given up at once, so that fields are decoded one by one.
func planless() *plan { return &plan{longest: math.MaxInt} }

// outcome is all that decoding a body tells.
type outcome struct {
	nodes   []Node
	err     wire.Error
	end     int
	origin  Origin
	remarks []Remark
	missing Missing
}

func (d *Decoder) outcome(p *Protocol, l *Layout, data []byte, from int, skim bool) (o outcome) {
	var t Tree
	t.Reset(data)
	decode := d.Decode
	if skim {
		decode = func(p *Protocol, message string, l *Layout, t *Tree, from, to int) *wire.Error {
			return d.Skim(p, message, l, t.Data, from, to)
		}
	}
	if err := decode(p, "body", l, &t, from, 8*len(data)); err != nil {
		o.err = *err
	}
	o.nodes, o.end, o.origin, o.remarks = append([]Node(nil), t.Nodes...), d.End, d.Origin, append([]Remark(nil), d.Remarks...)
	o.missing, _ = d.Missing()
	for i := range o.nodes { // two loads of one schema have fields of their own
		o.nodes[i].Field = &Field{Name: o.nodes[i].Field.Name, Type: o.nodes[i].Field.Type}
	}
	return o
}

// plainly returns nodes by the names of their fields.
func plainly(nodes []Node) []namedNode {
	var list []namedNode
	for _, n := range nodes {
		name := n.Field.Name
		n.Field = nil
		list = append(list, namedNode{name, n})
	}
	return list
}

type namedNode struct {
	name string
	Node
}

// outlineOf leaves the first elements in each array but vectors, which are one value, and
// counts the others.
func outlineOf(nodes []namedNode, most int) (list []namedNode) {
	for len(nodes) > 0 {
		n := nodes[0]
		inside := nodes[1 : 1+n.Size]
		nodes = nodes[1+n.Size:]
		var kept []namedNode
		for len(inside) > 0 {
			next := 1 + inside[0].Size
			if n.Kind == Array && !n.Kept && len(kept) >= most {
				n.Num++
			} else {
				kept = append(kept, outlineOf(inside[:next], most)...)
			}
			inside = inside[next:]
		}
		n.Size = int32(len(kept))
		list = append(append(list, n), kept...)
	}
	return list
}

// bodies makes bytes of several kinds: any, small numbers, few bits, many bits.
func bodies(r *rand.Rand, n int) (all [][]byte) {
	for i := range n {
		b := make([]byte, 12+r.IntN(100))
		for k := range b {
			switch b[k] = byte(r.Uint32()); i % 4 {
			case 1:
				b[k] &= 3
			case 2:
				b[k] &= byte(r.Uint32() & r.Uint32())
			case 3:
				b[k] |= byte(r.Uint32())
			}
		}
		all = append(all, b)
	}
	return all
}

// tables returns a state with entries of which some are missing and some have widths
// that there cannot be.
func tables(p *Protocol, r *rand.Rand) *State {
	s := p.NewState()
	for i, t := range s.Tables {
		for key := range int64(40) {
			if r.IntN(16) == 0 {
				continue
			}
			e := Entry{Origin: Origin(1 + r.IntN(4))}
			for range t.Decl.Columns {
				e.Values = append(e.Values, float64(r.IntN(20)))
			}
			if r.IntN(16) == 0 {
				e.Values[0] = 65.5
			}
			s.Tables[i].Set(key, e)
		}
	}
	return s
}

func TestEveryWayOfDecodingTellsTheSame(t *testing.T) {
	load := func() (all []*Protocol) {
		for _, name := range []string{"wulfram", "netrek", "lotr2", "dplay", "mmo"} {
			ps, err := Load(builtin, "protocols/"+name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ps...)
		}
		for _, order := range []string{"be", "le"} {
			text := strings.ReplaceAll(runs, "ORDER", order)
			ps, err := LoadFile(fstest.MapFS{"runs.yaml": {Data: []byte(text)}}, "runs.yaml")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, ps...)
		}
		return all
	}
	plain, single := load(), load()
	r := rand.New(rand.NewPCG(1, 2))
	total, failed := 0, 0
	for i, p := range plain {
		states := []*State{netrekState(p), tables(p, r), tables(p, r)}
		for k, packet := range p.Packets {
			for j, l := range packet.Of(packet.From) {
				if l.proto != nil {
					continue
				}
				slow := single[i].Packets[k].Of(packet.From)[j]
				slow.code.full, slow.code.skim = planless(), planless()
				for n, body := range bodies(r, 6) {
					d := Decoder{State: states[n%len(states)]}
					if len(p.Envelopes) > 0 {
						d.Envelope = p.Envelopes[0]
					}
					for cut := range len(body) + 1 {
						d.Short = wire.Kind((cut + len(body)) % 3)
						data, from := bytes.Clone(body[:cut]), min(8*cut, 8*(n%3))
						got := d.outcome(p, l, data, from, false)
						want := d.outcome(single[i], slow, data, from, false)
						if !reflect.DeepEqual(got, want) {
							t.Fatalf("%s: %x from bit %d: in runs\n%+v, field by field\n%+v", packet.Name, data, from, got, want)
						}
						skimmed := d.outcome(p, l, data, from, true)
						if skimmed.nodes = got.nodes; !reflect.DeepEqual(skimmed, got) {
							t.Fatalf("%s: %x from bit %d: skimmed\n%+v, decoded\n%+v", packet.Name, data, from, skimmed, got)
						}
						d.Outline = 3
						outlined := d.outcome(p, l, data, from, false)
						if d.Outline = 0; !slices.Equal(plainly(outlined.nodes), outlineOf(plainly(got.nodes), 3)) {
							t.Fatalf("%s: %x from bit %d: outlined\n%+v, decoded\n%+v", packet.Name, data, from, outlined, got)
						}
						if outlined.nodes = got.nodes; !reflect.DeepEqual(outlined, got) {
							t.Fatalf("%s: %x from bit %d: outlined\n%+v, decoded\n%+v", packet.Name, data, from, outlined, got)
						}
						if total++; got.err != (wire.Error{}) {
							failed++
						}
					}
				}
			}
		}
	}
	if failed < total/10 || failed > total*9/10 {
		t.Errorf("%d of %d bodies fail; want some of both kinds", failed, total)
	}
	t.Logf("%d bodies, %d of which fail", total, failed)
}

// A plan that gives up where nothing is wrong costs time, and nothing else would tell.
func TestPlansGetThroughGoodBodies(t *testing.T) {
	for _, h := range hots {
		b := h.body(t)
		c := b.layout.code
		for _, p := range []*plan{c.full, c.skim} {
			b.tree.Reset(b.data)
			b.dec.start(b.p, c, &b.tree, 8*b.head, 8*len(b.data))
			if !b.dec.planned(p) {
				t.Errorf("%s: a plan gives up (skims: %v)", h.message, p.skims)
			}
		}
	}
}
