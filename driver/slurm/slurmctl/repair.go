package slurmctl

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// Config reads the cluster's configuration. It is read where it is needed and not kept: an
// administrator changes it while this process runs.
func Config(ctx context.Context, run command.Runner) (parse.Conf, error) {
	out, err := run.Run(ctx, command.Call{Name: "scontrol", Args: []string{"show", "config"}})
	if err != nil {
		return nil, fmt.Errorf("the configuration of the cluster: %w", err)
	}
	return parse.Config(out.Stdout), nil
}

// remembered is for how long slurmctld must remember an ended job at least, where one that
// is killed for memory is to run again: so long a controller may be away.
const remembered = 2 * time.Minute

// Repairable refuses less memory where a kill for it could not be taken back, or others
// would have been told of it: a dependant of a job that failed never runs, or has run.
func Repairable(ctx context.Context, run command.Runner, j parse.Job) error {
	if !j.Requeue {
		return fmt.Errorf("its owner forbids restarts (--no-requeue), and a kill for memory would need one: %w", driver.ErrDenied)
	}
	conf, err := Config(ctx, run)
	if err != nil {
		return err
	}
	if age := conf.Remembers(); age != 0 && age < remembered {
		return fmt.Errorf("slurmctld forgets ended jobs too soon (MinJobAge) for a kill for memory to be taken back: %w", driver.ErrUnsupported)
	}
	waiting, err := run.Run(ctx, command.Call{Name: "squeue", Args: []string{"-h", "-a", "-r", "-t", "PD", "-o", parse.DependantsFormat}})
	if err != nil {
		return fmt.Errorf("who depends on it: %w", err)
	}
	if id, ok := parse.Dependant(waiting.Stdout, j); ok {
		return fmt.Errorf("job %s depends on it, and would be told of a kill for memory: %w", id, driver.ErrUnsupported)
	}
	return nil
}
