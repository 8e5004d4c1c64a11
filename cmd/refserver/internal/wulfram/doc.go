// Package wulfram plays both ends of a Wulfram II session: a server and bots, as
// state machines without I/O. Given the time and what has come, they return what to
// send; the same seed and inputs give the same outputs, byte by byte.
//
//	server   server.go (inputs, sessions), session.go (one client and what it may do),
//	         accept.go (the login), play.go, chat.go, publish.go, events.go
//	world    world.go (what moves), updates.go (how that is told), settings.go
//	bot      bot.go (timers), client.go (the client's half), follow.go, script.go
//	both     link.go and inbound.go (UDP: modes, datagrams, controls), frames.go (TCP),
//	         codec.go (bodies, by the schema), fields.go (values), quantise.go
//
// policy.go is the one file with what this server sequences, and how. Numbers and
// flows are from protocols/wulfram.md: sections 3 and 4 for framing, 4.5 for what
// is the server's to choose, 5 for handshakes, 6 for the flow, 7 and 8 for what
// moves. Reliability is package transport's.
//
// Whatever a peer sends costs it at most its own session. Input is bounded before
// it is kept: a frame by the reader's limit, a datagram by 3072 bytes, ordered
// records by the window, a client's records by an allowance a second, nonsense by
// a count, strangers by leaving nothing behind.
package wulfram
