package netrek_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/scene"
	"opscope/schema"
)

const (
	fromC = scene.Client
	fromS = scene.Server
)

// recorded is one direction of a connection, with the places where packets begin.
type recorded struct {
	dir    dissect.Direction
	data   []byte
	begins []int
}

// streams returns the streams of a capture that were captured whole.
func streams(t *testing.T, path string) []*recorded {
	var list []*recorded
	index := map[stream]*recorded{}
	for _, r := range play(t, path, known).Frames() {
		if r.Transport != schema.TCP {
			continue
		}
		s := index[streamOf(r)]
		if s == nil {
			s = &recorded{dir: r.Direction}
			index[streamOf(r)] = s
			list = append(list, s)
		}
		if r.Message != "" && r.Offset == int64(len(s.data)) {
			s.begins = append(s.begins, len(s.data))
			s.data = append(s.data, r.Raw...)
		}
	}
	return list
}

// A stream that is joined anywhere, also inside a packet, goes on with the next one.
func TestJoiningAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tried, missed := 0, 0
	for _, path := range captures(t) {
		if testing.Short() && len(filepath.Base(path))%4 != 0 {
			continue
		}
		for _, s := range streams(t, path) {
			for range 4 {
				if len(s.data) < 600 {
					continue
				}
				from := rng.IntN(len(s.data) - 400)
				i, _ := slices.BinarySearch(s.begins, from)
				want := s.begins[i]
				got := s.joined(t, from, 100+rng.IntN(1400))
				tried++
				if got != want {
					missed++
					t.Logf("%s %v from %d: went on at %d, want %d", filepath.Base(path), s.dir, from, got, want)
				}
			}
		}
	}
	t.Logf("%d of %d starts went on elsewhere than at the next packet", missed, tried)
	if missed > 1+tried/100 {
		t.Errorf("got %d of %d wrong, want at most one, and one in a hundred", missed, tried)
	}
}

// joined plays a stream from an offset on, in segments of some size, and returns
// where its first packet was found.
func (s *recorded) joined(t *testing.T, from, size int) int {
	sc := &scene.Scene{}
	c := sc.TCP("10.0.0.2:50111", "10.0.0.1:2592")
	side := fromS
	if s.dir == dissect.ClientToServer {
		side = fromC
	}
	for data := s.data[from:min(len(s.data), from+8000)]; len(data) > 0; {
		n := min(size, len(data))
		c.Send(side, string(data[:n]))
		data = data[n:]
	}
	for _, r := range sc.Play(t, known).Frames() {
		if r.Message != "" {
			return from + int(r.Offset)
		}
	}
	return -1
}

// Packets that nothing speaks for do not make a stream wait.
func TestJoiningPacketsWithoutFields(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:2592")
	c.Drip(fromC, 1, "\x00", strings.Repeat(bye, 4000))
	if got := len(s.Play(t, known).Frames()); got != 4000 {
		t.Errorf("got %d packets, want 4000", got)
	}
}
