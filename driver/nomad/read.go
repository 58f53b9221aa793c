package nomad

import (
	"cmp"
	"context"
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
	rec     *record // nil: none

	own   *api.Job   // what its owner wrote
	whose whose      // the present version
	mark  *spec.Mark // of the present version, where it has a change
	first uint64     // version with which its owner last registered it
	task  string     // the main task's name

	blocked *api.Evaluation
}

// whose says who registered the present version of a job.
type whose int

const (
	owners  whose = iota // its owner, or another who stopped it
	ours                 // this controller, or one before it
	kept                 // its owner, with a change of ours in it: that stays ours to take back
	begun                // its owner, with a change that he let the controller choose
	foreign              // a controller whose journal is not here
)

func (f *facts) latest() *api.AllocationListStub {
	return view.Latest(f.allocs, cmp.Or(f.rec, &record{}).Ignored)
}

func (f *facts) alloc(id string) *api.AllocationListStub {
	if i := slices.IndexFunc(f.allocs, func(a *api.AllocationListStub) bool { return a.ID == id }); i >= 0 {
		return f.allocs[i]
	}
	return nil
}

func (f *facts) version() uint64 { return spec.Deref(f.job.Version) }
func (f *facts) stopped() bool   { return spec.Deref(f.job.Stop) }
func (f *facts) dead() bool      { return spec.Deref(f.job.Status) == "dead" }

// observe reads a job and its allocations again. The caller holds the job.
func (d *Driver) observe(ctx context.Context, id driver.JobID) (*facts, error) {
	// A job for which no answer comes does not hold up the others for long.
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
		defer func() { rec.Index = spec.Deref(job.CreateIndex) }()
	}
	if rec != nil && rec.Index != 0 && rec.Index != spec.Deref(job.CreateIndex) {
		// Its owner purged the job and made another of that id.
		d.cfg.Logger.Info("another job has the id", "job", string(id))
		rec = &record{Job: id, saved: rec.saved} // a caller that names intents by the job may give a name again
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
	f.recollect()
	moving := rec != nil && rec.Moving != nil
	if a := f.latest(); moving || (a == nil || view.Over(a)) && !f.dead() {
		f.blocked, err = d.c.blocked(ctx, f.at)
	}
	return f, err
}

// catchUp reads the job again if it was registered again before its allocations were read: an
// attempt would be shown with the settings of a version that it does not have.
func (d *Driver) catchUp(ctx context.Context, f *facts) error {
	if !slices.ContainsFunc(f.allocs, func(a *api.AllocationListStub) bool { return a.JobVersion > f.version() }) {
		return nil
	}
	created := spec.Deref(f.job.CreateIndex)
	var err error
	if f.job, f.unknown, err = d.c.whole(ctx, f.at); err != nil {
		return err
	}
	if spec.Deref(f.job.CreateIndex) != created {
		return fmt.Errorf("job %s was purged and registered again while it was read: %w", f.id, driver.ErrTransient)
	}
	return nil
}

// understand finds out whose the present version is.
func (d *Driver) understand(f *facts) (err error) {
	if _, t := spec.Main(f.job); t != nil {
		f.task = t.Name
	}
	if f.own, err = spec.Owner(f.job); err != nil {
		return err
	}
	r, written := f.rec, f.own
	m, marked := spec.Marked(f.job)
	marked = marked && m.Was == nil
	first, isBegun := spec.Begun(f.job)
	if r == nil || r.Own == nil {
		switch {
		case isBegun:
			f.whose, f.mark = begun, &first
		case marked:
			f.whose = foreign
		}
		return nil
	}
	switch {
	case marked && r.ours(f.version(), m):
		f.whose, f.mark = ours, &m
	case marked && f.stopped() && r.wrote(m):
		// A stop is a version too, and says nothing of what its owner wants.
	case marked && r.has(written, m.Change):
		// He had Nomad revert to a version that was changed here, or start one again that he had
		// stopped: he has not asked for the change.
		f.whose, f.mark, r.Expect = kept, &spec.Mark{Cause: driver.CauseSubmitted, Change: m.Change}, nil
	case !marked && !isBegun && r.has(written, r.resources(f.version())):
		// He registered his own file and had Nomad preserve the resources of the last change.
		f.whose, f.mark, r.Expect = kept, &spec.Mark{Cause: driver.CauseSubmitted, Change: r.resources(f.version())}, nil
	default:
		if isBegun {
			f.whose, f.mark = begun, &first
		}
		asNomadWritesIt := r.Index == 0 && !marked && f.version() == 0
		if !asNomadWritesIt && !spec.Same(written, r.Own) {
			r.Submission = nil
		}
		if !f.stopped() {
			r.Own = written // also where nothing of it differs that is compared
		}
		r.Expect = nil
	}
	f.own = r.Own
	return nil
}

// resources are those of the last change before a version, or its own.
func (r *record) resources(version uint64) driver.Change {
	last, ok := r.Ours[version]
	for before := version; !ok && before > 0; {
		before--
		last, ok = r.Ours[before]
	}
	return driver.Change{Cores: last.Change.Cores, MemoryBytes: last.Change.MemoryBytes}
}

// has reports whether a job is its owner's with a change, and no more.
func (r *record) has(job *api.Job, c driver.Change) bool {
	if c.Empty() || spec.Same(job, r.Own) {
		return false
	}
	as, err := spec.Apply(r.Own, spec.Mark{Change: c})
	return err == nil && spec.Same(job, as)
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

// ours reports whether a version was registered here, and notes it.
func (r *record) ours(version uint64, m spec.Mark) bool {
	if known, ok := r.Ours[version]; ok {
		return known.Is(m)
	}
	if e := r.Expect; e == nil || !e.Mark.Is(m) || e.Version != version {
		return false
	}
	r.note(version, m)
	return true
}

// note notes what a version has instead of its owner's settings.
func (r *record) note(version uint64, m spec.Mark) {
	if r.Ours == nil {
		r.Ours = map[uint64]spec.Mark{}
	}
	r.Ours[version] = m
}

// ownersWord reports whether the present version is what its owner registered, be it with
// a change that he let the controller choose.
func (f *facts) ownersWord() bool {
	return f.whose == kept || f.whose == begun || f.mark == nil
}

// recollect notes what the present version has of a change, also where its owner registers the
// job again with it. A job that he registered with a change gets a record: what he wrote is kept
// before anything else is done to it.
func (f *facts) recollect() {
	if f.whose != begun && f.whose != kept {
		return
	}
	f.rec = cmp.Or(f.rec, &record{Job: f.id})
	f.rec.note(f.version(), *f.mark)
	f.open()
}

// open notes what the record of a job keeps that is new.
func (f *facts) open() {
	r := f.rec
	if r.Own != nil && !r.Submitted.IsZero() {
		return
	}
	r.Own, r.Index, r.First = f.own, spec.Deref(f.job.CreateIndex), f.first
	r.Submitted = time.Unix(0, spec.Deref(f.job.SubmitTime)).UTC()
	_, r.Attempts = view.Job(view.Input{ID: f.id, Job: f.job, Own: f.own, Task: f.task, Allocs: f.allocs, Marks: r.Ours})
}

// begin finds the version with which the id's present job began, and leaves out what ran before.
// A job file that is run again after its job has ended is a new job under the same id: it was
// submitted then, and has its own attempts. A registration while an attempt runs, and one that
// is not its owner's, is of the same job.
func (d *Driver) begin(f *facts) {
	r := f.rec
	if r != nil {
		f.first = r.First
	}
	// A change that was taken back leaves what the owner wrote, and he has run nothing. What
	// was asked to leave by an intent in progress has not ended.
	back := r != nil && r.Own != nil && r.Back != 0 && f.version() == r.Back && spec.Same(f.own, r.Own)
	ran := !back && f.ownersWord() && f.whose != foreign && !f.stopped() && (r == nil || r.Moving == nil)
	if v := f.version(); ran && v != f.first && ended(f.allocs, v, spec.Deref(f.job.JobModifyIndex)) {
		f.first = v
		if r != nil && r.Own != nil {
			d.cfg.Logger.Info("its owner runs it again", "job", string(f.id), "version", v)
			// Intents of the job before are over, and a caller that names them by the job may
			// give one of their names again.
			*r = record{Job: r.Job, Index: r.Index, Own: f.own, First: v, saved: r.saved}
		}
	}
	f.allocs = slices.DeleteFunc(f.allocs, func(a *api.AllocationListStub) bool { return a.JobVersion < f.first })
}

// ended reports whether there were allocations before a version, and all of them were over
// when it was registered: nothing has happened to them since.
func ended(allocs []*api.AllocationListStub, version, registered uint64) bool {
	some := false
	for _, a := range allocs {
		if a.JobVersion >= version {
			continue
		}
		if !view.Over(a) || a.ModifyIndex > registered {
			return false
		}
		some = true
	}
	return some
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
	j.Filename, j.Fingerprint, j.Source, j.Observed = place(f.id).id+".nomad.json", d.fingerprint(f.own), source(f.own), spec.ObservedOnly(f.own)
	if r == nil {
		return j
	}
	r.Attempts = known
	j.Request, j.Variables = r.Request, r.Variables
	if !r.Submitted.IsZero() {
		j.Submitted = r.Submitted
	}
	if r.Source != nil {
		j.Filename, j.Source = r.Filename, r.Source
	}
	if f.mark != nil && (len(j.Attempts) == 0 || j.State == driver.Pending) {
		j.Change, j.Intent = f.mark.Change.Clone(), f.mark.Intent
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
