package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pitchpipe/controller/allocate"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// elastic is a job that shares the cores of its partition with others, as it last looked.
type elastic struct {
	partition string
	submitted time.Time
	runs      bool
	at        int               // index of the size that it has, or would start with
	settings  []tuning.Settings // of each size; one while it must not change
	job       allocate.Job      // Left 0: unknown, and so are the speeds
}

// division is what the elastic jobs of a partition get; nothing: they wait.
type division struct {
	at time.Time
	to map[driver.JobID]tuning.Settings
}

// divide decides how many cores an elastic job has, where the site makes the jobs of its partition
// share a number of them. It takes the place of decisions about the job alone; false: these are to
// be made.
func (p *reconciliation) divide(ctx context.Context) (done bool, err error) {
	site := p.services.Site(p.job)
	policy := site.Narrow(p.rec.Policy, p.rec.Own)
	k, _ := policy.Knob(tuning.Cores)
	pending := p.rec.Phase == Waiting && p.job.State == driver.Pending
	switch {
	case p.rec.Phase == Changing:
		return false, nil
	case site.Allocate <= 0, len(k.Counts()) < 2, policy.Mode != tuning.Apply, policy.Checkpoint == nil, p.rec.Phase == Waiting && !pending:
		p.caps.edit(p.rec.Job, func(x *counted) { x.elastic = nil })
		return false, nil
	}
	s, err := p.state(ctx)
	if err != nil {
		return true, err
	}
	epochs := slices.Clone(p.rec.awake())
	for i := range epochs {
		epochs[i].Polluted = false // by the others, among whom it will be
	}
	s.Trials = tuning.TrialsOf(epochs, p.rec.Own)
	s.EpochSeconds = epochSeconds(s.Trials, s.Current)
	e := p.elastic(s, !pending)
	p.classify()
	if p.again = p.tick(); pending {
		p.again = p.patience()
	}
	to, free := p.caps.divide(p.now, p.rec.Job, e, p.cfg.Tick)
	size := slices.IndexFunc(e.settings, to.Equal)
	if len(to) == 0 || size < 0 || size == e.at || e.runs && e.job.Sizes[size].Need[0] > free {
		why := cmp.Or(p.rec.refused(), tuning.ReasonAllocation)
		switch {
		case s.EpochSeconds <= 0 && !pending:
			why = cmp.Or(s.Measured, tuning.ReasonProfiling)
		case p.rec.Phase == Profiling:
			p.to(Settled, DecidedHold, Entry{Reason: why})
		}
		set(p, &p.rec.Reason, why)
		return true, nil
	}
	s.Allotted = to
	d := p.chosen(ctx, s)
	if d.Action == tuning.Hold {
		set(p, &p.rec.Reason, d.Reason)
		return true, nil
	}
	p.caps.edit(p.rec.Job, func(x *counted) { // until it was changed it has the larger of both
		both := *e
		both.at, both.settings, both.job.Sizes = 0, e.settings[max(e.at, size):][:1], e.job.Sizes[max(e.at, size):][:1]
		x.elastic = &both
	})
	by := DecidedChange
	switch {
	case pending:
		by = KnownKind
	case p.rec.Phase == Held:
		p.to(Profiling, LookAgain, Entry{Reason: d.Reason})
	}
	return true, p.begin(ctx, by, d)
}

// elastic returns the job as the division of the cluster sees it now.
func (p *reconciliation) elastic(s tuning.State, runs bool) *elastic {
	sizes := plan.Sizes(s)
	if p.rec.refused() != tuning.ReasonNone {
		sizes = slices.DeleteFunc(sizes, func(x plan.Size) bool { return !x.Settings.Equal(s.Current) }) // it would be refused again
	}
	e := &elastic{partition: p.job.Partition, submitted: p.job.Submitted, runs: runs}
	e.job = allocate.Job{Left: float64(max(0, s.EpochsTotal-s.EpochsDone)), Restart: s.RestartCost.Seconds()}
	own := s.Current[tuning.Cores].Float()
	for i, x := range sizes {
		n := x.Settings[tuning.Cores].Float()
		size := allocate.Size{Need: []float64{n / float64(s.Site.Allocate)}, Speed: 1 / x.Seconds}
		if !(x.Seconds > 0) || e.job.Left == 0 {
			e.job.Left, size.Speed = 0, min(n/own, 1)
		}
		if x.Settings.Equal(s.Current) {
			e.at = i
		}
		e.job.Sizes, e.settings = append(e.job.Sizes, size), append(e.settings, x.Settings)
	}
	return e
}

// refused is why the scheduler once refused to change the job, and would refuse again; none: it has not.
func (r *Record) refused() tuning.Reason {
	for _, e := range r.History {
		if e.Trigger == IntentVoid && e.Reason != tuning.ReasonNoRoom && !plan.Waits(e.Reason) {
			return e.Reason
		}
	}
	return tuning.ReasonNone
}

// divided reports whether the job was given another number of cores for the sake of others: its
// epochs then say nothing about what tuning did to it.
func (r *Record) divided() bool {
	return slices.ContainsFunc(r.History, func(e Entry) bool {
		return e.To == Changing && e.Decision != nil && e.Decision.Reason == tuning.ReasonAllocation
	})
}

// divide notes how a job looks, and returns the settings that it gets and the share of the cores that
// the other running jobs leave free. The jobs of a partition are divided once in a while, and not before
// all had the time to be noted.
func (c *caps) divide(now time.Time, id driver.JobID, e *elastic, tick time.Duration) (to tuning.Settings, free float64) {
	c.edit(id, func(x *counted) {
		x.elastic = e
		c.live[id] = *x
		var ids []driver.JobID
		free = 1 + 1e-9 // shares are rounded
		for other, y := range c.live {
			if o := y.elastic; o != nil && o.partition == e.partition {
				if ids = append(ids, other); o.runs && other != id {
					free -= o.job.Sizes[o.at].Need[0]
				}
			}
		}
		slices.SortFunc(ids, func(a, b driver.JobID) int {
			return cmp.Or(c.live[a].elastic.submitted.Compare(c.live[b].elastic.submitted), cmp.Compare(a, b))
		})
		last, ok := c.divisions[e.partition]
		switch {
		case !ok:
			last.at = now
		case now.Sub(last.at) >= tick*time.Duration(1+len(ids)/8): // many jobs take long to play
			last = division{now, map[driver.JobID]tuning.Settings{}}
			var jobs []allocate.Job
			for _, other := range ids {
				o := c.live[other].elastic
				j := o.job
				if j.Has = o.at; !o.runs {
					j.Has, j.Waited = allocate.Waits, now.Sub(o.submitted).Seconds()
				}
				jobs = append(jobs, j)
			}
			for i, size := range allocate.Choose(guess(jobs)) {
				if size != allocate.Waits {
					last.to[ids[i]] = c.live[ids[i]].elastic.settings[size]
				}
			}
		}
		c.divisions[e.partition] = last
		to = last.to[id]
	})
	return to, free
}

// guess assumes that an unknown job lasts as long as the others have left, and an hour where no
// time is known.
func guess(jobs []allocate.Job) []allocate.Job {
	known, usual := 0.0, 0.0
	for _, j := range jobs {
		if j.Left > 0 {
			known, usual = known+1, usual+j.Left/j.Sizes[max(0, j.Has)].Speed
		}
	}
	if known == 0 {
		known, usual = 1, time.Hour.Seconds()
	}
	for i := range jobs {
		if jobs[i].Left <= 0 {
			jobs[i].Left = usual / known
		}
	}
	return jobs
}
