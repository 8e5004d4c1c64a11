package main

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"opscope/cmd/refserver/internal/log"
	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// journal is the log of a process. Its machines may write to it at the same time.
// Each line is written at once, so that others can follow it.
type journal struct {
	mu   sync.Mutex
	out  *log.Writer
	file io.Closer // nil for none that is ours
}

// openJournal opens the log file with a name, - for standard output, "" for none.
func openJournal(s streams, name string) (*journal, error) {
	switch name {
	case "":
		return &journal{out: log.NewWriter(io.Discard)}, nil
	case "-":
		return &journal{out: log.NewWriter(s.out)}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fileError(err)
	}
	return &journal{out: log.NewWriter(f), file: f}, nil
}

// Close ends the log. It returns the first error of all writes.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.out.Close()
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
	}
	return fileError(err)
}

// peer is one machine's side of a journal.
type peer struct {
	journal *journal
	*log.Peer
}

// peer returns the side of a machine.
func (j *journal) peer(name, protocol string, side schema.Sender) *peer {
	return &peer{j, j.out.Peer(log.Peer{Name: name, Protocol: protocol, Server: side == schema.Server})}
}

// Sent tells of an output.
func (p *peer) Sent(now time.Time, o machine.Output, local, remote netip.AddrPort, base int) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.Peer.Sent(now, o, local, remote, base)
}

// Received tells of a record that the machine understood.
func (p *peer) Received(now time.Time, from netip.AddrPort, r machine.Record) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.Peer.Received(now, from, r)
}

// Acknowledged tells that a record was acknowledged.
func (p *peer) Acknowledged(now time.Time, id int) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.Peer.Acknowledged(now, id)
}

// Event tells of anything else.
func (p *peer) Event(now time.Time, code, text string) {
	p.journal.mu.Lock()
	defer p.journal.mu.Unlock()
	p.Peer.Event(now, code, text)
}
