// Package transcript writes down what was said in a capture, so that two captures can be
// compared: which messages with which fields, for each session, direction and transport in
// their order. It leaves out when, from which port, under which sequence and how often a
// thing had to be said again.
//
// A Transcript takes the lines of NDJSON, in which values have their final form, and
// secrets are masked. As text it has a line for each message, and can be kept in a
// repository; Parse reads it back.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Transcript is what was said in one capture. The zero Transcript is empty; Ignore may be
// set before the first line is written.
type Transcript struct {
	Ignore []string // fields that are left out, as fields or MESSAGE.field, with * and ?

	lanes    map[string][]Line // what one side of a session said over one transport, by "session 1 wulfram c2s tcp"
	sessions map[int]int       // numbers in the order in which they come, by those of the capture
	ignored  map[string]bool   // what Ignore says of fields, by message and path
	rest     []byte            // the start of a line
}

// Line is one message.
type Line struct {
	Text    string // message and fields, with tabs between them
	Packets []int  // that carry it; nil where only a text is known
}

// Message returns the name of the message.
func (l *Line) Message() string {
	name, _, _ := strings.Cut(l.Text, "\t")
	return name
}

// Usual are the fields that are left out of every transcript: times, ports and sequence
// numbers, which no two captures share.
var Usual = []string{
	"timestamp", "timestamps", "time", "*_time_ms", "client_time_ms", "server_time_ms", // when
	"udp_port", "port", "socket", "CP_UDP_REQ.port", "SP_UDP_REPLY.port", // from where
	"sequence", "acked_sequence", "start", "SP_SEQUENCE.flag8", "cp_sent", "cp_recv", // how many
	"TANK.sequence", "UPDATE_ARRAY.sequence", "VIEW_UPDATE.sequence",
}

// again are the codes of notes on what was said before.
var again = []string{"retransmission", "duplicate", "resend_copy", "stale"}

// object is an object of NDJSON, as far as it counts.
type object struct {
	Type, Dir, Transport, Protocol, Message string
	Session, Opcode                         int
	Packets                                 []int
	Fields                                  json.RawMessage
	Rest                                    string
	Bytes                                   int64
	Error                                   *struct{ Kind, Path string }
	Notes                                   []struct{ Code string }
}

// Write takes lines of NDJSON.
func (t *Transcript) Write(p []byte) (int, error) {
	t.rest = append(t.rest, p...)
	for {
		i := bytes.IndexByte(t.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		if err := t.take(t.rest[:i]); err != nil {
			return 0, err
		}
		t.rest = t.rest[i+1:]
	}
}

func (t *Transcript) take(line []byte) error {
	var o object
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	switch {
	case o.Type == "gap":
		o.Message = "gap"
		t.add(&o, "gap\tbytes="+strconv.FormatInt(o.Bytes, 10))
	case o.Type != "record" || slices.ContainsFunc(o.Notes, func(n struct{ Code string }) bool { return slices.Contains(again, n.Code) }):
	default:
		text, err := t.line(&o)
		if err != nil {
			return err
		}
		t.add(&o, text)
	}
	return nil
}

// line returns the text of a record.
func (t *Transcript) line(o *object) (string, error) {
	b := []byte(o.Message)
	if len(o.Fields) > 0 && string(o.Fields) != "null" {
		d := json.NewDecoder(bytes.NewReader(o.Fields))
		d.UseNumber()
		var err error
		if b, err = t.flatten(b, d, o.Message, ""); err != nil {
			return "", fmt.Errorf("transcript: fields of %s: %w", o.Message, err)
		}
	}
	if o.Rest != "" {
		b = append(b, "\trest="+o.Rest...)
	}
	if o.Error != nil {
		b = append(b, "\terror="+o.Error.Kind+" "+o.Error.Path...)
	}
	return string(b), nil
}

// flatten appends the fields of the next value in their order, each with its path.
func (t *Transcript) flatten(b []byte, d *json.Decoder, message, at string) ([]byte, error) {
	token, err := d.Token()
	if err != nil {
		return b, err
	}
	switch token {
	case json.Delim('{'):
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return b, err
			}
			if b, err = t.flatten(b, d, message, joined(at, key.(string))); err != nil {
				return b, err
			}
		}
		_, err = d.Token()
		return b, err
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if b, err = t.flatten(b, d, message, at+"["+strconv.Itoa(i)+"]"); err != nil {
				return b, err
			}
		}
		_, err = d.Token()
		return b, err
	}
	if t.ignores(message, at) {
		return b, nil
	}
	value, err := json.Marshal(token) // tabs and ends of lines in it are escaped
	return append(append(append(append(b, '\t'), at...), '='), value...), err
}

func joined(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// ignores reports whether a field is left out: by the name of it or of what it is in, or by
// its path, with its message in front or not. Indexes do not count.
func (t *Transcript) ignores(message, at string) bool {
	plain := withoutIndexes(at)
	key := message + "." + plain
	is, known := t.ignored[key]
	if !known {
		if t.ignored == nil {
			t.ignored = map[string]bool{}
		}
		is = t.matches(message, plain)
		t.ignored[key] = is
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

func withoutIndexes(at string) string {
	var b strings.Builder
	depth := 0
	for _, r := range at {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Pattern reports whether a pattern of Ignore makes sense.
func Pattern(text string) error {
	_, err := path.Match(text, "")
	return err
}

func (t *Transcript) add(o *object, text string) {
	if t.sessions == nil {
		t.sessions, t.lanes = map[int]int{}, map[string][]Line{}
	}
	number, known := t.sessions[o.Session]
	if !known {
		number = len(t.sessions) + 1
		t.sessions[o.Session] = number
	}
	protocol := o.Protocol
	if protocol == "dplay" { // its session has messages of two
		protocol = "lotr2"
	}
	name := strings.Join(strings.Fields("session "+strconv.Itoa(number)+" "+protocol+" "+o.Dir+" "+o.Transport), " ")
	t.lanes[name] = append(t.lanes[name], Line{text, o.Packets})
}

// Print writes the transcript as text: a heading for each lane, then its lines.
func (t *Transcript) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, name := range slices.Sorted(maps.Keys(t.lanes)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("== " + name + "\n")
		for _, line := range t.lanes[name] {
			b.WriteString(line.Text + "\n")
		}
	}
	return b.Flush()
}

// maxLine is longer than any record's line: a frame of 64 KiB, in hex.
const maxLine = 1 << 20

// Parse reads a transcript that Print has written. What is now ignored is left out of it.
func Parse(r io.Reader, ignore []string) (*Transcript, error) {
	t := &Transcript{Ignore: ignore, lanes: map[string][]Line{}}
	lane := ""
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for n := 1; s.Scan(); n++ {
		switch line := s.Text(); {
		case line == "":
		case strings.HasPrefix(line, "== "):
			lane = line[3:]
		case lane == "":
			return nil, fmt.Errorf("line %d: want a heading, such as == session 1 wulfram c2s tcp", n)
		default:
			t.lanes[lane] = append(t.lanes[lane], Line{Text: t.filtered(line)})
		}
	}
	return t, s.Err()
}

func (t *Transcript) filtered(line string) string {
	items := strings.Split(line, "\t")
	kept := items[:1]
	for _, item := range items[1:] {
		if at, _, _ := strings.Cut(item, "="); !t.ignores(items[0], at) {
			kept = append(kept, item)
		}
	}
	return strings.Join(kept, "\t")
}
