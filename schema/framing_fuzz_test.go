package schema

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// framings are those of all built-in protocols, and of a made-up one with every kind.
func framings(t testing.TB) (list []framingOf) {
	all, err := LoadFile(fstest.MapFS{"t.yaml": {Data: []byte(framed)}}, "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range BuiltinNames() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		for _, f := range p.Framings {
			list = append(list, framingOf{p, f})
		}
	}
	return list
}

type framingOf struct {
	p *Protocol
	f *Framing
}

// find finds a frame, of whatever kind the framing is.
func (x framingOf) find(d *Decoder, by Sender, data []byte) (Frame, *wire.Error) {
	if x.f.Kind == Typed {
		return x.f.FindTyped(d, x.p, by, data)
	}
	return x.f.Find(data, x.p.Name)
}

// addVectors adds the byte vectors of all protocols, those beside the checkout too.
func addVectors(f *testing.F, add func(data []byte)) {
	files, _ := filepath.Glob("../testdata/vectors/*/vectors.json")
	shared, _ := filepath.Glob("../../shared/vectors/*.json")
	for _, file := range append(files, shared...) {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var list []struct{ Hex string }
		if json.Unmarshal(b, &list) != nil {
			continue
		}
		for _, v := range list {
			if data, err := hex.DecodeString(v.Hex); err == nil {
				add(data)
			}
		}
	}
}

// FuzzFraming cuts arbitrary bytes by every framing. A frame lies within the bytes, is
// the same whatever follows it, and its start asks for more bytes of the same size; what
// is malformed stays so with more bytes.
func FuzzFraming(f *testing.F) {
	all := framings(f)
	n := 0
	addVectors(f, func(data []byte) {
		for range 2 { // each by some of the framings, in turn
			f.Add(uint8(n%len(all)), uint8(len(data)), data)
			n++
		}
	})
	f.Fuzz(func(t *testing.T, which, sender uint8, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		x := all[int(which)%len(all)]
		if x.f.Kind == Records {
			for _, e := range x.f.Modes {
				parsed, err := e.Parse(data, x.p.Name)
				if err == nil && (parsed.Size > len(data) || parsed.Head > len(data) || parsed.Size > 0 && parsed.Size < parsed.Head) {
					t.Fatalf("%s: got %+v in %d bytes", e.Name, parsed, len(data))
				}
				if e.length.bits > 0 && (err == nil) != e.Fits(data) {
					t.Fatalf("%s: fits: %v, and %v", e.Name, e.Fits(data), err)
				}
			}
			return
		}
		by := Sender(sender % 3)
		d := &Decoder{State: x.p.NewState()}
		frame, err := x.find(d, by, data)
		switch {
		case err == nil && (frame.Size > len(data) || frame.Size < frame.Head || frame.Size == 0 && x.f.Kind != Datagram):
			t.Fatalf("got %+v in %d bytes", frame, len(data))
		case err == nil:
			if again, err := x.find(d, by, data[:frame.Size]); err != nil || again != frame {
				t.Fatalf("got %+v, %v without what follows; with it %+v", again, err, frame)
			}
			if x.f.Kind != Datagram {
				part, err := x.find(d, by, data[:frame.Size-1])
				if err == nil && part.Size >= frame.Size || err != nil && (err.Kind != wire.Incomplete || part.Size != 0 && part.Size != frame.Size) {
					t.Fatalf("got %+v, %v of all but the last byte; of all %+v", part, err, frame)
				}
			}
		case err.Kind == wire.Incomplete && frame.Size != 0 && frame.Size <= len(data):
			t.Fatalf("wants %d of %d bytes", frame.Size, len(data))
		case err.Kind == wire.Malformed && x.f.Kind != Datagram:
			if again, fault := x.find(d, by, append(append([]byte(nil), data...), 0xff)); fault == nil || fault.Kind != wire.Malformed {
				t.Fatalf("malformed (%v), and with a byte more %+v, %v", err, again, fault)
			}
		}
	})
}
