// Package mmo plays both ends of the MMO of protocols/mmo.md, Protocol Buffers over
// TCP and UDP: a server and bots, as state machines without I/O. Given the time and
// what has come, they return what to send; the same seed and inputs give the same
// outputs, byte by byte.
//
//	server   server.go (inputs, ticks), session.go (one client, errors), enter.go (enter, UDP
//	         hello, heartbeat), play.go (chat, attacks, requests about items), view.go (area of
//	         interest), movement.go (inputs, batches)
//	world    world.go (characters), fight.go (attacks), monster.go, inventory.go
//	bot      bot.go, client.go (what it learns), script.go, follow.go
//	both     codec.go (frames, by the schema), token.go
//
// The facts leave much open. What the server and the bots do there is their own
// choice, and stands in package testserver: numbers, bodies of messages without a
// known schema, and words for the rest.
//
// Whatever a peer sends costs it at most its own session. Input is bounded before
// it is kept: a frame by its size, frames by a rate, errors by a count, strangers by
// leaving nothing behind.
package mmo
