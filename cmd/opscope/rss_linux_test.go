package main

import (
	"os"
	"syscall"
)

// maxRSS returns the most memory that a process had.
func maxRSS(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return int64(u.Maxrss) << 10
	}
	return 0
}
