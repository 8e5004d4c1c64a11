package main_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"opscope/cmd/refserver/internal/scenario"
	"opscope/dissect"
	"opscope/dissect/protocols"
)

// copied compares what the dissector says of a message that is sent several times, or is
// on purpose odd, with what its sender did.
func (c *comparison) copied(s *scenario.Sent, f *dissect.Record) {
	if s.Head == nil || s.Head.Field("copy") < 0 {
		return
	}
	copy, _ := s.Head.Value("copy")
	whole := s.Resend != 0 && slices.ContainsFunc(c.truth.Sent, func(o scenario.Sent) bool {
		return o.By == s.By && o.ID == s.Resend && o.Captured == scenario.Whole && !o.Late
	})
	other := strings.HasPrefix(s.Note, "a copy that is not")
	for code, want := range map[string]bool{
		"bad_checksum": strings.Contains(s.Note, "checksum"), "length_disagrees": strings.Contains(s.Note, "a length"),
		"conflict": other && whole, "resend_copy": copy > 0 && !(other && whole), "retransmission": false, "duplicate": false,
	} {
		if noted(f, code) != want {
			c.errorf("%s is told: %v, want %v: %s\n  is %s", code, !want, want, describe(f), tell(s))
		}
	}
}

// TestOdditiesAreTold wants everything that is on purpose odd in lotr2-damaged, and what
// others see of a session of three, in the notes, and nothing else.
func TestOdditiesAreTold(t *testing.T) {
	for name, want := range map[string]map[string]int{
		// Three sends each of a wrong sum and of a wrong length, one wrong sum in a first send
		// and one in what is sent once; a second and a third send that are missing (a first one
		// is told by the second), and a second one that is another; two messages that nobody
		// knows, three times; of four reports three that differ from one before.
		"lotr2-damaged": {
			"bad_checksum": 5, "length_disagrees": 3, "length_unusual": 3, "copies_missing": 2, "conflict": 1, "sequence_gap": 1,
			"unknown_opcode": 6, "out_of_step": 3,
		},
		"lotr2-lobby": {},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := scenario.Find(name)
			var buf bytes.Buffer
			if _, err := s.Run(&buf, 1); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, f := range read(t, buf.Bytes(), protocols.All).frames {
				for _, n := range f.Notes {
					got[n.Code]++
				}
			}
			delete(got, "resend_copy")
			for code := range want {
				if got[code] != want[code] {
					t.Errorf("%s is told %d times, want %d", code, got[code], want[code])
				}
				delete(got, code)
			}
			if len(got) > 0 {
				t.Errorf("it also tells %v", got)
			}
		})
	}
}
