package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/sink"
	"opscope/schema"
	"opscope/schema/wire"
)

// limits is what bounds memory and time, wherever it is kept. A zero is the default.
type limits struct {
	run     dissect.Limits
	capture capture.Limits
	schema  schema.Bounds
	line    int
}

// limit is one of them: its name for --limit and in the summary, what it is when
// nobody says, what it counts, and where it is kept.
type limit struct {
	name  string
	usual int
	text  string
	of    func(*limits) *int
}

// allLimits is the list of them, for the flag and its help.
var allLimits = []limit{
	{dissect.LimitFlows, dissect.DefaultLimits.Flows, "flows known at a time, with their sessions", func(l *limits) *int { return &l.run.Flows }},
	{dissect.LimitSessions, dissect.DefaultLimits.Sessions, "sessions that are over, kept for --tables", func(l *limits) *int { return &l.run.Sessions }},
	{dissect.LimitStreamBytes, dissect.DefaultLimits.StreamBytes, "bytes that wait for a hole in one stream to fill", func(l *limits) *int { return &l.run.StreamBytes }},
	{dissect.LimitStreamSegments, dissect.DefaultLimits.StreamSegments, "segments that do", func(l *limits) *int { return &l.run.StreamSegments }},
	{dissect.LimitTotalBytes, dissect.DefaultLimits.TotalBytes, "bytes that do in all streams", func(l *limits) *int { return &l.run.TotalBytes }},
	{dissect.LimitResyncBytes, dissect.DefaultLimits.ResyncBytes, "bytes without a frame before a stream is only counted", func(l *limits) *int { return &l.run.ResyncBytes }},
	{dissect.LimitBufferedBytes, dissect.DefaultLimits.BufferedBytes, "bytes of all streams in which no frame is found yet", func(l *limits) *int { return &l.run.BufferedBytes }},
	{dissect.LimitFragments, dissect.DefaultLimits.Fragments, "datagrams that wait for IP fragments", func(l *limits) *int { return &l.run.Fragments }},
	{dissect.LimitFragmentBytes, dissect.DefaultLimits.FragmentBytes, "bytes that do", func(l *limits) *int { return &l.run.FragmentBytes }},
	{dissect.LimitHeldRecords, dissect.DefaultLimits.HeldRecords, "records held for an acknowledgement or for context", func(l *limits) *int { return &l.run.HeldRecords }},
	{dissect.LimitHeldBytes, dissect.DefaultLimits.HeldBytes, "bytes of them", func(l *limits) *int { return &l.run.HeldBytes }},
	{dissect.LimitCandidates, dissect.DefaultLimits.Candidates, "sessions that a datagram may turn out to belong to", func(l *limits) *int { return &l.run.Candidates }},
	{dissect.LimitRemembered, dissect.DefaultLimits.Remembered, "records and learned entries that sessions remember", func(l *limits) *int { return &l.run.Remembered }},
	{dissect.LimitSecrets, dissect.DefaultLimits.Secrets, "secret values of a session that are masked wherever they come back", func(l *limits) *int { return &l.run.Secrets }},
	{dissect.LimitTunnels, dissect.DefaultLimits.Tunnels, "tunnels within each other", func(l *limits) *int { return &l.run.Tunnels }},
	{capture.LimitPacket, capture.DefaultLimits.Packet, "bytes of a packet", func(l *limits) *int { return &l.capture.Packet }},
	{capture.LimitBlock, capture.DefaultLimits.Block, "bytes of a pcapng block with a packet or an interface", func(l *limits) *int { return &l.capture.Block }},
	{capture.LimitRatio, capture.DefaultLimits.Ratio, "times its compressed size that a file grows to, from 16 MiB on", func(l *limits) *int { return &l.capture.Ratio }},
	{sink.LimitLine, sink.DefaultMaxLine, "bytes of a line of NDJSON that is read back", func(l *limits) *int { return &l.line }},
	{schema.BoundValues, schema.DefaultBounds.Values, "values of one record, elements of arrays included", func(l *limits) *int { return &l.schema.Values }},
	{schema.BoundText, schema.DefaultBounds.Text, "bytes of one text, or field of bytes", func(l *limits) *int { return &l.schema.Text }},
	{schema.BoundMessages, schema.DefaultBounds.Messages, "Protocol Buffers messages within each other", func(l *limits) *int { return &l.schema.Messages }},
	{"fields", schema.DefaultBounds.Fields, "fields of one packet of a schema, types written out", func(l *limits) *int { return &l.schema.Fields }},
	{"nesting", schema.DefaultBounds.Nesting, "types within types of a schema", func(l *limits) *int { return &l.schema.Nesting }},
	{"operators", schema.DefaultBounds.Operators, "operators of an expression in a schema", func(l *limits) *int { return &l.schema.Operators }},
	{"brackets", schema.DefaultBounds.Brackets, "brackets within each other in it", func(l *limits) *int { return &l.schema.Brackets }},
}

// limitsHelp lists the limits for the help of a command.
func limitsHelp() string {
	var b strings.Builder
	b.WriteString("Limits bound memory and time; --limit NAME=N sets one. What a limit costs is shown in its\nplace, and the summary counts how often it was reached:\n\n")
	for _, l := range allLimits {
		fmt.Fprintf(&b, "  %-15s %9d  %s\n", l.name, l.usual, l.text)
	}
	return b.String()
}

// mostLimit is the most that a limit can be set to, so that sums of sizes do not overflow.
const mostLimit = 1 << 40

// parseLimits takes the values of --limit, the last of a name.
func parseLimits(words []string) (*limits, error) {
	all := &limits{}
	for _, w := range words {
		name, number, ok := strings.Cut(w, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || n < 1 || n > mostLimit {
			return nil, usage("--limit %q: want NAME=N with N from 1 to %d\ntry: --limit flows=1000", w, int64(mostLimit))
		}
		l := limitNamed(name)
		if l == nil {
			return nil, usage("--limit: unknown limit %q\ntry one of: %s", name, strings.Join(limitNames(), " "))
		}
		*l.of(all) = int(n)
	}
	return all, nil
}

func limitNamed(name string) *limit {
	for i := range allLimits {
		if allLimits[i].name == name {
			return &allLimits[i]
		}
	}
	return nil
}

func limitNames() []string {
	names := make([]string, len(allLimits))
	for i := range allLimits {
		names[i] = allLimits[i].name
	}
	return names
}

// widen adds to an error how to go on where a limit made it.
func widen(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) || e.Limit == "" {
		return err
	}
	return fmt.Errorf("%w\ntry: --limit %s=N with a larger N, if the file is to be trusted", err, e.Limit)
}
