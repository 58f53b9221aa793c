package sampler

import (
	"errors"
	"time"
)

// errCards means that what is left for the jobs is not known.
var errCards = errors.New("the meter counts the graphics cards too, and they are not read any more")

const (
	// guessed is the age from which on what the cards took since their last reading is a
	// guess: they are read at least each two seconds.
	guessed = 5 * time.Second
	// lost is the age from which on that guess is not believed.
	lost = 30 * time.Second
)

// cards follows what all graphics cards take from one reading of them to the next, which
// come when they come, so that a meter that counts the cards too gets what they took
// in its own interval. Between two readings they go on as between the last two; what that
// was wrong by is made good with the next reading.
type cards struct {
	read    bool      // at least once
	rated   bool      // and once more
	at      time.Time // of the newest reading
	joules  float64   // that it showed
	watts   float64   // between it and the one before
	settled float64   // joules that were shown when the last interval was closed
	reached float64   // and those that the cards had been followed to
	counted bool      // the meter of the node counts the cards too
}

// see takes what is known of the cards now.
func (c *cards) see(m moment) {
	if m.gpus == nil {
		return
	}
	joules, at := *m.gpus, m.gpusAt
	switch {
	case !c.read:
		c.settled, c.reached, c.read = joules, joules, true
	case !at.After(c.at):
		return // it is the one from before
	default:
		c.watts, c.rated = max(joules-c.joules, 0)/at.Sub(c.at).Seconds(), true
	}
	c.joules, c.at = joules, at
}

// followed is what the cards have come to by now. It never falls.
func (c *cards) followed(now time.Time) float64 {
	if !c.rated {
		return c.reached
	}
	return max(c.joules+c.watts*max(now.Sub(c.at), 0).Seconds(), c.reached)
}

// took is what the cards showed more than when the last interval was closed.
func (c *cards) took(m moment) float64 {
	if m.gpus == nil {
		return 0
	}
	return max(c.joules-c.settled, 0)
}

// guess reports whether it is unknown what the cards take now.
func (c *cards) guess(m moment) bool {
	return m.cards && (!c.rated || m.gpus == nil || m.now.Sub(c.at) > guessed)
}

// missing is an error where the meter counts cards of which nothing is known now. What
// is not shared out meanwhile is when the cards are known again.
func (c *cards) missing(now time.Time) error {
	if age := now.Sub(c.at); c.counted && c.rated && age > lost {
		return errCards
	}
	return nil
}

// close begins the next interval.
func (c *cards) close(m moment) {
	if m.gpus != nil {
		c.settled = c.joules
	}
	c.reached = c.followed(m.now)
}
