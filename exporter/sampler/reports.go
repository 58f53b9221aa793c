package sampler

import (
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
)

const (
	// Two listeners that read the same line do so within a poll of the file and some
	// load of the node.
	sameSave = 2 * time.Second
	// As many reports of one epoch are remembered; a job that says more within an
	// epoch is believed each time.
	maxSayings = 64
	// And as many processes that reported.
	maxReporters = 64
)

// reportLog is what an attempt has reported so far, as far as it takes to know a report that
// another process makes of the same line: a site's listener and a user's own may both
// follow one output. One process that reports twice means it.
type reportLog struct {
	epoch   int      // the newest
	pid     int      // that reported it last
	sayings []saying // about the newest epoch, those of repeats left out

	reporters map[int]peercred.Caller // processes that reported

	saver   int // the process that reported the last save that counted, 0 = none did
	savedAt time.Time

	epochs, saves int // lines that were reported on the job's behalf, by their count
	before        int // the newest epoch of an earlier start in the same attempt
}

type saying struct {
	pid    int
	report api.Report
}

// by remembers a process that was in the job when it reported.
func (t *reportLog) by(who peercred.Caller) {
	if who.PID == onBehalf || who.Start == 0 {
		return // it never was in the job, or had reported before
	}
	if t.reporters == nil || len(t.reporters) >= maxReporters {
		t.reporters = map[int]peercred.Caller{}
	}
	t.reporters[who.PID] = who
}

// knows reports whether the process was in the job when it reported before. One that had
// ended when its connection was accepted (Start == 0) counts by its number and user alone:
// where a job takes reports from its own user only, another process of that user which
// had the number can spoil his own job at most. Under Nomad, where accepts takes any user,
// mark.go's locate leaves it out.
func (t *reportLog) knows(who peercred.Caller) bool {
	was, ok := t.reporters[who.PID]
	return ok && was.UID == who.UID && (who.Start == 0 || was.Start == who.Start)
}

// repeated reports whether another process has reported the same already. For an epoch that
// is: the same numbers for the newest epoch, or an older epoch; for a checkpoint: one
// at the same time. What is not one is remembered.
func (t *reportLog) repeated(pid int, r api.Report) bool {
	again := pid == onBehalf && t.again(r)
	if r.Saved {
		return again || t.savedBefore(pid, r.Time)
	}
	if again && r.Epoch <= t.before {
		return true
	}
	if r.Epoch < t.epoch && (again || pid != t.pid) {
		return true
	}
	if r.Epoch != t.epoch {
		t.epoch, t.sayings = r.Epoch, t.sayings[:0]
	}
	for _, s := range t.sayings {
		if (again || s.pid != pid) && sameNumbers(s.report, r) {
			return true
		}
	}
	t.pid = pid
	if len(t.sayings) < maxSayings {
		t.sayings = append(t.sayings, saying{pid, r})
	}
	return false
}

// again reports whether a report on the job's behalf may be of a line that was reported
// before: its reader starts again with the output when it is restarted. Which line it
// is, it counts (Report.Nth); without that every line may be.
func (t *reportLog) again(r api.Report) bool {
	n := &t.epochs
	if r.Saved {
		n = &t.saves
		if r.Nth == 0 {
			return false // one that does not count its lines is believed
		}
	}
	if r.Nth > *n {
		*n = r.Nth
		return false
	}
	return true
}

func (t *reportLog) savedBefore(pid int, at time.Time) bool {
	apart := at.Sub(t.savedAt).Abs()
	if t.saver != 0 && t.saver != pid && apart < sameSave {
		return true
	}
	t.saver, t.savedAt = pid, at
	return false
}

func sameNumbers(a, b api.Report) bool {
	return a.Epoch == b.Epoch && a.Total == b.Total && same(a.Loss, b.Loss) && same(a.Quality, b.Quality) && a.Diverged == b.Diverged
}

func same(a, b *float64) bool {
	return a == b || a != nil && b != nil && *a == *b
}
