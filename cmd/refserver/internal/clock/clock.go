// Package clock is time for machines that are played in memory: it stands still until
// there is something to do.
package clock

import (
	"container/heap"
	"time"
)

// Clock is a virtual clock: time goes on to the next thing that is to be done.
// Things for the same time are done in the order in which they were asked for.
type Clock struct {
	Now time.Time

	queue  agenda
	serial int
}

// appointment is a thing to do.
type appointment struct {
	at     time.Time
	serial int
	do     func()
}

// At has something done at a time, at once if that is over.
func (c *Clock) At(t time.Time, do func()) {
	if t.Before(c.Now) {
		t = c.Now
	}
	c.serial++
	heap.Push(&c.queue, appointment{t, c.serial, do})
}

// After has something done in a while.
func (c *Clock) After(d time.Duration, do func()) { c.At(c.Now.Add(d), do) }

// Run does what there is to do, until a time is over or done says so.
func (c *Clock) Run(until time.Time, done func() bool) {
	for len(c.queue) > 0 && !c.queue[0].at.After(until) && !done() {
		c.step()
	}
}

// step does the next thing.
func (c *Clock) step() {
	a := heap.Pop(&c.queue).(appointment)
	c.Now = a.at
	a.do()
}

// Sleeper is somebody who wants to be woken at times.
type Sleeper interface {
	Deadline() time.Time // when; the zero time for never
	Wake()
}

// Play does what there is to do and wakes sleepers, until a time is over; then it is that
// time. It returns false if that is not reached in so many steps.
func (c *Clock) Play(until time.Time, steps int, sleepers ...Sleeper) bool {
	for range steps {
		when, who := c.next(sleepers)
		switch {
		case when.IsZero() || when.After(until):
			c.Now = until
			return true
		case who == nil:
			c.step()
		default:
			c.Now = when
			who.Wake()
		}
	}
	return false
}

// next returns when something is to be done next, the zero time for never, and who is to
// be woken then; what was asked for comes first.
func (c *Clock) next(sleepers []Sleeper) (when time.Time, who Sleeper) {
	if len(c.queue) > 0 {
		when = c.queue[0].at
	}
	for _, s := range sleepers {
		d := s.Deadline()
		if d.IsZero() {
			continue
		}
		if d.Before(c.Now) {
			d = c.Now
		}
		if when.IsZero() || d.Before(when) {
			when, who = d, s
		}
	}
	return when, who
}

// agenda is a heap of appointments.
type agenda []appointment

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].serial < a[j].serial
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
