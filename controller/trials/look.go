package trials

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// look returns what is new about the jobs, in the order in which it happened.
func (s *Service) look(ctx context.Context, one *search) (out []searcher.Event, failed error) {
	var held, waits float64
	runs := map[int]bool{}
	for i := range one.brain.Trials {
		t, jobs := &one.brain.Trials[i], &one.jobs[i]
		if !t.Busy || len(jobs.Jobs) < t.Attempt {
			continue // its job is yet to be started
		}
		v, err := s.cfg.Jobs.See(ctx, jobs.Jobs[t.Attempt-1])
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("look at trial %d: %w", t.Number, err))
			continue
		}
		if v.Request != "" && v.Request != Request(one.Search, t.Number, t.Attempt) { // its scheduler forgot it
			v = View{Over: true, End: searcher.Lost, Detail: "another job has its id"}
		}
		if v.Total > 0 && (one.Plan.Total == 0 || one.Plan.Epochs == 0) {
			one.brain.Know(v.Total)
			one.Plan, one.head = one.brain.Plan, nil
		}
		if out = append(out, s.news(one, t, jobs, v)...); v.Started.IsZero() {
			waits = max(waits, v.Cores)
		} else {
			held, runs[t.Number] = held+v.Cores, true
		}
	}
	if one.crowd.runs = runs; failed == nil {
		one.Room = one.crowd.see(s.cfg.Now(), one.Room, held, waits)
	}
	slices.SortStableFunc(out, func(a, b searcher.Event) int { return cmp.Compare(a.Report.At, b.Report.At) })
	return out, failed
}

func (s *Service) news(one *search, t *searcher.Trial, jobs *Trial, v View) []searcher.Event {
	var out []searcher.Event
	used, last := jobs.Base, v.Started
	known, joules := used.Joules != nil || used.Seconds == 0, used.Measured()
	newest := t.Last().Epoch
	for i, e := range v.Epochs {
		took := e.End.Sub(last).Seconds()
		if v.Started.IsZero() || took < 0 || i > 0 && e.Attempt != v.Epochs[i-1].Attempt { // it waited in between
			took = e.Seconds()
		}
		last = e.End
		used.Seconds += took
		used.Cores, used.Threads = number(e.Settings, v.Own, tuning.Cores), number(e.Settings, v.Own, tuning.Threads)
		used.CoreHours += took / 3600 * used.Cores
		hole := used.Epoch > 0 && e.Number > used.Epoch+1 // an epoch that was not seen, also since the job before
		used.Epoch = e.Number
		if known = known && e.Joules != nil && !hole; e.Joules != nil {
			joules += float64(*e.Joules)
			if !tuning.IsModelled(used.Source) {
				used.Source = e.Source
			}
		}
		used.Joules, used.Metered = nil, joules
		if known {
			used.Joules, used.Metered = new(joules), 0
		}
		if e.Number <= newest {
			continue
		}
		used.At = e.End.Sub(one.Created).Seconds()
		value := e.Loss
		if one.Policy.Quality != nil {
			value = e.Quality
		}
		switch {
		case e.Diverged && t.State != searcher.Running: // its end was decided on
		case e.Diverged:
			out = append(out, searcher.Event{Kind: searcher.Broke, Trial: t.Number, Report: used})
		case value != nil:
			used.Value = *value
			out = append(out, searcher.Event{Kind: searcher.Reported, Trial: t.Number, Report: used})
		}
	}
	if !v.Over {
		if v.Held != "" && jobs.Todo == "" && jobs.Held == "" && t.State == searcher.Running { // no one may come to release it
			jobs.Held, jobs.Todo = "its scheduler held it: "+v.Held, searcher.Stop
		}
		s.renew(one, t, jobs, v)
		return out
	}
	if v.Hours != nil {
		used.CoreHours = jobs.Base.CoreHours + *v.Hours
	}
	end := searcher.Event{Kind: searcher.Ended, Trial: t.Number, End: v.End, Reason: v.Detail, Report: searcher.Report{
		At: s.since(one), Seconds: max(used.Seconds, jobs.Base.Seconds+v.Ran), CoreHours: used.CoreHours, Joules: used.Joules, Metered: used.Metered, Source: used.Source,
	}}
	if v.End == searcher.Succeeded && len(v.Epochs) > 0 && len(t.Reports)+len(out) == 0 {
		end.Reason = searcher.Unvalued + "loss"
		if one.Policy.Quality != nil {
			end.Reason = searcher.Unvalued + "quality"
		}
	}
	jobs.Base = used
	if jobs.Renewed {
		jobs.Renewed, end.End = false, searcher.NoTime
	}
	if jobs.Held != "" {
		end.End, end.Reason, jobs.Held = searcher.Broken, jobs.Held, ""
	}
	return append(out, end)
}

// crowd is what the trials of a search hold, and since when one waits; zero: none does.
type crowd struct {
	runs  map[int]bool
	held  float64   // cores, at the look before
	most  float64   // that they held in two looks, since a trial that moves is seen twice
	since time.Time // when a trial began to wait while others ran
	idle  time.Time // the same beside cores that others gave up
}

const (
	patient  = 5 * time.Second // what schedulers take to start a job where nothing keeps it
	idleness = 5 * time.Minute // after which it is something else than cores that keeps a trial
)

// see returns how many cores the trials get: the most that they held at once, where one waited meanwhile. 0: none did;
// below 0: it is not cores that they wait for.
func (c *crowd) see(now time.Time, room, held, waits float64) float64 {
	lasts := func(since *time.Time, so bool, d time.Duration) bool {
		if !so {
			*since = time.Time{}
		} else if since.IsZero() {
			*since = now
		}
		return so && now.Sub(*since) >= d
	}
	c.most, c.held = max(c.most, min(c.held, held)), held
	if room < 0 || !lasts(&c.since, held > 0 && waits > 0, patient) && room == 0 {
		return room
	}
	room = max(room, c.most)
	if lasts(&c.idle, waits > 0 && held+waits <= room, idleness) {
		return -1
	}
	return room
}

func number(s, own tuning.Settings, knob string) float64 {
	if v := s[knob]; v.IsNumber() {
		return v.Float()
	}
	return own[knob].Float()
}

// reserve is the share of the time that is left for what a job needs besides its epochs.
const reserve = 0.9

// renew ends a job that would meet its time limit before its next rung, while it has a checkpoint of an epoch
// that just ended; another goes on from there.
func (s *Service) renew(one *search, t *searcher.Trial, jobs *Trial, v View) {
	n := len(v.Epochs)
	if !one.Plan.Resumes || v.Limit.IsZero() || n < 2 || jobs.Todo != "" || jobs.Renewed || t.State != searcher.Running {
		return
	}
	epoch := v.Epochs[n-1].Seconds()
	next := one.brain.NextRung(t) - v.Epochs[n-1].Number
	left := v.Limit.Sub(s.cfg.Now()).Seconds() * reserve
	if next > 0 && float64(next)*epoch > left && 2*epoch > left {
		jobs.Renewed, jobs.Todo = true, searcher.Pause
	}
}
