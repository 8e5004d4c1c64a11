package capture

import (
	"fmt"

	"golang.org/x/net/bpf"

	"opscope/dissect"
	"opscope/dissect/capture/pcapfilter"
)

// filterLinks are the link types that a capture filter knows.
var filterLinks = map[dissect.LinkType]pcapfilter.Link{
	1: pcapfilter.Ethernet, 101: pcapfilter.RawIP, 12: pcapfilter.RawIP, 113: pcapfilter.Cooked, 276: pcapfilter.Cooked2,
}

// Filtered is a Source of those packets of another that pass a capture filter. They keep
// their numbers.
type Filtered struct {
	source   dissect.Source
	expr     string
	machines map[dissect.LinkType]*bpf.VM
}

// NewFiltered returns the packets of a source that pass. It returns
// *pcapfilter.SyntaxError.
func NewFiltered(source dissect.Source, expr string) (*Filtered, error) {
	f := &Filtered{source, expr, map[dissect.LinkType]*bpf.VM{}}
	_, err := f.machine(1)
	return f, err
}

// Next fills p with the next packet that passes.
func (f *Filtered) Next(p *dissect.Packet) error {
	for {
		if err := f.source.Next(p); err != nil {
			return err
		}
		m := f.machines[p.Link]
		if m == nil {
			var err error
			if m, err = f.machine(p.Link); err != nil {
				return err
			}
		}
		if n, err := m.Run(p.Data); err != nil || n > 0 {
			return err
		}
	}
}

// machine compiles the filter for a link type.
func (f *Filtered) machine(t dissect.LinkType) (*bpf.VM, error) {
	link, ok := filterLinks[t]
	if !ok {
		return nil, fmt.Errorf("capture filter: not for packets of link type %d", t)
	}
	filter, err := pcapfilter.Parse(f.expr, link)
	if err != nil {
		return nil, err
	}
	program, err := filter.Program(MaxPacket)
	if err != nil {
		return nil, err
	}
	m, err := bpf.NewVM(program)
	f.machines[t] = m
	return m, err
}
