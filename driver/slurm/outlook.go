package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// Outlook says how long the job would wait for room if it were put back into the
// queue now, and which reservation takes the job's node next. Where no other job
// waits for the room that it has, and its node takes jobs, that room is still there. Else
// Slurm is asked when a job of this size would start if it were submitted now, which is an
// estimate from above: the room that the job itself leaves is not counted. Outlook.Crowded says
// why where that cannot be asked, or others wait for the same limit. A task of an array that
// may run only some at a time would leave its turn to another, and no one can tell when one is
// free again: the array as a whole loses nothing by that.
func (d *Driver) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	j, err := d.read(ctx, id)
	if errors.Is(err, driver.ErrNotFound) && parse.Named(string(id)) {
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
	overlaps, err := d.closed(ctx, j, time.Now(), &out)
	if err != nil {
		return out, err
	}
	room, err := d.room(ctx, j)
	if err != nil {
		return out, fmt.Errorf("outlook: %w", err)
	}
	switch {
	case room.turns:
	case room.crowded != "":
		out.Crowded = room.crowded
	case !room.taken && !overlaps && !parse.Waiting(j.State):
		out.Wait = new(time.Duration)
	default:
		out.Wait, out.Crowded, err = d.wait(ctx, j)
	}
	return out, err
}

// longest is the longest wait that is reported: Slurm answers with a year and more where
// a job without a time limit runs.
const longest = 365 * 24 * time.Hour

// wait is how long a job like this one would wait if it were submitted now, or why no one
// can tell.
func (d *Driver) wait(ctx context.Context, j parse.Job) (*time.Duration, string, error) {
	if len(j.Picky) > 0 {
		return nil, "others may take its room, and Slurm predicts no start for a job with " + strings.Join(j.Picky, ", "), nil
	}
	start, err := d.expected(ctx, j)
	if err != nil && ctx.Err() != nil {
		return nil, "", fmt.Errorf("outlook: %w", ctx.Err())
	}
	if err != nil {
		d.cfg.Logger.Debug("when a job would start is not known", "job", string(nameOf(j)), "error", err)
		return nil, "others may take its room, and Slurm predicts no start for a job of its size", nil
	}
	return new(min(max(time.Until(start), 0), longest)), "", nil
}

// room is what happens to a job's room once the job is back in the queue.
type room struct {
	taken   bool   // others may be given it
	ahead   bool   // another waits for room there
	turns   bool   // another task of its array waits for its turn
	crowded string // why no one can tell when the job would have room again
}

// room looks at the job's node, its partition, and who waits there. A job that waits for
// its dependency, its time or its owner is not in the way.
func (d *Driver) room(ctx context.Context, j parse.Job) (room, error) {
	partitions := strings.Split(j.Partition, ",")
	var out room
	if j.Node != "" && !parse.Waiting(j.State) {
		places, err := command.Read(ctx, d.cfg.Commands, parse.Nodes, "sinfo", "-h", "-a", "-N", "-n", j.Node, "-O", parse.NodeFormat)
		if err != nil {
			return out, err
		}
		out.taken = !slices.ContainsFunc(places, func(n parse.Node) bool { return n.Name == j.Node && n.Open })
		for _, p := range places {
			if p.Partition == j.Partition && !p.Up {
				out.crowded = "its partition starts no jobs now"
			}
			if p.Name == j.Node && !slices.Contains(partitions, p.Partition) {
				partitions = append(partitions, p.Partition) // whose jobs may be given the room
			}
		}
	}
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	if err != nil {
		return out, err
	}
	out.taken = out.taken || conf.HidesJobs() // who waits is not shown
	waits, err := command.Read(ctx, d.cfg.Commands, parse.Waits, "squeue", "-h", "-a", "-r", "-t", "PENDING", "-p", strings.Join(partitions, ","), "-O", parse.WaitFormat)
	if err != nil {
		return out, err
	}
	for _, w := range waits {
		if w.ID == string(nameOf(j)) {
			continue
		}
		switch w.Way() {
		case parse.Aside:
		case parse.Turn:
			out.turns = out.turns || j.ArrayJob != "" && arrayOf(driver.JobID(w.ID)) == j.ArrayJob
		case parse.Limited:
			out.taken = true
			if w.Shares(j) {
				out.crowded = "others wait for a limit that it shares (" + w.Reason + ")"
			}
		case parse.Ahead:
			out.taken, out.ahead = true, true
		}
	}
	return out, nil
}

// expected asks for the start of a job like this one, without creating it. Where this
// process may not name the job's account and QOS it leaves them out: what is asked for is room.
func (d *Driver) expected(ctx context.Context, j parse.Job) (time.Time, error) {
	size := slurmctl.SizeOf(j)
	args := arguments{"--test-only", "--partition=" + j.Partition, fmt.Sprintf("--cpus-per-task=%d", size.Cores), "--wrap=true"}
	args.when(size.PerCPU, fmt.Sprintf("--mem-per-cpu=%dM", size.Bytes>>20))
	args.when(!size.PerCPU && size.Bytes > 0, fmt.Sprintf("--mem=%dM", size.Bytes>>20))
	args.when(size.TimeLimit > 0, fmt.Sprintf("--time=%d", int(size.TimeLimit.Minutes())))
	var named arguments
	named.when(j.Account != "", "--account="+j.Account)
	named.when(j.QOS != "", "--qos="+j.QOS)
	tested := func(args []string) (time.Time, error) {
		env := append(driver.Environ(environment(nil)), "TZ=UTC", "LC_ALL=C")
		out, err := d.cfg.Commands.Run(ctx, command.Call{Name: "sbatch", Args: args, Env: env})
		if err != nil {
			return time.Time{}, err
		}
		return parse.ExpectedStart(out.Stderr)
	}
	start, err := tested(append(named, args...))
	if err != nil && d.cfg.Everyone && len(named) > 0 && ctx.Err() == nil {
		return tested(args)
	}
	return start, err
}

// closed finds the reservation that next takes the job's node, or its partition. A job that
// runs in its own reservation is started there only while its whole limit fits. It reports
// whether a reservation begins within a time limit from now, so that Slurm would not put the
// job where it is.
func (d *Driver) closed(ctx context.Context, j parse.Job, now time.Time, next *driver.Outlook) (overlaps bool, err error) {
	all, err := command.Read(ctx, d.cfg.Commands, parse.Reservations, "scontrol", "-o", "show", "reservation")
	if err != nil {
		return false, fmt.Errorf("outlook: reservations: %w", err)
	}
	limit := cmp.Or(j.Limit(), longest) // Slurm takes a job without one for one of a year
	sooner := func(at time.Time, name string) {
		if next.ClosedBy == "" || at.Before(next.Closed) {
			next.Closed, next.ClosedBy = at, name
		}
	}
	for _, r := range all {
		if !r.End.After(now) {
			continue
		}
		if slices.Contains(strings.Split(j.Reservation, ","), r.Name) {
			if !r.Flexible {
				sooner(r.End.Add(-limit), r.Name)
			}
			continue
		}
		touches, err := d.touches(ctx, r, j)
		if err != nil {
			return false, err
		}
		if touches {
			sooner(r.Start, r.Name)
			overlaps = overlaps || r.Start.Before(now.Add(limit))
		}
	}
	return overlaps, nil
}

func (d *Driver) touches(ctx context.Context, r parse.Reservation, j parse.Job) (bool, error) {
	switch {
	case r.Nodes == "":
		return r.Partition == j.Partition && r.Partition != "", nil
	case j.Node == "":
		return false, nil // no one knows yet where it will run
	}
	out, err := command.Ask(ctx, d.cfg.Commands, "scontrol", "show", "hostnames", r.Nodes)
	if err != nil {
		return false, fmt.Errorf("outlook: nodes of reservation %s: %w", r.Name, err)
	}
	return slices.Contains(strings.Fields(string(out)), j.Node), nil
}

// claim is what a job will have of its node.
type claim struct {
	node string
	room driver.Room
}

// rooms are what a job that runs has, which may be more CPUs than it asked for, and what it
// is to have. One that asked for no memory has all that its node has.
func rooms(j parse.Job, r *Record, c driver.Change) (has, want driver.Room) {
	has, want = resources(slurmctl.SizeOf(j)).Room(), resources(target(r.Own, c)).Room()
	has.Cores = max(has.Cores, j.CPUs)
	if has.Memory == 0 {
		want.Memory = 0
	}
	return has, want
}

// grow refuses to give a running job more where it would have to wait: behind those that wait,
// or since no node has it free besides what others that are being moved will have. The way back
// to what its owner asked for is always open.
func (d *Driver) grow(ctx context.Context, j parse.Job, r *Record, c driver.Change) error {
	has, want := rooms(j, r, c)
	if c.Empty() || !want.Beyond(has) {
		return nil
	}
	room, err := d.room(ctx, j)
	if err != nil {
		return fmt.Errorf("who waits for room: %w", err)
	}
	if room.ahead || room.crowded != "" {
		return fmt.Errorf("%w: %s", driver.ErrNoRoom, cmp.Or(room.crowded, "others wait for it"))
	}
	nodes, err := command.Read(ctx, d.cfg.Commands, parse.Nodes, "sinfo", "-h", "-N", "-p", j.Partition, "-O", parse.NodeFormat)
	if err != nil {
		return fmt.Errorf("what is free: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var free []driver.Room
	for _, n := range nodes {
		left := driver.Room{Cores: n.Idle, Memory: n.Free}
		switch {
		case !n.Open:
			continue
		case n.Name == j.Node:
			left = left.Plus(has)
		case len(j.Picky) > 0: // whether that node would do is unknown
			continue
		}
		for id, c := range d.claims {
			if id != r.Job && c.node == n.Name {
				left = left.Minus(c.room)
			}
		}
		free = append(free, left)
	}
	return driver.Grow(has, want, free...)
}

// claim notes what a job will have of its node that is between two attempts, or on its way
// to more than it has. It counts as taken until the next attempt is seen to run.
func (d *Driver) claim(r *Record) {
	var want driver.Room
	switch m := r.Moving; {
	case r.Last != nil || r.Node == "":
	case r.Next != nil:
		want = resources(r.Next.Size).Room()
	case m != nil:
		want = resources(target(r.Own, m.Intent.Change)).Room()
		if left := m.Phase == move.Stopped || m.Phase == move.Changed; !left && !want.Beyond(resources(r.From.Before).Room()) {
			want = driver.Room{}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want.Cores == 0 {
		delete(d.claims, r.Job)
		return
	}
	d.claims[r.Job] = claim{r.Node, want}
}
