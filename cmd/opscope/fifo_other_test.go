//go:build !unix

package main

import "errors"

// makeFIFO makes a named pipe, where there are some.
func makeFIFO(string) error { return errors.New("no named pipes here") }
