package local

import (
	"slices"
	"time"

	"pitchpipe/driver"
)

// waiting is a job in the queue.
type waiting struct {
	ID        driver.JobID
	Want      driver.Room // memory 0 = no limit, which takes none of the machine's
	Limit     time.Duration
	NotBefore time.Time
}

// busy is a job that runs, or will run again.
type busy struct {
	Has  driver.Room
	Ends time.Time // by its time limit; zero = unknown
}

// schedule picks the jobs to start now, in order.
//
// First come, first served, with back-fill that never makes the head of the queue
// wait longer than the declared time limits say (the rule known as EASY: Lifka,
// "The ANL/IBM SP Scheduling System", 1995):
//
//  1. Jobs start in the order of the queue while each fits. A job whose time has
//     not come does not count.
//  2. The first that does not fit is the head. Its reservation is the earliest
//     time at which, by the time limits of what runs, it fits.
//  3. A later job that fits now may start if its own time limit ends it by then,
//     or if it leaves the head's share of the machine free at that time.
//  4. The limits promise the head no time where what it waits for has none. Then a
//     later job may start only if it takes nothing that the head may lack: the head
//     must fit next to it and all that runs, in each of cores and memory that it
//     takes.
func schedule(now time.Time, free driver.Room, queue []waiting, running []busy) []driver.JobID {
	var out []driver.JobID
	running = slices.Clone(running)
	var head *waiting
	var reserved time.Time
	var beside driver.Room // free at the head's time, besides the head
	for i := range queue {
		w := queue[i]
		if w.NotBefore.After(now) {
			continue
		}
		fits := free.Holds(w.Want)
		if head == nil && !fits {
			head = &queue[i]
			reserved, beside = reservation(free, w.Want, running)
		}
		if !fits || head != nil && !harmless(now, w, head.Want, reserved, &beside, free) {
			continue
		}
		out = append(out, w.ID)
		free = free.Minus(w.Want)
		b := busy{Has: w.Want}
		if w.Limit > 0 {
			b.Ends = now.Add(w.Limit)
		}
		running = append(running, b)
	}
	return out
}

// reservation is when the head fits by the time limits of what runs, and what is
// then free besides. The zero time means that no limit promises it.
func reservation(free, head driver.Room, running []busy) (time.Time, driver.Room) {
	known := slices.DeleteFunc(slices.Clone(running), func(b busy) bool { return b.Ends.IsZero() })
	slices.SortStableFunc(known, func(a, b busy) int { return a.Ends.Compare(b.Ends) })
	for i, b := range known {
		free = free.Plus(b.Has)
		last := i+1 == len(known) || known[i+1].Ends.After(b.Ends)
		if last && free.Holds(head) {
			return b.Ends, free.Minus(head)
		}
	}
	return time.Time{}, driver.Room{}
}

// harmless reports whether a job that fits now may pass the head, and subtracts it
// from what is free besides the head if it will still run then.
func harmless(now time.Time, w waiting, head driver.Room, reserved time.Time, beside *driver.Room, free driver.Room) bool {
	if reserved.IsZero() {
		rest := free.Minus(head).Minus(w.Want) // next to all that runs
		return (w.Want.Cores == 0 || rest.Cores >= 0) && (w.Want.Memory == 0 || rest.Memory >= 0)
	}
	if w.Limit > 0 && !now.Add(w.Limit).After(reserved) {
		return true
	}
	if !beside.Holds(w.Want) {
		return false
	}
	*beside = beside.Minus(w.Want)
	return true
}
