// Package lotr2 plays both ends of a session of Lords of the Realm II: a host and
// joiners that find each other, as state machines without I/O. Given the time and
// what has come, they return what to send; the same seed and inputs give the same
// outputs, byte by byte.
//
//	both     peer.go (inputs, what is due when), link.go (one other peer: two one-way
//	         connections), codec.go (frames, by the schemas of DirectPlay and the game),
//	         messages.go (slots and copies), ping.go, game.go (ticks, turns, battles),
//	         script.go, follow.go
//	host     host.go (the session, joins), table.go (names and ids), lobby.go
//	joiner   joiner.go
//
// Layouts, flows and times are from protocols/lotr2.md: sections 2 to 5 for
// DirectPlay, 6 and 7 for the game, 9 for what a reference peer has to do. Where a
// field's meaning is unknown it holds what was seen in a capture, or zero.
//
// Whatever a peer sends costs it at most its own link. Input is bounded before it is
// kept: a frame by its size, peers by their number, nonsense by a count, strangers by
// leaving nothing behind.
package lotr2
