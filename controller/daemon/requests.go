package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// submission is a job file that the caller sends, read whole; stanza.ErrNone where it has no stanza.
func (r request) submission() (s api.Submission, file *jobfile.Job, p tuning.Policy, err error) {
	if err = decode(r, maxRequest, &s); err != nil {
		return s, nil, p, err
	}
	if file, err = r.d.parse(s.Filename, s.Source, s.Variables); err != nil {
		return s, nil, p, err
	}
	p, err = stanza.Policy(file)
	return s, file, p, err
}

// submit checks the whole job file before anything exists.
func (r request) submit() (any, error) {
	s, _, policy, err := r.submission()
	tuned := err == nil
	if err != nil && !errors.Is(err, stanza.ErrNone) {
		return nil, err
	}
	if r.d.driver.Capabilities().UsersSubmit {
		return nil, errUsersSubmit
	}
	spec := driver.Spec{
		Owner: r.who.Name, Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: s.Env,
	}
	if tuned {
		spec.Progress = progress(policy.Progress)
		if !s.Off {
			spec.NotBefore = r.d.beginsAt(policy, r.who.Name)
		}
	}
	// The caller's name keeps the requests of two users apart: none gets or switches off
	// the other's job.
	id := driver.RequestID(r.who.Name + "/" + cmp.Or(s.Request, newRequestID()))
	off := s.Off && !r.d.pauses.isOff(requestKey(id))
	if off {
		// Written before the job exists, so that the loop cannot see the job first.
		if err := r.d.pauses.switchOff(requestKey(id), time.Now()); err != nil {
			return nil, err
		}
	}
	job, err := r.d.driver.Start(r.Context(), id, spec)
	if off && (errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrNoRoom)) {
		err = errors.Join(err, r.d.pauses.switchOn(requestKey(id))) // after any other error a job may exist, or the request may be repeated
	}
	if err != nil {
		return nil, err
	}
	r.d.queue.Add(job.ID)
	return status(job, nil, time.Now()), nil
}

func (r request) jobs() (any, error) {
	jobs, err := r.d.driver.List(r.Context())
	out, of := []api.Job{}, r.d.searches.Lineages()
	for _, j := range jobs {
		if !r.who.May(j.Owner) {
			continue
		}
		rec, err := r.d.record(r.Context(), j)
		if err != nil && !errors.Is(err, knowledge.ErrDamaged) {
			return nil, err
		}
		one := status(j, rec, time.Now())
		r.trialOf(&one, rec, of[j.ID])
		out = append(out, one)
	}
	return out, err
}

func (r request) status() (any, error) {
	rec, err := r.d.record(r.Context(), r.job)
	if err == nil && rec == nil { // not seen yet: look now
		r.d.queue.Add(r.job.ID)
	}
	out := status(r.job, rec, time.Now())
	r.trialOf(&out, rec, r.d.searches.Lineages()[r.job.ID])
	return out, err
}

// bySearch adds to what is said of a trial's job why its search ended it.
func bySearch(said string, rec *reconcile.Record, t *trials.Trial) string {
	why := fmt.Sprintf("%s, %s", t.State, t.Reason)
	switch {
	case endOf(rec.State, rec.Detail) != searcher.Cancelled:
		return said
	case tuning.Last(t.Jobs) != rec.Job:
		why = "another job of the trial went on"
	case t.State == searcher.Running || t.Reason == rec.Detail: // somebody else cancelled its job
		return said
	}
	said, _, _ = strings.Cut(said, ": ")
	return said + " by its search: " + strings.TrimSuffix(why, ", ")
}

// trialOf adds which trial a job is, and whether its search ended it.
func (r request) trialOf(out *api.Job, rec *reconcile.Record, of trials.Lineage) {
	out.Lineage = of
	if x, err := r.d.searches.Get(of.Search); err == nil && rec != nil {
		out.Sentence = bySearch(out.Sentence, rec, &x.Trials[of.Trial-1])
	}
}

func (r request) explain() (any, error) {
	rec, err := r.d.record(r.Context(), r.job)
	if err != nil {
		return nil, err
	}
	lineage := r.d.searches.Lineages()[r.job.ID]
	if rec == nil {
		return api.Story{
			Lineage: lineage, Job: string(r.job.ID), Verdict: withWait(r.job, string(r.job.State)+", not looked at yet"), Effect: "none: it runs as its owner asked",
			Next: "wait: the controller reads it within seconds", Lines: []api.Line{},
		}, nil
	}
	out := story.Tell(rec)
	out.Lineage = lineage
	if x, err := r.d.searches.Get(lineage.Search); err == nil {
		out.Verdict = bySearch(out.Verdict, rec, &x.Trials[lineage.Trial-1])
	}
	out.Verdict = withWait(r.job, out.Verdict)
	out.Spent = story.Spent(seen(rowOf(rec), r.job, time.Now()))
	if r.URL.Query().Get("replay") != "" {
		story.AddReplays(&out, rec, plan.Decide)
	}
	return out, nil
}

// withWait is the verdict of a job with why it waits.
func withWait(job driver.Job, verdict string) string {
	rest, pending := strings.CutPrefix(verdict, string(driver.Pending))
	if why := waits(job); pending && why != "" {
		return fmt.Sprintf("%s (%s)%s", driver.Pending, why, rest)
	}
	return verdict
}

func (r request) logs() (any, error) {
	offset, err := strconv.ParseInt(cmp.Or(r.URL.Query().Get("offset"), "0"), 10, 64)
	if err != nil || offset < 0 {
		return nil, fmt.Errorf("%w: offset wants a number of bytes", errInput)
	}
	out, err := r.d.driver.Logs(r.Context(), r.job.ID, offset)
	if err != nil {
		return nil, err
	}
	return stream{"text/plain; charset=utf-8", func(w io.Writer) error {
		defer out.Close()
		_, err := io.Copy(w, out)
		return err
	}}, nil
}

// history returns the jobs' events, and when the searches began and ended.
func (r request) history() (any, error) {
	out, of := r.d.records.events(r.who.May), r.d.searches.Lineages()
	for i, e := range out {
		out[i].Lineage = of[driver.JobID(e.Job)]
	}
	for _, x := range r.d.searches.List(r.who.May) {
		out = append(out, searchEvents(x)...)
	}
	slices.SortStableFunc(out, func(a, b api.Event) int { return a.At.Compare(b.At) })
	return out, nil
}

// namespaces are those of Nomad that the controller watches.
func (r request) namespaces() string {
	return cmp.Or(strings.Join(r.d.cfg.Nomad.Namespaces, " "), "default")
}

// validate checks a job file as the command does. Errors of the file are the answer, not an
// error of the request.
func (r request) validate() (any, error) {
	var draft api.Draft
	if err := decode(r, maxFile, &draft); err != nil {
		return nil, err
	}
	ground := verdict.Ground{
		Driver: r.d.driver.Name(), Can: r.d.driver.Capabilities(), Given: r.d.cfg.Given, Site: r.d.site,
		Policy: verdict.PolicyOf(r.d.cfg.Site), User: r.who.Name, Partition: draft.Partition, Account: draft.Account, QOS: draft.QOS,
		Spaces: strings.Fields(r.namespaces()),
	}
	if d, ok := r.d.driver.(interface{ Partition(context.Context) string }); ok {
		ground.Default = func() string { return d.Partition(r.Context()) }
	}
	if d, ok := r.d.driver.(interface{ Fits(driver.Room) error }); ok {
		ground.Fits = d.Fits
	}
	v := verdict.Of(r.d.parse, draft.Filename, draft.Source, draft.Variables, ground)
	if v.Policy != nil && v.Policy.Search != nil {
		var err error
		if v.Epoch, err = r.epoch(draft); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (r request) observations() (any, error) {
	obs, err := r.d.observations(r.who.May)
	return stream{"application/jsonl", func(w io.Writer) error {
		lines := json.NewEncoder(w)
		for _, o := range obs {
			if err := lines.Encode(o); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

// audit notes what the caller does to a job or a scope.
func (r request) audit(action, of string, why tuning.Reason) error {
	return r.d.note(r.Context(), reconcile.Audit{At: time.Now(), Actor: r.who.Name, Job: of, Action: action, Reason: why})
}

// off switches tuning off. A failed audit is an error, and tuning is off all the same.
func (r request) off() (any, error) {
	id := string(r.job.ID)
	err := unaudited("it is switched off", r.audit("off", id, tuning.ReasonOff), r.d.pauses.switchOff(id, r.job.Submitted))
	r.d.queue.Add(r.job.ID)
	return nil, err
}

func (r request) stop() (any, error) {
	err := r.audit("stop", string(r.job.ID), tuning.ReasonCancelled)
	stopped := r.d.driver.Stop(r.Context(), r.job.ID)
	if r.d.driver.Capabilities().UsersSubmit && errors.Is(stopped, driver.ErrDenied) {
		if stopped = errUsersStop; r.d.driver.Name() == "nomad" { // Slurm may have a job of that id, too
			stopped = errDeregister
		}
	}
	return nil, errors.Join(err, stopped)
}

// pauses lists them. Others do not see the pauses that users made of their own jobs.
func (r request) pauses() (any, error) {
	return slices.DeleteFunc(r.d.pauses.list(), func(x api.Pause) bool {
		switch x.Scope {
		case ScopeUser:
			return !r.who.May(x.Name)
		case ScopeJob:
			return x.By != r.who.Name && !r.who.May(r.d.records.digest(driver.JobID(x.Name)).owner)
		}
		return false
	}), nil
}

// pause pauses a scope. A failed audit is an error, and the pause is in force all the same.
func (r request) pause() (any, error) {
	var x api.Pause
	if err := decode(r, 1<<16, &x); err != nil {
		return nil, err
	}
	if err := r.mayPause(x.Scope, x.Name); err != nil {
		return nil, err
	}
	x.By, x.At = r.who.Name, time.Now()
	return nil, unaudited("it is paused", r.audit("pause", pauseKey(x.Scope, x.Name), tuning.ReasonPaused), r.d.pauses.put(x))
}

// unaudited is the error of what was done although it could not be audited.
func unaudited(done string, audit, err error) error {
	if audit != nil && err == nil {
		return fmt.Errorf("%s, but: %w", done, audit)
	}
	return errors.Join(audit, err)
}

func (r request) resume() (any, error) {
	scope, name := r.URL.Query().Get("scope"), r.URL.Query().Get("name")
	if err := r.mayPause(scope, name); err != nil {
		return nil, err
	}
	if _, on := r.d.pauses.get(scope, name); !on {
		return nil, fmt.Errorf("%w: %s is not paused", errInput, strings.TrimSpace(scope+" "+name))
	}
	if err := r.audit("resume", pauseKey(scope, name), tuning.ReasonPaused); err != nil {
		return nil, err
	}
	return nil, r.d.pauses.drop(scope, name)
}

// mayPause refuses a caller who may not change this pause. Root and the controller's own user
// may change every pause; others may make pauses of their own jobs, and lift what they made.
func (r request) mayPause(scope, name string) error {
	switch {
	case !slices.Contains(Scopes(), scope):
		return fmt.Errorf("%w: scope %q; want one of %v", errInput, scope, Scopes())
	case (scope == ScopeCluster) != (name == ""):
		return fmt.Errorf("%w: scope %s and name %q do not go together", errInput, scope, name)
	}
	x, on := r.d.pauses.get(scope, name)
	if seen := r.namespaces(); r.d.cfg.Driver == "nomad" && scope == ScopeUser && !on &&
		seen != "*" && !slices.Contains(strings.Fields(seen), name) {
		return fmt.Errorf("%w: Nomad's jobs belong to namespaces, and the jobs of none called %s are tuned; name one of: %s", errInput, name, seen)
	}
	own, unknown := scope == ScopeUser && r.who.May(name), error(nil)
	if scope == ScopeJob {
		var job driver.Job
		job, unknown = r.d.driver.Get(r.Context(), driver.JobID(name))
		if !on && errors.Is(unknown, driver.ErrNotFound) {
			return noJob(name)
		}
		own = unknown == nil && r.who.May(job.Owner) || on && x.By == r.who.Name
	}
	switch {
	case r.who.Privileged():
		return nil
	case !own && unknown != nil && !errors.Is(unknown, driver.ErrNotFound):
		return unknown
	case !own:
		return errDenied
	case on && x.By != r.who.Name:
		return fmt.Errorf("%w: %s paused it", errDenied, x.By)
	}
	return nil
}
