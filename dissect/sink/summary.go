package sink

import (
	"io"
	"maps"
	"slices"
	"time"

	"opscope/dissect"
	"opscope/schema/wire"
)

// WriteSummary writes the counters of a run, or of one file of it, after the
// last record. Its time is that of the last packet.
func (j *NDJSON) WriteSummary(file int, s *dissect.Summary) error {
	if j.out.err != nil {
		return j.out.err
	}
	dst := append(j.out.buf, `{"type":"summary"`...)
	dst = appendKeyInt(dst, `,"file":`, int64(file))
	dst = j.appendTime(append(dst, `,"time":`...), s.Last)
	dst = j.appendTime(append(dst, `,"first_time":`...), s.First)
	dst = j.appendTime(append(dst, `,"last_time":`...), s.Last)
	dst = appendKeyInt(dst, `,"packets":`, int64(s.Packets))
	dst = appendKeyInt(dst, `,"bytes":`, s.Bytes)
	dst = appendKeyInt(dst, `,"cut_bytes":`, s.CutBytes)
	dst = appendCounts(append(dst, `,"records":`...), s.Records)
	dst = appendKeyInt(dst, `,"unknown_opcodes":`, int64(s.UnknownOpcodes))
	dst = appendKeyInt(dst, `,"unknown_bodies":`, int64(s.UnknownBodies))
	dst = appendKeyInt(dst, `,"undecoded_bytes":`, s.UndecodedBytes)
	dst = appendKeyInt(dst, `,"gaps":`, int64(s.Gaps))
	dst = appendKeyInt(dst, `,"lost_bytes":`, s.LostBytes)
	dst = appendKeyInt(dst, `,"retransmissions":`, int64(s.Retransmitted))
	dst = appendKeyInt(dst, `,"conflicts":`, int64(s.Conflicts))
	dst = appendKeyInt(dst, `,"resyncs":`, int64(s.Resyncs))
	dst = appendKeyInt(dst, `,"evictions":`, int64(s.Evictions))
	dst = appendCounts(append(dst, `,"limits":`...), s.Limits)
	dst = appendKeyInt(dst, `,"defects":`, int64(s.Defects))
	dst = appendKeyInt(dst, `,"copied_packets":`, int64(s.Copies))
	dst = appendKeyInt(dst, `,"backward_times":`, int64(s.Backward))
	dst = appendKeyInt(dst, `,"wrong_checksums":`, int64(s.WrongSums))
	dst = appendKeyInt(dst, `,"other_flows":`, int64(s.OtherFlows))
	dst = appendKeyInt(dst, `,"unsupported_packets":`, int64(s.Unsupported))
	dst = appendKeyInt(dst, `,"segments":{"retransmitted":`, int64(s.Segments.Retransmitted))
	dst = appendKeyInt(dst, `,"out_of_order":`, int64(s.Segments.OutOfOrder))
	dst = append(appendKeyInt(dst, `,"keep_alives":`, int64(s.Segments.KeepAlives)), '}')
	dst = appendKeyInt(dst, `,"fragments":{"duplicates":`, int64(s.Fragments.Duplicates))
	dst = appendKeyInt(dst, `,"refused":`, int64(s.Fragments.Refused))
	dst = append(appendKeyInt(dst, `,"incomplete":`, int64(s.Fragments.Incomplete)), '}')
	dst = appendKeyInt(dst, `,"peak_waiting_bytes":`, int64(s.PeakWaiting))
	dst = appendKeyInt(dst, `,"errors":{"truncated":`, int64(s.Errors[wire.Truncated]))
	dst = appendKeyInt(dst, `,"incomplete":`, int64(s.Errors[wire.Incomplete]))
	dst = append(appendKeyInt(dst, `,"malformed":`, int64(s.Errors[wire.Malformed])), '}')
	dst = appendCounts(append(dst, `,"notes":`...), s.Notes)
	j.out.buf = append(dst, "}\n"...)
	return j.out.done()
}

// appendCounts appends counters by name, sorted.
func appendCounts(dst []byte, counts map[string]int) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(counts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = appendInt(dst, int64(counts[name]))
	}
	return append(dst, '}')
}

// WriteSummary writes the counters of a run as text, a line a thing; what did not
// happen is left out. It names the zone, which is that of the times of the records.
func WriteSummary(w io.Writer, s *dissect.Summary, zone *time.Location) error {
	c := counters{}
	c.head(s, zone)
	for _, p := range slices.Sorted(maps.Keys(s.Records)) {
		c.line(int64(s.Records[p]), p+" record", p+" records")
	}
	c.line(int64(s.UnknownOpcodes), "unknown opcode", "unknown opcodes")
	c.line(int64(s.UnknownBodies), "unknown body", "unknown bodies")
	c.line(s.UndecodedBytes, "byte not decoded", "bytes not decoded")
	c.line(int64(s.Errors[wire.Malformed]), "malformed record", "malformed records")
	c.line(int64(s.Errors[wire.Truncated]), "record truncated by the capture", "records truncated by the capture")
	c.line(int64(s.Errors[wire.Incomplete]), "incomplete record", "incomplete records")
	c.line(s.CutBytes, "byte cut off by the snap length; capture with -s 0", "bytes cut off by the snap length; capture with -s 0")
	c.line(int64(s.Gaps), "gap", "gaps")
	c.line(s.LostBytes, "byte not captured", "bytes not captured")
	c.line(int64(s.Retransmitted), "record retransmitted", "records retransmitted")
	c.line(int64(s.Segments.Retransmitted), "segment retransmitted", "segments retransmitted")
	c.line(int64(s.Segments.OutOfOrder), "segment out of order", "segments out of order")
	c.line(int64(s.Segments.KeepAlives), "keep-alive", "keep-alives")
	c.line(int64(s.PeakWaiting), "byte waited for a hole to fill", "bytes at most waited for holes to fill")
	c.line(int64(s.Fragments.Duplicates), "IP fragment twice", "IP fragments twice")
	c.line(int64(s.Fragments.Refused), "IP fragment that fits no datagram", "IP fragments that fit no datagram")
	c.line(int64(s.Fragments.Incomplete), "datagram with missing IP fragments", "datagrams with missing IP fragments")
	c.line(int64(s.Conflicts), "conflict", "conflicts")
	c.line(int64(s.Resyncs), "resync", "resyncs")
	c.line(int64(s.Evictions), "eviction", "evictions")
	for _, name := range slices.Sorted(maps.Keys(s.Limits)) {
		c.line(int64(s.Limits[name]), "time the limit "+name+" was reached", "times the limit "+name+" was reached")
	}
	c.line(int64(s.Defects), "defect of a dissector", "defects of a dissector")
	c.line(int64(s.Copies), "packet seen at a second interface", "packets seen at a second interface")
	c.line(int64(s.Backward), "packet with a time before an earlier one", "packets with a time before an earlier one")
	c.line(int64(s.WrongSums), "packet with a wrong checksum"+offload, "packets with a wrong checksum"+offload)
	c.line(int64(s.Unsupported), "packet of an unsupported link type", "packets of an unsupported link type")
	c.line(int64(s.OtherFlows), "flow of no known protocol", "flows of no known protocol")
	_, err := w.Write(c)
	return err
}

// offload is what to make of wrong checksums.
const offload = ", as offloading leaves those of the capturing host; --check tells which"

// counters is the text of a summary.
type counters []byte

// head appends "56 packets, 4,711 bytes, 1.5s from 2026-11-29 21:15:02.104512 CET (+01:00)".
func (c *counters) head(s *dissect.Summary, zone *time.Location) {
	dst := append(appendCount(nil, int64(s.Packets)), " packets, "...)
	dst = append(appendCount(dst, s.Bytes), " bytes"...)
	if s.Packets > 0 {
		dst = append(append(append(dst, ", "...), s.Last.Sub(s.First).String()...), " from "...)
		dst = appendZoned(dst, s.First.In(zone))
	}
	*c = append(append(*c, dst...), '\n')
}

// appendZoned appends a time with its zone: the name, which may stand for several
// zones, and how far it is from UTC.
func appendZoned(dst []byte, t time.Time) []byte {
	dst = t.AppendFormat(dst, "2006-01-02 15:04:05.000000 MST")
	if _, offset := t.Zone(); offset == 0 {
		return dst
	}
	return t.AppendFormat(dst, " (-07:00)")
}

// line appends a count with what it counts, unless there is none of it.
func (c *counters) line(n int64, one, many string) {
	if n == 0 {
		return
	}
	dst := append(appendCount(*c, n), ' ')
	if n == 1 {
		many = one
	}
	*c = append(append(dst, many...), '\n')
}
