// Package scenario plays machines against each other over a network that exists in
// memory, with a clock that runs only when there is something to do, and has the
// tape write what passes. It knows afterwards of every record that was sent which
// packets of the capture carry it, whether it arrived, and who acknowledged it:
// the truth that a dissector is compared with.
//
//	machine -> packets -> faults before -> the tape -> faults behind -> machine
//	                                          |
//	                                    capture faults -> file
//
// Network faults are those on the path: before the tape, where they show in the
// capture, and behind it, where the capture has what the receiver never gets. Capture
// faults concern the file alone. The same scenario and seed make the same bytes.
package scenario
