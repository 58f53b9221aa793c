package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// counter is one counter of energy or power of the node.
type counter struct {
	id, name  string
	component Component // empty = shown and not counted
	pkg       int       // Whole = of no one socket
	read      func() (uint64, error)
	close     func() error // nil = nothing is open
	// grew returns the joules between two readings; NaN = unknown for good.
	grew  func(last, now uint64, since time.Duration) float64
	every time.Duration // the longest time between two readings; 0 = any

	joules  float64       // since the meter was opened; never falls
	lacks   bool          // some since the last Settle
	last    uint64        // reading
	seen    bool          // there is one
	since   time.Duration // the last reading
	settled float64       // joules at the last Settle
	idle    idle
}

// update reads the counter. After an error it does not move: the next reading has what it missed.
func (c *counter) update(elapsed time.Duration) error {
	c.since += max(elapsed, 0)
	now, err := c.read()
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if c.seen {
		grew := c.grew(c.last, now, c.since)
		if math.IsNaN(grew) {
			grew, c.lacks = 0, true
		}
		c.joules += grew
	}
	c.last, c.seen, c.since = now, true, 0
	return nil
}

// names lists a directory of the kernel's.
func names(dir, absent string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s at %s", collector.ErrUnsupported, absent, dir)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out, err
}

// fromFile reads a counter that a file of the kernel shows.
func fromFile(path string, parse func([]byte) (uint64, error)) func() (uint64, error) {
	return func() (uint64, error) {
		data, err := hostfs.Read(path)
		if err != nil {
			return 0, err
		}
		return parse(data)
	}
}

// growing is for counters without an end, in units of so many joules. One that falls began
// again from 0, with what keeps it.
func growing(unit float64) func(last, now uint64, _ time.Duration) float64 {
	return func(last, now uint64, _ time.Duration) float64 {
		if now < last {
			last = 0
		}
		return float64(now-last) * unit
	}
}

// integrated is for sensors of power in microwatts.
func integrated(last, now uint64, since time.Duration) float64 {
	if since > collector.Bridge {
		return math.NaN()
	}
	return (float64(last) + float64(now)) / 2 / 1e6 * since.Seconds()
}

// Ranges of counters that are in use, in microjoules: 32 bits of the units that
// processors count in, and 32 bits of microjoules.
func knownRanges() []uint64 {
	return []uint64{1<<32 - 1, 65_532_610_987, 65_712_999_613, 262_143_328_850}
}

const (
	// No part of a machine that has its own counter takes more.
	mostWatts = 5_000
	// usualWatts is a heavy load, which bounds the time between two readings.
	usualWatts = 1_000
	// A range that the kernel does not state is believed if it gives at most so many times the
	// power before, plus so many watts.
	surge, surgeWatts = 4, 200
)

// wrapping is for counters of microjoules that begin again at the end of their range.
type wrapping struct {
	end   uint64  // the largest value, as the kernel says; 0 = unreadable
	watts float64 // between the last two readings without a wrap
}

// grew assumes that a counter that fell wrapped once: it is read often enough. The kernel's
// range is believed if the power is plausible, else one of the known ranges. If none fits,
// the counter was set to zero, and what it shows is a lower bound.
func (w *wrapping) grew(last, now uint64, since time.Duration) float64 {
	if now >= last {
		joules := float64(now-last) / 1e6
		if since > 0 {
			w.watts = joules / since.Seconds()
		}
		return joules
	}
	joules := func(end uint64) float64 { return float64(end-last+now) / 1e6 }
	if w.end >= last && (since == 0 || joules(w.end) <= mostWatts*since.Seconds()) {
		return joules(w.end)
	}
	for _, end := range knownRanges() {
		if end >= last && joules(end) <= (surge*w.watts+surgeWatts)*since.Seconds() {
			return joules(end)
		}
	}
	return float64(now) / 1e6
}

// every is a quarter of the time in which a heavy load goes through the range.
func (w *wrapping) every() time.Duration {
	end := cmp.Or(w.end, knownRanges()[0]) // it may be the smallest
	return max(time.Duration(float64(end)/1e6/usualWatts/4*float64(time.Second)), 50*time.Millisecond)
}
