package reassembly

// history remembers the last bytes of a stream, in a ring: the byte at offset off
// stands at off modulo its length.
type history struct {
	ring     []byte
	from, to int64 // the offsets remembered
}

// keep remembers data, the bytes of the stream at off. Bytes before a gap are
// forgotten.
func (h *history) keep(off int64, data []byte) {
	size := int64(len(h.ring))
	if size == 0 {
		return
	}
	if off != h.to {
		h.from = off
	}
	h.to = off + int64(len(data))
	h.from = max(h.from, h.to-size)
	if off < h.from {
		data = data[h.from-off:]
		off = h.from
	}
	for len(data) > 0 {
		n := copy(h.ring[off%size:], data)
		off += int64(n)
		data = data[n:]
	}
}

// differ compares data, at off, with what is remembered.
func (h *history) differ(off int64, data []byte) (d difference) {
	size := int64(len(h.ring))
	for i := max(off, h.from); i < min(off+int64(len(data)), h.to); i++ {
		if h.ring[i%size] != data[i-off] {
			d.add(i)
		}
	}
	return d
}

// difference is how many bytes of two copies differ, and where they begin to.
type difference struct {
	first, bytes int64
}

func (d *difference) add(off int64) {
	if d.bytes == 0 {
		d.first = off
	}
	d.bytes++
}
