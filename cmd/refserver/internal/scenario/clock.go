package scenario

import (
	"container/heap"
	"time"
)

// clock is a virtual clock: time goes on to the next thing that is to be done.
// Things for the same time are done in the order in which they were asked for.
type clock struct {
	now    time.Time
	queue  agenda
	serial int
}

// appointment is a thing to do.
type appointment struct {
	at     time.Time
	serial int
	do     func()
}

// at has something done at a time, at once if that is over.
func (c *clock) at(t time.Time, do func()) {
	if t.Before(c.now) {
		t = c.now
	}
	c.serial++
	heap.Push(&c.queue, appointment{t, c.serial, do})
}

// after has something done in a while.
func (c *clock) after(d time.Duration, do func()) { c.at(c.now.Add(d), do) }

// run does what there is to do, until a time is over or done says so.
func (c *clock) run(until time.Time, done func() bool) {
	for len(c.queue) > 0 && !c.queue[0].at.After(until) && !done() {
		a := heap.Pop(&c.queue).(appointment)
		c.now = a.at
		a.do()
	}
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
