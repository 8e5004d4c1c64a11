package main_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/cmd/refserver/internal/scenario"
	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/mmo"
	"opscope/dissect/protocols"
	"opscope/schema"
	"opscope/schema/wire"
)

var seeds = flag.Int("seeds", 40, "how many mixed scenarios the round trip plays")

// The round trip: the reference server plays a scenario, the dissector reads its
// capture, and what it finds is compared with what is true.
//
// What must hold, whatever the faults: every record that the capture has whole is
// found, once, in the order of its stream, unless a gap in front of it took the
// place where frames begin; nothing is found that was not sent; and what was lost
// is told.
func TestRoundTrip(t *testing.T) {
	for _, s := range scenario.All {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed+1), func(t *testing.T) { roundTrip(t, &s, seed+1) })
		}
	}
}

func TestRoundTripMixed(t *testing.T) {
	for _, draw := range scenario.Drawn {
		for seed := range uint64(*seeds) {
			s := draw(seed)
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed), func(t *testing.T) { roundTrip(t, &s, seed) })
		}
	}
}

func roundTrip(t *testing.T, s *scenario.Scenario, seed uint64) {
	var buf bytes.Buffer
	truth, err := s.Run(&buf, seed)
	if err != nil {
		t.Fatal(err)
	}
	if len(truth.Sent) == 0 {
		t.Fatal("nothing was sent")
	}
	readings := layouts(t, s)
	for i, list := range readings {
		c := comparison{
			t: t, scenario: s, truth: truth, found: read(t, buf.Bytes(), list), full: i == len(readings)-1, given: map[route]int64{},
		}
		c.run()
	}
	if t.Failed() {
		t.Logf("play it again: refserver record %s --seed %d -o x.pcapng --log x.ndjson; faults %+v", s.Name, seed, s.Faults)
	}
}

// layouts returns the protocols as often as a scenario is to be read: the MMO without the
// bodies that the test server has made up, as anybody reads it, and with them.
func layouts(t *testing.T, s *scenario.Scenario) [][]dissect.Protocol {
	t.Helper()
	if s.Protocol != "mmo" {
		return [][]dissect.Protocol{protocols.All}
	}
	plain, err := schema.Builtin("mmo")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name == "mmo-big-endian" {
		if plain, err = plain.WithOrder(wire.Big); err != nil {
			t.Fatal(err)
		}
	}
	full, err := plain.Overlay(testserver.Messages(), testserver.MessagesDir)
	if err != nil {
		t.Fatal(err)
	}
	return [][]dissect.Protocol{{mmo.With(plain)}, {mmo.With(full)}}
}

// read dissects a capture.
func read(t *testing.T, data []byte, known []dissect.Protocol) *collector {
	t.Helper()
	f, err := capture.OpenReader("round trip", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &collector{times: map[int]time.Time{}}
	p := dissect.NewPipeline(c, dissect.Options{Protocols: known, Hold: time.Minute})
	r, err := p.Run(context.Background(), clock{f, c.times})
	if err != nil {
		t.Fatal(err)
	}
	c.foreign = r.Summary.OtherFlows
	return c
}

// collector keeps copies of records.
type collector struct {
	frames, gaps, events, sessions []dissect.Record
	acks                           map[int]dissect.Ack // that came after their record, by its N
	times                          map[int]time.Time   // of the packets, by their number
	foreign                        int                 // flows of no known protocol
}

// clock notes the times of packets on their way to the pipeline.
type clock struct {
	dissect.Source
	times map[int]time.Time
}

func (c clock) Next(p *dissect.Packet) error {
	err := c.Source.Next(p)
	c.times[p.Number] = p.Time
	return err
}

func (c *collector) Flush() error { return nil }

func (c *collector) Write(r *dissect.Record) error {
	k := *r
	k.Packets, k.Notes = slices.Clone(r.Packets), slices.Clone(r.Notes)
	k.Body.Nodes, k.Body.Data = slices.Clone(r.Body.Nodes), bytes.Clone(r.Body.Data)
	k.Head.Nodes, k.Head.Data = slices.Clone(r.Head.Nodes), bytes.Clone(r.Head.Data)
	if r.Err != nil {
		fault := *r.Err
		k.Err = &fault
	}
	k.Raw, k.Rest = bytes.Clone(r.Raw), bytes.Clone(r.Rest)
	switch r.Type {
	case dissect.FrameRecord:
		c.frames = append(c.frames, k)
	case dissect.GapRecord:
		c.gaps = append(c.gaps, k)
	case dissect.EventRecord:
		c.events = append(c.events, k)
	case dissect.SessionRecord:
		c.sessions = append(c.sessions, k)
	case dissect.AckRecord:
		if c.acks == nil {
			c.acks = map[int]dissect.Ack{}
		}
		c.acks[r.Acked] = r.Ack
	}
	return nil
}

// comparison compares what was found with what is true.
type comparison struct {
	t        *testing.T
	scenario *scenario.Scenario
	truth    *scenario.Result
	found    *collector
	full     bool // with all layouts that the sender has
	failures int
	given    map[route]int64 // bytes of streams that came when reassembly had given them up
}

// maxFailures is how many disagreements of one scenario are told.
const maxFailures = 12

func (c *comparison) errorf(format string, args ...any) {
	c.t.Helper()
	if c.failures++; c.failures <= maxFailures {
		c.t.Errorf(format, args...)
	}
}

// route is one direction of a flow.
type route struct {
	transport schema.Transport
	src, dst  netip.AddrPort
}

func (c *comparison) run() {
	sent, found := map[route][]*scenario.Sent{}, map[route][]*dissect.Record{}
	var routes []route
	for i := range c.truth.Sent {
		s := &c.truth.Sent[i]
		r := route{s.Transport, s.Src, s.Dst}
		if sent[r] == nil {
			routes = append(routes, r)
		}
		sent[r] = append(sent[r], s)
	}
	for i := range c.found.frames {
		f := &c.found.frames[i]
		r := route{f.Transport, f.Src, f.Dst}
		found[r] = append(found[r], f)
	}
	for _, r := range routes {
		if r.transport == schema.TCP {
			c.stream(r, sent[r], found[r])
		} else {
			c.datagrams(r, sent[r], found[r])
		}
		delete(found, r)
	}
	c.gaps()
	for _, r := range routes {
		if r.transport == schema.UDP && c.known(r) {
			c.sequences(r, sent[r])
		}
	}
	for r, list := range found {
		c.errorf("invented: %d records from %v to %v over %v", len(list), r.src, r.dst, r.transport)
	}
}

// teachers are the packets that others need to be read.
var teachers = []string{
	"TRANSLATION", "BEHAVIOR", "D_HANDSHAKE", "HELLO", // Wulfram
	"SP_FEATURE", "CP_FEATURE", "SP_S_REPLY", "CP_S_REQ", "CP_UDP_REQ", "SP_UDP_REPLY", // Netrek
	"EnumSessionsReply", "RequestPlayerId", "RequestPlayerReply", "AddForwardRequest", "SuperEnumPlayersReply", "CreatePlayer", // DirectPlay
	"EnterGameRes", // MMO
}

// known reports whether the capture has all the context of the side that sends
// between these ends, and of its peer: what its bodies and envelopes need. Two clients
// are known by what their server has told both.
func (c *comparison) known(r route) bool {
	if c.scenario.Faults.Capture.Start > 0 {
		return false
	}
	aside := slices.ContainsFunc(c.truth.Sent, func(s scenario.Sent) bool { return s.Aside && s.Src == r.src && s.Dst == r.dst })
	for i := range c.truth.Sent {
		s := &c.truth.Sent[i]
		same := s.Src.Addr() == r.src.Addr() && s.Dst.Addr() == r.dst.Addr() || s.Src.Addr() == r.dst.Addr() && s.Dst.Addr() == r.src.Addr()
		if (same || aside) && slices.Contains(teachers, s.Message) && s.Captured != scenario.Whole && s.Wire > 0 {
			return false
		}
	}
	return true
}

// datagrams compares the records of one direction of a UDP flow: datagram by
// datagram, in the order of the capture.
func (c *comparison) datagrams(r route, sent []*scenario.Sent, found []*dissect.Record) {
	known := c.known(r)
	next := 0
	for i := 0; i < len(sent); {
		n := i + 1
		for n < len(sent) && sent[n].Datagram() == sent[i].Datagram() {
			n++
		}
		group := sent[i:n]
		i = n
		packets := group[0].DatagramPackets()
		from := next
		for next < len(found) && subset(found[next].Packets, packets) {
			next++
		}
		c.datagram(group, found[from:next], known)
	}
	for _, f := range found[next:] {
		c.errorf("invented, or out of order: %s", describe(f))
	}
}

// patience is how long reassembly waits for the bytes of a hole when others have come
// from behind it: reassembly.Options.Wait.
const patience = 2 * time.Second

// overdue tells of each record of a stream whether its last bytes came when reassembly
// had given them up.
func (c *comparison) overdue(sent []*scenario.Sent) []bool {
	list := make([]bool, len(sent))
	var behind time.Time // of the first packet with bytes of the record, or behind it
	for i, s := range slices.Backward(sent) {
		if len(s.Packets) == 0 {
			continue
		}
		first, last := c.found.times[slices.Min(s.Packets)], c.found.times[slices.Max(s.Packets)]
		if behind.IsZero() || first.Before(behind) {
			behind = first
		}
		list[i] = last.Sub(behind) > patience
	}
	return list
}

// joined returns where the stream begins of which the capture misses the start: with the
// packet that it has first. What comes later from before that is told, and not decoded.
func (c *comparison) joined(sent []*scenario.Sent) int64 {
	if c.scenario.Faults.Capture.Start == 0 {
		return 0
	}
	first := 0
	for _, s := range sent {
		if len(s.Packets) > 0 && (first == 0 || slices.Min(s.Packets) < first) {
			first = slices.Min(s.Packets)
		}
	}
	for _, s := range sent {
		if equalSets(s.Packets, []int{first}) {
			return s.Position
		}
	}
	return 0
}

// intersect reports whether a and b have a packet in common.
func intersect(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// subset reports whether all of a, and there are some, are among b.
func subset(a, b []int) bool {
	return len(a) > 0 && !slices.ContainsFunc(a, func(x int) bool { return !slices.Contains(b, x) })
}

// datagram compares the records of one datagram.
func (c *comparison) datagram(sent []*scenario.Sent, found []*dissect.Record, known bool) {
	for i, s := range sent {
		if s.Captured == scenario.None {
			continue
		}
		at := slices.IndexFunc(found, func(f *dissect.Record) bool { return f.Offset == s.Position })
		switch {
		case at < 0 && s.Captured == scenario.Partly && s.Fragments() > 1:
			// An incomplete datagram: there is an event instead.
		case at < 0 && s.Captured == scenario.Partly && i > 0 && sent[i-1].Mode == 0 && sent[i-1].Captured == scenario.Partly:
		case at < 0 && !known:
			// An earlier record of the datagram may have swallowed it.
		case at < 0:
			c.errorf("not found: %s", tell(s))
		case s.Message == "":
			if found[at].Err == nil {
				c.errorf("no frame, and not told: %s\n  is %s", describe(found[at]), tell(s))
			}
		case s.Captured == scenario.Whole:
			c.record(s, found[at], known)
		case known && found[at].Err == nil && !noted(found[at], "not_captured") && !s.Opaque:
			c.errorf("cut, and not told: %s\n  is %s", describe(found[at]), tell(s))
		}
	}
	if !known {
		return
	}
	for _, f := range found {
		if !slices.ContainsFunc(sent, func(s *scenario.Sent) bool { return s.Position == f.Offset }) {
			c.errorf("invented: %s", describe(f))
		}
	}
}

// stream compares the frames of one direction of a connection. A frame that the
// capture has may be passed over while the dissector looks for a boundary: behind a gap,
// and in a packet with bytes that are no frame, of which the receiver throws away the
// rest, too.
func (c *comparison) stream(r route, sent []*scenario.Sent, found []*dissect.Record) {
	slices.SortStableFunc(sent, func(a, b *scenario.Sent) int { return int(a.Position - b.Position) })
	known := c.known(r)
	shift := int64(0) // of the offsets, where the start was not captured
	missing := false  // since the last frame that was found
	var garbage []int // the packets of the last bytes that are no frame
	hunting := false  // no frame was found since
	next := 0
	overdue, joined := c.overdue(sent), c.joined(sent)
	for i, s := range sent {
		if overdue[i] = overdue[i] || s.Position < joined; overdue[i] {
			c.given[r] += int64(s.Size)
		}
	}
	for i, s := range sent {
		if s.Message == "" && next < len(found) && found[next].Offset+shift == s.Position && found[next].Err != nil {
			next++ // bytes that are no frame, and a record that says so
			hunting, garbage = true, s.Packets
			continue
		}
		if s.Captured != scenario.Whole || s.Late || overdue[i] {
			missing = missing || s.Wire > 0
			if next < len(found) && c.partly(s, found[next], shift, known) {
				next++
			}
			continue
		}
		if next < len(found) && c.same(s, found[next], &shift) {
			c.record(s, found[next], known)
			missing, hunting = false, s.Message == ""
			if hunting {
				garbage = s.Packets
			}
			next++
			continue
		}
		if hunting && s.Message == "" { // it is passed over with what is told already
			garbage = s.Packets
			continue
		}
		if !missing && !intersect(s.Packets, garbage) {
			got := "nothing"
			if next < len(found) {
				got = describe(found[next])
			}
			c.errorf("not found: %s\n  next is %s", tell(s), got)
		}
	}
	for _, f := range found[next:] {
		c.errorf("invented, or out of order: %s", describe(f))
	}
}

// partly reports whether f is what the capture has of s, and compares the two.
func (c *comparison) partly(s *scenario.Sent, f *dissect.Record, shift int64, known bool) bool {
	if s.Captured == scenario.None || f.Offset+shift != s.Position || !subset(f.Packets, s.Packets) {
		return false
	}
	if f.Message != s.Message && f.Message != "" && known { // the opcode may be what is missing
		c.errorf("message: %s\n  is %s", describe(f), tell(s))
	}
	if s.Captured == scenario.Partly && f.Err == nil && !noted(f, "not_captured") {
		c.errorf("cut, and not told: %s\n  is %s", describe(f), tell(s))
	}
	return true
}

func noted(f *dissect.Record, code string) bool {
	return slices.ContainsFunc(f.Notes, func(n dissect.Note) bool { return n.Code == code })
}

// same reports whether f is s in the stream, by place.
func (c *comparison) same(s *scenario.Sent, f *dissect.Record, shift *int64) bool {
	if f.Size != s.Size || !equalSets(f.Packets, s.Packets) {
		return false
	}
	if f.Offset+*shift != s.Position {
		if *shift != 0 || c.opened(s) {
			return false
		}
		*shift = s.Position - f.Offset
	}
	return true
}

// opened reports whether the capture has the start of the stream of s.
func (c *comparison) opened(s *scenario.Sent) bool {
	return c.scenario.Faults.Capture == scenario.Capture{}
}

func equalSets(a, b []int) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), b)
}

// once reports whether every packet is there once.
func once(packets []int) bool {
	sorted := slices.Sorted(slices.Values(packets))
	return len(slices.Compact(sorted)) == len(packets)
}

// record compares one record.
func (c *comparison) record(s *scenario.Sent, f *dissect.Record, known bool) {
	if f.Message != s.Message || f.Opcode != s.Opcode {
		if known {
			c.errorf("message: %s\n  is %s", describe(f), tell(s))
		}
		return
	}
	direction := [...]dissect.Direction{schema.AnySender: dissect.UnknownDirection, schema.Client: dissect.ClientToServer, schema.Server: dissect.ServerToClient}[s.Sender]
	e := &f.Envelope
	switch {
	case !known && (f.Direction == dissect.UnknownDirection || s.Aside):
		return // who is who was said before
	case f.Direction != direction:
		c.errorf("direction: %s\n  is %s", describe(f), tell(s))
	case !once(f.Packets):
		c.errorf("a packet twice: %s\n  is %s", describe(f), tell(s))
	case !known && (e.Mode != s.Mode || f.Err != nil || f.Context == schema.Default || f.Context == schema.Guessed):
		return // read without the sender's handshake, or without the widths
	case !bytes.Equal(f.Raw, s.Bytes):
		c.errorf("bytes %x: %s\n  is %x, %s", f.Raw, describe(f), s.Bytes, tell(s))
	case !equalSets(f.Packets, s.Packets):
		c.errorf("packets: %s\n  is %s", describe(f), tell(s))
	case e.Mode != s.Mode || e.Seq != s.Seq || e.Length != s.Length || f.Size != s.Size:
		c.errorf("envelope: %s\n  is %s", describe(f), tell(s))
	case pathOf(f.Err) != spoiled(s) && known && !s.Opaque:
		c.errorf("error %v: %s\n  is %s", f.Err, describe(f), tell(s))
	case (f.Err == nil || spoiled(s) != "") && f.Context != schema.Default && f.Context != schema.Guessed:
		c.body(s, f)
	}
	if s.Head != nil {
		if path := differ(s.Head, &f.Head, 0, len(s.Head.Nodes), 0, len(f.Head.Nodes), ""); path != "" {
			c.errorf("envelope's %s: %s\n  is %s", path, describe(f), tell(s))
		}
	}
	c.copied(s, f)
	c.ack(s, f, known)
}

func pathOf(err *wire.Error) string {
	if err == nil {
		return ""
	}
	return err.Path
}

// spoiled is the part of an envelope that is on purpose wrong, "" where none is: that is
// an error, which hides nothing.
func spoiled(s *scenario.Sent) string {
	switch {
	case strings.Contains(s.Note, "checksum"):
		return "envelope.checksum"
	case strings.Contains(s.Note, "a length"):
		return "envelope.length"
	}
	return ""
}

// body compares the values of a record.
func (c *comparison) body(s *scenario.Sent, f *dissect.Record) {
	switch {
	case s.Body == nil || c.scenario.Protocol == "mmo" && s.Opaque:
		return // the bytes are the same
	case f.Layout != nil && f.Layout.Guessed():
		if c.full {
			c.errorf("read without a schema: %s\n  is %s", describe(f), tell(s))
		}
		return
	}
	if s.Opaque {
		if i := s.Body.Field("opaque"); i >= 0 && !bytes.Equal(s.Body.AppendBytes(nil, i), f.Rest) {
			c.errorf("opaque body: %s\n  is %s", describe(f), tell(s))
		}
		return
	}
	if len(f.Rest) > 0 && s.Note == "" {
		c.errorf("left over: %s\n  is %s", describe(f), tell(s))
	}
	if path := differ(s.Body, &f.Body, 0, len(s.Body.Nodes), 0, len(f.Body.Nodes), ""); path != "" {
		c.errorf("field %s: %s\n  is %s", path, describe(f), tell(s))
	}
}

// differ compares members that were sent with those that were found, and returns
// the first that differs. What was found may have more: computed values.
func differ(want, got *schema.Tree, wi, wn, gi, gn int, path string) string {
	for i := wi; i < wn; i = want.Next(i) {
		n := &want.Nodes[i]
		name := n.Field.Name
		if n.Kind == schema.Null || name == "_" {
			continue
		}
		at := got.Find(gi, gn, name)
		if at < 0 {
			return path + name + " is not there"
		}
		if d := differValue(want, got, i, at, path+name); d != "" {
			return d
		}
	}
	return ""
}

func differValue(want, got *schema.Tree, i, k int, path string) string {
	w, g := &want.Nodes[i], &got.Nodes[k]
	switch w.Kind {
	case schema.Struct:
		return differ(want, got, i+1, want.Next(i), k+1, got.Next(k), path+".")
	case schema.Array:
		a, b := i+1, k+1
		for n := 0; ; n++ {
			endA, endB := a >= want.Next(i), b >= got.Next(k)
			if endA != endB {
				return fmt.Sprintf("%s has another number of elements", path)
			}
			if endA {
				return ""
			}
			if d := differValue(want, got, a, b, fmt.Sprintf("%s[%d]", path, n)); d != "" {
				return d
			}
			a, b = want.Next(a), got.Next(b)
		}
	case schema.Uint, schema.Int:
		if g.Kind == schema.Float && g.Float() == float64(int64(w.Num)) || g.Num == w.Num || g.Bits > 0 && g.Num == w.Num&(1<<g.Bits-1) {
			return ""
		}
		return fmt.Sprintf("%s is %d, want %d", path, int64(g.Num), int64(w.Num))
	case schema.Float:
		if math.Abs(g.Float()-w.Float()) <= 1e-9*math.Abs(w.Float()) {
			return ""
		}
		return fmt.Sprintf("%s is %v, want %v", path, g.Float(), w.Float())
	case schema.String, schema.Text:
		if g.Kind == schema.GUID || g.Kind == schema.IPv4 || g.Field.Symbol { // named by its sender
			if a, b := named(got, k), string(want.AppendText(nil, i)); a != b {
				return fmt.Sprintf("%s is %s, want %s", path, a, b)
			}
			return ""
		}
		if a, b := got.AppendText(nil, k), want.AppendText(nil, i); !bytes.Equal(a, b) {
			return fmt.Sprintf("%s is %q, want %q", path, a, b)
		}
	case schema.Bytes:
		if a, b := got.AppendBytes(nil, k), want.AppendBytes(nil, i); !bytes.Equal(a, b) {
			return fmt.Sprintf("%s is %x, want %x", path, a, b)
		}
	}
	return ""
}

// named returns the usual text of a GUID, an address or a value that has a name.
func named(t *schema.Tree, i int) string {
	if f := t.Nodes[i].Field; f.Symbol {
		return f.Enum.NameOf(t.Nodes[i].Num)
	}
	b := t.AppendBytes(nil, i)
	if t.Nodes[i].Kind == schema.IPv4 {
		a, _ := netip.AddrFromSlice(b)
		return a.String()
	}
	return fmt.Sprintf("{%08X-%04X-%04X-%X-%X}", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

// ack compares the acknowledgement of a record.
func (c *comparison) ack(s *scenario.Sent, f *dissect.Record, known bool) {
	if s.Seq < 0 || f.Envelope.Seq != s.Seq || s.Transport != schema.UDP {
		return
	}
	a := f.Ack
	if late, ok := c.found.acks[f.N]; ok {
		a = late
	}
	if !known && (a.By == 0 || a.By > s.AckedBy) {
		return // the first acknowledgement may stand behind what could not be read
	}
	if s.AckedBy != a.By && a.State != dissect.AckIgnored {
		c.errorf("acknowledged by packet %d (%s), want %d: %s\n  is %s", a.By, a.State, s.AckedBy, describe(f), tell(s))
	}
}

func describe(f *dissect.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "found #%d %s in packets %v, %s %s, mode %d seq %d length %d, size %d at %d", f.N, f.Message, f.Packets,
		f.Transport, f.Direction, f.Envelope.Mode, f.Envelope.Seq, f.Envelope.Length, f.Size, f.Offset)
	for _, n := range f.Notes {
		fmt.Fprintf(&b, ", %s %s", n.Code, n.Text)
	}
	if f.Err != nil {
		fmt.Fprintf(&b, ", error %v", f.Err)
	}
	if len(f.Rest) > 0 {
		fmt.Fprintf(&b, ", rest %s", hex.EncodeToString(f.Rest[:min(len(f.Rest), 32)]))
	}
	return b.String()
}

func tell(s *scenario.Sent) string {
	return fmt.Sprintf("sent %s %d %s in packets %v (%s), %s, mode %d seq %d length %d, size %d at %d, resend %d, wire %d %s",
		s.By, s.ID, s.Message, s.Packets, s.Captured, s.Transport, s.Mode, s.Seq, s.Length, s.Size, s.Position, s.Resend, s.Wire, s.Note)
}

// gaps compares the bytes of streams that were told as lost with those that the
// capture misses. Before the first byte and behind the last nobody need know. What the
// snap length cut from a record is told by the record. Bytes that come when reassembly
// has given them up may be told, too.
func (c *comparison) gaps() {
	told := map[route]int64{}
	for i := range c.found.gaps {
		g := &c.found.gaps[i]
		told[route{schema.TCP, g.Src, g.Dst}] += g.Bytes
	}
	for _, s := range c.truth.Streams {
		if c.foreign(s) {
			continue
		}
		r := route{schema.TCP, s.Src, s.Dst}
		n, least, most := told[r], s.Inside, s.Missing+s.Late+s.Never+c.given[r]
		if c.scenario.Faults.Capture.Snap > 0 {
			least = 0
		}
		if s.Missing < s.Bytes && n < least || n > most {
			c.errorf("lost from %v to %v: %d bytes are told, %d to %d are not captured", s.Src, s.Dst, n, least, most)
		}
	}
}

// foreign reports whether a connection was taken for nobody's, and counted as such: one
// without a usual port, of which the capture has neither side's first frame whole.
func (c *comparison) foreign(s scenario.Stream) bool {
	between := func(src, dst netip.AddrPort) bool {
		return src == s.Src && dst == s.Dst || src == s.Dst && dst == s.Src
	}
	known := slices.ContainsFunc(c.found.frames, func(f dissect.Record) bool { return f.Transport == schema.TCP && between(f.Src, f.Dst) })
	begun := slices.ContainsFunc(c.truth.Sent, func(r scenario.Sent) bool {
		return r.Transport == schema.TCP && r.Position == 0 && r.Captured == scenario.Whole && between(r.Src, r.Dst)
	})
	return c.scenario.Protocol == "mmo" && c.found.foreign > 0 && !known && !begun
}

// sequences looks for what is told of sequences that the capture misses while it
// has later ones: on a record of the stream, or on an acknowledgement.
func (c *comparison) sequences(r route, sent []*scenario.Sent) {
	type stream struct{ opcode, seq int }
	captured, missed := map[stream]bool{}, map[stream]*scenario.Sent{}
	last := map[int]int{} // the last wire packet with a record of the opcode that was captured
	for _, s := range sent {
		if s.Seq < 0 || s.Wire == 0 {
			continue
		}
		k := stream{s.Opcode, s.Seq}
		if s.Captured == scenario.Whole {
			captured[k] = true
			if s.Resend == 0 {
				last[s.Opcode] = s.Wire
			}
		} else if missed[k] == nil {
			missed[k] = s
		}
	}
	for k, s := range missed {
		if !captured[k] && s.Wire < last[k.opcode] && !c.told(r, k.seq) {
			c.errorf("missed, and not told: %s", tell(s))
		}
	}
}

// told reports whether a note says of a sequence from r that it was not seen.
func (c *comparison) told(r route, seq int) bool {
	for i := range c.found.frames {
		f := &c.found.frames[i]
		for _, n := range f.Notes {
			forth := f.Src == r.src && f.Dst == r.dst && (n.Code == "sequence_gap" || n.Code == "sequence_skipped" || n.Code == "out_of_window")
			back := f.Src == r.dst && f.Dst == r.src && n.Code == "acked_unseen"
			var a, b int
			switch {
			case !forth && !back:
			case n.Code == "out_of_window":
				return true
			default:
				if k, _ := fmt.Sscanf(n.Text, "sequences %d to %d", &a, &b); k < 2 {
					fmt.Sscanf(n.Text, "sequence %d", &a)
					b = a
				}
				if a <= seq && seq <= b {
					return true
				}
			}
		}
	}
	return false
}
