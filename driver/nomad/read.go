package nomad

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// facts are what was read of one job in one call.
type facts struct {
	id      driver.JobID
	at      where
	job     *api.Job // as it is registered
	unknown string   // what of it is not known here
	allocs  []*api.AllocationListStub
	rec     *record // nil: there is none

	own     *api.Job   // what its owner wrote
	mark    *spec.Mark // of the present version, where it was registered here
	kept    bool       // its owner registered it, and had Nomad keep the resources of a change
	begun   bool       // its owner registered it with that change himself
	foreign bool       // it was changed by one whose journal is not here
	first   uint64     // version with which its owner last ran it anew
	task    string     // the main task's name

	blocked *api.Evaluation
	busy    bool // an evaluation is to be worked on
}

// latest is the allocation that the job is in now, nil where there is none.
func (f *facts) latest() *api.AllocationListStub {
	for _, a := range slices.Backward(f.allocs) {
		if f.rec == nil || !slices.Contains(f.rec.Ignored, a.ID) {
			return a
		}
	}
	return nil
}

// alloc finds an allocation, nil where Nomad has forgotten it.
func (f *facts) alloc(id string) *api.AllocationListStub {
	for _, a := range f.allocs {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (f *facts) version() uint64 { return deref(f.job.Version) }
func (f *facts) stopped() bool   { return deref(f.job.Stop) }
func (f *facts) dead() bool      { return deref(f.job.Status) == "dead" }

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// observe reads a job and its allocations anew. The caller holds the job.
func (d *Driver) observe(ctx context.Context, id driver.JobID) (*facts, error) {
	// A job for which nothing comes keeps nobody from the others for long.
	ctx, done := context.WithTimeout(ctx, answersWithin)
	defer done()
	at := place(id)
	if !d.sees(at.namespace) {
		return nil, fmt.Errorf("job %s: namespace %s is not seen here: %w", id, at.namespace, driver.ErrNotFound)
	}
	rec, err := d.load(ctx, id)
	if err != nil {
		return nil, err
	}
	job, unknown, err := d.c.whole(ctx, at)
	if err != nil {
		return nil, err
	}
	if rec != nil {
		rec.Missing = time.Time{}
	}
	if rec != nil && rec.Index == 0 && rec.Own != nil {
		defer func() { rec.Index = deref(job.CreateIndex) }()
	}
	if rec != nil && rec.Index != 0 && rec.Index != deref(job.CreateIndex) {
		// Its owner purged the job and made another of that id.
		d.cfg.Logger.Info("another job has the id", "job", string(id))
		rec = &record{Job: id, saved: rec.saved} // whoever names intents by the job may give a name again
	}
	f := &facts{id: id, at: at, job: job, unknown: unknown, rec: rec}
	if f.allocs, err = d.c.allocations(ctx, f.at); err != nil {
		return nil, err
	}
	if err := d.catchUp(ctx, f); err != nil {
		return nil, err
	}
	if err := d.understand(f); err != nil {
		return nil, err
	}
	d.begin(f)
	f.keep()
	f.recollect()
	if a := f.latest(); a == nil || view.Over(a) || rec != nil && rec.Moving != nil {
		if !f.dead() || rec != nil && rec.Moving != nil {
			if f.blocked, f.busy, err = d.c.evaluations(ctx, f.at); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// catchUp reads the job again where it was registered anew before its allocations were
// read: an attempt would be told with the settings of a version that it does not have.
func (d *Driver) catchUp(ctx context.Context, f *facts) error {
	if !slices.ContainsFunc(f.allocs, func(a *api.AllocationListStub) bool { return a.JobVersion > f.version() }) {
		return nil
	}
	created := deref(f.job.CreateIndex)
	var err error
	if f.job, f.unknown, err = d.c.whole(ctx, f.at); err != nil {
		return err
	}
	if deref(f.job.CreateIndex) != created {
		return fmt.Errorf("job %s was purged and registered anew while it was read: %w", f.id, driver.ErrTransient)
	}
	return nil
}

// understand tells whose the present version is.
func (d *Driver) understand(f *facts) error {
	if _, t := spec.Main(f.job); t != nil {
		f.task = t.Name
	}
	m, marked := spec.Marked(f.job)
	marked = marked && m.Was == nil
	begun, isBegun := spec.Begun(f.job)
	owner, err := spec.Owner(f.job)
	if err != nil {
		return err
	}
	r := f.rec
	switch {
	case r != nil && r.Own != nil && marked && r.ours(f, m):
		f.mark, f.own = &m, r.Own
	case r != nil && r.Own != nil && marked && f.stopped() && r.wrote(m):
		f.own = r.Own // a stop is a version too, and says nothing of what its owner wants
	case r != nil && r.Own != nil && marked && r.returned(owner, m):
		// It came back with what was registered here: he has not asked for that, and it
		// stays ours to take back.
		f.mark, f.own, f.kept = &spec.Mark{Cause: driver.CauseSubmitted, Change: m.Change}, r.Own, true
		r.Expect = nil
	case isBegun:
		f.mark, f.own, f.begun = &begun, owner, true
		if r != nil && r.Own != nil {
			if !spec.Same(owner, r.Own) {
				r.Own, r.Submission = owner, nil
			}
			f.own, r.Expect = r.Own, nil
		}
	default:
		if r != nil && r.Own != nil && r.Index == 0 && !marked && f.version() == 0 {
			// What was registered here, as Nomad writes it out.
			r.Own = owner
		}
		if r != nil && r.Own != nil && !marked && r.preserved(f, owner) {
			return nil
		}
		f.own, f.foreign = owner, marked && (r == nil || r.Own == nil)
		if r != nil && r.Own != nil {
			// A registration of the owner: what he wrote now is his own.
			if !spec.Same(owner, r.Own) {
				r.Own, r.Submission = owner, nil
			}
			r.Expect = nil
		}
		if r != nil && r.Own != nil {
			f.own = r.Own
		}
	}
	return nil
}

// preserved reports whether the present version is its owner's own file with the resources
// of the last change: he registered it again and had Nomad preserve them. They are still
// ours to take back.
func (r *record) preserved(f *facts, owner *api.Job) bool {
	v := f.version()
	last, ok := r.Ours[v]
	for before := v; !ok && before > 0; {
		before--
		last, ok = r.Ours[before]
	}
	kept := driver.Change{Cores: last.Change.Cores, MemoryBytes: last.Change.MemoryBytes}
	if !ok || kept.Empty() || spec.Same(owner, r.Own) {
		return false
	}
	m := spec.Mark{Cause: driver.CauseSubmitted, Change: kept}
	as, err := spec.Apply(r.Own, m)
	if err != nil || !spec.Same(owner, as) {
		return false
	}
	r.Expect = nil
	f.mark, f.own, f.kept = &m, r.Own, true
	return true
}

// returned reports whether the present version, which has a mark and which nobody registered
// here, is its owner's file with the change of that mark, and no more: he had Nomad revert
// to a version that was changed here, or start one again that he had stopped.
func (r *record) returned(owner *api.Job, m spec.Mark) bool {
	if m.Change.Empty() {
		return false
	}
	as, err := spec.Apply(r.Own, m)
	return err == nil && spec.Same(owner, as)
}

// keep notes what the present version has of a change that its owner kept: also where he
// runs the job anew with it.
func (f *facts) keep() {
	if !f.kept {
		return
	}
	if f.rec.Ours == nil {
		f.rec.Ours = map[uint64]spec.Mark{}
	}
	f.rec.Ours[f.version()] = *f.mark
}

// wrote reports whether a mark is one of a registration from here.
func (r *record) wrote(m spec.Mark) bool {
	for _, known := range r.Ours {
		if known.Is(m) {
			return true
		}
	}
	return r.Expect != nil && r.Expect.Mark.Is(m)
}

// ours reports whether the present version was registered here, and notes it.
func (r *record) ours(f *facts, m spec.Mark) bool {
	v := f.version()
	if known, ok := r.Ours[v]; ok {
		return known.Is(m)
	}
	e := r.Expect
	if e == nil || !e.Mark.Is(m) || e.Version != v {
		return false
	}
	if r.Ours == nil {
		r.Ours = map[uint64]spec.Mark{}
	}
	r.Ours[v] = m
	return true
}

// look makes the job of the facts and keeps what is to be remembered of its attempts.
func (d *Driver) look(f *facts) driver.Job {
	in := view.Input{
		ID: f.id, Job: f.job, Own: f.own, Task: f.task, Allocs: f.allocs, Blocked: f.blocked,
	}
	r := f.rec
	if r != nil {
		in.Marks, in.Known, in.Restarts, in.Ignored, in.Finished, in.Goes = r.Ours, r.Attempts, r.Restarts, r.Ignored, r.Finished, d.goes(f) != stays
	}
	j, known := view.Job(in)
	j.Filename, j.Fingerprint = place(f.id).id+".nomad.json", d.fingerprint(f.own)
	if r == nil {
		j.Source = source(f.own)
		return j
	}
	r.Attempts = known
	j.Request, j.Variables = r.Request, r.Variables
	if !r.Submitted.IsZero() {
		j.Submitted = r.Submitted
	}
	if j.Source = r.Source; j.Source != nil {
		j.Filename = r.Filename
	} else {
		j.Source = source(f.own)
	}
	if n := len(j.Attempts); n == 0 || f.mark != nil && j.State == driver.Pending {
		if f.mark != nil {
			j.Change, j.Intent = f.mark.Change.Clone(), f.mark.Intent
		}
	}
	return j
}

func (d *Driver) fingerprint(own *api.Job) string {
	sum, err := spec.Fingerprint(own)
	if err != nil {
		d.cfg.Logger.Error("a job without a fingerprint", "error", err)
	}
	return sum
}

// forgotten is a job on record that Nomad does not know any more.
func (d *Driver) forgotten(ctx context.Context, id driver.JobID, err error) (driver.Job, bool) {
	if !errors.Is(err, driver.ErrNotFound) {
		return driver.Job{}, false
	}
	r, lerr := d.load(ctx, id)
	if lerr != nil || r == nil || r.Last == nil {
		return driver.Job{}, false
	}
	return *r.Last, true
}
