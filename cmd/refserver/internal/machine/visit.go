package machine

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/script"
)

// BotConn is the only connection of a bot.
const BotConn Conn = 1

// Visit is what every bot with a script keeps of its stay with a server: it dials, is let
// in, does what the script says, and leaves. A bot embeds it.
type Visit struct {
	Name     string // of the bot
	Observer Observer
	Script   script.Cursor
	// AnswerWithin is how long the bot waits to be let in, LeaveWithin how long it waits for
	// the end once it leaves.
	AnswerWithin, LeaveWithin time.Duration

	Began   time.Time // when it dialled, zero before
	Ready   bool      // it may follow its script
	Until   time.Time // how long the script waits for something at the most, zero for not
	Leaving time.Time // since when it waits for the end, zero for not
	Over    bool
}

// Dial dials, the first time. It reports whether that is now.
func (v *Visit) Dial(now time.Time, d *Desk, server netip.AddrPort) bool {
	if !v.Began.IsZero() {
		return false
	}
	v.Began = now
	d.Do(Output{Kind: Dial, Conn: BotConn, Peer: server})
	return true
}

// HungUp ends the visit, as the server has closed the connection, or refused it.
func (v *Visit) HungUp(now time.Time) {
	if !v.Leaving.IsZero() {
		v.Finish(now, "left", "the script is over")
		return
	}
	v.Finish(now, "closed", "the server has closed or refused the connection")
}

// Finish ends the visit. The first reason counts.
func (v *Visit) Finish(now time.Time, code, text string) {
	if !v.Over {
		v.Over = true
		v.Observer.Event(now, code, v.Name+": "+text)
	}
}

// Settled returns what there is to do; the end, if it has come, behind everything else.
func (v *Visit) Settled(d *Desk) []Output {
	if v.Over {
		d.Do(Output{Kind: Close, Conn: BotConn}, Output{Kind: Done})
	}
	return d.Take()
}

// Follows reports whether the bot is to follow its script. It ends a visit that waits for
// too long.
func (v *Visit) Follows(now time.Time) bool {
	switch {
	case v.Over:
	case !v.Leaving.IsZero():
		if now.Sub(v.Leaving) >= v.LeaveWithin {
			v.Finish(now, "left", "the script is over")
		}
	case v.Ready:
		return true
	case now.Sub(v.Began) >= v.AnswerWithin:
		v.Finish(now, "timeout", "the server did not let it in")
	}
	return false
}

// Waits reports whether the script has to wait, for a time or for something.
func (v *Visit) Waits(now time.Time) bool {
	if !now.Before(v.Until) {
		v.Until = time.Time{}
	}
	return v.Script.Asleep(now) || !v.Until.IsZero()
}

// Deadline returns when the visit goes on by itself. Before it has begun that is at once;
// never, once it is over.
func (v *Visit) Deadline() time.Time {
	switch {
	case v.Over:
		return time.Time{}
	case v.Began.IsZero():
		return time.Unix(0, 0)
	case !v.Leaving.IsZero():
		return v.Leaving.Add(v.LeaveWithin)
	case !v.Ready:
		return v.Began.Add(v.AnswerWithin)
	case !v.Until.IsZero():
		return v.Until
	}
	return v.Script.Wake()
}
