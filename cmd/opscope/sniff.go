package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/capture/pcapfilter"
	"opscope/dissect/sink"
)

// sniffOptions are what `opscope sniff` was asked for.
type sniffOptions struct {
	decodeOptions
	liveOptions
	list  bool
	print bool
}

// liveOptions say what is captured on interfaces, and until when. They mean the same in
// every command.
type liveOptions struct {
	interfaces  []string
	ports       []string
	write       string
	rotate      []string
	stop        []string
	packetLimit int
	snapLen     int
	narrow      bool // not promiscuous
	kernelMiB   int
	queueMiB    int
	wait        bool
	user        string
}

func newSniff(s streams) *cobra.Command {
	var o sniffOptions
	c := &cobra.Command{
		Use:   "sniff [flags] [CAPTURE FILTER]",
		Short: "Decode the packets of an interface as they pass",
		Long: `sniff captures on interfaces and prints a line for each record of a known protocol, as
decode does from files. It only listens. With -w the packets go to a file as they
come; that the screen is slow loses none of them.

The capture filter is that of tcpdump. Output is not held back: what becomes of a
record is told on a line of its own, unless --hold asks for waiting.

SIGINT or SIGTERM ends it with the counters, a second one at once. SIGUSR1 prints
the counters, SIGUSR2 writes out what -w holds back, SIGHUP loads the schemas anew.`,
		Example: `  opscope sniff -D
  opscope sniff -i eth0 --port 2627
  opscope sniff -i any -w evening.pcapng udp port 2627 or tcp port 2627
  opscope sniff -i lo -w night.pcapng -b filesize:100000 -b files:10 -q
  opscope sniff -i eth0 -a duration:10 -T json --hold 2s`,
		RunE: func(c *cobra.Command, args []string) error {
			o.holdSet = c.Flags().Changed("hold")
			if o.list {
				return listDevices(s)
			}
			return sniff(c.Context(), s, args, &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	o.liveOptions.flags(f)
	f.BoolVarP(&o.list, "list-interfaces", "D", false, "list the interfaces")
	f.BoolVar(&o.print, "print", false, "with -w -, print the records all the same, on standard error")
	repeatable(f, &o.rotate, "ring-buffer", "b", "go on in another file after `LIMIT` filesize:KB, duration:SECONDS or packets:N, and keep files:N of them")
	sessionFlags(f, &o.decodeOptions)
	printFlags(c, &o.decodeOptions)
	f.Lookup("hold").Usage = "hold output back for this `TIME`, for acknowledgements and for context (default 0)"
	f.Lookup("hold").DefValue = "0s"
	return c
}

// flags adds the flags that say what is captured.
func (o *liveOptions) flags(f *pflag.FlagSet) {
	repeatable(f, &o.interfaces, "interface", "i", "capture on this `INTERFACE`, by name or number, or on any; repeatable")
	repeatable(f, &o.ports, "port", "", "capture this TCP and UDP `PORT`, also behind VLAN tags, and fragments; repeatable")
	f.StringVarP(&o.write, "write", "w", "", "write the packets to this pcapng `FILE`, - for standard output")
	repeatable(f, &o.stop, "autostop", "a", "stop after `LIMIT` duration:SECONDS, packets:N, filesize:KB or files:N")
	f.IntVar(&o.packetLimit, "packets", 0, "stop after `N` packets")
	f.IntVarP(&o.snapLen, "snapshot-length", "s", 0, "keep at most `N` bytes of a packet, 0 for all")
	f.BoolVarP(&o.narrow, "no-promiscuous-mode", "p", false, "take only what is for this host")
	f.IntVarP(&o.kernelMiB, "buffer-size", "B", capture.DefaultKernelBuffer>>20, "`MIB` in which the kernel keeps packets of an interface")
	f.IntVar(&o.queueMiB, "queue", capture.DefaultQueue>>20, "`MIB` of packets that may wait for a slow output")
	f.BoolVar(&o.wait, "wait", false, "wait for an interface that is not there, or goes away")
	f.StringVar(&o.user, "user", "", "go on as this `USER` once the interfaces are open")
}

// fit checks that what was asked for goes with what is read: interfaces, or files.
func (o *liveOptions) fit(given *pflag.FlagSet, files []string) error {
	switch {
	case len(o.interfaces) > 0 && len(files) > 0:
		return usage("-i captures, and %s is a file\ntry: one of them; a capture filter stands behind -f", files[0])
	case o.write == "-":
		return usage("standard output has the report\ntry: -w FILE")
	case len(o.interfaces) > 0:
		return nil
	}
	var wrong string
	var live pflag.FlagSet
	new(liveOptions).flags(&live)
	live.VisitAll(func(f *pflag.Flag) {
		if given.Changed(f.Name) {
			wrong = f.Name
		}
	})
	if wrong != "" {
		return usage("--%s is about a live capture\ntry: with -i INTERFACE", wrong)
	}
	return nil
}

// listDevices prints the interfaces.
func listDevices(s streams) error {
	list, err := capture.Devices()
	if err != nil {
		return &exitError{exitLive, err}
	}
	var rows [][]string
	for _, d := range list {
		number := strconv.Itoa(d.Number)
		if d.Number == 0 {
			number, d.Addresses = "", []string{"all interfaces together"}
		}
		rows = append(rows, []string{number, d.Name, d.State, strings.Join(d.Addresses, " ")})
	}
	if err := sink.WriteTable(s.out, []string{"number", "name", "state", "addresses"}, rows); err != nil {
		return outputError(err)
	}
	return nil
}

// sniffing is a capture on interfaces, with what becomes of its packets.
type sniffing struct {
	*liveOptions
	decoding  *decoding
	command   *command // that makes the traffic; nil for none
	live      *capture.Live
	recording *capture.Recording
	pipeline  *dissect.Pipeline
	file      io.Writer // of -w -
	err       io.Writer // on which several goroutines speak
	portList  []uint16
	duration  time.Duration
	packets   atomic.Int64
	failed    error // of the interfaces or of the recording
	end       context.CancelFunc
}

// sniff captures until it is told to end.
func sniff(ctx context.Context, s streams, args []string, o *sniffOptions) error {
	if len(args) > 0 {
		if o.packetFilter != "" {
			return usage("two capture filters: one behind -f, one in the last words")
		}
		o.packetFilter = strings.Join(args, " ")
	}
	x, err := newSniffing(&s, &o.liveOptions, o.packetFilter)
	if err != nil {
		return err
	}
	if o.liveOptions.write == "-" {
		s.out, o.quiet = s.err, o.quiet || !o.print
	}
	if !o.holdSet {
		o.hold = 0
	}
	if x.decoding, err = newDecoding(s, &o.decodeOptions); err != nil {
		return err
	}
	result, err := x.capture(ctx)
	if errors.Is(err, errInterrupted) {
		return nil
	}
	if e := x.epilogue(result); e != nil && err == nil {
		err = &exitError{exitInput, fmt.Errorf("output: %w", e)}
	}
	return err
}

// report captures until it is told to end, and prints a statistic of all. Records are not
// printed.
func (x *sniffing) report(ctx context.Context, s *statistic) error {
	x.decoding.gatherOnly(s)
	result, err := x.capture(ctx)
	if result == nil {
		if errors.Is(err, errInterrupted) {
			return nil
		}
		return err
	}
	x.tell()
	if e := s.take(0, result); e != nil {
		return e
	}
	if e := x.decoding.printLast(s); e != nil {
		return e
	}
	return err
}

// newSniffing checks what was asked for. The streams are from then on for several
// goroutines.
func newSniffing(s *streams, o *liveOptions, packetFilter string) (*sniffing, error) {
	x := &sniffing{liveOptions: o, file: s.out, err: &locked{w: s.err}}
	s.err = x.err
	return x, x.prepare(packetFilter)
}

// capture captures until it is told to end, or its command ends, and decodes meanwhile. It
// returns what was decoded, nil if that never began, and then errInterrupted if it was told
// to end before.
func (x *sniffing) capture(ctx context.Context) (*dissect.Result, error) {
	told, end := context.WithCancel(ctx)
	x.end = end
	defer end()
	// What a command says while it is being stopped is captured, too.
	open, finish := context.WithCancelCause(context.WithoutCancel(ctx))
	defer finish(nil)
	unhook := context.AfterFunc(told, func() { finish(context.Cause(told)) })
	if err := x.open(open); err != nil {
		return nil, err
	}
	defer x.watchSignals()()
	x.announce()
	if x.command != nil && unhook() {
		if err := x.command.start(x.err); err != nil {
			finish(nil)
			return nil, &exitError{exitLive, errors.Join(err, x.live.Close())}
		}
		ended := make(chan struct{})
		go func() {
			x.command.wait(told)
			finish(nil)
			close(ended)
		}()
		defer func() {
			end()
			<-ended
		}()
	}
	if x.duration > 0 {
		defer time.AfterFunc(x.duration, end).Stop()
	}
	defer x.progress()()
	return x.run()
}

// open opens the interfaces, and gives up the rights that it takes.
func (x *sniffing) open(ctx context.Context) error {
	live, err := capture.OpenLive(ctx, x.captureOptions())
	var syntax *pcapfilter.SyntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, pcapfilter.ErrTooLong):
		return &exitError{exitUsage, err}
	case errors.Is(err, capture.ErrRecording):
		return &exitError{exitInput, err}
	case errors.Is(err, errInterrupted):
		return err
	case err != nil:
		return &exitError{exitLive, err}
	}
	x.live = live
	// Whoever checks has the records as from a file: none is told of twice.
	x.pipeline = dissect.NewPipeline(x.decoding, x.decoding.pipelineOptions(x.decoding.hold, !x.decoding.checks, 0))
	if err := becomeUser(x.user); err != nil {
		return &exitError{exitLive, err}
	}
	return nil
}

// announce says that the capture has begun.
func (x *sniffing) announce() {
	complain(x.err, "capturing on "+x.names())
	if x.write != "" && !x.decoding.secrets {
		complain(x.err, "-w writes the packets as they are, passwords and tokens too")
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// prepare checks what was asked for.
func (x *sniffing) prepare(packetFilter string) error {
	if len(x.interfaces) == 0 {
		return usage("no interface to capture on\ntry: opscope sniff -i any, or opscope sniff -D for a list")
	}
	if len(x.ports) > 0 && packetFilter != "" {
		return usage("--port makes a capture filter, and there is another\ntry: it alone, with port %s in it", x.ports[0])
	}
	for _, list := range x.ports {
		for word := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseUint(word, 10, 16)
			if err != nil || n == 0 {
				return usage("--port %q: want a port from 1 to 65535", list)
			}
			x.portList = append(x.portList, uint16(n))
		}
	}
	if x.snapLen < 0 || x.snapLen > capture.DefaultSnapLen || x.kernelMiB < 1 || x.queueMiB < 1 || x.packetLimit < 0 {
		return usage("-s wants 0 to %d bytes, -B and --queue at least 1 MiB, --packets 0 or more", capture.DefaultSnapLen)
	}
	return x.record()
}

// record sets up the recording, and what ends it or the run.
func (x *sniffing) record() error {
	var rotation, stop capture.Rotation
	for _, limit := range x.rotate {
		if err := parseLimit("-b", limit, &rotation); err != nil {
			return err
		}
	}
	for _, limit := range x.stop {
		if err := parseLimit("-a", limit, &stop); err != nil {
			return err
		}
	}
	x.duration = stop.Time
	if stop.Packets > 0 {
		x.packetLimit = stop.Packets
	}
	stop.Packets = x.packetLimit // the file is ahead of what is decoded
	if x.write == "" {
		if len(x.rotate) > 0 || stop.Bytes > 0 || stop.Files > 0 {
			return usage("-b, -a filesize and -a files are about the files of -w, which is not there")
		}
		return nil
	}
	var err error
	x.recording, err = capture.NewRecording(x.write, x.file, "opscope "+version(), rotation, stop)
	if err != nil {
		return usage("-b: %w", err)
	}
	return nil
}

// parseLimit parses what -a and -b take.
func parseLimit(flag, text string, r *capture.Rotation) error {
	word, number, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		return usage("%s %q: want a LIMIT such as duration:10", flag, text)
	}
	switch word {
	case "duration":
		r.Time = time.Duration(n) * time.Second
	case "filesize":
		r.Bytes = n * 1000 // as in tshark
	case "packets":
		r.Packets = int(n)
	case "files":
		r.Files = int(n)
	default:
		return usage("%s %q: want duration, filesize, packets or files", flag, text)
	}
	return nil
}

// captureOptions returns how the interfaces are opened.
func (x *sniffing) captureOptions() capture.LiveOptions {
	return capture.LiveOptions{
		Interfaces: x.interfaces, Filter: x.captureFilter, SnapLen: x.snapLen, Promiscuous: !x.narrow,
		KernelBuffer: x.kernelMiB << 20, Queue: x.queueMiB << 20, Recording: x.recording, Wait: x.wait,
		Warn: func(text string) { complain(x.err, text) },
	}
}

// captureFilter returns the filter for packets of a link.
func (x *sniffing) captureFilter(link pcapfilter.Link) (*pcapfilter.Filter, error) {
	if len(x.portList) > 0 {
		return pcapfilter.Ports(x.portList, link), nil
	}
	return pcapfilter.Parse(x.decoding.packetFilter, link)
}

// names lists what is captured on.
func (x *sniffing) names() string {
	var list []string
	for _, i := range x.live.Interfaces() {
		list = append(list, i.Name)
	}
	return strings.Join(list, ", ")
}

// run decodes what is captured.
func (x *sniffing) run() (*dissect.Result, error) {
	result, err := x.pipeline.Run(context.Background(), x)
	if result != nil {
		x.decoding.told(x.names(), result, nil)
	}
	x.end()
	recording := x.live.Close()
	if errors.Is(err, errEnough) {
		err = nil
	}
	var link *dissect.UnsupportedLinkError
	var exit *exitError
	switch {
	case errors.As(err, &exit):
	case err == nil && recording != nil:
		err = &exitError{exitInput, recording}
	case errors.Is(err, capture.ErrRecording), errors.As(err, &link):
		err = &exitError{exitInput, err}
	case err != nil && err == x.failed:
		err = &exitError{exitLive, err}
	case err != nil:
		err = &exitError{exitInput, fmt.Errorf("output: %w", err)}
	}
	return result, err
}

// epilogue prints the counters, and what else was asked for.
func (x *sniffing) epilogue(result *dissect.Result) error {
	if result == nil {
		return nil
	}
	if err := x.decoding.out.Flush(); err != nil {
		return err
	}
	x.tell()
	if !x.decoding.quiet && x.decoding.summary == "" {
		if err := sink.WriteSummary(x.err, &result.Summary, x.decoding.times.Zone(nil)); err != nil {
			return err
		}
	}
	if err := x.decoding.epilogue(0, result); err != nil {
		return err
	}
	if err := x.decoding.gather(0, result); err != nil {
		return err
	}
	if err := x.decoding.out.Flush(); err != nil {
		return err
	}
	if err := x.decoding.printStatistics(); err != nil {
		return err
	}
	return x.decoding.out.Flush()
}

// tell prints what has become of the packets.
func (x *sniffing) tell() {
	for i, about := range x.live.Interfaces() {
		c := x.live.Counters(i)
		complain(x.err, fmt.Sprintf("%s: %d packets received, %d dropped by the kernel, %d dropped by opscope",
			about.Name, c.Received, c.KernelDropped, c.OwnDropped))
	}
	complain(x.err, fmt.Sprintf("%d packets decoded, %d records", x.packets.Load(), x.decoding.shown.Load()))
}

// Next is the source of the run: the packets of the interfaces, up to the limit.
func (x *sniffing) Next(p *dissect.Packet) error {
	if x.packetLimit > 0 && x.packets.Load() >= int64(x.packetLimit) {
		return io.EOF
	}
	err := x.live.Next(p)
	if i := x.decoding.intervals; i != nil && (err == nil || errors.Is(err, dissect.ErrIdle)) {
		if e := i.pass(time.Now(), func(s *statistic) error { return x.decoding.soFar(x.pipeline, 0, s) }); e != nil {
			return e
		}
	}
	if err == nil {
		x.packets.Add(1)
	} else if !errors.Is(err, dissect.ErrIdle) {
		x.failed = err
	}
	return err
}

// progressTime is between two looks at how far the capture is.
const progressTime = time.Second

// progress shows on a terminal what is going on while the records go elsewhere. What it
// returns ends that.
func (x *sniffing) progress() func() {
	if !isTerminal(x.err.(*locked).w) || isTerminal(x.file) {
		return func() {}
	}
	bar := progressbar.NewOptions(-1, progressbar.OptionSetWriter(x.err), progressbar.OptionSetElapsedTime(true),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("packets"), progressbar.OptionClearOnFinish())
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(progressTime):
				c := x.live.Total()
				bar.Describe(fmt.Sprintf("%d records, %d packets dropped", x.decoding.shown.Load(), c.KernelDropped+c.OwnDropped))
				_ = bar.Set64(x.packets.Load()) // a terminal that is gone needs no progress
			}
		}
	}()
	return func() {
		close(done)
		_ = bar.Finish()
	}
}
