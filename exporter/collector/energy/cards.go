package energy

import "time"

const (
	// owedFor bounds what the cards took and the meter did not show yet: a board's sensor
	// averages over some seconds, and lags no further behind.
	owedFor = 5 * time.Second
	// Cards are at rest while they take at most restShare of the least that they took so far,
	// plus restWatts.
	restShare, restWatts = 1.2, 5
)

// cards subtracts the joules of graphics cards from a counter that includes them. The two are
// not read at the same moment: what is too much for one interval of the meter is subtracted
// from the next ones, up to owedFor.
type cards struct {
	owed   float64 // joules to be subtracted
	watts  float64 // of the cards, the most since nothing was owed
	lowest float64 // watts so far, 0 = unknown
	calm   bool    // they are known to be at rest in this interval
}

// begin takes what the cards took in an interval.
func (c *cards) begin(a Activity) {
	watts := a.GPUs / a.Elapsed.Seconds()
	if !a.Guessed && watts > 0 && a.Elapsed >= shortest && (c.lowest == 0 || watts < c.lowest) {
		c.lowest = watts
	}
	if c.owed == 0 {
		c.watts = 0
	}
	c.watts = max(c.watts, watts)
	c.calm = !a.Guessed && c.owed == 0 && watts <= restShare*c.lowest+restWatts
	c.owed += a.GPUs
}

// take is how much of a counter's joules are the cards'.
func (c *cards) take(joules float64) float64 {
	took := min(c.owed, max(joules, 0))
	c.owed -= took
	return took
}

// rest reports whether the remainder is what the machine takes besides idle cards. With
// working cards it is not: both meters are some per cent off, and fans and power supplies
// work for the cards.
func (c *cards) rest() bool { return c.calm && c.owed == 0 }

// end bounds what is owed.
func (c *cards) end() { c.owed = min(c.owed, c.watts*owedFor.Seconds()) }
