package transcript

import (
	"path"
	"slices"
	"strings"
)

// Usual are the fields that are left out of every transcript: times, ports and sequence
// numbers, which no two captures share.
var Usual = []string{
	"timestamp", "timestamps", "time", "*_time_ms", "client_time_ms", "server_time_ms", // when
	"udp_port", "port", "socket", "CP_UDP_REQ.port", "SP_UDP_REPLY.port", // from where
	"sequence", "acked_sequence", "start", "SP_SEQUENCE.flag8", "cp_sent", "cp_recv", // how many
	"TANK.sequence", "UPDATE_ARRAY.sequence", "VIEW_UPDATE.sequence",
}

// ignores reports whether a field is left out: by the name of it or of what it is in, or by
// its path, with its message in front or not. Indexes do not count.
func (t *Transcript) ignores(message, at []byte) bool {
	t.key = append(append(t.key[:0], message...), '.')
	t.key = appendWithoutIndexes(t.key, at)
	return t.ignoresKey(len(message))
}

// ignoresKey is ignores for the message, whose name has this size, and the path in t.key.
func (t *Transcript) ignoresKey(message int) bool {
	is, known := t.ignored[string(t.key)]
	if !known {
		if t.ignored == nil {
			t.ignored = map[string]bool{}
		}
		is = t.matches(string(t.key[:message]), string(t.key[message+1:]))
		t.ignored[string(t.key)] = is
	}
	return is
}

// matches reports whether one of the patterns matches a field.
func (t *Transcript) matches(message, plain string) bool {
	names := []string{plain, message + "." + plain}
	for i, part := range strings.Split(plain, ".") {
		if i > 0 {
			names = append(names, part)
		} else {
			names = append(names, part, message+"."+part)
		}
	}
	for _, pattern := range slices.Concat(Usual, t.Ignore) {
		for _, name := range names {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				return true
			}
		}
	}
	return false
}

func appendWithoutIndexes(dst, at []byte) []byte {
	depth := 0
	for _, c := range at {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			dst = append(dst, c)
		}
	}
	return dst
}

// Pattern reports whether a pattern of Ignore makes sense.
func Pattern(text string) error {
	_, err := path.Match(text, "")
	return err
}
