package main

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"io"
	"os"
	"slices"
)

// mentions are the packets that records name, each with what is said of it. They are added
// in the order of the records and come back in that of the packets. Most are kept in a
// temporary file, so that memory stays the same however many there are.
type mentions struct {
	list  []mention
	bytes int
	last  int // the highest number of a packet

	file *os.File
	end  int64
	runs []*mentionRun // sorted parts of the file
}

// mention is one of them. The text may be empty.
type mention struct {
	packet int
	text   string
}

// What is kept in memory.
const (
	mostMentions     = 64 << 10
	mostMentionBytes = 8 << 20
	mentionBuffer    = 4 << 10 // of each run that is read
)

// add adds a mention.
func (m *mentions) add(packet int, text string) error {
	m.last = max(m.last, packet)
	m.bytes += len(text)
	if m.list = append(m.list, mention{packet, text}); len(m.list) < mostMentions && m.bytes < mostMentionBytes {
		return nil
	}
	return m.spill()
}

func (m *mentions) sort() {
	slices.SortStableFunc(m.list, func(a, b mention) int { return cmp.Compare(a.packet, b.packet) })
}

// spill writes what is in memory to the file: number, length and text of each, sorted.
func (m *mentions) spill() (err error) {
	if m.file == nil {
		if m.file, err = temporary(); err != nil {
			return err
		}
	}
	m.sort()
	w := bufio.NewWriter(io.NewOffsetWriter(m.file, m.end))
	from := m.end
	var head []byte
	for _, x := range m.list {
		head = binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(x.packet)), uint64(len(x.text)))
		m.end += int64(len(head) + len(x.text))
		if _, err := w.Write(append(head, x.text...)); err != nil {
			return err
		}
	}
	part := io.NewSectionReader(m.file, from, m.end-from)
	m.runs = append(m.runs, &mentionRun{index: len(m.runs), in: bufio.NewReaderSize(part, mentionBuffer)})
	clear(m.list)
	m.list, m.bytes = m.list[:0], 0
	return w.Flush()
}

// mentionRun is a sorted part of the mentions.
type mentionRun struct {
	index int // in the order in which they were added
	in    *bufio.Reader
	list  []mention // instead of in
	mention
}

// next reads the next mention; io.EOF comes after the last.
func (r *mentionRun) next() error {
	if r.in == nil {
		if len(r.list) == 0 {
			return io.EOF
		}
		r.mention, r.list = r.list[0], r.list[1:]
		return nil
	}
	packet, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	text := make([]byte, size)
	_, err = io.ReadFull(r.in, text)
	r.mention = mention{int(packet), string(text)}
	return err
}

// mentionHeap has the run with the next mention in front.
type mentionHeap []*mentionRun

func (h mentionHeap) Len() int { return len(h) }
func (h mentionHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].packet, h[j].packet), cmp.Compare(h[i].index, h[j].index)) < 0
}
func (h mentionHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mentionHeap) Push(x any)   { *h = append(*h, x.(*mentionRun)) }
func (h *mentionHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// sorted returns the mentions in the order of packets, those of one packet in the order in
// which they were added. No more may be added.
func (m *mentions) sorted() (*mentionHeap, error) {
	m.sort()
	h := &mentionHeap{}
	for _, r := range append(m.runs, &mentionRun{index: len(m.runs), list: m.list}) {
		if err := r.next(); err == io.EOF {
			continue
		} else if err != nil {
			return nil, err
		}
		heap.Push(h, r)
	}
	return h, nil
}

// take returns the next packet with its texts; 0 after the last.
func (h *mentionHeap) take(texts []string) (packet int, all []string, err error) {
	for len(*h) > 0 {
		r := (*h)[0]
		if packet != 0 && r.packet != packet {
			break
		}
		packet = r.packet
		if r.text != "" {
			texts = append(texts, r.text)
		}
		if err := r.next(); err == io.EOF {
			heap.Pop(h)
		} else if err != nil {
			return 0, nil, err
		} else {
			heap.Fix(h, 0)
		}
	}
	return packet, texts, nil
}

// close removes the file.
func (m *mentions) close() { discard(m.file) }

// temporary returns a file that others cannot read and that, where the system can do that,
// has no name any more.
func temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "opscope-*")
	if err == nil {
		_ = os.Remove(f.Name()) // else discard does it
	}
	return f, err
}

// discard closes a temporary file. It may be nil.
func discard(f *os.File) {
	if f != nil {
		f.Close()
		_ = os.Remove(f.Name()) // it is gone already where that was possible
	}
}
