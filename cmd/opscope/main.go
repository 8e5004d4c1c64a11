// Command opscope reads what game clients and servers said to each other, out of
// capture files, and prints it in the words of the game's protocol.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"opscope/dissect/sink"
)

// Exit codes.
const (
	exitDone      = 0
	exitCheck     = 1   // a check failed
	exitUsage     = 2   // usage, a filter or a schema
	exitInput     = 3   // input unreadable or damaged, or output not writable
	exitLive      = 4   // live capture or server could not start
	exitInterrupt = 130 // second interrupt
)

// exitError is an error with the exit code that it means.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage returns an error for what was typed wrong.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode returns the exit code for an error. One that no command made comes from
// the command line.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	}
	return exitUsage
}

func main() {
	collect()
	var p pager
	ctx, stop := interruptible(&p)
	code := run(ctx, os.Args[1:], p.behind(os.Stdin, os.Stdout, os.Stderr))
	p.wait()
	stop()
	os.Exit(code)
}

// collect sets the pace of collecting garbage, unless GOGC does. The first time waits for a
// heap of 16 MiB, where the runtime would begin at 4: most of that is there when the first
// record is shown, it is not garbage, and going through it takes a fifth of the time that a
// small capture does. From then on the heap may grow to heapGoal, by a twentieth at least and to
// twice its size at most: a long capture makes little garbage, so that a small heap costs little.
// One beyond largeHeap, as with very many connections, grows by half.
func collect() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(400)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	afterCollection(func() {
		metrics.Read(live)
		n := int(live[0].Value.Uint64())
		pace := min(max(100*(heapGoal-n)/n, 5), 100)
		if n > largeHeap {
			pace = 50
		}
		debug.SetGCPercent(pace)
	})
}

const (
	heapGoal  = 35 << 20 // leaves room for the program itself below 64 MiB
	largeHeap = 64 << 20 // beyond all goals: time counts
)

// afterCollection calls f after each collection of garbage.
func afterCollection(f func()) {
	runtime.AddCleanup(&exitError{}, func(f func()) {
		f()
		afterCollection(f)
	}, f)
}

// streams are what a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// interruptible returns a context that the first interrupt ends, or the end of the pager;
// the second interrupt ends the process, unless a pager runs, which makes use of them.
func interruptible(p *pager) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	p.cancel = cancel
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-c
		cancel(errInterrupted)
		for range c {
			if !p.running.Load() {
				os.Exit(exitInterrupt)
			}
		}
	}()
	return ctx, func() { signal.Stop(c) }
}

var errInterrupted = errors.New("interrupted")

// run runs the command line and returns the exit code. It prints the error, once.
func run(ctx context.Context, args []string, s streams) int {
	own := &printing{Writer: s.out}
	root := newRoot(s, own)
	root.SetArgs(decodeByDefault(root, joinSummary(args)))
	err := root.ExecuteContext(ctx)
	if own.err != nil {
		err = outputError(own.err)
	}
	if err != nil && err.Error() != "" {
		complain(s.err, err.Error())
	}
	return exitCode(err)
}

// printing is the output of help and lists, whose printing asks for no error at each line.
type printing struct {
	io.Writer
	err error // the first
}

func (w *printing) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// Fd returns the descriptor of what is printed to, one that is no terminal where it has none.
func (w *printing) Fd() uintptr {
	if f, ok := w.Writer.(descriptor); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// complain prints a message. What is in it may come off the wire, or be the name of a
// file, so that it is escaped.
func complain(w io.Writer, message string) {
	fmt.Fprintf(w, "opscope: %s\n", sink.Escape(message))
}

// joinSummary joins --summary to the format behind it. The flag can do without one, so
// that it would take the word for a file.
func joinSummary(args []string) []string {
	i := slices.Index(args, "--summary")
	if i < 0 || i+1 == len(args) || !slices.Contains([]string{"text", "json"}, args[i+1]) {
		return args
	}
	return slices.Concat(args[:i], []string{"--summary=" + args[i+1]}, args[i+2:])
}

// decodeByDefault has plain `opscope FILE` mean `opscope decode FILE`.
func decodeByDefault(root *cobra.Command, args []string) []string {
	if len(args) == 0 || slices.Contains([]string{"-h", "--help", "--version", "help", "completion", "__complete", "__completeNoDesc"}, args[0]) {
		return args
	}
	if args[0] == "--no-pager" { // may stand in front of a command, as git has it
		return append(args[:1:1], decodeByDefault(root, args[1:])...)
	}
	for _, c := range root.Commands() {
		if c.Name() == args[0] {
			return args
		}
	}
	if !strings.HasPrefix(args[0], "-") {
		if _, err := os.Stat(args[0]); err != nil && !strings.ContainsAny(args[0], "./\\") {
			return args // more likely a mistyped command than a file: let cobra say so
		}
	}
	return append([]string{"decode"}, args...)
}

// noSuchCommand refuses words that should have been a command.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if c.SuggestionsMinimumDistance = 2; len(c.SuggestionsFor(args[0])) > 0 {
		hint = " (did you mean " + strings.Join(c.SuggestionsFor(args[0]), " or ") + "?)"
	}
	what := "command"
	if !c.HasParent() {
		what = "command and no file"
	}
	return usage("no %s %q%s\ntry: %s --help", what, args[0], hint, c.CommandPath())
}

// argsBetween wants a number of words behind a command.
func argsBetween(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		_, example, _ := strings.Cut("\n"+c.Example, "\n  ")
		example, _, _ = strings.Cut(example, "\n")
		if example == "" {
			example = c.CommandPath()
		}
		return usage("%s takes %s\ntry: %s", c.CommandPath(), argumentsOf(c), example)
	}
}

// argumentsOf returns the arguments in the usage line of a command.
func argumentsOf(c *cobra.Command) string {
	if _, words, ok := strings.Cut(c.Use, " "); ok {
		return strings.TrimPrefix(words, "[flags] ")
	}
	return "no arguments"
}

// newRoot makes the command line. What opscope tells of itself, and of no capture, it writes
// to own.
func newRoot(s streams, own io.Writer) *cobra.Command {
	lists := streams{s.in, own, s.err}
	root := &cobra.Command{
		Use:   "opscope",
		Short: "Read the traffic of online games in the words of their protocols",
		Long: `opscope reads what game clients and servers said to each other, out of capture
files or off an interface, and prints it in the words of the game's protocol.

Exit codes: 0 done, also when records were malformed; 1 a check failed; 2 usage,
filter or schema; 3 input unreadable or damaged (what could be decoded is printed;
--lenient makes it 0), or output not writable; 4 live capture or server could not
start; 130 second interrupt.`,
		Example: `  opscope pcaps/wulfram/session.pcapng
  opscope decode -T json pcaps/wulfram/session.pcapng
  opscope ladder 1 pcaps/wulfram/lossy.pcapng
  opscope schema show wulfram UPDATE_ARRAY`,
		Version:       version(),
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().Bool("version", false, "print the version") // without the -v that cobra would give it
	root.SetVersionTemplate("opscope {{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(own)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w\ntry: %s --help", err, c.CommandPath())
	})
	root.PersistentFlags().Bool("no-pager", false, "print long text on a terminal without a pager")
	root.PersistentPreRun = s.page
	root.AddCommand(
		paging(newDecode(s)), newSniff(s), paging(newFollow(s)), paging(newLadder(s)), paging(newVerify(s)), paging(newDiff(s)),
		paging(newUnknown(s)), paging(newOpcodes(s)), paging(newFlows(s)), paging(newAcks(s)), paging(newTables(s)), newPlot(s), newSchema(lists),
		paging(newNotes(lists)), newVersion(lists), newFilter(), newMan(root, s),
	)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // which would take any shell, and print its help
			c.Args, c.RunE = noSuchCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}
