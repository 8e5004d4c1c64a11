package scene

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
)

// Output is what a pipeline made of a scene. Its records are copies.
type Output struct {
	Records []*dissect.Record
	Result  *dissect.Result
}

// Play runs the scene through a pipeline of its own.
func (s *Scene) Play(t testing.TB, o dissect.Options) *Output {
	t.Helper()
	out := &Output{}
	r, err := dissect.NewPipeline(out, o).Run(context.Background(), s.Source())
	if err != nil {
		t.Fatal(err)
	}
	out.Result = r
	return out
}

// Write copies a record.
func (o *Output) Write(r *dissect.Record) error {
	var k dissect.Kept
	k.Keep(r)
	o.Records = append(o.Records, k.Record())
	return nil
}

// Flush does nothing.
func (o *Output) Flush() error { return nil }

// Frames returns the records of frames.
func (o *Output) Frames() []*dissect.Record {
	return slices.DeleteFunc(slices.Clone(o.Records), func(r *dissect.Record) bool { return r.Type != dissect.FrameRecord })
}

// Named returns the records of frames with this message.
func (o *Output) Named(message string) []*dissect.Record {
	return slices.DeleteFunc(o.Frames(), func(r *dissect.Record) bool { return r.Message != message })
}

// String returns a line for each record.
func (o *Output) String() string { return Lines(o.Records) }

// Lines returns a line for each of some records.
func Lines(list []*dissect.Record) string {
	var b strings.Builder
	for _, r := range list {
		b.WriteString(Line(r))
		b.WriteByte('\n')
	}
	return b.String()
}

// Line says in a line what a test looks at: direction, what it is, the state of its
// acknowledgement, the codes of notes, the kind and place of an error, the rest.
//
//	c2s VIEWPOINT_INFO 7 acked +retransmission
//	s2c gap 1448 not_captured
//	s2c event resync
//	session 1 opened: syn
func Line(r *dissect.Record) string {
	var w []string
	if r.Direction != dissect.UnknownDirection {
		w = append(w, r.Direction.String())
	}
	switch r.Type {
	case dissect.FrameRecord:
		w = append(w, frameWords(r)...)
	case dissect.AckRecord:
		return fmt.Sprintf("ack of %d by %d %s", r.Acked, r.Ack.By, r.Ack.State)
	case dissect.GapRecord:
		w = append(w, fmt.Sprintf("gap %d %s", r.Bytes, r.Text))
	case dissect.SessionRecord:
		return fmt.Sprintf("session %d %s: %s", r.Session, r.Code, r.Text)
	case dissect.EventRecord:
		w = append(w, "event "+r.Code)
	}
	return strings.Join(w, " ")
}

func frameWords(r *dissect.Record) []string {
	w := []string{r.Message}
	if r.Message == "" {
		w[0] = "?"
	}
	if r.Envelope.Seq >= 0 {
		w = append(w, fmt.Sprint(r.Envelope.Seq))
	}
	if r.Ack.State != dissect.AckNone {
		w = append(w, r.Ack.State.String())
	}
	for _, n := range r.Notes {
		w = append(w, "+"+n.Code)
	}
	if r.Err != nil {
		w = append(w, fmt.Sprintf("!%s %s@%d", r.Err.Kind, r.Err.Path, r.Err.Offset))
	}
	if len(r.Rest) > 0 {
		w = append(w, fmt.Sprintf("rest=%x", r.Rest[:min(len(r.Rest), 16)]))
	}
	return w
}

// Want compares the lines of some records with those wanted, which may be indented.
func Want(t testing.TB, got []*dissect.Record, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if g, w := strings.TrimSpace(Lines(got)), strings.Join(lines, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", indent(g), indent(w))
	}
}

func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }
