//go:build unix

package main

import "syscall"

// makeFIFO makes a named pipe.
func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o600) }
