package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// caps counts what the site bounds across jobs. It is rebuilt from the records,
// so that a restart of the controller forgets nothing.
type caps struct {
	mu       sync.Mutex
	restarts []restart
	active   map[driver.JobID]bool             // live jobs that were touched
	begun    map[driver.JobID]string           // restarts under way, which count as done, by user
	worse    map[driver.JobID]time.Time        // tuned jobs that regressed, and when they ended
	kinds    map[driver.JobID]tuning.JobKind   // of live jobs that may be tuned
	profiles map[tuning.JobKind]tuning.Profile // of one that runs untuned, for those that wait
	trying   map[driver.JobID]attempt          // live jobs that try a setting from their start
	promised map[driver.JobID]time.Time        // offers whose jobs were not seen yet, and until when they count
}

type restart struct {
	at   time.Time
	user string
}

func (c *caps) restore(records []*Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarts, c.active, c.begun, c.worse = nil, map[driver.JobID]bool{}, map[driver.JobID]string{}, map[driver.JobID]time.Time{}
	c.trying, c.promised, c.kinds = map[driver.JobID]attempt{}, nil, map[driver.JobID]tuning.JobKind{}
	for _, r := range records {
		if !r.Phase.Over() && r.Phase != Seen && r.Phase != Ignored {
			c.kinds[r.Job] = r.Kind
		}
		if d, ok := r.tries(); ok {
			c.trying[r.Job] = attempt{r.Kind, d.Settings, d.Reason}
		}
		for _, at := range slices.Concat(r.Restarts, r.Probed) {
			c.restarts = append(c.restarts, restart{at, r.Owner})
		}
		ours := slices.ContainsFunc(r.Runs, func(x Run) bool { return x.Action != tuning.Hold })
		if !r.Phase.Over() && (r.Phase == Changing || ours || len(r.Restarts)+len(r.Probed) > 0) {
			c.active[r.Job] = true
		}
		if r.Move != nil && !r.Move.AtStart() && r.Phase == Changing {
			c.begun[r.Job] = r.Owner
		}
		if r.Phase.Over() && r.harmful() {
			c.worse[r.Job] = r.OverAt()
		}
	}
}

// admit says which cap of the site keeps the job from beginning an intent now, or counts
// it as active; empty: none does. A change before the start costs no restart; a roll-back
// is never refused for the number of jobs tuned at a time.
func (c *caps) admit(now time.Time, r *Record, action tuning.Action, site tuning.Site) (key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == nil {
		c.active, c.begun = map[driver.JobID]bool{}, map[driver.JobID]string{}
	}
	hour := now.Add(-time.Hour)
	c.restarts = slices.DeleteFunc(c.restarts, func(x restart) bool { return x.at.Before(hour) })
	atStart := r.Phase == Waiting
	if !atStart {
		mine, all := 0, len(c.restarts)
		for job, user := range c.begun {
			if job == r.Job {
				continue
			}
			all++
			if user == r.Owner {
				mine++
			}
		}
		for _, x := range c.restarts {
			if x.user == r.Owner {
				mine++
			}
		}
		if site.UserRestarts > 0 && mine >= site.UserRestarts {
			return "user_restarts"
		}
		if site.TotalRestarts > 0 && all >= site.TotalRestarts {
			return "total_restarts"
		}
	}
	if site.MaxTuned > 0 && action != tuning.RollBack && !c.active[r.Job] && len(c.active) >= site.MaxTuned {
		return "max_tuned"
	}
	c.active[r.Job] = true
	if !atStart {
		c.begun[r.Job] = r.Owner
	}
	return ""
}

func (c *caps) count(now time.Time, r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarts = append(c.restarts, restart{now, r.Owner})
	delete(c.begun, r.Job)
}

// drop forgets a restart that did not happen.
func (c *caps) drop(id driver.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.begun, id)
}

// add counts a live job among its kind, until it is removed.
func (c *caps) add(r *Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[driver.JobID]tuning.JobKind{}
	}
	c.kinds[r.Job] = r.Kind
}

func (c *caps) remove(id driver.JobID) {
	c.release(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.kinds[id]
	delete(c.kinds, id)
	for _, k := range c.kinds {
		if k == kind {
			return
		}
	}
	delete(c.profiles, kind)
}

// setProfile keeps what a live job makes of its cores under its owner's settings, for those of its
// kind that wait.
func (c *caps) setProfile(r *Record, of tuning.Profile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profiles == nil {
		c.profiles = map[tuning.JobKind]tuning.Profile{}
	}
	c.profiles[r.Kind] = of
}

func (c *caps) profile(kind tuning.JobKind) *tuning.Profile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.profiles[kind]; ok {
		return &p
	}
	return nil
}

func (c *caps) release(id driver.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, id)
	delete(c.begun, id)
	delete(c.trying, id)
	delete(c.promised, id)
}

// regressed counts a regression, once per job, and tells how many there were
// after the given time.
func (c *caps) regressed(id driver.JobID, at, after time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.worse == nil {
		c.worse = map[driver.JobID]time.Time{}
	}
	c.worse[id] = at
	maps.DeleteFunc(c.worse, func(_ driver.JobID, at time.Time) bool { return !at.After(after) })
	return len(c.worse)
}
