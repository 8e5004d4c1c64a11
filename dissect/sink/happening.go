package sink

import (
	"net/netip"

	"opscope/dissect"
)

// appendHappening appends what stands between dashes on the line of a record
// that is no frame.
func (t *Text) appendHappening(dst []byte, r *dissect.Record) []byte {
	k := t.ink.quiet
	if r.Type == dissect.GapRecord {
		k = t.ink.severity[dissect.Warning]
	}
	dst = append(append(t.pad(dst, messageColumn), k.on...), "-- "...)
	t.hidden += len(k.on)
	from, room := len(dst), max(minRoom, t.width-t.column(dst)-len(" --"))
	dst, _ = cut(t.appendHappened(dst, r), from, room)
	return append(append(dst, " --"...), k.off...)
}

// appendHappened appends what happened, in words.
func (t *Text) appendHappened(dst []byte, r *dissect.Record) []byte {
	switch r.Type {
	case dissect.GapRecord:
		return appendGapReason(appendGap(dst, r), r)
	case dissect.AckRecord:
		return appendLateAck(dst, r)
	case dissect.SessionRecord:
		return appendSession(dst, r)
	case dissect.EventRecord:
		return appendReason(appendEscaped(dst, r.Code), ": ", t.redact.Clean(r.Text))
	}
	return dst
}

// appendReason appends a text behind a joint, or nothing without a text.
func appendReason(dst []byte, joint, text string) []byte {
	if text == "" {
		return dst
	}
	return appendEscaped(append(dst, joint...), text)
}

// appendGap appends "gap: 1,448 bytes".
func appendGap(dst []byte, r *dissect.Record) []byte {
	dst = append(appendCount(append(dst, "gap: "...), r.Bytes), " byte"...)
	if r.Bytes != 1 {
		dst = append(dst, 's')
	}
	return dst
}

// appendGapReason appends " not captured between packets 77 and 81", or
// " of packet 13 cut off by the snap length".
func appendGapReason(dst []byte, r *dissect.Record) []byte {
	if r.Text == dissect.SnapLength && r.Before > 0 {
		dst = appendInt(append(dst, " of packet "...), int64(r.Before))
		return append(dst, " cut off by the snap length"...)
	}
	dst = append(dst, " not captured"...)
	switch {
	case r.After > 0 && r.Before > 0:
		dst = appendInt(append(dst, " between packets "...), int64(r.After))
		dst = appendInt(append(dst, " and "...), int64(r.Before))
	case r.After > 0:
		dst = appendInt(append(dst, " after packet "...), int64(r.After))
	case r.Before > 0:
		dst = appendInt(append(dst, " before packet "...), int64(r.Before))
	}
	if r.Text == dissect.NotCaptured {
		return dst
	}
	return appendReason(dst, "; ", r.Text)
}

// appendLateAck appends "ack: record 17 acked by packet 14 after 41ms".
func appendLateAck(dst []byte, r *dissect.Record) []byte {
	dst = appendInt(append(dst, "ack: record "...), int64(r.Acked))
	dst = append(dst, " acknowledged"...)
	if r.Ack.By > 0 {
		dst = appendInt(append(dst, " by packet "...), int64(r.Ack.By))
	}
	if r.Ack.RTT >= 0 {
		dst = appendRTT(append(dst, " after "...), r.Ack.RTT)
	}
	return dst
}

// appendSession appends "session: wulfram opened, 10.0.0.2:50111 -> 10.0.0.1:2627".
func appendSession(dst []byte, r *dissect.Record) []byte {
	dst = append(dst, "session:"...)
	dst = appendReason(dst, " ", r.Protocol)
	dst = appendReason(dst, " ", r.Code)
	if r.Client.IsValid() || r.Server.IsValid() {
		dst = appendAddress(append(dst, ", "...), r.Client)
		dst = appendAddress(append(dst, " -> "...), r.Server)
	}
	if r.Text == r.Code {
		return dst
	}
	return appendReason(dst, "; ", r.Text)
}

// appendAddress appends an endpoint, "?" for one not known.
func appendAddress(dst []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return append(dst, '?')
	}
	if a.Addr().Zone() != "" {
		return appendEscaped(dst, a.String())
	}
	return a.AppendTo(dst)
}
