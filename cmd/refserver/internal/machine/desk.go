package machine

// Desk numbers the records of one machine, and collects what it has to do.
type Desk struct {
	todo []Output
	last int // number of a record
}

// Do adds to what there is to do.
func (d *Desk) Do(list ...Output) { d.todo = append(d.todo, list...) }

// Take returns what there is to do, and forgets it.
func (d *Desk) Take() []Output {
	list := d.todo
	d.todo = nil
	return list
}

// NextID returns the next number of a record.
func (d *Desk) NextID() int {
	d.last++
	return d.last
}

// Parcel is frames that travel together, in the making.
type Parcel struct {
	data    []byte
	records []Record
}

// Len returns how many bytes are in the parcel.
func (p *Parcel) Len() int { return len(p.data) }

// Add puts a frame into the parcel, and numbers its record.
func (p *Parcel) Add(d *Desk, r Record, data []byte) {
	r.ID, r.Offset = d.NextID(), len(p.data)
	p.data = append(p.data, data...)
	p.records = append(p.records, r)
}

// Flush sends what is in the parcel over a connection.
func (p *Parcel) Flush(d *Desk, conn Conn) {
	if p.Len() > 0 {
		d.Do(p.Take(Output{Kind: SendStream, Conn: conn}))
	}
}

// Take returns the parcel as an output, and empties it.
func (p *Parcel) Take(o Output) Output {
	o.Data, o.Records = p.data, p.records
	*p = Parcel{}
	return o
}
