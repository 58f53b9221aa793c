package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// List returns every job that slurmctld or the journal remembers, oldest first. A
// job's script is there once it was read by Get.
func (d *Driver) List(ctx context.Context) ([]driver.Job, error) {
	lines, err := d.queue(ctx)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	details, err := d.details(ctx, lines)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var out []driver.Job
	var have []driver.JobID
	for _, j := range details {
		id := jobID(j.ID, j.ArrayJob, j.ArrayTask)
		have = append(have, id)
		r, _, err := d.record(id)
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		out = append(out, d.sketch(j, r))
	}
	known, err := d.journal.Jobs()
	if err != nil {
		return nil, fmt.Errorf("list: %w: %w", driver.ErrTransient, err)
	}
	slices.Sort(have)
	for _, id := range known {
		if _, ok := slices.BinarySearch(have, id); ok {
			continue
		}
		job, err := d.Get(ctx, id)
		if errors.Is(err, driver.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		out = append(out, job)
	}
	slices.SortStableFunc(out, func(a, b driver.Job) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(ordinal(a.ID), ordinal(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func ordinal(id driver.JobID) int {
	n, _, _ := strings.Cut(string(id), "_")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

// queue asks squeue for every job of the user, those included that ended a short
// while ago.
func (d *Driver) queue(ctx context.Context) ([]parse.QueueLine, error) {
	args := []string{"-h", "-a", "-t", "all", "-u", d.cfg.User, "-O", parse.QueueFormat}
	if len(d.cfg.Partitions) > 0 {
		args = append(args, "-p", strings.Join(d.cfg.Partitions, ","))
	}
	out, err := d.ask(ctx, "squeue", args...)
	if err != nil {
		return nil, err
	}
	lines, err := parse.Queue(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	return lines, nil
}

// few is up to how many jobs are read one by one: reading all jobs of a cluster
// costs as much as some tens of calls.
const few = 20

// details reads the jobs of which squeue says something new.
func (d *Driver) details(ctx context.Context, lines []parse.QueueLine) ([]parse.Job, error) {
	var stale []parse.QueueLine
	var out []parse.Job
	d.mu.Lock()
	for _, l := range lines {
		if s, ok := d.seen[jobID(l.ID, l.ArrayJob, l.ArrayTask)]; ok && s.print == l.Print {
			out = append(out, s.job)
		} else {
			stale = append(stale, l)
		}
	}
	d.mu.Unlock()
	fresh := map[string]parse.Job{}
	if len(stale) > few {
		all, err := d.ask(ctx, "scontrol", "-o", "show", "job")
		if err != nil {
			return nil, err
		}
		jobs, err := parse.Jobs(all)
		if err != nil {
			d.cfg.Logger.Debug("jobs that cannot be read", "error", err)
		}
		for _, j := range jobs {
			fresh[j.ID] = j
		}
	}
	now := make(map[driver.JobID]seen, len(lines))
	for _, l := range stale {
		j, ok := fresh[l.ID]
		if !ok {
			var err error
			j, err = d.read(ctx, driver.JobID(l.ID))
			if errors.Is(err, driver.ErrUnsupported) {
				d.cfg.Logger.Warn("a job cannot be read", "job", l.ID, "error", err)
				continue
			}
			if errors.Is(err, driver.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		if !d.mine(j.User, j.Partition) {
			continue
		}
		now[jobID(j.ID, j.ArrayJob, j.ArrayTask)] = seen{print: l.Print, job: j}
		out = append(out, j)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lines {
		id := jobID(l.ID, l.ArrayJob, l.ArrayTask)
		if s, ok := d.seen[id]; ok && s.print == l.Print {
			now[id] = s
		}
	}
	d.seen = now
	for id := range d.texts {
		if _, ok := now[id]; !ok {
			delete(d.texts, id)
		}
	}
	return out, nil
}
