// Package tape writes captures: it puts stream bytes and datagrams into packets,
// as the hosts of a network would, and packets into a pcapng file, as a capturing
// host would.
//
// A Stack builds packets. Each of them says which bytes of its payload it carries
// and where. A Camera stands between the wire and a File and decides what of a
// packet is captured: capture faults are its business, and nobody else's. What it
// draws, it draws from a seed, so that the same packets make the same bytes.
//
// Packets own their bytes; a File keeps nothing of what it is given.
package tape
