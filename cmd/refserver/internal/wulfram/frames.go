package wulfram

import (
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

// frames are the two directions of one TCP connection (section 3): a size that
// counts itself, an opcode, a body. It keeps at most one frame that is not whole.
type frames struct {
	*clerk
	conn    machine.Conn
	in      []byte
	pending machine.Parcel // written, and not yet handed over
}

// tell queues a frame. One that is too large is dropped, which it tells.
func (f *frames) tell(now time.Time, message string, values fields) {
	r, body, err := f.compose(message, values)
	if err == nil && 1+len(body) > maxTCPPayload {
		err = &oversize{message, 1 + len(body), maxTCPPayload}
	}
	if err != nil {
		f.observer.Event(now, "dropped", err.Error())
		return
	}
	framing := f.protocol.Framing("tcp")
	data := framing.Envelope.Append(nil, uint64(r.Opcode), 0, body, framing.Counts)
	r.Mode, r.Size, r.Length = -1, len(data), len(data)
	f.pending.Add(&f.Desk, r, data)
}

// flush hands over what was written, as one piece.
func (f *frames) flush() { f.pending.Flush(&f.Desk, f.conn) }

// next returns the first whole frame of what has come, and removes it. Both are
// nil while there is none. The frame is valid until the next call; an error means
// that the connection makes no sense any more.
func (f *frames) next() ([]byte, error) {
	frame, err := f.protocol.Framing("tcp").Find(f.in, "wulfram")
	if err != nil {
		if err.Kind == wire.Incomplete {
			return nil, nil
		}
		return nil, err
	}
	data := f.in[:frame.Size]
	f.in = f.in[frame.Size:]
	return data, nil
}

// frame decodes one frame.
func (f *frames) frame(data []byte) (machine.Record, error) {
	head := f.protocol.Framing("tcp").Envelope.Size()
	r, _, err := f.read(data, head, schema.TCP, data[head-1])
	r.Length = r.Size
	return r, err
}
