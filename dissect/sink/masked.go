package sink

import (
	"strings"

	"opscope/dissect"
)

// appendRaw appends the bytes of a record as hex, masked ones as **.
func appendRaw(dst []byte, r *dissect.Record, m *dissect.Redactor) []byte {
	from := 0
	for _, s := range m.Spans() {
		to := min(s.To, len(r.Raw))
		if to <= from {
			continue
		}
		start := max(from, s.From)
		dst = appendHex(dst, r.Raw[from:start])
		for range to - start {
			dst = append(dst, "**"...)
		}
		from = to
	}
	return appendHex(dst, r.Raw[from:])
}

// appendError appends the error of a record as wire.Error has it, escaped and
// without masked values.
func appendError(dst []byte, r *dissect.Record, m *dissect.Redactor) []byte {
	e := r.Err
	dst = appendEscaped(dst, e.Layer)
	if e.Path != "" {
		dst = appendEscaped(append(dst, '/'), e.Path)
	}
	dst = appendInt(append(dst, " at byte "...), int64(e.Offset))
	if e.Bit != 0 {
		dst = appendInt(append(dst, " bit "...), int64(e.Bit))
	}
	if e.Size > 0 {
		dst = appendInt(append(dst, " of "...), int64(e.Size))
	}
	dst = appendEscaped(append(dst, ": want "...), m.Clean(e.Want))
	if e.Got != "" {
		joint := ", got "
		if strings.HasSuffix(e.Got, "left") {
			joint = ", "
		}
		dst = appendEscaped(append(dst, joint...), m.ErrorGot(r))
	}
	dst = append(append(dst, " ("...), e.Kind.String()...)
	return append(dst, ')')
}
