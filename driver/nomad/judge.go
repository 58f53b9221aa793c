package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// Check is the dry run of Advance.
func (d *Driver) Check(ctx context.Context, in driver.Intent) error {
	defer d.hold(in.Job)()
	f, job, err := d.get(ctx, in.Job)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if job.State.Ended() {
		return fmt.Errorf("check: job %s has ended: %w", in.Job, driver.ErrConflict)
	}
	if err := d.judge(ctx, f, in); err != nil {
		return fmt.Errorf("check: job %s: %w", in.Job, err)
	}
	return nil
}

// target is the job to register for a mark, under the id that the job runs under.
func (d *Driver) target(f *facts, m spec.Mark) (*api.Job, error) {
	job, err := spec.Apply(f.own, m)
	if err != nil {
		return nil, err
	}
	f.rename(job)
	return job, nil
}

// rename gives a specification the names of the job that runs.
func (f *facts) rename(job *api.Job) {
	job.ID, job.Name, job.ParentID, job.Namespace, job.Region = &f.at.id, f.job.Name, f.job.ParentID, f.job.Namespace, f.job.Region
}

// judge refuses an intent that this cluster or this job cannot follow, before anything is
// done.
func (d *Driver) judge(ctx context.Context, f *facts, in driver.Intent) error {
	if why := spec.ObservedOnly(f.own); why != "" {
		return fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	if f.unknown != "" {
		return fmt.Errorf("Nomad keeps a setting of it that this version of Pitchpipe does not know, and that a change would drop: %s: %w", f.unknown, driver.ErrUnsupported) //nolint:staticcheck // a name
	}
	if f.whose == foreign {
		return fmt.Errorf("it was changed by a controller whose journal is not here: register it again to have it changed: %w", driver.ErrUnsupported)
	}
	if parent := spec.Deref(f.job.ParentID); parent != "" {
		var is struct {
			Periodic struct{ ProhibitOverlap bool }
		}
		data, err := d.c.registration(ctx, where{f.at.namespace, parent})
		if err == nil {
			err = json.Unmarshal(data, &is)
		}
		switch {
		case err != nil && !errors.Is(err, driver.ErrNotFound):
			return err
		case is.Periodic.ProhibitOverlap:
			return fmt.Errorf("its periodic parent prohibits overlap (prohibit_overlap), and Nomad forgets the parent of a job that is changed: %w", driver.ErrUnsupported)
		}
	}
	job, err := d.target(f, markOf(in))
	if err != nil {
		return err
	}
	if in.Change.Cores > 0 || in.Change.MemoryBytes > 0 {
		if err := d.c.fits(ctx, job); err != nil {
			return err
		}
	}
	if f.queued() {
		return d.c.validate(ctx, f.at, job, func(string) {})
	}
	if err := move.Judge(in, true); err != nil {
		return err
	}
	if err := d.room(ctx, f, job); err != nil {
		return err
	}
	return d.mayRegister(ctx, f.at.namespace)
}

// place asks Nomad what it would do for a specification now: driver.ErrNoRoom where all of
// it could not be placed.
func (d *Driver) place(ctx context.Context, at where, job *api.Job) error {
	plan, _, err := d.c.api.Jobs().Plan(job, false, order(ctx, at.namespace))
	if err != nil {
		return asked("planning "+at.id, planJob, at.namespace, err)
	}
	if len(plan.FailedTGAllocs) > 0 {
		return fmt.Errorf("%w for the change now: %s", driver.ErrNoRoom, view.Failures(plan.FailedTGAllocs))
	}
	return nil
}

// room refuses what could not be placed now: Nomad would keep it for the moment when
// there is room, and end the running attempt then.
func (d *Driver) room(ctx context.Context, f *facts, job *api.Job) error {
	if larger(f.job, job) {
		// Nomad counts what is registered: of two that have yet to save each would have the room.
		node := f.latest().NodeID
		if ids := d.which(func(r brief) bool { return r.grows == node }); slices.ContainsFunc(ids, func(id driver.JobID) bool { return id != f.id }) {
			return fmt.Errorf("%w for the change now: another job is being moved to more on its node", driver.ErrNoRoom)
		}
	}
	return d.place(ctx, f.at, job)
}

// queued reports whether nothing of a job runs that would have to save first: it waits
// for room, for its time, or for its next start in place after a failure. One that its
// template restarts begins at once.
func (f *facts) queued() bool {
	a := f.latest()
	if a == nil || view.Over(a) {
		return true
	}
	t := view.TaskOf(a, f.task)
	return t.Waits && !t.Killed
}

// noJob is the id of a job that there never is.
const noJob = "pitchpipe-may-register"

// granted is how long a right counts that a token had.
const granted = 10 * time.Minute

// mayRegister refuses what only a registration can finish where the token may not
// register: a job that has saved and left by then would not be started again. It asks to
// register, over a version that a job which is not there does not have: Nomad judges the
// right first, and refuses the request either way.
func (d *Driver) mayRegister(ctx context.Context, namespace string) error {
	d.mu.Lock()
	fresh := time.Since(d.registers[namespace]) < granted
	d.mu.Unlock()
	if fresh {
		return nil
	}
	job := api.NewBatchJob(noJob, noJob, "", 50).AddDatacenter("*")
	job.Region = nil
	job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(api.NewTask("t", "raw_exec").SetConfig("command", "true")))
	in := &api.JobRegisterRequest{Job: job, EnforceIndex: true, JobModifyIndex: math.MaxInt64}
	_, err := d.c.api.Raw().Write("/v1/job/"+url.PathEscape(noJob), in, nil, order(ctx, namespace))
	err = asked("asking for the right to register", registerJob, namespace, err)
	var answer api.UnexpectedResponseError
	if answered := errors.As(err, &answer) && answer.HasStatusCode(); errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrTransient) && !answered {
		return err
	}
	// It was refused for its index, or by something that the registration itself will meet.
	d.mu.Lock()
	d.registers[namespace] = time.Now()
	d.mu.Unlock()
	return nil
}
