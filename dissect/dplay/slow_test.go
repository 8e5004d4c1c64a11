package dplay_test

import (
	"strings"
	"testing"
	"time"

	"opscope/dissect/scene"
)

// Bytes that look like the start of a frame at every fourth place do not cost more than
// they should.
func TestGarbageIsCheap(t *testing.T) {
	for _, word := range []string{"\x00\xf0\xbf\xfa", "\x40\x00\xb0\xfa", "\x02\x00", "\xff\xff\xbf\xfa\x02\x00\x08\xfc" + strings.Repeat("\x00", 12)} {
		s := &scene.Scene{}
		c := s.TCP("10.0.0.1:1038", "10.0.0.2:2300")
		for range 400 {
			c.Send(dialer, strings.Repeat(word, 200/len(word)))
		}
		start := time.Now()
		s.Play(t, known)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: it took %v", word, d)
		}
	}
}
