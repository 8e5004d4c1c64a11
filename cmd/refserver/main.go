// Command refserver plays the servers and the clients of the protocols that opscope
// reads, over sockets or into a capture.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone      = 0
	exitUsage     = 2   // usage, or a script
	exitFile      = 3   // a file not readable or not writable
	exitSocket    = 4   // a socket could not be opened, or nobody answers
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
	ctx, stop := interruptible()
	err := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "refserver: "+err.Error())
	}
	os.Exit(exitCode(err))
}

// streams are what a command writes to.
type streams struct {
	out io.Writer
	err io.Writer
}

// interruptible returns a context that the first interrupt ends; the second ends
// the process.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-c
		cancel()
		<-c
		os.Exit(exitInterrupt)
	}()
	return ctx, func() { signal.Stop(c); cancel() }
}

// run runs the command line.
func run(ctx context.Context, args []string, s streams) error {
	root := newRoot(s)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "refserver",
		Short: "Play the servers and clients of online games, over sockets or into a capture",
		Long: `refserver plays the servers of the protocols that opscope reads, and bots as their
clients: over real sockets, or both against each other over a network in memory,
whose traffic it writes as a capture. The same scenario and seed make the same
bytes. No privileges are needed.

Exit codes: 0 done, also after an interrupt; 2 usage or a script; 3 a file not
readable or not writable; 4 a socket could not be opened, or nobody answers; 130
second interrupt.`,
		Example: `  refserver scenarios
  refserver record login -o login.pcapng --seed 1
  refserver serve wulfram --listen 127.0.0.1:2627
  refserver bot wulfram --connect 127.0.0.1:2627 --script play
  refserver serve netrek --listen 127.0.0.1:2592
  refserver serve lotr2 --listen 127.0.0.1:2300
  refserver bot lotr2 --listen 127.0.0.2:2300 --script campaign
  refserver serve mmo --listen 127.0.0.1:7777 --walkers 40`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w\ntry: %s --help", err, c.CommandPath())
	})
	root.AddCommand(newRecord(s), newScenarios(s), newMisbehaviours(s), newServe(s), newBot(s))
	return root
}
