package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// pager shows long text on a terminal, as git has it: OPSCOPE_PAGER, else PAGER, else
// less. It runs until the reader has had enough, which ends the run as an interrupt does.
// The zero pager is none.
type pager struct {
	cancel  func(error)
	wanted  func() // starts it, when there is something to show; nil for none
	running atomic.Bool
	to      *os.File      // the pager's standard input
	done    chan struct{} // closed when the pager has ended
}

// paged is a terminal that has a pager in front of it as soon as one runs.
type paged struct {
	file     *os.File
	pager    *pager
	messages bool // still to be seen when the pager has ended
}

// Fd returns the file descriptor of the terminal.
func (w *paged) Fd() uintptr { return w.file.Fd() }

// Write writes to the pager, or to the terminal where there is none. A reader who has quit
// the pager misses nothing that he wants: that is no error.
func (w *paged) Write(b []byte) (int, error) {
	if !w.messages && w.pager.wanted != nil {
		start := w.pager.wanted
		w.pager.wanted = nil
		start()
	}
	if !w.pager.running.Load() {
		return w.file.Write(b)
	}
	if _, err := w.pager.to.Write(b); err != nil {
		w.pager.cancel(errInterrupted)
		if w.messages {
			return w.file.Write(b)
		}
	}
	return len(b), nil
}

// behind returns out and err as a command writes them, either through the pager where it is
// a terminal.
func (p *pager) behind(in, out, err *os.File) streams {
	s := streams{in, out, err}
	if !isTerminal(out) {
		return s
	}
	s.out = &paged{file: out, pager: p}
	if isTerminal(err) {
		s.err = &paged{err, p, true}
	}
	return s
}

// pages is the annotation of a command that prints long text.
const pages = "pages"

// paging marks a command as one that prints long text.
func paging(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{pages: ""}
	return c
}

// page has a command that prints long text from files start the pager, as soon as there is
// some: until then the terminal shows how far it is. What is JSON is for a program, and
// what comes from a pipe or an interface may go on for ever.
func (s streams) page(c *cobra.Command, args []string) {
	w, ok := s.out.(*paged)
	if _, long := c.Annotations[pages]; !ok || !long {
		return
	}
	if off, err := c.Flags().GetBool("no-pager"); err != nil || off {
		return
	}
	for _, name := range []string{"format", "summary"} {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() == "json" {
			return
		}
	}
	if live := c.Flags().Lookup("interface"); live != nil && live.Changed {
		return
	}
	if f := c.Flags().Lookup("read"); f != nil {
		args = slices.Concat(f.Value.(repeated).GetSlice(), args)
	}
	for _, name := range args {
		if info, err := os.Stat(name); name == "-" || err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return
		}
	}
	w.pager.wanted = func() {
		if err := w.pager.start(w.file); err != nil {
			complain(s.err, "pager: "+err.Error()+"; going on without")
		}
	}
}

// pagerCommand returns the command line of the pager, empty for none, and whether somebody
// asked for it.
func pagerCommand() (line string, asked bool) {
	for _, name := range []string{"OPSCOPE_PAGER", "PAGER"} {
		if line, ok := os.LookupEnv(name); ok {
			if line == "cat" {
				line = ""
			}
			return line, true
		}
	}
	return "less", false
}

// start runs the pager on a terminal. A pager that nobody asked for may be missing.
func (p *pager) start(terminal *os.File) error {
	line, asked := pagerCommand()
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	if strings.ContainsAny(line, "|&;<>()$`\\\"'*?[#~=%") {
		words = []string{"sh", "-c", line}
	}
	r, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = r, terminal, os.Stderr, pagerEnvironment()
	if err := cmd.Start(); err != nil {
		to.Close()
		if !asked {
			return nil
		}
		return err
	}
	p.to, p.done = to, make(chan struct{})
	p.running.Store(true)
	go func() {
		_ = cmd.Wait() // how the pager ended says nothing of what it showed
		p.cancel(errInterrupted)
		close(p.done)
	}()
	return nil
}

// pagerEnvironment returns the environment of the pager: that less ends by itself when all
// fits the screen, and lets colour through, unless somebody has his own settings.
func pagerEnvironment() []string {
	env := os.Environ()
	for _, setting := range []string{"LESS=FRX", "LV=-c"} {
		name, _, _ := strings.Cut(setting, "=")
		if _, ok := os.LookupEnv(name); !ok {
			env = append(env, setting)
		}
	}
	return env
}

// wait waits until the reader has had enough. Interrupts are the pager's until then.
func (p *pager) wait() {
	if p.running.Load() {
		p.to.Close()
		<-p.done
	}
}
