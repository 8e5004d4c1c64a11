package schema

import "testing"

// A field that was looked up once reads what one looked up by its name does, also where the
// frame is cut.
func TestNumbersAreThoseOfTheirNames(t *testing.T) {
	frame := []byte("\x01\x82\x43\xc4\x25\xa6\x67\xe8\x19\x9a\x5b\xdc\x3d\xbe\x7f\xf0\x02\x84\x46\xc8\x2a\xac\x6e\xe1\x13\x95\x57\xd9")
	for _, name := range BuiltinNames() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Envelopes {
			for _, f := range append(e.fields, envelopeField{name: "no such field"}) {
				n := e.Field(f.name)
				for size := range frame {
					if got, want := n.Of(frame[:size]), e.Number(f.name, frame[:size]); got != want {
						t.Errorf("%s %s.%s in %d bytes: got %#x, want %#x", name, e.Name, f.name, size, got, want)
					}
				}
			}
		}
	}
	if n := (*Envelope)(nil).Field("opcode"); n.Of(frame) != 0 {
		t.Errorf("no envelope: got %#x, want 0", n.Of(frame))
	}
}
