package reassembly

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

var (
	key4 = FragmentKey{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), ID: 7, Protocol: 17,
	}
	key6 = FragmentKey{
		Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8::2"), ID: 7, Protocol: 17,
	}
)

// part is a fragment of key with the bytes text at off.
func part(key FragmentKey, off int, text string, more bool) Fragment {
	return Fragment{Key: key, Offset: off, Payload: []byte(text), More: more}
}

// with returns key with a change.
func with(key FragmentKey, change func(*FragmentKey)) FragmentKey {
	change(&key)
	return key
}

// at returns f as a packet some seconds after the first.
func at(seconds int, f Fragment) Fragment {
	f.Time = epoch.Add(time.Duration(seconds) * time.Second)
	return f
}

func TestDefragmenter(t *testing.T) {
	cutPart := part(key4, 0, "AAAA", true)
	cutPart.Length = 8
	for _, test := range []struct {
		name      string
		options   FragmentOptions
		fragments []Fragment
		want      []string
	}{
		{
			name:      "B58: the last piece may be tiny",
			fragments: []Fragment{part(key4, 0, "AAAAAAAA", true), part(key4, 8, "BBB", false)},
			want:      []string{"waiting", `complete "AAAAAAAABBB" of 11 from [1 2]`},
		}, {
			name: "B56: pieces of IPv6 come in any order",
			fragments: []Fragment{part(key6, 16, "CC", false), part(key6, 0, "AAAAAAAA", true),
				part(key6, 8, "BBBBBBBB", true)},
			want: []string{"waiting", "waiting", `complete "AAAAAAAABBBBBBBBCC" of 18 from [1 2 3] out of order`},
		}, {
			name: "B56: ids that differ only in the upper half are two datagrams",
			fragments: []Fragment{part(key6, 0, "AAAAAAAA", true),
				part(with(key6, func(k *FragmentKey) { k.ID |= 1 << 16 }), 8, "x", false), part(key6, 8, "B", false)},
			want: []string{"waiting", "waiting", `complete "AAAAAAAAB" of 9 from [1 3]`, "end_of_input 1 of 9 from [2]"},
		}, {
			name: "B59: protocols do not mix",
			fragments: []Fragment{part(key4, 0, "AAAAAAAA", true),
				part(with(key4, func(k *FragmentKey) { k.Protocol = 6 }), 8, "x", false), part(key4, 8, "B", false)},
			want: []string{"waiting", "waiting", `complete "AAAAAAAAB" of 9 from [1 3]`, "end_of_input 1 of 9 from [2]"},
		}, {
			name: "links do not mix",
			fragments: []Fragment{part(key4, 0, "AAAAAAAA", true),
				part(with(key4, func(k *FragmentKey) { k.Link = 100 }), 8, "x", false), part(key4, 8, "B", false)},
			want: []string{"waiting", "waiting", `complete "AAAAAAAAB" of 9 from [1 3]`, "end_of_input 1 of 9 from [2]"},
		}, {
			name: "B59: an orphan expires before its id is used again",
			fragments: []Fragment{part(key4, 0, "oldoldol", true), at(40, part(key4, 8, "new", false)),
				at(40, part(key4, 0, "newnewne", true))},
			want: []string{"waiting", "expired 8 of -1 from [1]", "waiting", `complete "newnewnenew" of 11 from [2 3] out of order`},
		}, {
			name: "B59: an id used again before its orphan expires begins anew",
			fragments: []Fragment{part(key4, 0, "oldoldol", true), at(10, part(key4, 0, "newnewne", true)),
				at(10, part(key4, 8, "new", false))},
			want: []string{"waiting", "waiting", "superseded 8 of -1 from [1]", `complete "newnewnenew" of 11 from [2 3]`},
		}, {
			name: "B71: a time that goes back expires nothing",
			fragments: []Fragment{at(100, part(key4, 0, "AAAAAAAA", true)), at(0, part(key4, 8, "BBBBBBBB", true)),
				at(129, part(key4, 16, "C", false))},
			want: []string{"waiting", "waiting", `complete "AAAAAAAABBBBBBBBC" of 17 from [1 2 3]`},
		}, {
			name: "copies are counted",
			fragments: []Fragment{part(key6, 0, "AAAAAAAA", true), part(key6, 0, "AAAAAAAA", true),
				part(key6, 8, "B", false)},
			want: []string{"waiting", "duplicate", `complete "AAAAAAAAB" of 9 from [1 3] 1 duplicates`},
		}, {
			name: "of an IPv4 overlap the first copy wins and the second is told",
			fragments: []Fragment{part(key4, 8, "BBBBBBBB", true), part(key4, 0, "AAAAAAAABBBBxxxx", true),
				part(key4, 8, "BBBBBBBBCCC", false)},
			want: []string{"waiting", "waiting", `complete "AAAAAAAABBBBBBBBCCC" of 19 from [1 2 3] out of order 4 conflicts`},
		}, {
			name: "an IPv6 overlap gives the datagram up, and what comes after it",
			fragments: []Fragment{part(key6, 0, "AAAAAAAA", true), part(key6, 0, "AAAAAAAABBBBBBBB", true),
				part(key6, 8, "B", false), at(31, part(key6, 0, "AAAAAAAA", true)), at(31, part(key6, 8, "B", false))},
			want: []string{"waiting", "refused", "overlapped 8 of -1 from [1]", "refused", "waiting", `complete "AAAAAAAAB" of 9 from [4 5]`},
		}, {
			name: "what contradicts the end is refused",
			fragments: []Fragment{part(key4, 8, "BBB", false), part(key4, 8, "BBBBBBBB", true),
				part(key4, 8, "BB", false), part(key4, 0, "AAAAAAAA", true)},
			want: []string{"waiting", "refused", "refused", `complete "AAAAAAAABBB" of 11 from [1 4] out of order`},
		}, {
			name:      "an end before bytes that came is refused",
			fragments: []Fragment{part(key4, 8, "BBBBBBBB", true), part(key4, 0, "A", false)},
			want:      []string{"waiting", `complete "A" of 1 from [2]`, "end_of_input 8 of -1 from [1]"},
		}, {
			name: "what cannot be part of a datagram is refused",
			fragments: []Fragment{part(key4, 0, "AAA", true), part(key4, 8, "", false),
				part(key4, 65528, "BBBBBBBB", false), part(key4, -8, "CCCCCCCC", true)},
			want: []string{"refused", "refused", "refused", "refused"},
		}, {
			name:      "a fragment that is all of a datagram is one",
			fragments: []Fragment{part(key6, 0, "AAA", false)},
			want:      []string{`complete "AAA" of 3 from [1]`},
		}, {
			name:      "B70: a fragment that the capture cut leaves the beginning",
			fragments: []Fragment{part(key4, 8, "BBB", false), cutPart},
			want:      []string{"waiting", `complete "AAAA" of 11 from [1 2] out of order`},
		}, {
			name:    "the oldest set goes when there are too many",
			options: FragmentOptions{Sets: 1},
			fragments: []Fragment{part(key4, 0, "AAAAAAAA", true), part(key6, 0, "AAAAAAAA", true),
				part(key6, 8, "B", false)},
			want: []string{"waiting", "waiting", "evicted 8 of -1 from [1]", `complete "AAAAAAAAB" of 9 from [2 3]`},
		}, {
			name:    "the oldest set goes when there are too many bytes",
			options: FragmentOptions{Bytes: 9},
			fragments: []Fragment{part(key4, 0, "AAAAAAAA", true), part(key6, 0, "AAAAAAAA", true),
				part(key6, 8, "B", false)},
			want: []string{"waiting", "waiting", "evicted 8 of -1 from [1]", `complete "AAAAAAAAB" of 9 from [2 3]`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Defragmenter{Options: test.options}
			var got []string
			orphans := func(lost []Orphan) {
				for _, o := range lost {
					got = append(got, fmt.Sprintf("%s %d of %d from %v", o.Loss, o.Bytes, o.Length, packets(o.Pieces)))
				}
			}
			for i, f := range test.fragments {
				f.Packet = i + 1
				if f.Time.IsZero() {
					f.Time = epoch
				}
				orphans(d.Tick(f.Time))
				g, v := d.Add(&f)
				got = append(got, describe(g, v))
			}
			orphans(d.Tick(epoch))
			orphans(d.Flush())
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n\t%q\nwant\n\t%q", got, test.want)
			}
			if d.bytes != 0 || len(d.sets) != 0 || d.first != nil || d.last != nil {
				t.Errorf("after Flush %d bytes are held", d.bytes)
			}
		})
	}
}

// describe writes what Add returned.
func describe(g *Datagram, v Verdict) string {
	if g == nil {
		return v.String()
	}
	s := fmt.Sprintf("%s %q of %d from %v", v, g.Payload, g.Length, packets(g.Pieces))
	if g.OutOfOrder {
		s += " out of order"
	}
	if g.Duplicates > 0 {
		s += fmt.Sprintf(" %d duplicates", g.Duplicates)
	}
	if g.Conflicts > 0 {
		s += fmt.Sprintf(" %d conflicts", g.Conflicts)
	}
	return s
}

func packets(pieces []Piece) []int {
	numbers := make([]int, len(pieces))
	for i, p := range pieces {
		numbers[i] = p.Packet
	}
	return numbers
}

func TestDefragmenterAllocatesNothingPerDatagram(t *testing.T) {
	var d Defragmenter
	payload := make([]byte, 1480)
	f := Fragment{Key: key4, Payload: payload, Time: epoch}
	datagram := func() {
		f.Key.ID++
		for i := range 3 {
			f.Offset, f.More = 1480*i, i < 2
			d.Tick(f.Time)
			if g, _ := d.Add(&f); g != nil != (i == 2) {
				t.Fatalf("fragment %d: got datagram %v", i, g)
			}
		}
	}
	datagram()
	if n := testing.AllocsPerRun(1000, datagram); n != 0 {
		t.Errorf("got %v allocations a datagram, want 0", n)
	}
}

func TestDefragmenterIsBounded(t *testing.T) {
	var d Defragmenter
	f := Fragment{Key: key4, Offset: 65504, More: true, Payload: make([]byte, 8), Time: epoch}
	for range 10_000 {
		f.Key.ID++
		d.Add(&f)
		if d.bytes > DefaultFragmentBytes || len(d.sets) > DefaultFragmentSets || len(d.orphans) > DefaultFragmentSets {
			t.Fatalf("%d sets with %d bytes and %d orphans are held", len(d.sets), d.bytes, len(d.orphans))
		}
	}
	if n := d.Counters().Orphans[Evicted]; n != 10_000-len(d.sets) {
		t.Errorf("got %d evicted, want %d", n, 10_000-len(d.sets))
	}
}

// FuzzFragments plays known datagrams, of two ids, in fragments that the input
// chooses: 4 bytes each for which, where, how long, and how much captured. What
// completes must be the datagram, once every byte of it was there, and not before.
func FuzzFragments(f *testing.F) {
	f.Add(uint16(11), false, []byte{0, 0, 1, 0, 0, 1, 1, 0})
	f.Add(uint16(100), true, []byte{0, 0, 4, 0, 0, 8, 9, 0, 1, 0, 5, 0, 0, 4, 4, 0, 0, 4, 4, 0})
	f.Add(uint16(100), false, []byte{0, 0, 4, 0, 0, 3, 9, 0, 1, 0, 5, 9, 0, 2, 14, 0, 1, 5, 9, 0})
	f.Fuzz(func(t *testing.T, size uint16, v6 bool, script []byte) {
		const fragment = 4
		length := max(int(size), 1)
		if length == maxDatagram+1 {
			length--
		}
		key := key4
		if v6 {
			key = key6
		}
		var d Defragmenter
		var oracles [2]*oracle
		var cutAt [2]int
		renew := func(id int) {
			oracles[id], cutAt[id] = newOracle(length, byte(id)), length
		}
		renew(0)
		renew(1)
		for n := 1; len(script) >= fragment; n++ {
			id := int(script[0] & 1)
			off := int(script[1]) * 8 % (length + 7) &^ 7
			end := min(off+int(script[2])*8, length)
			lost := int(script[3])
			script = script[fragment:]
			if end <= off {
				continue
			}
			o := oracles[id]
			key.ID = uint32(id)
			captured := max(off, end-lost)
			g := Fragment{
				Key: key, Offset: off, More: end < length, Length: end - off, Packet: n, Time: epoch,
				Payload: slices.Clone(o.stream[off:captured]),
			}
			fresh := slices.Contains(o.captured[off:end], false)
			got, verdict := d.Add(&g)
			clear(g.Payload) // borrowed, and not to be read again
			if off == 0 && end == length {
				continue // whole, and apart from the others
			}
			if verdict == Refused {
				if !v6 {
					t.Fatalf("fragment %d to %d of %d is refused", off, end, length)
				}
				return // an overlap
			}
			if fresh != (verdict != Duplicate) {
				t.Fatalf("fragment %d to %d: fresh %t, verdict %s", off, end, fresh, verdict)
			}
			o.show(off, end)
			if fresh && captured < end {
				cutAt[id] = min(cutAt[id], captured)
			}
			whole := !slices.Contains(o.captured, false)
			if whole != (verdict == Complete) || whole != (got != nil) {
				t.Fatalf("all there: %t, verdict %s", whole, verdict)
			}
			if got == nil {
				continue
			}
			if want := o.stream[:cutAt[id]]; !bytes.Equal(got.Payload, want) || got.Length != length || got.Conflicts != 0 {
				t.Fatalf("got %d bytes of %d with %d conflicts, want %d of %d", len(got.Payload), got.Length, got.Conflicts, len(want), length)
			}
			renew(id)
		}
		d.Flush()
		if d.bytes != 0 || len(d.sets) != 0 {
			t.Fatalf("%d bytes are held after the end", d.bytes)
		}
	})
}

// FuzzFragmentsAnything gives arbitrary fragments to a Defragmenter: nothing
// panics, and what completes is as long as it says.
func FuzzFragmentsAnything(f *testing.F) {
	f.Add([]byte{1, 0, 0, 8, 0, 0, 0, 8, 3, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		const fragment = 5
		d := Defragmenter{Options: FragmentOptions{Sets: 3, Bytes: 1 << 17}}
		var payload [255]byte
		at := epoch
		for n := 1; len(script) >= fragment; n++ {
			g := Fragment{
				Key: key4, More: script[0]&1 != 0, Offset: int(binary.BigEndian.Uint16(script[1:])),
				Payload: payload[:script[3]], Length: int(script[4]), Packet: n,
			}
			if script[0]&2 != 0 {
				g.Key = key6
			}
			g.Key.ID = uint32(script[0] >> 2 & 3)
			at = at.Add(time.Duration(script[0]>>4) * time.Second)
			g.Time = at
			payload[0]++
			script = script[fragment:]
			d.Tick(at)
			got, _ := d.Add(&g)
			if got != nil && (len(got.Payload) > got.Length || len(got.Pieces) == 0) {
				t.Fatalf("got %d bytes of %d in %d pieces", len(got.Payload), got.Length, len(got.Pieces))
			}
			if len(d.sets) > 3 {
				t.Fatalf("%d sets are held", len(d.sets))
			}
		}
		d.Flush()
		if d.bytes != 0 || d.first != nil || d.last != nil {
			t.Fatalf("%d bytes are held after the end", d.bytes)
		}
	})
}
