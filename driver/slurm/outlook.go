package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// Outlook tells how long the job would wait for room if it were put back into the
// queue now, and which reservation takes the job's node next. Where no other job
// waits for room in its partition, its own room is still there. Else Slurm is asked
// when a job of this size would start if it were submitted now, which is an estimate
// from above: the room that the job itself leaves is not counted. A task of an array
// of which only some may run at a time would leave its turn to another, and nobody
// can tell when one is free again: the array as a whole loses nothing by that.
func (d *Driver) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	j, err := d.read(ctx, id)
	if errors.Is(err, driver.ErrNotFound) && number(id) {
		_, err := d.Get(ctx, id)
		return driver.Outlook{}, err
	}
	if err != nil {
		return driver.Outlook{}, fmt.Errorf("outlook: %w", err)
	}
	var out driver.Outlook
	if parse.Ended(j.State) {
		return out, nil
	}
	queued, turns, err := d.queued(ctx, j)
	if err != nil {
		return out, fmt.Errorf("outlook: %w", err)
	}
	if !turns {
		if out.Wait, err = d.room(ctx, j, queued); err != nil {
			return out, fmt.Errorf("outlook: %w", err)
		}
	}
	out.Closed, out.ClosedBy, err = d.closed(ctx, j, time.Now())
	return out, err
}

// room is how long the job would wait for room; nil where nobody can tell.
func (d *Driver) room(ctx context.Context, j parse.Job, queued bool) (*time.Duration, error) {
	if !queued && !parse.Waiting(j.State) {
		return new(time.Duration), nil
	}
	start, err := d.expected(ctx, j)
	if err != nil {
		return nil, ctx.Err()
	}
	wait := min(max(time.Until(start), 0), longest)
	return &wait, nil
}

// longest is the longest wait that is told: Slurm answers with a year and more where
// a job without a time limit runs.
const longest = 365 * 24 * time.Hour

// queued tells whether another job waits for room in the job's partition, and whether
// another task of its array waits for its turn. One that waits for its dependency,
// its time or its owner is not in the way.
func (d *Driver) queued(ctx context.Context, j parse.Job) (queued, turns bool, err error) {
	out, err := d.ask(ctx, "squeue", "-h", "-a", "-r", "-t", "PENDING", "-p", j.Partition, "-o", "%i %r")
	if err != nil {
		return false, false, err
	}
	for line := range strings.Lines(string(out)) {
		id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if id == string(nameOf(j)) {
			continue
		}
		switch why {
		case "Resources", "Priority", "None":
			queued = true
		case "JobArrayTaskLimit":
			turns = turns || j.ArrayJob != "" && arrayOf(driver.JobID(id)) == j.ArrayJob
		}
	}
	return queued, turns, nil
}

// expected asks for the start of a job like this one, without creating it.
func (d *Driver) expected(ctx context.Context, j parse.Job) (time.Time, error) {
	size := sizeOf(j)
	args := []string{"--test-only", "--partition=" + j.Partition, fmt.Sprintf("--cpus-per-task=%d", size.Cores), "--wrap=true"}
	if size.MemoryPerCPU {
		args = append(args, fmt.Sprintf("--mem-per-cpu=%dM", size.MemoryBytes>>20))
	} else if size.MemoryBytes > 0 {
		args = append(args, fmt.Sprintf("--mem=%dM", size.MemoryBytes>>20))
	}
	if size.TimeLimit > 0 {
		args = append(args, fmt.Sprintf("--time=%d", int(size.TimeLimit.Minutes())))
	}
	if j.Account != "" {
		args = append(args, "--account="+j.Account)
	}
	if j.QOS != "" {
		args = append(args, "--qos="+j.QOS)
	}
	env := append(environment(nil), "TZ=UTC", "LC_ALL=C")
	out, err := d.cfg.Commands.Run(ctx, command.Call{Name: "sbatch", Args: args, Env: env})
	if err != nil {
		return time.Time{}, err
	}
	return parse.ExpectedStart(out.Stderr)
}

// closed finds the reservation that next takes the job's node, or its partition.
func (d *Driver) closed(ctx context.Context, j parse.Job, now time.Time) (time.Time, string, error) {
	printed, err := d.ask(ctx, "scontrol", "-o", "show", "reservation")
	if err != nil {
		return time.Time{}, "", fmt.Errorf("outlook: reservations: %w", err)
	}
	all, err := parse.Reservations(printed)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("outlook: %w: %w", driver.ErrTransient, err)
	}
	var next parse.Reservation
	for _, r := range all {
		if r.Name == j.Reservation || !r.End.After(now) || next.Name != "" && !r.Start.Before(next.Start) {
			continue
		}
		touches, err := d.touches(ctx, r, j)
		if err != nil {
			return time.Time{}, "", err
		}
		if touches {
			next = r
		}
	}
	return next.Start, next.Name, nil
}

func (d *Driver) touches(ctx context.Context, r parse.Reservation, j parse.Job) (bool, error) {
	switch {
	case r.Nodes == "":
		return r.Partition == j.Partition && r.Partition != "", nil
	case j.Node == "":
		return false, nil // nobody knows yet where it will run
	}
	out, err := d.ask(ctx, "scontrol", "show", "hostnames", r.Nodes)
	if err != nil {
		return false, fmt.Errorf("outlook: nodes of reservation %s: %w", r.Name, err)
	}
	return slices.Contains(strings.Fields(string(out)), j.Node), nil
}
