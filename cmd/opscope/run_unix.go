//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// command is a line for the shell, with the processes that it starts: a process group.
type command struct {
	line    string
	failure string // how it ended, if not well; once wait has returned

	out    io.Writer
	shell  *os.Process
	pipe   *os.File      // what they print
	copied chan struct{} // closed when all of that is printed
}

const (
	stopTime  = 5 * time.Second       // from SIGTERM to SIGKILL
	printTime = time.Second           // for what others print who hold the pipe
	lookTime  = 10 * time.Millisecond // between two looks at the processes
)

// start starts the command, whose output goes to out.
func (c *command) start(out io.Writer) error {
	if err := adopt(); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", c.line)
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is for us alone
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return err
	}
	c.out, c.shell, c.pipe, c.copied = out, cmd.Process, r, make(chan struct{})
	go func() {
		_, _ = io.Copy(out, r) // standard error that is gone needs no output
		close(c.copied)
	}()
	return nil
}

// wait waits until the command has ended, or is told to end, and stops what is left of it
// then.
func (c *command) wait(told context.Context) {
	exited := make(chan struct{})
	var state *os.ProcessState
	go func() {
		defer close(exited)
		state, _ = c.shell.Wait() // of a child that nobody else waits for
	}()
	select {
	case <-exited:
		if state == nil || !state.Success() {
			c.failure = "it ended with " + state.String()
		}
	case <-told.Done(): // how it ends then is our doing
	}
	c.stop()
	<-exited
	_ = c.pipe.SetReadDeadline(time.Now().Add(printTime)) // else it is read to its end
	<-c.copied
	c.pipe.Close()
}

// stop ends all processes of the group.
func (c *command) stop() {
	group := -c.shell.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // if there is one
	for end := time.Now().Add(stopTime); time.Now().Before(end); time.Sleep(lookTime) {
		if c.gone() {
			return
		}
	}
	complain(c.out, "--run: the command did not end when told to, and is killed")
	_ = syscall.Kill(group, syscall.SIGKILL)
	for end := time.Now().Add(stopTime); time.Now().Before(end) && !c.gone(); time.Sleep(lookTime) {
	}
}

// gone reports whether all processes of the group have ended. Nobody else waits for those
// that were adopted; that the shell may be among them is all the same by now.
func (c *command) gone() bool {
	group := -c.shell.Pid
	for {
		pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return errors.Is(syscall.Kill(group, 0), syscall.ESRCH)
		}
	}
}
