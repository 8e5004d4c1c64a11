//go:build !linux

package main

import "testing"

// asOwner does nothing: only on Linux can root be told to respect permissions.
func asOwner(*testing.T) {}
