package perf

// tally adds up what one group of events counted on all CPUs of a job, scaled up for
// the time in which it did not run.
type tally struct {
	totals           []float64 // in counts
	enabled, running float64   // ns, of what is in totals
	waiting          float64   // ns enabled on CPUs that did not run since, as of the last reading
	settled          float64   // enabled when the totals were last known
}

const (
	// Totals are known while no more than this part of the time is not in them yet,
	unsettled = 0.05
	// or no more than this long (ns), once anything was counted.
	negligible = 1e6
)

// add takes what one CPU counted since last, and moves last. Where the events were
// enabled and none of the time running, nothing is known of that time yet: last stays,
// so that the next reading scales over all of it. Counts that fall are never
// subtracted.
func (t *tally) add(last *Counts, now Counts) {
	if now.Enabled < last.Enabled || now.Running < last.Running {
		// The kernel never does that; what counts from anew counts from 0.
		*last = Counts{Values: make([]uint64, len(now.Values))}
	}
	enabled, running := float64(now.Enabled-last.Enabled), float64(now.Running-last.Running)
	if running == 0 && enabled > 0 {
		return
	}
	scale := 1.0
	if running > 0 && running < enabled {
		scale = enabled / running
	}
	for i, v := range now.Values {
		if i < len(last.Values) && v > last.Values[i] {
			t.totals[i] += float64(v-last.Values[i]) * scale
		}
	}
	t.enabled += enabled
	t.running += running
	last.Enabled, last.Running = now.Enabled, now.Running
	last.Values = append(last.Values[:0], now.Values...)
}

// known reports whether the totals are what the job did up to now, and is to be asked
// once a reading.
func (t *tally) known() bool {
	all := t.enabled + t.waiting
	if t.waiting > unsettled*(all-t.settled) && (t.waiting > negligible || t.running == 0) {
		return false
	}
	t.settled = all
	return true
}
