package reconcile

import (
	"context"
	"fmt"
	"slices"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ReturnRequest is what is asked about a job that has not started, and whose kind has run
// before.
type ReturnRequest struct {
	Policy   tuning.Policy // narrowed by the site
	Own      tuning.Settings
	Past     []tuning.PastRun
	Avoid    []tuning.Settings // that made jobs of its kind worse
	Underway []tuning.Settings // that other jobs of its kind are trying now
	Modelled bool              // joules that were only computed may decide
}

// returns adds to the state of a pending job what the earlier runs of its kind say, and to
// that of a running one which only whole runs could tune.
func (p *pass) returns(ctx context.Context, s *tuning.State) error {
	if !s.Pending && s.NextReason != tuning.ReasonWholeRuns || s.Gate != tuning.ReasonNone || p.stages.Past == nil || p.stages.Return == nil {
		return nil
	}
	past, err := p.stages.Past(ctx, p.rec.Kind)
	if err != nil {
		return fmt.Errorf("recall the runs of %s: %w", p.rec.Kind, err)
	}
	if len(past) == 0 {
		return nil
	}
	out := p.stages.Return(ReturnRequest{
		Policy: s.Policy, Own: s.Own, Past: past, Avoid: s.Regressed, Underway: p.caps.underway(p.rec),
		Modelled: s.Site.EnforceModel,
	})
	s.Returns = &out
	p.triable = s.Policy.Budget.Returns
	for _, r := range past {
		if r.Trying {
			p.triable--
		}
	}
	return nil
}

// claim takes one of the returns that may try a setting, before the intent is made: two
// jobs of a kind that wait at one time are decided about side by side.
func (p *pass) claim(d tuning.Decision) tuning.Reason {
	if d.Reason != tuning.ReasonTryingReturn || p.caps.try(p.rec, d.Settings, p.triable) {
		return tuning.ReasonNone
	}
	return tuning.ReasonBudgetReturns
}

// unclaim gives it back where nothing came of the decision.
func (p *pass) unclaim(r tuning.Reason) {
	if r == tuning.ReasonTryingReturn {
		p.caps.untry(p.rec.Job)
	}
}

// Trying tells whether the job began under a setting that was to be tried.
func (r *Record) Trying() bool {
	if r.run(1).Action != tuning.Move {
		return false
	}
	for _, e := range slices.Backward(r.History) {
		if e.To == Recalled && e.Decision != nil {
			return e.Decision.Reason == tuning.ReasonTryingReturn
		}
	}
	return false
}

// tries is the setting that a live job tries or is about to try.
func (r *Record) tries() (tuning.Settings, bool) {
	switch {
	case r.Phase.Over():
	case r.Move != nil && r.Phase == Recalled && r.Move.Decision.Reason == tuning.ReasonTryingReturn:
		return r.Move.Decision.Settings, true
	case r.Trying():
		return r.Settings(1), true
	}
	return nil, false
}

// attempt is a setting that a live job of a kind tries.
type attempt struct {
	kind     tuning.JobKind
	settings tuning.Settings
}

// try counts a job that is about to try a setting, where fewer than so many others of its
// kind do.
func (c *caps) try(r *Record, s tuning.Settings, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := 0
	for job, a := range c.trying {
		if job != r.Job && a.kind == r.Kind {
			others++
		}
	}
	if others >= most {
		return false
	}
	if c.trying == nil {
		c.trying = map[driver.JobID]attempt{}
	}
	c.trying[r.Job] = attempt{r.Kind, s}
	return true
}

func (c *caps) untry(id driver.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trying, id)
}

// underway are the settings that other live jobs of its kind try, the same each time.
func (c *caps) underway(r *Record) []tuning.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	var jobs []driver.JobID
	for job, a := range c.trying {
		if job != r.Job && a.kind == r.Kind {
			jobs = append(jobs, job)
		}
	}
	slices.Sort(jobs)
	out := make([]tuning.Settings, 0, len(jobs))
	for _, job := range jobs {
		out = append(out, c.trying[job].settings)
	}
	return out
}

// end is how the job ended, as far as that says something about its settings.
func (p *pass) end() tuning.End {
	began := p.rec.Settings(1)
	died := p.killed() || slices.ContainsFunc(p.rec.Hurt, began.Equal)
	switch {
	case len(p.rec.Runs) == 0:
		return tuning.EndUnknown
	case p.job.State == driver.Succeeded && p.rec.Done() > 0:
		return tuning.EndReached
	case p.job.State == driver.Succeeded:
		return tuning.EndUnknown // nobody saw an epoch of it
	case died && p.rec.Settings(p.job.Attempt).Equal(began):
		return tuning.EndFailed
	}
	return tuning.EndCut
}

// lost is the lesson of a job whose end nobody saw: that it tried a setting counts.
func (p *pass) lost(ctx context.Context) error {
	if p.rec.Learned || !p.rec.Trying() {
		return nil
	}
	defer p.caps.release(p.rec.Job)
	err := p.stages.Learn(ctx, Lesson{
		Job: string(p.rec.Job), Submitted: p.rec.Submitted, Owner: p.rec.Owner, Kind: p.rec.Kind,
		Began: p.rec.Settings(1), Trying: true, At: p.now,
	})
	if err != nil {
		return fmt.Errorf("learn that %s was tried: %w", p.rec.Job, err)
	}
	p.rec.Learned = true
	return nil
}
