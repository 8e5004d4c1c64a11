package protocols_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
	"opscope/schema/wire"
)

// partialLooks are those for which not all of a body is made.
var partialLooks = []dissect.Look{dissect.LookNothing, dissect.LookOutline}

// sameButValues compares what a run that skims makes of a capture with what one makes that
// looks at all of it: all but the values is the same.
func sameButValues(t *testing.T, skimmed, full *scene.Output) {
	t.Helper()
	if len(skimmed.Records) != len(full.Records) {
		t.Fatalf("got %d records, want %d", len(skimmed.Records), len(full.Records))
	}
	for i, want := range full.Records {
		got := *skimmed.Records[i]
		plain := *want
		for _, r := range []*dissect.Record{&got, &plain} {
			r.Body, r.Head, r.Packet, r.Layout, r.Secrets = schema.Tree{}, schema.Tree{}, nil, nil, nil
		}
		if !reflect.DeepEqual(got, plain) || skimmed.Records[i].Layout != want.Layout {
			t.Fatalf("record %d: got %s\n%+v\nwant %s\n%+v", i, scene.Line(&got), got, scene.Line(&plain), plain)
		}
	}
	if got, want := skimmed.Result.Summary, full.Result.Summary; !reflect.DeepEqual(got, want) {
		t.Errorf("got the summary %+v, want %+v", got, want)
	}
	sameTables(t, skimmed, full)
}

// sameKinds compares what a run that looks only at what records are makes of a capture with
// what one makes that looks at all of it: a record is of the same kind and size, with the same
// error, and as unknown. Sessions learn the same.
func sameKinds(t *testing.T, kinds, full *scene.Output) {
	t.Helper()
	got, want := kinds.Frames(), full.Frames()
	if len(got) != len(want) {
		t.Fatalf("got %d frames, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := kindOf(got[i]), kindOf(want[i])
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("record %d: got %+v, want %+v", i, g, w)
		}
		if s := got[i].Ack.State; s != dissect.AckNone {
			t.Fatalf("record %d: its acknowledgement is %v, though nobody asks for it", i, s)
		}
	}
	sameTables(t, kinds, full)
}

// kindOf returns what an output that only counts records looks at.
func kindOf(r *dissect.Record) (kind struct {
	Protocol, Message string
	Opcode, Size      int
	Direction         dissect.Direction
	Transport         schema.Transport
	Err               *wire.Error
	Unknown           []string
	Packets           []int
	Session, N        int
}) {
	kind.Protocol, kind.Message, kind.Opcode, kind.Size = r.Protocol, r.Message, r.Opcode, r.Size
	kind.Direction, kind.Transport, kind.Err = r.Direction, r.Transport, r.Err
	kind.Packets, kind.Session, kind.N = r.Packets, r.Session, r.N
	for _, n := range r.Notes {
		if strings.HasPrefix(n.Code, "unknown_") {
			kind.Unknown = append(kind.Unknown, n.Code)
		}
	}
	return kind
}

// sameTables compares what the sessions of two runs have learned.
func sameTables(t *testing.T, some, full *scene.Output) {
	t.Helper()
	if len(some.Result.Sessions) != len(full.Result.Sessions) {
		t.Fatalf("got %d sessions, want %d", len(some.Result.Sessions), len(full.Result.Sessions))
	}
	for i, want := range full.Result.Sessions {
		if got := some.Result.Sessions[i]; !reflect.DeepEqual(entries(got), entries(want)) {
			t.Errorf("session %d: got the tables %v, want %v", want.ID, entries(got), entries(want))
		}
	}
}

// entries returns what a session has learned.
func entries(s *dissect.Session) (all []schema.Entry) {
	for _, l := range s.Tables() {
		for _, k := range l.Table.Keys() {
			all = append(all, *l.Table.Get(k))
		}
	}
	return all
}

// look dissects a capture.
func look(t *testing.T, name string, l dissect.Look) *scene.Output {
	f, err := capture.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := &scene.Output{}
	o := dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold, Look: l}
	out.Result, _ = dissect.NewPipeline(out, o).Run(context.Background(), f) // all looks end at the same error
	return out
}

// A run that looks at no values tells the same of each record as one that does, and its
// sessions learn the same.
func TestSkimmingTellsTheSame(t *testing.T) {
	root := filepath.Join("..", "..")
	var files []string
	for _, pattern := range []string{"pcaps/*/*.pcapng", "testdata/broken/*.pcap*", "../shared/captures/*/*.pcap*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatal("no captures")
	}
	frames := 0
	for _, name := range files {
		if is, _ := capture.Probe(name); !is {
			if filepath.Base(filepath.Dir(name)) != "broken" {
				t.Errorf("%s is no capture", name)
			}
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			full := look(t, name, dissect.LookWhole)
			for _, l := range partialLooks {
				sameButValues(t, look(t, name, l), full)
			}
			sameKinds(t, look(t, name, dissect.LookKind), full)
			frames += len(full.Frames())
		})
	}
	if frames < 1000 {
		t.Errorf("only %d records", frames)
	}
}
