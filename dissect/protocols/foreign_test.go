package protocols_test

import (
	"math/rand/v2"
	"testing"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/schema"
)

// foreign is bytes that are no game's: of an encrypted stream, of text, and of a table of
// numbers.
func foreign() map[string][]byte {
	rng := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 8<<10)
	rng.Read(noise)
	var text, numbers []byte
	for len(text) < len(noise) {
		text = append(text, "GET /index.html HTTP/1.1\r\nHost: www.example.com\r\nAccept: */*\r\n\r\n"...)
	}
	for n := 0; len(numbers) < len(noise); n++ {
		numbers = append(numbers, 0, 0, byte(n>>8), byte(n))
	}
	return map[string][]byte{"noise": noise, "text": text, "numbers": numbers}
}

// Most flows of a capture are no game's. Each of them is looked at by all protocols, some of
// which try each offset: that makes no garbage.
func TestLookingAtForeignBytesAllocatesNothing(t *testing.T) {
	var w dissect.Scratch
	for name, data := range foreign() {
		for _, p := range protocols.All {
			for _, over := range []schema.Transport{schema.TCP, schema.UDP} {
				look := func() { p.Recognize(&w, over, data) }
				look() // makes the schema, and room in the scratch
				if n := testing.AllocsPerRun(10, look); n > 0 {
					head, _ := p.Head()
					t.Errorf("%s, %s, %v: %v allocations a look, want 0", name, head.Name, over, n)
				}
			}
		}
	}
}

// BenchmarkRecognize is one look of all protocols at what is no game's.
func BenchmarkRecognize(b *testing.B) {
	var w dissect.Scratch
	for name, data := range foreign() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range protocols.All {
					p.Recognize(&w, schema.TCP, data)
				}
			}
		})
	}
}
