package machine

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Guest is what every server keeps of a client: its connection, and why it ends. A session
// embeds it.
type Guest struct {
	Conn    Conn
	Address netip.AddrPort // the connection's other end
	Gone    bool           // the connection is closed already

	code, reason string // why it ends
}

// End ends the session at the end of the input at hand. The first reason counts.
func (g *Guest) End(code, reason string) {
	if g.reason == "" {
		g.code, g.reason = code, reason
	}
}

// HungUp ends a session whose client has closed the connection.
func (g *Guest) HungUp() {
	g.Gone = true
	g.End("closed", "the client has closed the connection")
}

// Ended reports whether the session ends.
func (g *Guest) Ended() bool { return g.reason != "" }

// Farewell tells why the session of somebody with a name is over.
func (g *Guest) Farewell(now time.Time, o Observer, name string) {
	o.Event(now, "session_end", fmt.Sprintf("%s %q: %s: %s", g.Address, name, g.code, g.reason))
}

func (g *Guest) guest() *Guest { return g }

// Session is a pointer to what embeds a Guest.
type Session interface{ guest() *Guest }

// SessionOf returns the session of a connection, nil for none.
func SessionOf[S Session](list []S, conn Conn) (s S) {
	if i := slices.IndexFunc(list, func(s S) bool { return s.guest().Conn == conn }); i >= 0 {
		s = list[i]
	}
	return s
}

// Bury takes the sessions that have ended out of a list, and then buries each: others may
// end over it.
func Bury[S Session](list *[]S, bury func(S)) {
	for i := 0; i < len(*list); i++ {
		if s := (*list)[i]; s.guest().Ended() {
			*list = slices.Delete(*list, i, i+1)
			bury(s)
			i = -1
		}
	}
}
