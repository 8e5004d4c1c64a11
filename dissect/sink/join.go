package sink

// What was counted of several captures apart is joined in the order of the captures: the
// result is that of counting one after the other, limits included.

// Join adds what o has counted of later captures. o is not to be used afterwards.
func (f *Flows) Join(o *Flows) {
	for _, k := range o.order {
		if k.flow == 0 {
			if len(f.sessions) < maxSessionRows {
				f.sessions[k] = o.sessions[k]
				f.order = append(f.order, k)
			}
			continue
		}
		row, s := o.rows[k], f.sessions[place{file: k.file, session: k.session}]
		switch {
		case s != nil && len(f.rows) < maxFlowRows:
			f.rows[k] = row
			f.order = append(f.order, k)
			continue
		case s != nil:
			s.Flows--
		}
		f.report.UnlistedFlows += row.asked
	}
	a, b := &f.report, &o.report
	a.Packets, a.Bytes, a.UnlistedFlows = a.Packets+b.Packets, a.Bytes+b.Bytes, a.UnlistedFlows+b.UnlistedFlows
	a.Sum.add(&b.Sum)
	a.Other.add(&b.Other)
	a.Sessionless.add(&b.Sessionless)
}

func (f *OtherFlows) add(o *OtherFlows) {
	f.Flows, f.Packets, f.Bytes = f.Flows+o.Flows, f.Packets+o.Packets, f.Bytes+o.Bytes
}

// Join adds what o has counted of later captures. o is not to be used afterwards.
func (a *Acks) Join(o *Acks) {
	for _, k := range o.came {
		if len(a.rows) == maxAckRows {
			a.unlisted += o.rows[k].Sent
			a.all.Missing -= o.rows[k].Missing // which nobody knows of streams that are not listed
			continue
		}
		a.rows[k] = o.rows[k]
		a.came = append(a.came, k)
	}
	a.unlisted += o.unlisted
	a.all.join(&o.all)
}

// join adds the counts of o; what it is about stays.
func (c *AckCount) join(o *AckCount) {
	c.Sent += o.Sent
	c.Acked += o.Acked
	c.Served += o.Served
	c.Ignored += o.Ignored
	c.Unacked += o.Unacked
	c.Lost += o.Lost
	c.InFlight += o.InFlight
	c.Again += o.Again
	c.Copies += o.Copies
	c.Missing += o.Missing
	c.Window += o.Window
	c.TooMany += o.TooMany
	c.RTT.join(&o.RTT)
}

// join adds the round trips of o, which is not to be used afterwards.
func (t *RoundTrips) join(o *RoundTrips) {
	t.Count += o.Count
	t.most = max(t.most, o.most)
	switch {
	case o.histogram == nil:
	case t.histogram == nil:
		t.histogram = o.histogram
	default:
		t.histogram.Merge(o.histogram)
	}
}

// Join adds what o has counted of later captures. o is not to be used afterwards.
func (o *Opcodes) Join(p *Opcodes) {
	o.records, o.bytes, o.span = o.records+p.records, o.bytes+p.bytes, o.span+p.span
	o.rows.extra += p.rows.extra
	for _, k := range p.rows.order {
		from := p.rows.rows[k]
		if len(o.rows.rows) == maxKinds && o.rows.rows[k] == nil {
			o.rows.extra += from.Count
			continue
		}
		into, _ := o.rows.row(k, func() *opcodeRow { return from })
		if into == from {
			continue
		}
		into.Size.Least, into.Size.Most = min(into.Size.Least, from.Size.Least), max(into.Size.Most, from.Size.Most)
		into.Count += from.Count
		into.Bytes += from.Bytes
		into.Errors += from.Errors
		if from.Unknown != "" {
			into.Unknown = from.Unknown
		}
	}
}

// Join adds the tables of later captures. o is not to be used afterwards.
func (t *TableReport) Join(o *TableReport) {
	t.Sessions = append(t.Sessions, o.Sessions...)
	t.Dropped += o.Dropped
	t.text.WriteString(o.text.String())
}
