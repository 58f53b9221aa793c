package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// caps counts across jobs what the site and the owners bound. It is rebuilt from the
// records, so that a restart of the controller forgets nothing.
type caps struct {
	mu        sync.Mutex
	live      map[driver.JobID]counted
	restarts  []restart
	divisions map[string]division        // by partition
	worse     map[driver.JobID]time.Time // tuned jobs that regressed, and when they ended
	probes    map[string]int             // by search: what its trials carried out
}

// counted is how one live job counts, or one offer that was not taken yet.
type counted struct {
	kind       *tuning.JobKind        // it may be tuned; nil: unknown yet
	tuned      bool                   // it was touched
	restarting string                 // the user whose restart is under way, which counts as done
	trying     *attempt               // it tries a setting from its start
	probing    *attempt               // it probes a setting, or did last
	shown      *knowledge.Observation // what it measured so far, for the others of its kind
	elastic    *elastic               // it shares the cores of its partition
	node       string                 // where it runs; empty: it does not, or that is unknown
	until      time.Time              // an offer is forgotten then; zero: it is a job
}

// attempt is a setting that a live job of a kind tries, and why.
type attempt struct {
	kind     tuning.JobKind
	settings tuning.Settings
	reason   tuning.Reason
	idle     time.Time // since when its job does not run; zero: it does
}

type restart struct {
	at   time.Time
	user string
}

func (c *caps) edit(id driver.JobID, change func(*counted)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(id, change)
}

func (c *caps) change(id driver.JobID, change func(*counted)) {
	if c.live == nil {
		c.live, c.worse, c.divisions = map[driver.JobID]counted{}, map[driver.JobID]time.Time{}, map[string]division{}
		c.probes = map[string]int{}
	}
	x := c.live[id]
	change(&x)
	c.live[id] = x
	if x == (counted{}) {
		delete(c.live, id)
	}
}

// number counts the other jobs; the lock is held.
func (c *caps) number(job driver.JobID, so func(counted) bool) int {
	n := 0
	for id, x := range c.live {
		if id != job && so(x) {
			n++
		}
	}
	return n
}

func (c *caps) restore(records []*Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.restarts = nil, nil
	for _, r := range records {
		for _, at := range slices.Concat(r.Restarts, r.Probed) {
			c.restarts = append(c.restarts, restart{at, r.Owner})
		}
		c.change(r.Job, func(x *counted) {
			c.probes[r.Policy.SearchID()] += len(r.Probed)
			switch {
			case r.Phase.Over() && r.harmful():
				c.worse[r.Job] = r.OverAt()
				return
			case r.Phase.Over():
				return
			case r.Phase != Seen && r.Phase != Ignored:
				x.kind = &r.Kind
			}
			if d := r.tries(); d != nil {
				x.trying = &attempt{kind: r.Kind, settings: d.Settings, reason: d.Reason}
			}
			if d := r.probes(); d != nil {
				x.probing = &attempt{kind: r.Kind, settings: d}
			}
			x.tuned = r.Phase == Changing || r.touched() || len(r.Restarts)+len(r.Probed) > 0
			if r.Move != nil && !r.Move.AtStart() {
				x.restarting = r.Owner
			}
		})
	}
}

// admit counts a job as tuned that is about to be changed, or returns which cap of the site
// forbids that. A change before the start costs no restart. The number of jobs that are
// tuned at a time never forbids a roll-back.
func (c *caps) admit(now time.Time, r *Record, action tuning.Action, site tuning.Site) (key string) {
	atStart := r.Phase == Waiting
	c.edit(r.Job, func(x *counted) {
		hour := now.Add(-time.Hour)
		c.restarts = slices.DeleteFunc(c.restarts, func(x restart) bool { return x.at.Before(hour) })
		mine := c.number(r.Job, func(x counted) bool { return x.restarting != "" && x.restarting == r.Owner })
		mine += tuning.Count(c.restarts, func(x restart) bool { return x.user == r.Owner })
		all := len(c.restarts) + c.number(r.Job, func(x counted) bool { return x.restarting != "" })
		switch {
		case !atStart && site.UserRestarts > 0 && mine >= site.UserRestarts:
			key = "user_restarts"
		case !atStart && site.TotalRestarts > 0 && all >= site.TotalRestarts:
			key = "total_restarts"
		case site.MaxTuned > 0 && action != tuning.RollBack && !x.tuned &&
			c.number(r.Job, func(x counted) bool { return x.tuned }) >= site.MaxTuned:
			key = "max_tuned"
		case atStart:
			x.tuned = true
		default:
			x.tuned, x.restarting = true, r.Owner
		}
	})
	return key
}

func (c *caps) drop(id driver.JobID) { c.edit(id, func(x *counted) { x.restarting = "" }) }

func (c *caps) release(id driver.JobID) {
	c.edit(id, func(x *counted) { *x = counted{kind: x.kind, shown: x.shown, node: x.node} })
}

func (c *caps) remove(id driver.JobID) {
	c.edit(id, func(x *counted) { *x = counted{} })
}

func (c *caps) alive(kind tuning.JobKind) (n int) {
	c.edit("", func(*counted) { n = c.number("", func(x counted) bool { return x.kind != nil && *x.kind == kind }) })
	return n
}

func (c *caps) shows(id driver.JobID) (ok bool) {
	c.edit(id, func(x *counted) { ok = x.shown != nil })
	return ok
}

// others calls each with every other live job, ordered by job.
func (c *caps) others(r *Record, each func(counted)) {
	c.edit("", func(*counted) {
		for _, id := range slices.Sorted(maps.Keys(c.live)) {
			if id != r.Job {
				each(c.live[id])
			}
		}
	})
}

// shown is what the other live jobs of a job's kind measured so far, ordered by job.
func (c *caps) shown(r *Record) (out []knowledge.Observation) {
	c.others(r, func(x counted) {
		if x.shown != nil && x.shown.Kind == r.Kind {
			out = append(out, *x.shown)
		}
	})
	return out
}

// see notes whether a job of a known kind runs, and where. The scheduler may keep one that probes waiting
// for long.
func (c *caps) see(id driver.JobID, runs bool, node string, now time.Time) {
	c.edit(id, func(x *counted) {
		x.node = ""
		if runs && x.kind != nil {
			x.node = node
		}
		switch a := x.probing; {
		case a == nil:
		case runs:
			a.idle = time.Time{}
		case a.idle.IsZero():
			a.idle = now
		}
	})
}

// siblings counts the other jobs of a job's kind that run on its node.
func (c *caps) siblings(r *Record) (n int) {
	c.edit(r.Job, func(x *counted) {
		n = c.number(r.Job, func(y counted) bool { return x.node != "" && y.node == x.node && *y.kind == r.Kind })
	})
	return n
}

// probe counts a job that is about to probe a setting, unless another one of its kind does and may
// soon show what the setting does to epochs of about the same work.
func (c *caps) probe(now time.Time, r *Record, d tuning.Decision, trials []tuning.Trial) (ok bool) {
	target := r.shared(d.Settings)
	own, _ := tuning.Reference(trials)
	patience := time.Duration(own.Seconds * float64(r.Policy.Profile.WarmupEpochs+r.Policy.Profile.Epochs) * float64(time.Second))
	c.edit(r.Job, func(x *counted) {
		ok = c.number(r.Job, func(x counted) bool {
			if x.probing == nil || x.probing.kind != r.Kind || !r.shared(x.probing.settings).EqualButMemory(target) ||
				!x.probing.idle.IsZero() && now.Sub(x.probing.idle) > patience {
				return false
			}
			return x.shown == nil || !judgedIn(x.shown.Trials, x.probing.settings, r.Policy.Profile.Epochs) && alikeWork(x.shown.Trials, trials)
		}) == 0
		if ok {
			x.probing = &attempt{kind: r.Kind, settings: d.Settings}
		}
	})
	return ok
}

func judgedIn(trials []tuning.Trial, s tuning.Settings, epochs int) bool {
	return slices.ContainsFunc(trials, func(t tuning.Trial) bool { return t.Settings.EqualButMemory(s) && t.Epochs >= epochs })
}

// alikeWork reports whether the epochs of two jobs take less than twice as long as the other's under
// their owners' settings, as far as that is known.
func alikeWork(a, b []tuning.Trial) bool {
	x, measured := tuning.Reference(a)
	y, too := tuning.Reference(b)
	return !measured || !too || x.Seconds < 2*y.Seconds && y.Seconds < 2*x.Seconds
}

// try counts a job that is about to try a setting, unless as many others of its kind do so
// for the same reason.
func (c *caps) try(r *Record, d tuning.Decision, most float64) (ok bool) {
	c.edit(r.Job, func(x *counted) {
		sum := r.Policy.Part(r.Own, d.Settings)
		for id, x := range c.live {
			if a := x.trying; id != r.Job && a != nil && a.kind == r.Kind && a.reason == d.Reason {
				sum += r.Policy.Part(r.Own, a.settings)
			}
		}
		ok = sum <= most+1e-9 // parts are rounded
		if ok {
			x.trying = &attempt{kind: r.Kind, settings: d.Settings, reason: d.Reason}
		}
	})
	return ok
}

func (c *caps) untry(id driver.JobID) { c.edit(id, func(x *counted) { x.trying = nil }) }

// underway are the settings that other live jobs of the kind try, ordered by job.
func (c *caps) underway(r *Record) []tuning.Settings {
	out := []tuning.Settings{}
	c.others(r, func(x counted) {
		if a := x.trying; a != nil && a.kind == r.Kind && trying(a.reason) {
			out = append(out, a.settings)
		}
	})
	return out
}

// regressed counts a regression and returns how many jobs regressed after a time.
func (c *caps) regressed(id driver.JobID, at, after time.Time) (n int) {
	c.edit("", func(*counted) {
		c.worse[id] = at
		maps.DeleteFunc(c.worse, func(_ driver.JobID, at time.Time) bool { return !at.After(after) })
		n = len(c.worse)
	})
	return n
}

// lapse forgets the offers that were not taken in time.
func (c *caps) lapse(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.live, func(_ driver.JobID, x counted) bool { return !x.until.IsZero() && !now.Before(x.until) })
}

// take counts a job instead of the offer that it was submitted with.
func (c *caps) take(offer driver.JobID, r *Record, d tuning.Decision) {
	c.edit(r.Job, func(x *counted) {
		delete(c.live, offer)
		x.tuned = true
		if tries(d.Reason) {
			x.trying = &attempt{kind: r.Kind, settings: d.Settings, reason: d.Reason}
		}
	})
}
