//go:build !unix

package main

import "errors"

// watchSignals has no signals to obey here.
func (x *sniffing) watchSignals() func() { return func() {} }

// becomeUser is not possible here.
func becomeUser(name string) error {
	if name == "" {
		return nil
	}
	return errors.New("--user: not on this system")
}
