//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"
)

// watchSignals obeys the signals that do not end the run. What it returns stops that.
func (x *sniffing) watchSignals() func() {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	go func() {
		for sig := range c {
			switch sig {
			case syscall.SIGUSR1:
				x.tell()
			case syscall.SIGUSR2:
				if err := x.live.Flush(); err != nil {
					complain(x.err, err.Error())
				}
			case syscall.SIGHUP:
				x.pipeline.Reload()
			}
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
	}
}

// becomeUser gives up the rights of root for those of a user; "" keeps them.
func becomeUser(name string) error {
	if name == "" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("--user %s: %w", name, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return fmt.Errorf("--user %s: %w", name, err)
	}
	if err := syscall.Setgroups([]int{gid}); err != nil {
		return fmt.Errorf("--user %s: %w", name, err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("--user %s: %w", name, err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("--user %s: %w", name, err)
	}
	return nil
}
