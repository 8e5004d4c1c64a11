//go:build libpcap

package capture

import (
	"errors"
	"fmt"
	"io"
	"time"

	libpcap "github.com/google/gopacket/pcap"
	"golang.org/x/net/bpf"

	"opscope/dissect"
)

// pcapHandle is an interface that libpcap opened: the build for systems without packet
// sockets.
type pcapHandle struct {
	handle *libpcap.Handle
	info   Interface
	packet dissect.Packet
}

// openDevice opens an interface, and returns the text of its filter beside it.
func openDevice(name string, o *LiveOptions) (device, string, error) {
	if name != anyDevice {
		i, err := findInterface(name)
		if err != nil {
			return nil, "", err
		}
		name = i.Name
	}
	h, err := activate(name, o)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	d := &pcapHandle{handle: h, info: Interface{Name: name, Link: dissect.LinkType(h.LinkType()), SnapLen: o.SnapLen}}
	text, err := d.filter(o)
	if err != nil {
		h.Close()
		return nil, "", err
	}
	return d, text, nil
}

func activate(name string, o *LiveOptions) (*libpcap.Handle, error) {
	inactive, err := libpcap.NewInactiveHandle(name)
	if err != nil {
		return nil, err
	}
	defer inactive.CleanUp()
	err = errors.Join(inactive.SetSnapLen(o.SnapLen), inactive.SetPromisc(o.Promiscuous && name != anyDevice),
		inactive.SetTimeout(pollTime), inactive.SetBufferSize(o.KernelBuffer))
	if err != nil {
		return nil, err
	}
	return inactive.Activate()
}

// filter puts the capture filter into the kernel.
func (d *pcapHandle) filter(o *LiveOptions) (string, error) {
	if o.Filter == nil {
		return "", nil
	}
	link, ok := filterLinks[d.info.Link]
	if !ok {
		return "", fmt.Errorf("%s: no capture filters for packets of link type %d", d.info.Name, d.info.Link)
	}
	filter, err := o.Filter(link)
	if err != nil {
		return "", err
	}
	program, err := filter.Program(o.SnapLen)
	if err != nil {
		return "", err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return "", err
	}
	var list []libpcap.BPFInstruction
	for _, r := range raw {
		list = append(list, libpcap.BPFInstruction{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
	}
	if err := d.handle.SetBPFInstructionFilter(list); err != nil {
		return "", fmt.Errorf("%s: capture filter: %w", d.info.Name, err)
	}
	return filter.String(), nil
}

func (d *pcapHandle) about() Interface { return d.info }
func (d *pcapHandle) close()           { d.handle.Close() }

func (d *pcapHandle) dropped() uint64 {
	s, err := d.handle.Stats()
	if err != nil {
		return 0
	}
	return uint64(s.PacketsDropped) + uint64(s.PacketsIfDropped)
}

// read takes what has come until there is nothing more, at the latest after some time.
func (d *pcapHandle) read(_ time.Duration, take func(*dissect.Packet)) error {
	for end := time.Now().Add(pollTime); ; {
		data, info, err := d.handle.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, libpcap.NextErrorTimeoutExpired):
			return nil
		case errors.Is(err, io.EOF):
			return &Down{d.info.Name}
		case err != nil:
			return fmt.Errorf("%s: %w", d.info.Name, err)
		}
		d.packet = dissect.Packet{Time: info.Timestamp.UTC(), Data: data, Length: info.Length, Link: d.info.Link}
		take(&d.packet)
		if time.Now().After(end) {
			return nil
		}
	}
}

// drain takes what is there; libpcap does not tell how much that is.
func (d *pcapHandle) drain(take func(*dissect.Packet)) error { return d.read(0, take) }
