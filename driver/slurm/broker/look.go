package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// sighting is a job as it was seen: what scontrol says, in agreement with squeue.
type sighting struct {
	parse.Job
	name  string // its name in queries: its number, or ARRAY_TASK
	uid   uint32
	size  Size
	nice  int  // how much its priority is lower
	alone bool // scontrol printed one line, and all of it was read
}

// looks is how often a job is read that changes between the two readings.
const looks = 4

// look reads a job. Its numbers and its mark cannot be imitated by texts of its owner.
func (s *Server) look(ctx context.Context, id string) (j sighting, err error) {
	if !parse.Named(id) {
		return sighting{}, fmt.Errorf("job %q: a job is named by its number, and a task of an array by ARRAY_TASK: %w", id, driver.ErrInvalid)
	}
	err = driver.ErrConflict
	for n := 0; n < looks && errors.Is(err, driver.ErrConflict); n++ {
		j, err = s.sight(ctx, id)
	}
	if err != nil {
		return sighting{}, fmt.Errorf("job %s: %w", id, err)
	}
	return j, nil
}

func (s *Server) sight(ctx context.Context, id string) (j sighting, err error) {
	rows, err := s.squeue(ctx, true, "-j", id)
	if err != nil {
		return j, err
	}
	numbers, err := only(rows, id)
	if err != nil {
		return j, err
	}
	record, err := command.Ask(ctx, s.cfg.Runner, "scontrol", "-o", "show", "job", id)
	if err != nil {
		return j, err
	}
	jobs, unreadable := parse.Jobs(record)
	i := slices.IndexFunc(jobs, numbers.about)
	if i < 0 {
		return j, fmt.Errorf("scontrol's record of it cannot be read: %w", errors.Join(driver.ErrUnsupported, unreadable))
	}
	text := string(record)
	j = sighting{
		Job: jobs[i], name: id, uid: numbers.uid, size: slurmctl.SizeOf(jobs[i]),
		alone: unreadable == nil && len(jobs) == 1 && !bytes.ContainsAny(bytes.TrimSpace(record), "\n\r"),
	}
	if err := numbers.agree(j.Job); err != nil {
		return j, err
	}
	if strings.Contains(text, " MinMemoryNode=") && strings.Contains(text, " MinMemoryCPU=") { // it has one of them
		return j, errImitation
	}
	if j.AdminComment, err = mark(text, j.Job, numbers.folder); err != nil {
		return j, err
	}
	if j.nice, err = strconv.Atoi(numbers.is["Nice"]); err != nil {
		return j, fmt.Errorf("squeue says Nice %.20q: %w", numbers.is["Nice"], driver.ErrUnsupported)
	}
	return j, nil
}

// only returns the one row about this job.
func only(rows []row, id string) (own row, err error) {
	n, task := 0, ""
	for _, r := range rows {
		if r.name == id {
			own, n = r, n+1
		} else if strings.Contains(r.name, "_") {
			task = r.name
		}
	}
	switch {
	case n > 1:
		return row{}, fmt.Errorf("squeue prints %d lines of it: %w", n, driver.ErrUnsupported)
	case n == 1:
		return own, nil
	case task != "":
		return row{}, fmt.Errorf("it is an array or a task of one, whose names are like %s: %w", task, driver.ErrInvalid)
	}
	return row{}, driver.ErrNotFound
}

// task is the array of a task and its number; empty for a job that is not one, which Slurm
// says is an array of its own number.
func (r row) task() (array, task string) {
	if r.is["JobID"] == r.name {
		return "", ""
	}
	return r.is["ArrayJobID"], r.is["ArrayTaskID"]
}

// about reports whether a record is that of the job. A task that began between the two
// readings has got its own number.
func (r row) about(j parse.Job) bool {
	array, task := r.task()
	return j.ID == r.is["JobID"] || array != "" && j.ArrayJob == array && j.ArrayTask == task
}

// agree compares what squeue says with scontrol's record. A job that changes in between
// looks the same as one whose texts imitate fields: the caller looks again.
func (r row) agree(j parse.Job) error {
	memory, limit, err := r.amounts()
	if err != nil {
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	array, task := r.task()
	for _, f := range []struct{ name, squeue, scontrol string }{
		{"number", r.is["JobID"], j.ID},
		{"array", array, j.ArrayJob},
		{"task", task, j.ArrayTask},
		{"leader", parse.Given(r.is["HetJobID"]), j.HetJob},
		{"state", r.is["State"], j.State},
		{"CPUs", r.is["NumCPUs"], strconv.Itoa(j.CPUs)},
		{"restarts", r.is["RestartCnt"], strconv.Itoa(j.Restarts)},
		{"partition", r.is["Partition"], j.Partition},
		{"account", parse.Given(r.is["Account"]), j.Account},
		{"QOS", parse.Given(r.is["QOS"]), j.QOS},
		{"memory", fmt.Sprint(memory), fmt.Sprint(j.MemoryBytes)},
		{"time limit", limit.String(), j.TimeLimit.String()},
	} {
		if f.squeue != f.scontrol {
			return fmt.Errorf("squeue says %s %s and scontrol %s: %w", f.name, f.squeue, f.scontrol, driver.ErrConflict)
		}
	}
	return nil
}

var errImitation = fmt.Errorf("a text of its owner imitates a field of scontrol: %w", driver.ErrDenied)

// mark is the job's AdminComment, where it is certain that scontrol printed it as such:
// after the job's folder, which squeue names, and before what its owner wrote.
func mark(record string, j parse.Job, folder string) (string, error) {
	if j.AdminComment == "" {
		return "", nil
	}
	const key = " AdminComment="
	if strings.Contains(folder, key) {
		return "", fmt.Errorf("the name of its folder imitates a field of scontrol: %w", driver.ErrDenied)
	}
	if _, rest, ok := strings.Cut(record, " WorkDir="+folder+key); !ok || strings.Count(record, key) != 1 || !strings.HasPrefix(rest, j.AdminComment) {
		return "", errImitation
	}
	return j.AdminComment, nil
}

// movable returns an error that says why a job may not be moved or advised.
func movable(j sighting, advice bool) error {
	switch {
	case j.uid == 0:
		return fmt.Errorf("root's jobs are not touched: %w", driver.ErrDenied)
	case !j.Batch:
		return fmt.Errorf("it has no script to run again: %w", driver.ErrUnsupported)
	case !j.alone:
		return fmt.Errorf("scontrol prints more than one line of it, as where a text of its owner imitates a record: %w", driver.ErrDenied)
	case j.HetJob != "":
		return fmt.Errorf("heterogeneous jobs are observed, not changed: %w", driver.ErrUnsupported)
	case !j.Deadline.IsZero():
		return fmt.Errorf("it has a deadline, by which Slurm removes it whether it has run or waits again: %w", driver.ErrUnsupported)
	case !advice && j.several():
		return fmt.Errorf("jobs of several nodes or tasks are observed, not changed: %w", driver.ErrUnsupported)
	}
	return nil
}

func (j sighting) several() bool { return j.Nodes > 1 || j.Tasks > 1 }
