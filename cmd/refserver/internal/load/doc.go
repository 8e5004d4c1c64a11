// Package load writes large captures: many sessions at a time, one after the other, in
// constant memory.
//
// The machines of a protocol play a few sessions, each with a script of its own. The
// capture then has one after the other of them, each time between other hosts, as many
// at a time as are asked for; some segments overtake the next one of their stream, some
// come twice, some are missed. Which records the capture has is counted on the way.
//
//	scenario -> session -> cell, cell, cell, ... -> by time -> faults -> file
package load
