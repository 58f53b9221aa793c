package nomad

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/nomad/spec"
)

// Beginning is a change that a job may be registered with, and its intent.
type Beginning struct {
	Intent string
	Change driver.Change
}

// Submission is how a job is registered as its user does, with the rights of the client.
type Submission struct {
	Client *api.Client
	// Namespace is that of a job file that names none; empty: default.
	Namespace string
	// Change is made as if the job's user had written it; the source that is kept says in
	// a remark what it was.
	Change driver.Change
	// Ask is called, just before a job is registered, with what it is to begin; it is given
	// the job as JSON. The job is registered once, with the answer or without one: asking
	// never fails a submission or makes it twice. Nil: it begins as it is.
	Ask func(ctx context.Context, job []byte) (Beginning, bool)
	// Warn gets, in a sentence each, what the job's user should know: where the
	// completion marker does not reach, and what Nomad warns of. Nil: nothing does.
	Warn func(string)
}

// Submit registers a job as its user does, with the rights of the client, under the
// job file's own id and with his source as the submission. An id under which a job
// lives is refused with driver.ErrConflict: to register over it would end what runs, or
// run again what has ended. Spec.NotBefore does nothing: the job begins when there is room.
func (u Submission) Submit(ctx context.Context, s driver.Spec) (driver.JobID, error) {
	if u.Warn == nil {
		u.Warn = func(string) {}
	}
	job, sub, err := u.draft(ctx, s)
	if err != nil {
		return "", err
	}
	if why := nomadjson.Misread(spec.Deref(job.ID)); why != "" {
		return "", fmt.Errorf("%s: %s: give it another id: %w", s.Filename, why, driver.ErrInvalid)
	}
	to := cluster{api: u.Client}
	at := where{namespace: spec.Deref(job.Namespace), id: spec.Deref(job.ID)}
	if err := to.validate(ctx, at, job, u.Warn); err != nil {
		return "", err
	}
	if err := to.fits(ctx, job); errors.Is(err, driver.ErrInvalid) { // Nomad takes it
		u.Warn("it asks for " + strings.TrimSuffix(err.Error(), ": "+driver.ErrInvalid.Error()) + ": it waits for a larger one")
	}
	index := uint64(0)
	switch there, err := to.job(ctx, at); {
	case errors.Is(err, driver.ErrNotFound):
	case err != nil:
		return "", err
	case spec.Deref(there.Status) != "dead":
		return "", lives(fmt.Sprintf("%s: a job %s lives (%s): stop it first, or give this one another id", s.Filename, at.id, spec.Deref(there.Status)))
	default:
		index = spec.Deref(there.JobModifyIndex)
	}
	if begun, with := u.begin(ctx, to, at, job, sub); begun != nil {
		switch err := to.register(ctx, at, begun, index, with); {
		case err == nil:
			return at.jobID(), nil
		case errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrDenied):
			// It was certainly not taken: once more, as it is.
		default:
			return "", err
		}
	}
	if err := to.register(ctx, at, job, index, sub); err != nil {
		return "", err
	}
	return at.jobID(), nil
}

// lives is driver.ErrConflict in words for the user who submits a second job of an id.
type lives string

func (l lives) Error() string { return string(l) }

func (lives) Unwrap() error { return driver.ErrConflict }

// Stop deregisters a job as its user does, with the rights of the client.
func Stop(ctx context.Context, client *api.Client, id driver.JobID) error {
	return cluster{api: client}.stop(ctx, place(id))
}

// draft is the job of a job file as it is registered, and its source.
func (u Submission) draft(ctx context.Context, s driver.Spec) (*api.Job, *api.JobSubmission, error) {
	job, sub, err := parse(ctx, u.Client, u.Namespace, s, u.Change)
	if err != nil {
		return nil, nil, err
	}
	if spec.Deref(job.Namespace) == "" && u.Namespace != "" {
		job.Namespace = &u.Namespace
	}
	if !u.Change.Empty() {
		sub = note(sub, "chosen by short probes", spec.Mark{Change: u.Change})
	}
	// A submission is its own run, no matter who repeats it.
	if err := once(job, rand.Text()[:12], u.Warn); err != nil {
		return nil, nil, err
	}
	return job, sub, nil
}

// begin is the job with what it was given to begin with; nil: it begins as it is.
func (u Submission) begin(ctx context.Context, to cluster, at where, job *api.Job, sub *api.JobSubmission) (*api.Job, *api.JobSubmission) {
	if u.Ask == nil || spec.ObservedOnly(job) != "" {
		return nil, nil
	}
	b, ok := u.Ask(ctx, source(job))
	if !ok || b.Intent == "" || b.Change.Empty() {
		return nil, nil
	}
	mark := spec.Mark{Intent: b.Intent, Cause: driver.CauseIntent, Change: b.Change}
	begun, err := spec.Begin(job, mark)
	if err == nil {
		err = to.validate(ctx, at, begun, func(string) {})
	}
	if err != nil {
		return nil, nil
	}
	return begun, note(sub, begunNote, mark)
}

// Foresee is the job that a registration would make of this one, in JSON. Nothing is
// asked and nothing is done.
func (d *Driver) Foresee(job []byte) (driver.Job, error) {
	own, at, err := d.prospect(job)
	if err != nil {
		return driver.Job{}, err
	}
	out := d.look(&facts{id: at.jobID(), at: at, job: own, own: own})
	out.Submitted = time.Now().UTC()
	return out, nil
}

func (d *Driver) prospect(source []byte) (*api.Job, where, error) {
	job, err := spec.Decode(source)
	if err != nil {
		return nil, where{}, err
	}
	at := where{namespace: spec.Deref(job.Namespace), id: spec.Deref(job.ID)}
	at.namespace = cmp.Or(at.namespace, api.DefaultNamespace)
	switch {
	case at.id == "":
		return nil, at, fmt.Errorf("a job without an ID: %w", driver.ErrInvalid)
	case !d.sees(at.namespace):
		return nil, at, fmt.Errorf("namespace %s is not seen here: %w", at.namespace, driver.ErrInvalid)
	}
	job.Namespace = &at.namespace
	job.Canonicalize()
	own, err := spec.Owner(job)
	if err != nil {
		return nil, at, err
	}
	if why := spec.ObservedOnly(own); why != "" {
		return nil, at, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	return own, at, nil
}

// MayBegin is the dry run of a registration of the job with a change: nil where it would
// be taken and begin at once. One that would have to wait is better off without a change
// now; it can be changed while it waits.
func (d *Driver) MayBegin(ctx context.Context, job []byte, c driver.Change) error {
	own, at, err := d.prospect(job)
	if err != nil {
		return err
	}
	switch there, err := d.c.job(ctx, at); {
	case err == nil && spec.Deref(there.Status) != "dead":
		return fmt.Errorf("a job %s lives: %w", at.id, driver.ErrConflict)
	case err == nil && there.ParentID != nil && *there.ParentID != "":
		return fmt.Errorf("%s is the child of another job: %w", at.id, driver.ErrUnsupported)
	}
	begun, err := spec.Begin(own, spec.Mark{Intent: "dry run", Cause: driver.CauseIntent, Change: c})
	if err != nil {
		return err
	}
	return d.place(ctx, at, begun)
}

// begunNote is what the submission of a job says that began with a change.
const begunNote = "what jobs of its kind ran best with, from its start"

// theirs is the source of a version as its owner wrote it, without what was put before
// it where he registered it with a change.
func (f *facts) theirs(sub *api.JobSubmission) *api.JobSubmission {
	if sub == nil || f.whose != begun {
		return sub
	}
	out := *sub
	out.Source = strings.TrimPrefix(sub.Source, remarks(begunNote, *f.mark))
	return &out
}
