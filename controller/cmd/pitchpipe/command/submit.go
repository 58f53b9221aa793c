package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// headStart is how long a job with a stanza waits before its start, so that the
// controller can change it while it costs nothing. Slurm ends the wait by itself.
const headStart = 2 * time.Second

// submit submits a job file as the caller, to a controller that tunes everybody's
// jobs and submits none. The controller has judged the file. Where a job of that id has
// run before, before is when that one was submitted: until the controller has seen the
// new one, it tells of the old.
func (a *app) submit(ctx context.Context, client *api.Client, s api.Submission) (job api.Job, before time.Time, err error) {
	return a.submitWith(ctx, client, s, nil)
}

// submitWith is submit with what short jobs have shown to be better, which is for Nomad
// alone; nil: there were none.
func (a *app) submitWith(ctx context.Context, client *api.Client, s api.Submission, change *driver.Change) (job api.Job, before time.Time, err error) {
	register, parse := a.submitToSlurm, detect.ParseForSlurm
	if format, err := detect.Format(s.Filename, s.Source); err == nil && format == jobfile.NomadHCL {
		register, parse = a.submitToNomad(client, change), detect.ParseForNomad
	}
	file, err := parse(s.Filename, s.Source, s.Variables)
	if err != nil {
		return api.Job{}, before, fmt.Errorf("%w: %w", errInvalid, err)
	}
	spec := driver.Spec{Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: s.Env}
	if spec.Off = s.Off && file.Stanza != nil; file.Stanza != nil && !spec.Off {
		spec.NotBefore = time.Now().Add(headStart)
	}
	known := map[string]time.Time{}
	if file.Format == jobfile.NomadHCL {
		jobs, err := client.Jobs(ctx)
		if err != nil { // nobody is kept from submitting by that
			a.logger().Debug("the controller does not tell of earlier runs", "err", err)
		}
		for _, j := range jobs {
			known[j.ID] = j.Submitted
		}
	}
	id, err := register(ctx, file, spec)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		err = faults // they say all, with the place of each
	} else if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrConflict) {
		err = fmt.Errorf("%w: %w", errInvalid, err)
	}
	if err != nil {
		return api.Job{}, before, err
	}
	// From here on the job is there, whatever becomes of the questions about it.
	unseen := api.Job{ID: string(id), Name: file.Name, State: string(driver.Pending), Submitted: time.Now()}
	before = known[unseen.ID]
	job, err = client.Job(ctx, unseen.ID)
	if err != nil {
		fmt.Fprintf(a.Stderr, "pitchpipe: job %s was submitted, and the controller does not tell of it: %v\n", id, err)
		return unseen, before, nil
	}
	if !before.IsZero() && job.Submitted.Equal(before) {
		return unseen, before, nil
	}
	return job, before, nil
}

func (a *app) submitToSlurm(ctx context.Context, file *jobfile.Job, s driver.Spec) (driver.JobID, error) {
	return a.submitBy(ctx, command.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}, file, s)
}

// submitBy submits by Slurm's commands, and says where a stanza has it that the job is
// moved and Slurm that it is not.
func (a *app) submitBy(ctx context.Context, run command.Runner, file *jobfile.Job, s driver.Spec) (driver.JobID, error) {
	id, err := slurm.Submit(ctx, run, file, s)
	if err != nil || file.Stanza == nil || s.Off || !slices.ContainsFunc(file.Stanza.Blocks, func(b *jobfile.Block) bool { return b.Type == "checkpoint" }) {
		return id, err
	}
	if moves, err := slurm.Moves(ctx, run, id); err == nil && !moves { // what is not known the controller tells later
		fmt.Fprintf(a.Stderr, "pitchpipe: job %s is only observed once it runs, since it may not be put back into the queue: so say --no-requeue, SBATCH_NO_REQUEUE "+
			"or JobRequeue=0 of the cluster; #SBATCH --requeue in its script allows it\n", id)
	}
	return id, nil
}
