package log

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// masked stands in the place of a secret.
const masked = `"***"`

// appendRecord appends the keys of a record, from message on.
func appendRecord(b []byte, t Transport, r *machine.Record) []byte {
	b = appendText(append(b, `,"message":`...), r.Message)
	b = appendInt(append(b, `,"opcode":`...), r.Opcode)
	b = appendEnvelope(append(b, `,"envelope":`...), t, r)
	b = append(b, `,"fields":`...)
	if r.Body == nil {
		b = append(b, "{}"...)
	} else {
		b = appendMembers(b, r.Body, 0, len(r.Body.Nodes))
	}
	b = appendInt(append(b, `,"size":`...), r.Size)
	if r.Offset >= 0 {
		b = appendInt(append(b, `,"offset":`...), r.Offset)
	}
	if r.ID > 0 {
		b = appendInt(append(b, `,"id":`...), r.ID)
	}
	if r.Resend > 0 {
		b = appendInt(append(b, `,"resend_of":`...), r.Resend)
	}
	if r.Opaque {
		b = append(b, `,"opaque":true`...)
	}
	if r.Note != "" {
		b = appendText(append(b, `,"note":`...), r.Note)
	}
	return b
}

// appendEnvelope appends the mode of a UDP record and what its envelope holds.
func appendEnvelope(b []byte, t Transport, r *machine.Record) []byte {
	b = append(b, '{')
	key := func(name string, v int) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendInt(append(append(append(b, '"'), name...), `":`...), v)
	}
	if t == UDP && r.Mode >= 0 {
		key("mode", r.Mode)
	}
	if r.Seq >= 0 {
		key("seq", r.Seq)
	}
	if r.Length >= 0 {
		key("length", r.Length)
	}
	if r.Head != nil {
		b = appendPairs(b, r.Head, 0, len(r.Head.Nodes))
	}
	return append(b, '}')
}

// appendMembers appends the nodes from index from to index to as an object.
func appendMembers(b []byte, t *schema.Tree, from, to int) []byte {
	return append(appendPairs(append(b, '{'), t, from, to), '}')
}

// appendPairs appends the nodes to an object that was begun.
func appendPairs(b []byte, t *schema.Tree, from, to int) []byte {
	for i := from; i < to; i = t.Next(i) {
		f := t.Nodes[i].Field
		if f.Hidden || f.Part {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(appendText(b, f.Name), ':')
		b = appendValue(b, t, i)
	}
	return b
}

func appendElements(b []byte, t *schema.Tree, i int) []byte {
	b = append(b, '[')
	for k := i + 1; k < t.Next(i); k = t.Next(k) {
		if k > i+1 {
			b = append(b, ',')
		}
		b = appendValue(b, t, k)
	}
	return append(b, ']')
}

func appendValue(b []byte, t *schema.Tree, i int) []byte {
	n := &t.Nodes[i]
	if n.Field != nil && n.Field.Redact == schema.Secret {
		return append(b, masked...)
	}
	if name := symbol(n); name != "" {
		return appendText(b, name)
	}
	switch n.Kind {
	case schema.Uint:
		return appendUint(b, n.Num)
	case schema.IPv4:
		addr := netip.AddrFrom4([4]byte{byte(n.Num >> 24), byte(n.Num >> 16), byte(n.Num >> 8), byte(n.Num)})
		return append(addr.AppendTo(append(b, '"')), '"')
	case schema.GUID:
		return appendGUID(b, t.AppendBytes(nil, i))
	case schema.Bool:
		return appendBool(b, n.Num != 0)
	case schema.Int:
		return strconv.AppendInt(b, int64(n.Num), 10)
	case schema.Float:
		return appendFloat(b, n.Float(), int(n.Bits))
	case schema.Text, schema.String:
		return appendText(b, string(t.AppendText(nil, i)))
	case schema.Bytes:
		return append(hex.AppendEncode(append(b, '"'), t.AppendBytes(nil, i)), '"')
	case schema.Struct:
		return appendMembers(b, t, i+1, t.Next(i))
	case schema.Array:
		return appendElements(b, t, i)
	}
	return append(b, "null"...)
}

// appendGUID appends the 16 bytes of a GUID, of which the first three groups are
// little-endian, as "{1C8248C0-9772-11CF-B74F-00C0DF413ED1}".
func appendGUID(b, id []byte) []byte {
	order := binary.LittleEndian
	return fmt.Appendf(b, `"{%08X-%04X-%04X-%X-%X}"`, order.Uint32(id), order.Uint16(id[4:]), order.Uint16(id[6:]), id[8:10], id[10:])
}

// symbol returns the name that stands for a number, "" where there is none.
func symbol(n *schema.Node) string {
	if n.Field == nil || !n.Field.Symbol {
		return ""
	}
	return n.Field.Enum.NameOf(n.Num)
}

// appendUint appends a number. One that a JSON number does not hold everywhere is a
// string.
func appendUint(b []byte, v uint64) []byte {
	if v > 1<<53 {
		return append(strconv.AppendUint(append(b, '"'), v, 10), '"')
	}
	return strconv.AppendUint(b, v, 10)
}

// appendFloat appends the shortest digits that read back as v, in 32 bits where it has
// no more. JSON has no word for infinities and for what is no number.
func appendFloat(b []byte, v float64, bits int) []byte {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return append(b, "null"...)
	}
	if bits != 32 {
		bits = 64
	}
	return strconv.AppendFloat(b, v, 'g', -1, bits)
}

func appendInt(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

// appendTime appends a time as RFC 3339 in UTC with nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(b, `"2006-01-02T15:04:05.000000000Z"`)
}

// appendText appends a JSON string. Control bytes and DEL are escaped; what is no
// UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
