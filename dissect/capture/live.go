package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"opscope/dissect"
	"opscope/dissect/capture/pcapfilter"
)

// The defaults of LiveOptions.
const (
	DefaultSnapLen      = 256 << 10 // as tcpdump: all of any packet
	DefaultKernelBuffer = 16 << 20  // an eighth of a second of a full gigabit link, a second of a game
	DefaultQueue        = 64 << 20  // what may come while a screen or a pipe is slow
)

// LiveOptions say what is captured. Zeros are the defaults.
type LiveOptions struct {
	Interfaces []string // names, or numbers as Devices gives them; "any" for all
	// Filter returns the capture filter for packets of a link; nil takes all.
	Filter       func(pcapfilter.Link) (*pcapfilter.Filter, error)
	SnapLen      int  // most bytes kept of a packet
	Promiscuous  bool // also take what is for other hosts
	KernelBuffer int  // bytes per interface
	Queue        int  // bytes that wait for the decoder
	// Recording takes each packet as it comes, whether or not there is room in the queue;
	// nil for none.
	Recording *Recording
	// Wait has an interface that is not there, or goes away, awaited.
	Wait bool
	// Warn is told what is worth knowing, from another goroutine.
	Warn func(text string)
}

// Counters is what became of the packets of one interface, or of all.
type Counters struct {
	Received      uint64 // by us, from the kernel
	KernelDropped uint64 // by the kernel, which had no room
	OwnDropped    uint64 // by us: the queue had no room
}

func (c *Counters) add(d Counters) {
	c.Received += d.Received
	c.KernelDropped += d.KernelDropped
	c.OwnDropped += d.OwnDropped
}

// ErrRecording stands in errors about the files that packets are written to.
var ErrRecording = errors.New("-w")

// Down is the error of an interface that went away.
type Down struct{ Interface string }

func (e *Down) Error() string { return e.Interface + ": the interface went down" }

// NoSuchInterface is the error for an interface that is not there.
type NoSuchInterface struct{ Name string }

func (e *NoSuchInterface) Error() string {
	return "no interface " + fmt.Sprintf("%q", e.Name) + "\ntry: opscope sniff -D, which lists them"
}

// device is an open interface, of which each system has its own.
type device interface {
	// read hands over the packets that have come, and waits some time for the first of
	// them. Their data is valid during the call of take. It returns *Down.
	read(wait time.Duration, take func(*dissect.Packet)) error
	// drain hands over what the kernel has taken by now.
	drain(take func(*dissect.Packet)) error
	// dropped returns how many packets the kernel has dropped so far.
	dropped() uint64
	about() Interface
	close()
}

// Live captures on interfaces, a dissect.Source. One goroutine for each reads packets,
// records them, and queues them for Next.
type Live struct {
	options LiveOptions
	queue   *queue
	devices []*listener
	number  int
	idle    bool          // Next has found nothing
	failed  chan struct{} // closed with the first error
	stop    chan struct{} // closed when all are to stop
	done    chan struct{} // closed when all have stopped
	running sync.WaitGroup

	mu        sync.Mutex // guards what follows, and the recording
	err       error      // what ended the capture
	recording error      // what ended the recording
}

// listener is an interface that is listened on.
type listener struct {
	live  *Live
	index int
	name  string
	about Interface
	text  string // its filter
	took  bool   // since it was last waited for

	mu       sync.Mutex // guards what follows
	device   device     // nil while it is awaited
	earlier  uint64     // dropped by devices that went away
	received uint64
	own      uint64 // dropped by us
	missing  int    // dropped by anybody since the last packet that was queued
}

// pollTime is how long a device waits before it looks whether to stop.
const pollTime = 100 * time.Millisecond

// awaitTime is between two looks for an interface that is not there.
const awaitTime = 250 * time.Millisecond

// OpenLive opens interfaces and begins to capture, until the context ends.
func OpenLive(ctx context.Context, o LiveOptions) (*Live, error) {
	o.SnapLen = orDefault(o.SnapLen, DefaultSnapLen)
	o.KernelBuffer = orDefault(o.KernelBuffer, DefaultKernelBuffer)
	o.Queue = orDefault(o.Queue, DefaultQueue)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	l := &Live{options: o, queue: newQueue(o.Queue), failed: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	for i, name := range o.Interfaces {
		n := &listener{live: l, index: i, name: name}
		if err := n.open(ctx); err != nil {
			l.closeDevices()
			return nil, err
		}
		l.devices = append(l.devices, n)
	}
	if o.Recording != nil {
		if err := l.beginRecording(); err != nil {
			l.closeDevices()
			return nil, err
		}
	}
	for _, n := range l.devices {
		l.running.Add(1)
		go n.listen()
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-l.failed:
		}
		close(l.stop)
		l.running.Wait()
		l.end()
		close(l.done)
	}()
	return l, nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// beginRecording tells the recording of the interfaces.
func (l *Live) beginRecording() error {
	var about []Interface
	var filters []string
	for _, n := range l.devices {
		about, filters = append(about, n.about), append(filters, n.text)
	}
	return l.options.Recording.Begin(about, filters, time.Now())
}

// Interfaces returns what is captured on.
func (l *Live) Interfaces() []Interface {
	var list []Interface
	for _, n := range l.devices {
		list = append(list, n.about)
	}
	return list
}

// Counters returns what has become of the packets of an interface so far.
func (l *Live) Counters(index int) Counters { return l.devices[index].counters() }

// Total returns what has become of all packets so far.
func (l *Live) Total() Counters {
	var total Counters
	for i := range l.devices {
		total.add(l.Counters(i))
	}
	return total
}

// Next fills p with the next packet, whose data is valid until the next call. It
// returns dissect.ErrIdle when none is there, at once for the first time and then after
// a while, io.EOF when the capture was stopped and all has been taken, and otherwise
// what ended it.
func (l *Live) Next(p *dissect.Packet) error {
	ok, over := l.queue.take(p)
	if !ok && !over && l.idle {
		select {
		case <-l.queue.ready:
		case <-time.After(pollTime):
		}
		ok, over = l.queue.take(p)
	}
	if l.idle = !ok; !ok && !over {
		return dissect.ErrIdle
	}
	if !ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err != nil {
			return l.err
		}
		return io.EOF
	}
	l.number++
	p.Number, p.Several = l.number, len(l.devices) > 1
	return nil
}

// Close waits for the capture to end, whose context has ended, and returns what was wrong
// with the recording.
func (l *Live) Close() error {
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recording
}

// Flush writes out what the recording holds back.
func (l *Live) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.Recording == nil || l.recording != nil {
		return l.recording
	}
	return l.options.Recording.Flush()
}

// end finishes the recording once nobody listens any more.
func (l *Live) end() {
	l.mu.Lock()
	if r := l.options.Recording; r != nil && l.recording == nil {
		l.recording = r.Close(l.Counters)
	}
	if l.err == nil {
		l.err = l.recording // nobody listens any more
	}
	l.mu.Unlock()
	l.closeDevices()
	l.queue.close()
}

func (l *Live) closeDevices() {
	for _, n := range l.devices {
		n.leave()
	}
}

// fail ends the capture because of an error.
func (l *Live) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failLocked(err)
}

func (l *Live) failLocked(err error) {
	if l.err == nil {
		l.err = err
		close(l.failed)
	}
}

// stopped reports whether the capture is to end.
func (l *Live) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// open opens the interface, or waits for it if asked to.
func (n *listener) open(ctx context.Context) error {
	said := false
	for {
		d, text, err := openDevice(n.name, &n.live.options)
		if err == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.device, n.about, n.text = d, d.about(), text
			return nil
		}
		var missing *NoSuchInterface
		var down *Down
		if !n.live.options.Wait || !errors.As(err, &missing) && !errors.As(err, &down) {
			return err
		}
		if !said {
			n.live.options.Warn("waiting for " + n.name)
			said = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(awaitTime):
		}
	}
}

// leave closes the device.
func (n *listener) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.device != nil {
		n.earlier += n.device.dropped()
		n.device.close()
		n.device = nil
	}
}

func (n *listener) counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := Counters{Received: n.received, KernelDropped: n.earlier, OwnDropped: n.own}
	if n.device != nil {
		c.KernelDropped += n.device.dropped()
	}
	return c
}

// listen takes packets until the capture ends.
func (n *listener) listen() {
	defer n.live.running.Done()
	for !n.live.stopped() {
		n.took = false
		err := n.device.read(pollTime, n.take)
		if err == nil && !n.took {
			err = n.live.Flush() // nothing else to do
		}
		if err == nil {
			continue
		}
		n.leave()
		var down *Down
		if !errors.As(err, &down) || !n.live.options.Wait {
			n.live.fail(err)
			return
		}
		n.live.options.Warn(err.Error())
		if !n.reopen() {
			return
		}
	}
	if n.device != nil {
		_ = n.device.drain(n.take) // the capture is over all the same
	}
}

// reopen waits for an interface that went away. It returns false when the capture ends
// before.
func (n *listener) reopen() bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-n.live.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := n.open(ctx)
	if err != nil && ctx.Err() == nil {
		n.live.fail(err)
	}
	if err == nil {
		n.live.options.Warn(n.name + ": capturing again")
	}
	return err == nil
}

// take records and queues one packet.
func (n *listener) take(p *dissect.Packet) {
	p.Interface, p.Digits = n.index, 9
	n.took = true
	l := n.live
	if l.options.Recording != nil {
		l.mu.Lock() // until it is queued: packets are numbered in the order of the file
		defer l.mu.Unlock()
		l.record(p)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.missing += p.Dropped
	p.Dropped = n.missing
	n.received++
	if l.queue.put(p) {
		n.missing = 0
		return
	}
	n.own++
	n.missing++
}

// record writes one packet. The first error ends the recording, and with it the
// capture: a recording with holes is none.
func (l *Live) record(p *dissect.Packet) {
	if l.recording != nil {
		return
	}
	if err := l.options.Recording.Write(p, l.Counters); err != nil {
		l.recording = err
		l.failLocked(err)
	}
	if l.options.Recording.full() {
		l.failLocked(io.EOF)
	}
}

// warnMerged says once that packets are not as they were on the wire.
func (l *LiveOptions) warnMerged(name, what string) {
	l.Warn(name + ": the network card or the kernel merges " + what + " before they are seen here (offload)\n" +
		"try: ethtool -K " + name + " gro off gso off tso off")
}
