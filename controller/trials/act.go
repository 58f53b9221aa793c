package trials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// Request is what makes starting an attempt of a trial repeatable.
func Request(x Search, trial, attempt int) driver.RequestID {
	return driver.RequestID(fmt.Sprintf("%s/%s%s/%d/%d", x.Owner, requestMark, x.ID, trial, attempt))
}

const requestMark = "search-"

// SearchOf is the search that a job was started for, as a trial; empty: for none.
func SearchOf(job driver.Job) string {
	_, request, _ := strings.Cut(string(job.Request), "/"+requestMark)
	id, _, _ := strings.Cut(request, "/")
	return id
}

// act carries out what was decided. All searches together start one job at most in the time of a round, so
// that a scheduler gets two a second. The trial that was started last comes last: its start may fail for ever.
func (s *Service) act(ctx context.Context, one *search) (failed error) {
	first, n := one.tried, len(one.jobs)
	for k := range n {
		i := (first + k) % n
		t, jobs := &one.brain.Trials[i], &one.jobs[i]
		var err error
		switch jobs.Todo {
		case searcher.Stop, searcher.Pause:
			err = s.stop(ctx, one, t, jobs)
		case searcher.Create, searcher.Resume:
			if now := s.cfg.Now(); now.Sub(s.started) >= s.cfg.Tick && now.Sub(one.refused) >= pause {
				s.started, s.last, one.tried = now, one.ID, i+1
				err = s.start(ctx, one, t, jobs)
			}
		default:
			s.clean(one, t, jobs)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s trial %d: %w", jobs.Todo, t.Number, err))
		}
	}
	return failed
}

// stop ends the trial's job. Where it is unknown whether its start was carried out, it is looked for.
func (s *Service) stop(ctx context.Context, one *search, t *searcher.Trial, jobs *Trial) error {
	if len(jobs.Jobs) < t.Attempt {
		found, err := s.cfg.Jobs.Find(ctx, Request(one.Search, t.Number, t.Attempt))
		if errors.Is(err, driver.ErrNotFound) {
			jobs.Todo = ""
			return s.handle(one, searcher.Event{Kind: searcher.Ended, Trial: t.Number, End: searcher.Cancelled, Report: searcher.Report{At: s.since(one)}})
		}
		if err != nil {
			return err
		}
		jobs.has(t.Attempt, found)
	}
	if err := s.cfg.Jobs.Stop(ctx, jobs.Jobs[t.Attempt-1]); err != nil && !errors.Is(err, driver.ErrNotFound) {
		return err
	}
	jobs.Todo = ""
	return nil
}

// Where a search's owner may have no more jobs (driver.ErrNoRoom) it asks again after a pause. Where it has no job
// that could end, it gives its trials up when its patience is at its end: the limit may be 0.
const (
	pause    = 10 * time.Second
	patience = time.Hour
)

func (s *Service) start(ctx context.Context, one *search, t *searcher.Trial, jobs *Trial) error {
	fix, err := FixOf(one.Policy, t.Settings)
	var file JobFile
	if err == nil {
		file, err = one.Job.with(fix)
	}
	if err == nil {
		err = makeFolder(Folder(one.Job.Dir, one.Name, one.ID, t.Number), one.UID)
	}
	var id driver.JobID
	if err == nil {
		spec := driver.Spec{
			Owner: one.Owner, Filename: file.Filename, Source: file.Source, Variables: file.Variables, Dir: file.Dir,
			Env: environment(one.Search, t, fix), Namespace: file.Namespace,
		}
		id, err = s.cfg.Jobs.Start(ctx, one.Search, Request(one.Search, t.Number, t.Attempt), spec)
	}
	full, now := errors.Is(err, driver.ErrNoRoom), s.cfg.Now()
	if full {
		one.refused = now
	}
	if !full || one.room.IsZero() || slices.ContainsFunc(one.brain.Trials, func(t searcher.Trial) bool { return t.Busy && len(one.jobs[t.Number-1].Jobs) == t.Attempt }) {
		one.room = now
	}
	switch {
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrDenied), now.Sub(one.room) >= patience:
		jobs.Todo = ""
		return s.handle(one, searcher.Event{
			Kind: searcher.Ended, Trial: t.Number, End: searcher.Broken, Reason: err.Error(), Report: searcher.Report{At: s.since(one)},
		})
	case err != nil:
		jobs.Trouble = err.Error()
		return err
	}
	jobs.has(t.Attempt, id)
	jobs.Todo = ""
	return nil
}

// has notes the job of an attempt. An earlier attempt that never started has none.
func (t *Trial) has(attempt int, id driver.JobID) {
	t.Jobs = append(t.Jobs, make([]driver.JobID, max(0, attempt-1-len(t.Jobs)))...)
	t.Jobs, t.Trouble = append(t.Jobs, id), ""
}

// environment is what a trial's job gets besides its owner's environment.
func environment(x Search, t *searcher.Trial, fix jobfile.Fix) map[string]string {
	return driver.Merge(driver.Merge(x.Job.Env, fix.Env), map[string]string{
		"PITCHPIPE_SEARCH": x.ID, "PITCHPIPE_TRIAL": strconv.Itoa(t.Number),
		"PITCHPIPE_TRIAL_DIR": Folder(x.Job.Dir, x.Name, x.ID, t.Number),
	})
}

// clean deletes the folder of a trial that no rung can recall, but for that of the best.
func (s *Service) clean(one *search, t *searcher.Trial, jobs *Trial) {
	over := t.State == searcher.Stopped || t.State == searcher.Failed || t.State == searcher.Diverged
	if !over || t.Busy || jobs.Cleaned || t.Cut || t.Spared {
		return
	}
	if r := one.brain.Ranking(); len(r) > 0 && r[0].Number == t.Number {
		return
	}
	jobs.Cleaned = true
	if err := Remove(one.Job.Dir, one.Name, one.ID, t.Number, one.UID); err != nil {
		s.cfg.Log.Info("the folder of a trial stays", "search", one.ID, "trial", t.Number, "error", err)
	}
}

// FixOf is what makes the job file of a search run settings as an ordinary job, without the search and
// without the knobs that it varied. The error is driver.ErrInvalid or driver.ErrUnsupported.
func FixOf(p tuning.Policy, s tuning.Settings) (jobfile.Fix, error) {
	c, err := reconcile.Change(p, nil, p.Complete(s))
	switch {
	case err != nil:
		return jobfile.Fix{}, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case len(c.Live) > 0:
		return jobfile.Fix{}, fmt.Errorf("a live knob of a search: want one with env or arg: %w", driver.ErrUnsupported)
	}
	rest := p.Trial()
	fix := jobfile.Fix{Env: c.Env, Args: c.Args, Cores: c.Cores, Mode: string(rest.Mode)}
	for _, k := range p.Knobs {
		if _, stays := rest.Knob(k.Name); !stays {
			fix.Knobs = append(fix.Knobs, k.Name)
		}
	}
	return fix, nil
}

// with is the job file of a trial: what its environment does not carry is written into it.
func (f JobFile) with(fix jobfile.Fix) (JobFile, error) {
	if len(fix.Args) == 0 && fix.Cores == 0 {
		return f, nil
	}
	var err error
	f.Source, err = detect.Fix(f.Filename, f.Source, f.Variables, jobfile.Fix{Args: fix.Args, Cores: fix.Cores, Search: true})
	if err != nil {
		return f, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return f, nil
}
