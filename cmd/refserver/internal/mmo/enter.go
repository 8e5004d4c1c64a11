package mmo

import (
	"fmt"
	"net/netip"
	"time"

	"opscope/schema"
)

// enter lets a client in, or says why not: then success is absent (section 6).
func (c *session) enter(now time.Time, id int, b body) {
	if c.avatar != nil {
		c.refuse(now, id, codeInvalidState, "already in the game")
		return
	}
	s := c.server
	character := b.uint("character_id")
	claims, err := verifyToken(s.settings, now, b.Text("enter_token"))
	refusal := ""
	switch {
	case err != nil:
		refusal = err.Error()
	case !claims.owns(character):
		refusal = "no such character"
	case s.world.character(character) != nil:
		refusal = "the character is in the game already"
	}
	if refusal != "" {
		c.send("EnterGameRes", schema.Values{"success": false, "message": refusal})
		if c.attempts++; c.attempts >= s.settings.EnterToken.Attempts {
			c.End("refused", refusal)
		}
		return
	}
	c.account, c.token, c.issued, c.heard, c.pinged = claims.Account, udpToken(s.random, s.settings.UDPToken.Bytes), now, now, now
	c.avatar = s.world.add(character, claims.Name)
	s.world.pack(&c.avatar.bag)
	c.send("EnterGameRes", schema.Values{
		"success": true, "message": "welcome, " + claims.Name, "account_id": c.account, "character_id": character,
		"udp_token": c.token, "udp_port": int(s.cfg.UDPPort),
	})
	c.send("SpawnMyCharacter", spawn(now, c.avatar))
	c.send("InventorySnapshot", c.avatar.bag.snapshot(s.settings))
	s.appeared()
}

// holds reports whether the client's token still ties a peer to the session.
func (c *session) holds(now time.Time) bool {
	return c.udp.IsValid() || now.Sub(c.issued) < c.server.settings.UDPToken.Lifetime
}

// bind ties the sender of a UdpHelloReq to the session, and answers. A client asks
// again while no answer comes, and from elsewhere when NAT has moved it.
func (c *session) bind(now time.Time, from netip.AddrPort, id int, b body) {
	if b.Text("udp_token") != c.token || b.uint("character_id") != c.avatar.id {
		c.refuse(now, id, codeInvalidData, "not the token of this session")
		return
	}
	if c.udp != from {
		if other := c.server.bound(from); other != nil { // its client is gone, and this one has its port
			other.udp = netip.AddrPort{}
		}
		c.server.observer.Event(now, "bound", fmt.Sprintf("%s %q: datagrams go to %s", c.Address, c.avatar.name, from))
		c.udp = from
	}
	c.sendDatagram("UdpHelloRes", schema.Values{"success": true, "attempt": b.uint("attempt"), "server_time_ms": milliseconds(now)})
}

// ping asks whether the client is there. The server asks, and the client answers
// (section 8, 11).
func (c *session) ping(now time.Time) {
	c.pinged = now
	c.number++
	c.send("Ping", schema.Values{"number": c.number, "server_time_ms": milliseconds(now)})
}

func (c *session) pong(now time.Time, b body) {
	if n := uint32(b.uint("number")); n == 0 || n > c.number {
		c.server.observer.Event(now, "ignored", fmt.Sprintf("%s: the answer to ping %d, which nobody has sent", c.Address, n))
		return
	}
	c.heard = now
}
