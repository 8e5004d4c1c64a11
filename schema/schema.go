// Package schema says what the bytes of a protocol mean, as data. It loads the
// notation in protocols/NAME/*.yaml and the Protocol Buffers in *.proto, compiles
// each layout into a codec that decodes and encodes, finds and appends frames, and
// keeps the tables that earlier packets teach.
//
// It knows no packets and no sockets. Decoding borrows the bytes given to it and
// fills a Tree that the caller owns and reuses; encoding appends.
package schema

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"opscope/schema/wire"
)

// Sender is the side that sends a packet.
type Sender uint8

// The senders. AnySender stands for both, or for one not known.
const (
	AnySender Sender = iota
	Client
	Server
)

// String returns "client", "server" or "any".
func (s Sender) String() string { return [...]string{"any", "client", "server"}[s] }

// Peer returns the other side; of AnySender that is itself.
func (s Sender) Peer() Sender { return [...]Sender{AnySender, Server, Client}[s] }

// Transport is a set of transports.
type Transport uint8

// The transports.
const (
	TCP Transport = 1 << iota
	UDP
)

// String returns "tcp", "udp" or "tcp, udp".
func (t Transport) String() string { return [...]string{"", "tcp", "udp", "tcp, udp"}[t&3] }

// Confidence says how sure a layout is.
type Confidence uint8

// The levels of confidence, from the surest down.
const (
	NoConfidence Confidence = iota // inherited from above
	Recovered                      // read out of a client
	Reported                       // recovered by third parties, or given by a published page
	Observed                       // seen on the wire
	Implemented                    // written or read by a third-party server
	Policy                         // a choice of this project's server
	Inferred
	Guess
	Unknown
)

var confidenceNames = []string{"", "recovered", "reported", "observed", "implemented", "policy", "inferred", "guess", "unknown"}

// String returns the word of the notation.
func (c Confidence) String() string { return confidenceNames[c] }

// Certain reports whether the layout needs no warning beside it.
func (c Confidence) Certain() bool { return c <= Observed }

// Redaction says what a value may give away.
type Redaction uint8

// The kinds of redaction.
const (
	Open     Redaction = iota
	Secret             // a password or a token
	Personal           // text that a person wrote
)

// Encoding is how a text's bytes are to be read.
type Encoding uint8

// The encodings.
const (
	Latin1    Encoding = iota // ASCII, bytes above 127 as Latin-1
	UTF8                      //
	UTF16                     // 16-bit units in the protocol's order
	UTF16Lax                  // 8-bit text in a UTF-16 field, unless every second byte is zero
	UTF8Exact                 // UTF-8 to its end, whatever it holds; what is none is shown as \xff
)

// Field is what the schema says of one field. It does not change once loaded.
type Field struct {
	Name       string
	Type       string // as written in the schema
	Enum       *Enum
	Flags      *Flags
	Unit       string
	Scale      float64 // 0 for none; changes text only
	Doc        string
	Source     string
	Confidence Confidence
	Redact     Redaction
	Encoding   Encoding
	Order      wire.Order
	Hex        bool // shown in hexadecimal
	Hidden     bool // named "_": without meaning, kept, shown only in full
	Part       bool // joined into another field, and not shown
	Single     bool // a float of 32 bits: shown with its own digits
	Wide       bool // an integer of more than 53 bits: a string in JSON
	Symbol     bool // a number whose name, where it has one, stands for it in JSON

	// Of Protocol Buffers alone.
	Number int // field number, 0 for what has none
	Wire   WireType
	Mark   Mark

	// Key is the name as a key of JSON behind a comma, `,"name":`, and Sign two bits of 64 that
	// most names of a record differ in. Who makes a field may leave both out.
	Key  string
	Sign uint64

	offset bool // filled in by the encoder, for a field with `at`
}

// call gives a field its name; "" is that of an element.
func (f *Field) call(name string) {
	f.Name, f.Key, f.Sign = name, "", 0
	if name != "" && !strings.ContainsFunc(name, isOdd) {
		f.Key, f.Sign = `,"`+name+`":`, SignOf(name)
	}
}

// isOdd reports whether a key of JSON, or a terminal, takes exception to a character.
func isOdd(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }

// SignOf returns the Sign of a field with this name.
func SignOf(name string) uint64 {
	hash := uint64(0)
	for i := range len(name) {
		hash = 31*hash + uint64(name[i])
	}
	const golden = 0x9e3779b97f4a7c15 // spreads it over the upper bits
	hash *= golden
	return 1<<(hash>>58) | 1<<(hash>>52&63)
}

// Name is a value's name in an enum or flags.
type Name struct {
	Value uint64
	Name  string
}

// Enum names values.
type Enum struct {
	Name   string
	Values []Name   // in the order of the file
	low    []string // by value, the small ones
	byNum  map[uint64]string
}

// sparse is how many values there may be for each name where a name is found without a
// search: more than among the opcodes of a game.
const sparse = 16

// few is how many names are gone through faster than one is looked up.
const few = 8

// NewEnum returns an enum with these values.
func NewEnum(name string, values []Name) *Enum {
	e := &Enum{Name: name, Values: values, byNum: make(map[uint64]string, len(values))}
	for _, v := range values {
		if _, ok := e.byNum[v.Value]; !ok {
			e.byNum[v.Value] = v.Name
		}
	}
	last := -1
	for v := range e.byNum {
		if v < uint64(sparse*len(values)) {
			last = max(last, int(v))
		}
	}
	e.low = make([]string, last+1)
	for i := range e.low {
		e.low[i] = e.byNum[uint64(i)]
	}
	return e
}

// NameOf returns the name of a value, or "".
func (e *Enum) NameOf(v uint64) string {
	if e == nil {
		return ""
	}
	if v < uint64(len(e.low)) {
		return e.low[v]
	}
	if len(e.Values) > few {
		return e.byNum[v]
	}
	for i := range e.Values {
		if e.Values[i].Value == v {
			return e.Values[i].Name
		}
	}
	return ""
}

// ValueOf returns the value with this name.
func (e *Enum) ValueOf(name string) (uint64, bool) {
	for _, v := range e.Values {
		if v.Name == name {
			return v.Value, true
		}
	}
	return 0, false
}

// Flag is one bit, or a number of several bits, of a flags value.
type Flag struct {
	Low, High int // bits, from the least significant
	Name      string
}

// Of returns the value of the flag in v.
func (f Flag) Of(v uint64) uint64 {
	return v >> uint(f.Low) & (1<<uint(f.High-f.Low+1) - 1)
}

// Flags names the bits of a number.
type Flags struct {
	Name string
	Bits []Flag // from the least significant
}

// Rest returns the set bits of v that have no name.
func (f *Flags) Rest(v uint64) uint64 {
	for _, b := range f.Bits {
		v &^= (1<<uint(b.High-b.Low+1) - 1) << uint(b.Low)
	}
	return v
}

// Question is something that the facts leave open.
type Question struct {
	Question, Answer, Evidence string
}

// Layout is one way to read a packet's body.
type Layout struct {
	Source     string
	Confidence Confidence
	code       *code
	proto      *protoBody // in its stead, for Protocol Buffers
	strictest  Redaction  // of its fields
}

// Guessed reports whether l reads a body without a schema, as Protocol Buffers that
// it may not even be.
func (l *Layout) Guessed() bool { return l.proto != nil && l.proto.name == "" }

// Redaction returns what is hidden of every text and all bytes of a body in Protocol
// Buffers, whether or not the schema has the field.
func (l *Layout) Redaction() Redaction {
	if l.proto == nil {
		return Open
	}
	return l.proto.message().redact
}

// Strictest returns the redaction that hides the most of those that fields of the layout
// have: Open where no field is redacted.
func (l *Layout) Strictest() Redaction { return l.strictest }

// findStrictest finds what Strictest returns.
func (l *Layout) findStrictest() {
	if l.proto != nil {
		l.strictest = l.proto.strictest()
		return
	}
	walkOps(l.code.ops, func(o *op) {
		if o.field != nil && (l.strictest == Open || o.field.Redact == Secret) {
			l.strictest = o.field.Redact
		}
	})
}

// Packet is one entry under `packets:`.
type Packet struct {
	Name       string
	Opcode     uint64
	From       Sender
	Via        Transport
	Build      string
	Doc        string
	Source     string
	Confidence Confidence
	Teaches    []string
	Open       []Question
	Proto      string // the Protocol Buffers message, for `proto:`
	Deprecated string // what is used instead; empty for a packet in use
	Pos        Pos

	layouts   [3][]*Layout // by sender, as Of returns them
	secret    bool
	size      *expr  // as written; nil for none
	bodied    bool   // it has layouts
	compile   func() // sets layouts and secret, once; nil where they are set
	compiled  uint32 // atomic: 1 once compile has done so
	teachesAt Pos
}

// settle compiles the layouts of a packet that nobody has asked for yet.
func (p *Packet) settle() {
	if p.compile != nil && atomic.LoadUint32(&p.compiled) == 0 {
		p.compile()
	}
}

// Secret reports whether a field of the packet is called secret.
func (p *Packet) Secret() bool {
	if p == nil {
		return false
	}
	p.settle()
	return p.secret
}

// findStrictest finds what is redacted of the layouts.
func (p *Packet) findStrictest() {
	for _, layouts := range p.layouts {
		for _, l := range layouts {
			l.findStrictest()
			p.secret = p.secret || l.strictest == Secret
		}
	}
}

// Of returns the layouts of the packet when s sends it; they are the same for each
// sender unless the layout depends on it. The first is the default, the others are
// disputed. None is an unknown body.
func (p *Packet) Of(s Sender) []*Layout {
	if p == nil {
		return nil
	}
	p.settle()
	return p.layouts[s]
}

// Port is a port on which a protocol is usually found.
type Port struct {
	Number    int
	Transport Transport
}

// Protocol is a loaded schema.
type Protocol struct {
	Name       string
	Over       string // the protocol whose messages carry this one's frames; "" for none
	Order      wire.Order
	BitAlign   bool // any field may begin in mid-byte
	Doc        string
	Ports      []Port
	State      []TableDecl
	Defaults   []*StatedDefault
	Packets    []*Packet // in the order of the files
	Enums      []*Enum
	Flags      []*Flags
	Envelopes  []*Envelope
	Framings   []*Framing
	Groups     []Group
	Limits     []Limit
	Open       []Question
	Types      []*typeDecl
	OpcodeBits int
	Builds     []string
	Source     string     // of every layout that names none of its own
	Confidence Confidence // likewise
	// Unknown is the layout of a body that no packet describes; nil where such bodies
	// are bytes.
	Unknown *Layout

	protos *protoFiles // the *.proto of the protocol, nil without any
	drafts []*packetDecl
	index  map[opcodeKey]*Packet
	pages  []page // of index, the opcodes that have one
	names  *Enum
	bounds Bounds
}

// page is the packets of as many opcodes as a byte tells apart, by sender and transport.
type page *[3][4][256]*Packet

// maxPages is how many pages there are: opcodes are small numbers.
const maxPages = 16

type opcodeKey struct {
	opcode uint64
	from   Sender
	via    Transport
}

// Group is a named set of opcodes.
type Group struct {
	Name    string
	Opcodes []uint64
}

// Limit is a named number of the protocol.
type Limit struct {
	Name  string
	Value int64
	Doc   string
}

// Limit returns the limit with this name, or 0.
func (p *Protocol) Limit(name string) int64 {
	for _, l := range p.Limits {
		if l.Name == name {
			return l.Value
		}
	}
	return 0
}

// Packet returns the packet with this opcode, sent by s over t, or nil. For an
// unknown sender it is the only packet with the opcode, if there is only one.
func (p *Protocol) Packet(opcode uint64, s Sender, t Transport) *Packet {
	if n := opcode >> 8; n < uint64(len(p.pages)) {
		return p.pages[n][s][t][opcode&0xff]
	}
	return p.index[opcodeKey{opcode, s, t}]
}

// PacketNamed returns the packet with this name, or nil.
func (p *Protocol) PacketNamed(name string) *Packet {
	i := slices.IndexFunc(p.Packets, func(k *Packet) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return p.Packets[i]
}

// OpcodeName returns the name of an opcode, and "unknown(0x05)" where it has
// none.
func (p *Protocol) OpcodeName(opcode uint64) string {
	if n := p.names.NameOf(opcode); n != "" {
		return n
	}
	return UnknownName(opcode)
}

// UnknownName returns the name of a message without one: "unknown(0x05)".
func UnknownName(opcode uint64) string {
	const digits = "0123456789ABCDEF"
	if opcode < 0x100 {
		return "unknown(0x" + string([]byte{digits[opcode>>4], digits[opcode&15]}) + ")"
	}
	return "unknown(0x" + strconv.FormatUint(opcode, 16) + ")"
}

// HintPacket returns " (did you mean NAME?)" for a packet's name that is nearly
// right, else "".
func (p *Protocol) HintPacket(name string) string {
	names := make([]string, 0, len(p.Packets))
	for _, k := range p.Packets {
		names = append(names, k.Name)
	}
	return hint(name, names)
}
