package capture

import (
	"encoding/binary"
	"sync"
	"time"

	"opscope/dissect"
)

// queue is a ring of bytes between the sockets and the decoder. Packets that find no
// room are dropped, by whoever calls put; taking never moves bytes.
type queue struct {
	mu     sync.Mutex
	buf    []byte
	head   int // of the oldest packet
	tail   int // behind the newest
	used   int // bytes between them, with what is left over at the end of the ring
	held   int // bytes of the packet last taken, which are still read
	closed bool
	ready  chan struct{} // something was put, or it was closed
}

// A packet in the ring: size of all that follows it, or skip for "go on at the start".
//
//	0  size       4
//	4  interface  4
//	8  link       4
//	12 length     4, on the wire
//	16 time       8, nanoseconds since 1970
//	24 dropped    4, packets before it
//	28 -          4
//	32 data
const (
	queuedHeader = 32
	skip         = 1<<32 - 1
)

func newQueue(size int) *queue {
	return &queue{buf: make([]byte, size), ready: make(chan struct{}, 1)}
}

// put copies a packet into the ring. It returns false if there is no room.
func (q *queue) put(p *dissect.Packet) bool {
	n := (queuedHeader + len(p.Data) + 7) &^ 7
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.tail
	if rest := len(q.buf) - at; n > rest {
		if q.used+rest+n > len(q.buf) {
			return false
		}
		if rest >= 4 {
			binary.LittleEndian.PutUint32(q.buf[at:], skip)
		}
		q.used += rest
		at = 0
	} else if q.used+n > len(q.buf) {
		return false
	}
	b := q.buf[at : at+n]
	binary.LittleEndian.PutUint32(b, uint32(len(p.Data)))
	binary.LittleEndian.PutUint32(b[4:], uint32(p.Interface))
	binary.LittleEndian.PutUint32(b[8:], uint32(p.Link))
	binary.LittleEndian.PutUint32(b[12:], uint32(p.Length))
	binary.LittleEndian.PutUint64(b[16:], uint64(p.Time.UnixNano()))
	binary.LittleEndian.PutUint32(b[24:], uint32(p.Dropped))
	copy(b[queuedHeader:], p.Data)
	q.tail, q.used = at+n, q.used+n
	q.wake()
	return true
}

// take fills p with the oldest packet, whose data is valid until the next call. Without
// one it returns false, and whether there will be none any more.
func (q *queue) take(p *dissect.Packet) (ok, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.head, q.used, q.held = q.head+q.held, q.used-q.held, 0
	if q.used == 0 {
		q.head, q.tail = 0, 0 // so that a ring that is seldom full stays in the cache
		return false, q.closed
	}
	if rest := len(q.buf) - q.head; rest < 4 || binary.LittleEndian.Uint32(q.buf[q.head:]) == skip {
		q.head, q.used = 0, q.used-rest
	}
	b := q.buf[q.head:]
	size := int(binary.LittleEndian.Uint32(b))
	p.Interface = int(binary.LittleEndian.Uint32(b[4:]))
	p.Link = dissect.LinkType(binary.LittleEndian.Uint32(b[8:]))
	p.Length = int(binary.LittleEndian.Uint32(b[12:]))
	p.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(b[16:]))).UTC()
	p.Digits = 9
	p.Dropped = int(binary.LittleEndian.Uint32(b[24:]))
	p.Data = b[queuedHeader : queuedHeader+size : queuedHeader+size]
	q.held = (queuedHeader + size + 7) &^ 7
	return true, false
}

// close says that nothing more will be put.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
