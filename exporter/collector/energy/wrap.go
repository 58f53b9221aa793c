package energy

import "time"

// Ranges of counters that are in use, in microjoules: 32 bits of the units that
// processors count in, and 32 bits of microjoules.
func knownRanges() []uint64 {
	return []uint64{
		1<<32 - 1,
		65_532_610_987,
		65_712_999_613,
		262_143_328_850,
	}
}

const (
	// No part of a machine that has a counter of its own takes more.
	mostWatts = 5_000
	// usualWatts is a heavy load, by which the time between two readings is bounded.
	usualWatts = 1_000
	// A range that the kernel does not state is believed where it gives no more than so
	// many times the power before, and so many watts.
	surge, surgeWatts = 4, 200
)

// wrapping accumulates a counter that begins anew at the end of its range.
type wrapping struct {
	end   uint64 // its largest value as the kernel says, 0 = not readable
	last  uint64
	seen  bool
	since time.Duration // since it was last read
	watts float64       // between the last two readings of which the second was higher
	total uint64        // microjoules since the first reading
}

// pass says that time went by, whether it is then read or not.
func (w *wrapping) pass(elapsed time.Duration) { w.since += max(elapsed, 0) }

// add takes a reading. A counter that went down began anew once: it is read often enough
// that it never does twice. What the kernel says about its range is believed where that
// gives a power that can be, else the ranges that are in use are tried; where none fits
// the counter was set to zero, and what it shows is a lower bound.
func (w *wrapping) add(now uint64) float64 {
	last, seen, since := w.last, w.seen, w.since
	w.last, w.seen, w.since = now, true, 0
	switch {
	case !seen:
	case now >= last:
		w.total += now - last
		if since > 0 {
			w.watts = float64(now-last) / 1e6 / since.Seconds()
		}
	default:
		w.total += w.across(last, now, since)
	}
	return float64(w.total) / 1e6
}

func (w *wrapping) across(last, now uint64, since time.Duration) uint64 {
	limit := func(watts float64) float64 { return watts * since.Seconds() * 1e6 }
	if w.end >= last {
		if d := w.end - last + now; since == 0 || float64(d) <= limit(mostWatts) {
			return d
		}
	}
	for _, end := range knownRanges() {
		if end < last {
			continue
		}
		if d := end - last + now; float64(d) <= limit(surge*w.watts+surgeWatts) {
			return d
		}
	}
	return now
}

// within is a quarter of the time in which a heavy load goes through the range.
func (w *wrapping) within() time.Duration {
	end := w.end
	if end == 0 {
		end = knownRanges()[0] // it may be the smallest
	}
	return max(time.Duration(float64(end)/1e6/usualWatts/4*float64(time.Second)), 50*time.Millisecond)
}
