package main

import "syscall"

// setChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const setChildSubreaper = 36

// adopt has the processes of a command whose parents end become our children: the first
// process of a container waits for nobody, and one that nobody waits for never quite ends.
// Source: prctl(2).
func adopt() error {
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); err != 0 {
		return err
	}
	return nil
}
