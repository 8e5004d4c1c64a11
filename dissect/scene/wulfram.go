package scene

import (
	"strconv"
	"strings"
)

// What Wulfram sends, by the facts of its protocol; sections are theirs.

// Frame is a TCP frame, section 3.
func Frame(opcode byte, body string) string {
	return BE16(3+len(body)) + string([]byte{opcode}) + body
}

// Sequenced is a record of mode 1 or 3, section 4.1.
func Sequenced(opcode byte, seq int, body string) string {
	return string([]byte{opcode}) + BE16(seq) + BE16(5+len(body)) + body
}

// Text is a string, section 2.
func Text(s string) string { return BE16(len(s)+1) + s + "\x00" }

// Of what opens a session, section 6.
var (
	Hello      = "\x13\x00\x00\x00\x4e\x89" // 0: version 20105
	HelloThere = "\x08" + Text("Hello There")
)

// HelloUDP is HELLO 1 of a server.
func HelloUDP(port int) string { return "\x13\x01" + BE16(port) + "\x00\x01" + Text("10.0.0.1") }

// HelloKey is HELLO 2 of a server.
func HelloKey(key string) string { return "\x13\x02" + Text(key) }

// EchoKey is HELLO 1 of a client.
func EchoKey(key string) string { return "\x13\x01" + Text(key) }

// AsFrame puts the size in front of an opcode and its body.
func AsFrame(record string) string { return Frame(record[0], record[1:]) }

// Group is one of the groups of a handshake.
type Group struct {
	Name    string
	Members []int
}

// Pair is an opcode with its mode.
type Pair struct{ Opcode, Mode int }

// Handshake is a raw D_HANDSHAKE, section 5.
func Handshake(timestamp int, groups []Group, pairs ...Pair) string {
	s := "\x03" + BE32(timestamp) + BE32(15) + BE32(len(groups))
	for _, g := range groups {
		s += Text(g.Name) + BE32(len(g.Members))
		for _, m := range g.Members {
			s += BE32(m)
		}
	}
	s += BE32(len(pairs))
	for _, p := range pairs {
		s += BE32(p.Opcode) + BE32(p.Mode)
	}
	return s
}

// Original is the handshake of the original client, 200 bytes.
func Original(timestamp int) string {
	return Handshake(timestamp,
		[]Group{{"Beacon Stream", []int{0x3a, 0x3b}}, {"Squad Things", []int{0x42, 0x46, 0x49, 0x4a}}},
		Pair{0x19, 1}, Pair{0x26, 1}, Pair{0x2b, 1}, Pair{0x35, 1},
		Pair{0x20, 3}, Pair{0x25, 3}, Pair{0x2e, 3}, Pair{0x33, 3}, Pair{0x3a, 3}, Pair{0x3b, 3},
		Pair{0x42, 3}, Pair{0x46, 3}, Pair{0x49, 3}, Pair{0x4a, 3}, Pair{0x4f, 3})
}

// Forge is the handshake of the Wulf-Forge family: its controls are in mode 1.
func Forge(timestamp int) string {
	return Handshake(timestamp,
		[]Group{{"Unreliable", []int{0}}, {"Reliable", []int{1}}, {"Stream 2", []int{2}}, {"Game Data", []int{3}}},
		Pair{0, 1}, Pair{1, 1}, Pair{2, 1}, Pair{3, 1})
}

// Translation is a TRANSLATION with the widths that all servers agree on, and one
// for the selector of vectors, section 7.3: 4 in QT-WF, 2 in QT-MJ.
func Translation(selector int) string {
	s := "\x32"
	for slot := range 28 {
		a, b, most, span := 16, 0, "1000.0", "2000.0"
		switch slot {
		case 1:
			a, most, span = 5, "0.0", "0.0"
		case 2, 3, 4:
			a, most, span = 8, "0.0", "0.0"
		case 5, 8:
			a, most, span = 10, "1.0", "1.0"
		case 13, 14:
			a, most, span = 8, "1.0", "1.0"
		}
		if slot >= 16 {
			a, b = selector, 16
			most = [...]string{"8192.0", "1000.0", "6.3", "200.0"}[slot%4]
			span = [...]string{"16384.0", "2000.0", "12.6", "400.0"}[slot%4]
		}
		s += BE32(a) + BE32(0) + BE32(b) + Text(most) + Text(span)
	}
	return s
}

// Behavior is a BEHAVIOR without an enabled weapon slot and two points for each
// jet shape: a frame of 3342 bytes, section 10.12.
func Behavior() string {
	const shape = "\x00\x00\x00\x02"
	zeros := func(n int) string { return string(make([]byte, n)) }
	return "\x24" + zeros(2975) + strings.Repeat(shape+zeros(2*28+4), 4) + zeros(4*(7+9+11))
}

// View is a raw VIEW_UPDATE with two tanks, from a capture of Wulf-Forge.
const View = "\x0f\x00\x00\x00\x7b\x00\x00\x00\x7b\x80\x01\x00\x40\x80\x00\x00\x00\x61\x58\x00\x00\x00\x08\x0f\xdf\x9c\x1f\x9c\x1f\x9c\x3c\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x85\x60\x00\x00\x00\x40\x5f\x7d\xd0\x7e\x70\x7e\x70\xf0\x00\x00\x00\x00\x00\x00\x04"

// Ack is a D_ACK of subtype 1.
func Ack(opcode byte, seq int) string { return "\x02\x01" + string([]byte{opcode}) + BE16(seq) }

// Viewpoint is a VIEWPOINT_INFO of the original client, in mode 1.
func Viewpoint(seq, id int) string { return Sequenced(0x35, seq, BE32(id)) }

// Chat is a COMM_MESSAGE_REQUEST, in mode 3.
func Chat(seq int, text string) string { return Sequenced(0x20, seq, "\x00\x00\x00\x00"+Text(text)) }

// Numbered is chat from the server with a number in it, to be told from others.
func Numbered(n int) string {
	return "\x1f\x00\x05" + BE32(7) + "\x00\x00" + BE32(0) + Text("line "+strconv.Itoa(n))
}
