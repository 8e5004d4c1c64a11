package filter

import (
	"net/netip"
	"time"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// key is a key of a record as NDJSON has it: present here where it is present, and not
// null, there.
type key struct {
	kinds kind
	words []string // all values that there are; nil for any
	list  bool
	// beside says that no record with fields has the key, so that a field may share
	// its name.
	beside bool
	look   dissect.Look // at which it is all there
	values func(s *scope, r *dissect.Record, dst []value) []value
}

// keys are the keys of all types of records. Those of messages and protocols are
// limited to what the schemas have when a Language is made.
var keys = map[string]*key{
	"type": {kinds: text, look: dissect.LookNothing, words: []string{"record", "ack", "gap", "session", "event"}, values: func(s *scope, r *dissect.Record, dst []value) []value {
		return s.word(dst, r.Type.String())
	}},
	"file": {kinds: signed, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value { return append(dst, signedValue(int64(r.File))) }},
	"n": {kinds: signed, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value {
		switch r.Type {
		case dissect.FrameRecord:
			return append(dst, signedValue(int64(r.N)))
		case dissect.AckRecord:
			return append(dst, signedValue(int64(r.Acked)))
		}
		return dst
	}},
	"packets": {kinds: signed, look: dissect.LookKind, list: true, values: func(_ *scope, r *dissect.Record, dst []value) []value {
		if r.Type == dissect.FrameRecord || r.Type == dissect.EventRecord {
			for _, p := range r.Packets {
				dst = append(dst, signedValue(int64(p)))
			}
		}
		return dst
	}},
	"time": {kinds: moment, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value {
		if r.Time.IsZero() {
			return dst
		}
		return append(dst, momentValue(r.Time))
	}},
	"session": {kinds: signed, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Session) }},
	"flow":    {kinds: signed, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Flow) }},
	"dir": {kinds: text, look: dissect.LookKind, words: []string{"c2s", "s2c"}, values: func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Type == dissect.SessionRecord {
			return dst
		}
		return s.word(dst, r.Direction.String())
	}},
	"transport": {kinds: text, look: dissect.LookKind, words: []string{"tcp", "udp"}, values: func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Type == dissect.SessionRecord {
			return dst
		}
		return s.word(dst, r.Transport.String())
	}},
	"src":         {kinds: address, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return endpoint(dst, r.Src) })},
	"src.port":    {kinds: signed, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return port(dst, r.Src) })},
	"dst":         {kinds: address, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return endpoint(dst, r.Dst) })},
	"dst.port":    {kinds: signed, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return port(dst, r.Dst) })},
	"client":      {kinds: address, look: dissect.LookKind, beside: true, values: sessions(func(_ *scope, r *dissect.Record, dst []value) []value { return endpoint(dst, r.Client) })},
	"client.port": {kinds: signed, look: dissect.LookKind, beside: true, values: sessions(func(_ *scope, r *dissect.Record, dst []value) []value { return port(dst, r.Client) })},
	"server":      {kinds: address, look: dissect.LookKind, beside: true, values: sessions(func(_ *scope, r *dissect.Record, dst []value) []value { return endpoint(dst, r.Server) })},
	"server.port": {kinds: signed, look: dissect.LookKind, beside: true, values: sessions(func(_ *scope, r *dissect.Record, dst []value) []value { return port(dst, r.Server) })},
	"passed": {kinds: text, look: dissect.LookKind, words: wordsUpTo(dissect.Outgoing), values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		return s.word(dst, r.Passage.Type.String())
	})},
	"interface": {kinds: signed, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Passage.Interface) })},
	"protocol": {kinds: text, look: dissect.LookKind, values: func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Type != dissect.FrameRecord && r.Type != dissect.SessionRecord {
			return dst
		}
		return s.word(dst, r.Protocol)
	}},
	"message": {kinds: text, look: dissect.LookKind, values: frames(func(s *scope, r *dissect.Record, dst []value) []value { return s.word(dst, r.Message) })},
	"opcode": {kinds: signed, look: dissect.LookKind, values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Opcode < 0 {
			return dst
		}
		v := signedValue(int64(r.Opcode))
		v.text = s.copyOf(r.Message)
		return append(dst, v)
	})},

	"envelope": {kinds: group, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value {
		return there(dst, r.Envelope != dissect.NoEnvelope || r.Stream > 0 || len(r.Head.Nodes) > 0)
	})},
	"envelope.mode":   {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return known(dst, r.Envelope.Mode) })},
	"envelope.seq":    {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return known(dst, r.Envelope.Seq) })},
	"envelope.stream": {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Stream) })},
	"envelope.length": {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return known(dst, r.Envelope.Length) })},
	"envelope.origin": {kinds: text, words: wordsUpTo(schema.Guessed), values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		return s.word(dst, r.Envelope.Origin.String())
	})},
	"envelope.learned_in": {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Envelope.LearnedIn) })},
	"envelope.prefixed": {kinds: truth, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value {
		if !r.Envelope.Prefixed {
			return dst
		}
		return append(dst, value{kind: truth, num: 1})
	})},
	"envelope.copies": {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Envelope.Copies) })},
	"envelope.first":  {kinds: signed, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Envelope.First) })},
	"context": {kinds: text, words: wordsUpTo(schema.Guessed), values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		return s.word(dst, r.Context.String())
	})},
	"fields": {kinds: group, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return there(dst, len(r.Body.Nodes) > 0) })},
	"size":   {kinds: signed, look: dissect.LookKind, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return known(dst, r.Size) })},
	"offset": {kinds: signed, look: dissect.LookKind, values: func(_ *scope, r *dissect.Record, dst []value) []value {
		if r.Type != dissect.FrameRecord && r.Type != dissect.GapRecord {
			return dst
		}
		return append(dst, signedValue(r.Offset))
	}},

	"ack": {kinds: group, look: dissect.LookNothing, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value {
		return there(dst, r.Ack.State != dissect.AckNone)
	})},
	"ack.state": {kinds: text, look: dissect.LookNothing, words: wordsUpTo(dissect.AckIgnored)[1:], values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Ack.State == dissect.AckNone {
			return dst
		}
		return s.word(dst, r.Ack.State.String())
	})},
	"ack.by":     {kinds: signed, look: dissect.LookNothing, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return ackBy(dst, &r.Ack) })},
	"ack.rtt_ms": {kinds: float, look: dissect.LookNothing, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value { return ackTime(dst, &r.Ack) })},
	"by":         {kinds: signed, look: dissect.LookNothing, beside: true, values: only(dissect.AckRecord, func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Ack.By) })},
	"rtt_ms":     {kinds: float, look: dissect.LookNothing, beside: true, values: only(dissect.AckRecord, func(_ *scope, r *dissect.Record, dst []value) []value { return ackRoundTrip(dst, &r.Ack) })},

	"acks": {kinds: group, look: dissect.LookNothing, values: acknowledgements(func(_ *scope, _ *dissect.Acks, dst []value) []value { return there(dst, true) })},
	"acks.state": {kinds: text, look: dissect.LookNothing, words: wordsUpTo(dissect.AcksUnseen), values: acknowledgements(func(s *scope, a *dissect.Acks, dst []value) []value {
		return s.word(dst, a.Verdict.String())
	})},
	"acks.message": {kinds: text, look: dissect.LookNothing, values: acknowledgements(func(s *scope, a *dissect.Acks, dst []value) []value { return s.word(dst, a.Message) })},
	"acks.seq":     {kinds: signed, look: dissect.LookNothing, values: acknowledgements(func(_ *scope, a *dissect.Acks, dst []value) []value { return known(dst, a.Seq) })},
	"acks.packet":  {kinds: signed, look: dissect.LookNothing, values: acknowledgements(func(_ *scope, a *dissect.Acks, dst []value) []value { return counted(dst, a.Packet) })},
	"acks.n":       {kinds: signed, look: dissect.LookNothing, values: acknowledgements(func(_ *scope, a *dissect.Acks, dst []value) []value { return counted(dst, a.N) })},
	"acks.rtt_ms":  {kinds: float, look: dissect.LookNothing, values: acknowledgements(func(_ *scope, a *dissect.Acks, dst []value) []value { return millis(dst, a.RTT) })},

	"notes": {kinds: group, look: dissect.LookNothing, list: true, values: frames(func(_ *scope, r *dissect.Record, dst []value) []value {
		for i := range r.Notes {
			dst = append(dst, value{kind: group, node: int32(i)})
		}
		return dst
	})},
	"notes.severity": {kinds: text, look: dissect.LookNothing, words: wordsUpTo(dissect.Warning), list: true, values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		for i := range r.Notes {
			dst = s.noteSeverity(dst, &r.Notes[i])
		}
		return dst
	})},
	"notes.code": {kinds: text, look: dissect.LookNothing, words: noteCodes(), list: true, values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		for i := range r.Notes {
			dst = s.word(dst, r.Notes[i].Code)
		}
		return dst
	})},
	"notes.text": {kinds: text, list: true, values: frames(func(s *scope, r *dissect.Record, dst []value) []value {
		for i := range r.Notes {
			dst = s.free(dst, r.Notes[i].Text)
		}
		return dst
	})},
	"rest": {kinds: octets, values: frames(func(s *scope, _ *dissect.Record, dst []value) []value { return s.rest(dst) })},

	"error":        {kinds: group, look: dissect.LookKind, values: failures(func(_ *scope, _ *wire.Error, dst []value) []value { return there(dst, true) })},
	"error.layer":  {kinds: text, look: dissect.LookKind, values: failures(func(s *scope, e *wire.Error, dst []value) []value { return s.word(dst, e.Layer) })},
	"error.path":   {kinds: text, look: dissect.LookKind, values: failures(func(s *scope, e *wire.Error, dst []value) []value { return s.word(dst, e.Path) })},
	"error.offset": {kinds: signed, look: dissect.LookKind, values: failures(func(_ *scope, e *wire.Error, dst []value) []value { return known(dst, e.Offset) })},
	"error.bit":    {kinds: signed, look: dissect.LookKind, values: failures(func(_ *scope, e *wire.Error, dst []value) []value { return known(dst, e.Bit) })},
	"error.want":   {kinds: text, values: failures(func(s *scope, e *wire.Error, dst []value) []value { return s.free(dst, e.Want) })},
	"error.got": {kinds: text, values: failures(func(s *scope, e *wire.Error, dst []value) []value {
		if e.Got == "" {
			return dst
		}
		return s.maskable(dst, s.mask().ErrorGot(s.record))
	})},
	"error.kind": {kinds: text, look: dissect.LookKind, words: wordsUpTo(wire.Incomplete), values: failures(func(s *scope, e *wire.Error, dst []value) []value {
		return s.word(dst, e.Kind.String())
	})},

	"bytes":         {kinds: signed, look: dissect.LookKind, beside: true, values: only(dissect.GapRecord, func(_ *scope, r *dissect.Record, dst []value) []value { return append(dst, signedValue(r.Bytes)) })},
	"after_packet":  {kinds: signed, look: dissect.LookKind, beside: true, values: only(dissect.GapRecord, func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.After) })},
	"before_packet": {kinds: signed, look: dissect.LookKind, beside: true, values: only(dissect.GapRecord, func(_ *scope, r *dissect.Record, dst []value) []value { return counted(dst, r.Before) })},
	"reason": {kinds: text, look: dissect.LookKind, beside: true, values: func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Type != dissect.GapRecord && r.Type != dissect.SessionRecord {
			return dst
		}
		return s.free(dst, r.Text)
	}},
	"state": {kinds: text, look: dissect.LookKind, beside: true, values: sessions(func(s *scope, r *dissect.Record, dst []value) []value { return s.word(dst, r.Code) })},
	"code":  {kinds: text, look: dissect.LookKind, beside: true, values: only(dissect.EventRecord, func(s *scope, r *dissect.Record, dst []value) []value { return s.word(dst, r.Code) })},
	"text":  {kinds: text, beside: true, values: only(dissect.EventRecord, func(s *scope, r *dissect.Record, dst []value) []value { return s.free(dst, r.Text) })},
}

// reading appends the values that one key has in a record.
type reading = func(s *scope, r *dissect.Record, dst []value) []value

func only(t dissect.Type, read reading) reading {
	return func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Type != t {
			return dst
		}
		return read(s, r, dst)
	}
}

func frames(read reading) reading   { return only(dissect.FrameRecord, read) }
func sessions(read reading) reading { return only(dissect.SessionRecord, read) }

// acknowledgements reads a record that acknowledges something: what NDJSON has
// "acks" for.
func acknowledgements(read func(*scope, *dissect.Acks, []value) []value) reading {
	return frames(func(s *scope, r *dissect.Record, dst []value) []value {
		a := &r.Acks
		if a.Message == "" && a.Packet <= 0 && a.Verdict == dissect.AcksNew {
			return dst
		}
		return read(s, a, dst)
	})
}

func failures(read func(*scope, *wire.Error, []value) []value) reading {
	return func(s *scope, r *dissect.Record, dst []value) []value {
		if r.Err == nil || r.Type != dissect.FrameRecord && r.Type != dissect.EventRecord {
			return dst
		}
		return read(s, r.Err, dst)
	}
}

func wordsUpTo[T interface {
	~uint8
	String() string
}](last T) []string {
	var words []string
	for v := T(0); v <= last; v++ {
		if w := v.String(); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func noteCodes() []string {
	codes := make([]string, 0, len(dissect.NoteCodes))
	for _, n := range dissect.NoteCodes {
		codes = append(codes, n.Code)
	}
	return codes
}

func there(dst []value, is bool) []value {
	if !is {
		return dst
	}
	return append(dst, value{kind: group})
}

// known appends a number that is -1 where there is none.
func known(dst []value, n int) []value {
	if n < 0 {
		return dst
	}
	return append(dst, signedValue(int64(n)))
}

// counted appends a number that counts from 1.
func counted(dst []value, n int) []value {
	if n <= 0 {
		return dst
	}
	return append(dst, signedValue(int64(n)))
}

func millis(dst []value, d time.Duration) []value {
	if d < 0 {
		return dst
	}
	return append(dst, floatValue(float64(d)/float64(time.Millisecond)))
}

func ackBy(dst []value, a *dissect.Ack) []value {
	if a.State == dissect.AckNone {
		return dst
	}
	return counted(dst, a.By)
}

func ackTime(dst []value, a *dissect.Ack) []value {
	if a.State == dissect.AckNone {
		return dst
	}
	return ackRoundTrip(dst, a)
}

func ackRoundTrip(dst []value, a *dissect.Ack) []value {
	if a.By <= 0 {
		return dst
	}
	return millis(dst, a.RTT)
}

func endpoint(dst []value, a netip.AddrPort) []value {
	if !a.IsValid() {
		return dst
	}
	return append(dst, value{kind: address, addr: a})
}

func port(dst []value, a netip.AddrPort) []value {
	if !a.IsValid() {
		return dst
	}
	return append(dst, signedValue(int64(a.Port())))
}

func momentValue(t time.Time) value {
	return value{kind: moment, num: uint64(t.Unix()), nanos: uint32(t.Nanosecond())}
}
