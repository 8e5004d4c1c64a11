// Package netrek plays both ends of a Netrek session: a server and bots, as state
// machines without I/O. Given the time and what has come, they return what to
// send; the same seed and inputs give the same outputs, byte by byte.
//
//	server   server.go (inputs, frames), session.go (one client), slots.go (places and
//	         the queue), login.go, features.go, orders.go, chat.go, warnings.go
//	updates  publish.go (what changed), players.go, weapons.go, short.go (the same as
//	         short packets), udp.go (which transport, datagrams)
//	world    galaxy.go (planets and ships), ship.go (what flies), fire.go, planets.go
//	bot      bot.go, client.go (what it learns), script.go, follow.go
//	both     codec.go (packets, by the schema)
//
// discovery.go is a server by itself: it answers queries on another port. metaserver.go
// is whom servers solicit, and who lists them.
//
// Numbers and flows are from protocols/netrek.md: sections 3 to 5 for what packets
// mean, 7 for UDP, 8 for the flow, 10 for discovery. What the facts leave to the
// server, such as the strength of weapons, is this server's own choice, and small.
//
// Whatever a peer sends costs it at most its own session. Input is bounded before
// it is kept: a packet by its type, packets by an allowance a second, nonsense by a
// count, strangers by leaving nothing behind.
package netrek
