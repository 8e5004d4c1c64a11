package protocols_test

import (
	"context"
	"path/filepath"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/schema"
)

// watched is a protocol that notes what makes it load its layouts.
type watched struct {
	dissect.Protocol
	loads int
}

func (w *watched) Schema() (*schema.Protocol, error) {
	w.loads++
	return w.Protocol.Schema()
}

func (w *watched) Recognize(x *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	w.loads++
	return w.Protocol.Recognize(x, t, data)
}

type nowhere struct{}

func (nowhere) Write(*dissect.Record) error { return nil }
func (nowhere) Flush() error                { return nil }

// TestACaptureLoadsItsOwnProtocol proves that traffic on a protocol's port needs no other
// one's layouts.
func TestACaptureLoadsItsOwnProtocol(t *testing.T) {
	for name, own := range map[string]string{"wulfram/session": "wulfram", "netrek/tcp": "netrek", "lotr2/lobby": "lotr2"} {
		source, err := capture.Open(filepath.Join("..", "..", "pcaps", name+".pcapng"))
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		var all []dissect.Protocol
		for _, p := range protocols.All {
			all = append(all, &watched{Protocol: p})
		}
		if _, err := dissect.NewPipeline(nowhere{}, dissect.Options{Protocols: all}).Run(context.Background(), source); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			head, err := p.Head()
			if err != nil {
				t.Fatal(err)
			}
			if loads := p.(*watched).loads; (loads > 0) != (head.Name == own) {
				t.Errorf("%s: %s is asked for its layouts %d times", name, head.Name, loads)
			}
		}
	}
}
