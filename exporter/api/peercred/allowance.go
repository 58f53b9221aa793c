package peercred

import "time"

// Allowance grows with time up to a bound. Its zero value is full.
type Allowance struct {
	left float64
	at   time.Time
}

// Take reports whether there is one left, and takes it.
func (a *Allowance) Take(now time.Time, perSecond, most float64) bool {
	if a.at.IsZero() {
		a.left = most
	}
	a.left = min(a.left+max(now.Sub(a.at).Seconds(), 0)*perSecond, most)
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// Idle reports whether nothing was taken since then.
func (a *Allowance) Idle(since time.Time) bool { return !a.at.After(since) }
