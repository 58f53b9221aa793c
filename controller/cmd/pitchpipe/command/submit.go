package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// headStart is how long a job with a stanza waits before its start, so that the
// controller can change it while it costs nothing. Slurm ends the wait by itself.
const headStart = 2 * time.Second

// submit submits a job file as the caller, to a controller that tunes everybody's
// jobs and submits none. The controller has judged the file.
func (a *app) submit(ctx context.Context, client *api.Client, s api.Submission) (api.Job, error) {
	file, err := detect.ParseForSlurm(s.Filename, s.Source, s.Variables)
	if err != nil {
		return api.Job{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	spec := driver.Spec{Filename: s.Filename, Source: s.Source, Dir: s.Dir, Env: s.Env}
	if file.Stanza != nil {
		spec.NotBefore = time.Now().Add(headStart)
	}
	id, err := slurm.Submit(ctx, command.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}, file, spec)
	if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) {
		err = fmt.Errorf("%w: %w", errInvalid, err)
	}
	if err != nil {
		return api.Job{}, err
	}
	// From here on the job is there, whatever becomes of the questions about it.
	unseen := api.Job{ID: string(id), Name: file.Name, State: string(driver.Pending), Submitted: time.Now()}
	if s.Off && file.Stanza != nil {
		if err := client.Off(ctx, unseen.ID); err != nil {
			fmt.Fprintf(a.Stderr, "pitchpipe: job %s was submitted, and is not switched off yet: pitchpipe off %s (%v)\n", id, id, err)
		}
	}
	job, err := client.Job(ctx, unseen.ID)
	if err != nil {
		fmt.Fprintf(a.Stderr, "pitchpipe: job %s was submitted, and the controller does not tell of it: %v\n", id, err)
		return unseen, nil
	}
	return job, nil
}
