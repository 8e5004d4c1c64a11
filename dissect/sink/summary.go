package sink

import (
	"maps"
	"slices"
	"strconv"
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
	dst = j.appendTimeOrNull(append(dst, `,"first_time":`...), s.First)
	dst = j.appendTimeOrNull(append(dst, `,"last_time":`...), s.Last)
	dst = appendKeyInt(dst, `,"packets":`, int64(s.Packets))
	dst = appendKeyInt(dst, `,"bytes":`, s.Bytes)
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
	dst = appendKeyInt(dst, `,"backward_times":`, int64(s.Backward))
	dst = appendKeyInt(dst, `,"other_flows":`, int64(s.OtherFlows))
	dst = appendKeyInt(dst, `,"errors":{"truncated":`, int64(s.Errors[wire.Truncated]))
	dst = appendKeyInt(dst, `,"incomplete":`, int64(s.Errors[wire.Incomplete]))
	dst = append(appendKeyInt(dst, `,"malformed":`, int64(s.Errors[wire.Malformed])), '}')
	dst = appendCounts(append(dst, `,"notes":`...), s.Notes)
	j.out.buf = append(dst, "}\n"...)
	return j.out.done()
}

func (j *NDJSON) appendTimeOrNull(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	return j.appendTime(dst, t)
}

// appendCounts appends counters by name, sorted.
func appendCounts(dst []byte, counts map[string]int) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(counts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = strconv.AppendInt(dst, int64(counts[name]), 10)
	}
	return append(dst, '}')
}
