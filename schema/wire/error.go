package wire

import (
	"strconv"
	"strings"
)

// Kind says what a failed read means for the bytes around it.
type Kind uint8

// The three kinds of failure. They call for different reactions: a truncated
// frame was whole on the wire, an incomplete one may still be completed, and a
// malformed one is complete and not what the layout allows.
const (
	Malformed  Kind = iota // complete, and not what the layout allows
	Truncated              // cut by the capture (snap length)
	Incomplete             // the rest may still come
)

var kindNames = [...]string{Malformed: "malformed", Truncated: "truncated", Incomplete: "incomplete"}

// String returns the word used in messages and in NDJSON.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Error is a decode error with its place. It answers which layer, which field,
// at which offset, what was wanted and what was there.
type Error struct {
	Layer  string // the protocol or file format: "wulfram", "pcap"
	Path   string // message and field: "TANK.position[1]"; empty for the layer as a whole
	Offset int    // bytes from the start of the frame, or of the file
	Bit    int    // bits into that byte, 0 to 7
	Size   int    // bytes there were in all; 0 when that says nothing
	Want   string // "4 bytes", "length >= 3"
	Got    string // "2 bytes left", "1"
	Kind   Kind
	Limit  string // name of the limit that was reached; empty for most errors
}

// Error formats e as one line, such as
// "netrek/SP_PLAYER.x at byte 4 of 12: want 4 bytes, 2 bytes left (truncated)".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Layer)
	if e.Path != "" {
		b.WriteByte('/')
		b.WriteString(e.Path)
	}
	b.WriteString(" at byte ")
	b.WriteString(strconv.Itoa(e.Offset))
	if e.Bit != 0 {
		b.WriteString(" bit ")
		b.WriteString(strconv.Itoa(e.Bit))
	}
	if e.Size > 0 {
		b.WriteString(" of ")
		b.WriteString(strconv.Itoa(e.Size))
	}
	b.WriteString(": want ")
	b.WriteString(e.Want)
	if e.Got != "" {
		if strings.HasSuffix(e.Got, "left") {
			b.WriteString(", ")
		} else {
			b.WriteString(", got ")
		}
		b.WriteString(e.Got)
	}
	b.WriteString(" (")
	b.WriteString(e.Kind.String())
	b.WriteByte(')')
	return b.String()
}

// Within puts name in front of e's path, as the error travels outwards
// through the structures that hold the field. It returns e.
func (e *Error) Within(name string) *Error {
	switch {
	case e.Path == "":
		e.Path = name
	case name == "":
	case e.Path[0] == '[':
		e.Path = name + e.Path
	default:
		e.Path = name + "." + e.Path
	}
	return e
}
