package capture

import (
	"net"
	"runtime"
	"strconv"
)

// Device is an interface of this host.
type Device struct {
	Number    int // 0 for any
	Name      string
	Addresses []string
	State     string // up, down or no carrier; empty for any
	Loopback  bool
}

// Devices lists the interfaces of this host in the order of their numbers.
func Devices() ([]Device, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []Device
	for _, i := range interfaces {
		d := Device{Number: i.Index, Name: i.Name, State: state(i.Flags), Loopback: i.Flags&net.FlagLoopback != 0}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			d.Addresses = append(d.Addresses, a.String())
		}
		list = append(list, d)
	}
	if runtime.GOOS == "linux" {
		list = append(list, Device{Name: anyDevice})
	}
	return list, nil
}

// anyDevice stands for all interfaces together.
const anyDevice = "any"

func state(f net.Flags) string {
	switch {
	case f&net.FlagUp == 0:
		return "down"
	case f&net.FlagRunning == 0:
		return "no carrier"
	}
	return "up"
}

// findInterface finds an interface by its name or number.
func findInterface(name string) (*net.Interface, error) {
	i, err := net.InterfaceByName(name)
	if err == nil {
		return i, nil
	}
	if n, convErr := strconv.Atoi(name); convErr == nil {
		if i, err = net.InterfaceByIndex(n); err == nil {
			return i, nil
		}
	}
	return nil, &NoSuchInterface{name}
}
