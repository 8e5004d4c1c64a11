package main

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestNoPermission listens on a port for which one needs a privilege, without it.
func TestNoPermission(t *testing.T) {
	if first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err != nil || strings.TrimSpace(string(first)) == "0" {
		t.Skip("no port needs a privilege here")
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its privileges
		if err := dropPrivileges(); err != nil {
			t.Error(err)
		}
		_, err := execute(t, "serve", "wulfram", "--listen", "127.0.0.1:1", "--duration", "1ms")
		failed <- err
	}()
	err := <-failed
	if exitCode(err) != exitSocket || !strings.Contains(err.Error(), "127.0.0.1:1: bind: permission denied") || strings.Contains(err.Error(), "\n") {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}

// dropPrivileges takes all capabilities from the thread.
func dropPrivileges() error {
	header := struct {
		version uint32
		pid     int32
	}{0x20080522, 0}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); e != 0 {
		return e
	}
	return nil
}
