package scenario

import (
	"cmp"
	"io"
	"net/netip"
	"strconv"

	"opscope/cmd/refserver/internal/log"
	"opscope/schema"
)

// WriteLog writes what is true as NDJSON: the records in the order in which they
// were complete on the wire, then the faults, then what the machines told. Beside
// the keys of package log a record has:
//
//	packets      those of the capture with bytes of it, from 1
//	captured     whole, partly or none; of a datagram in fragments, whole needs all
//	late         true where the snap length cut it, and a retransmission brought it
//	wire         the packet on the wire that completes it, 0 for never
//	copy         true where the network sent its datagram twice, before the tape
//	arrivals     how often its receiver got it
//	acked        whether its sender saw it acknowledged, with acked_seen, the packet
//	acked_by     the first packet of the capture that acknowledges it, 0 for none
//
// A fault has its place, "before the tape", "behind the tape" or "capture".
func (r *Result) WriteLog(w io.Writer) error {
	b := log.AppendText([]byte(`{"type":"scenario","name":`), r.Scenario)
	b = log.AppendText(append(b, `,"protocol":`...), r.Protocol)
	b = strconv.AppendUint(append(b, `,"seed":`...), r.Seed, 10)
	b = append(appendInt(append(b, `,"wire":`...), r.Wire), "}\n"...)
	for i := range r.Sent {
		b = r.Sent[i].append(b, r.Protocol)
	}
	for i := range r.Faults {
		b = r.Faults[i].append(b)
	}
	for i := range r.Events {
		b = r.Events[i].append(b)
	}
	_, err := w.Write(b)
	return err
}

// append appends the line of a record.
func (s *Sent) append(b []byte, protocol string) []byte {
	b = log.AppendTime(append(b, `{"type":"record","time":`...), s.Time)
	direction, transport := `"c2s"`, log.UDP
	switch s.Sender {
	case schema.Server:
		direction = `"s2c"`
	case schema.AnySender:
		direction = "null"
	}
	if s.Transport == schema.TCP {
		transport = log.TCP
	}
	b = append(append(b, `,"dir":`...), direction...)
	b = append(append(append(b, `,"transport":"`...), transport...), '"')
	b = appendEnds(b, s.Src, s.Dst)
	b = log.AppendText(append(b, `,"protocol":`...), cmp.Or(s.Protocol, protocol))
	record := s.Record
	record.Offset = int(s.Position)
	b = log.AppendRecord(b, transport, &record)
	b = log.AppendText(append(b, `,"peer":`...), s.By)
	b = append(b, `,"packets":[`...)
	for i, p := range s.Packets {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, p)
	}
	b = append(append(append(b, `],"captured":"`...), s.Captured...), '"')
	if s.Late {
		b = append(b, `,"late":true`...)
	}
	b = appendInt(append(b, `,"wire":`...), s.Wire)
	if s.Copy {
		b = append(b, `,"copy":true`...)
	}
	b = appendInt(append(b, `,"arrivals":`...), s.Arrivals)
	if s.Seq >= 0 && s.Transport == schema.UDP {
		b = strconv.AppendBool(append(b, `,"acked":`...), !s.Acked.Time.IsZero())
		b = appendInt(append(b, `,"acked_seen":`...), s.Acked.Packet)
		b = appendInt(append(b, `,"acked_by":`...), s.AckedBy)
	}
	return append(b, "}\n"...)
}

func (f *Fault) append(b []byte) []byte {
	b = log.AppendTime(append(b, `{"type":"fault","time":`...), f.Time)
	b = log.AppendText(append(b, `,"place":`...), string(f.Place))
	b = log.AppendText(append(b, `,"what":`...), f.What)
	b = appendInt(append(b, `,"wire":`...), f.Wire)
	b = appendInt(append(b, `,"packet":`...), f.Packet)
	return append(appendEnds(b, f.Src, f.Dst), "}\n"...)
}

func (e *Event) append(b []byte) []byte {
	b = log.AppendTime(append(b, `{"type":"event","time":`...), e.Time)
	b = log.AppendText(append(b, `,"code":`...), e.Code)
	b = log.AppendText(append(b, `,"text":`...), e.Text)
	return append(log.AppendText(append(b, `,"peer":`...), e.By), "}\n"...)
}

func appendEnds(b []byte, src, dst netip.AddrPort) []byte {
	b = src.AppendTo(append(b, `,"src":"`...))
	return append(dst.AppendTo(append(b, `","dst":"`...)), '"')
}

func appendInt(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }
