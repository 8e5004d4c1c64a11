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
	pending machine.Output // written, and not yet handed over
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
	o := &f.pending
	r.ID, r.Mode, r.Offset = f.NextID(), -1, len(o.Data)
	o.Data = framing.Envelope.Append(o.Data, uint64(r.Opcode), 0, body, framing.Counts)
	r.Size = len(o.Data) - r.Offset
	r.Length = r.Size
	o.Records = append(o.Records, r)
}

// flush hands over what was written, as one piece.
func (f *frames) flush() {
	if len(f.pending.Data) == 0 {
		return
	}
	f.pending.Kind, f.pending.Conn = machine.SendStream, f.conn
	f.Do(f.pending)
	f.pending = machine.Output{}
}

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
