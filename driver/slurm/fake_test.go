package slurm_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
)

// fake answers as Slurm 22.05.8 was seen to, for jobs that do what the test says.
type fake struct {
	mu     sync.Mutex
	user   string
	conf   string
	stdout string
	jobs   map[int]*fakeJob
	calls  []string
	steps  map[int]bool // jobs that have a listener's step

	// cut is asked before and after each call that has an effect; an error is what
	// the caller gets.
	cut func(c command.Call, after bool) error
}

type fakeJob struct {
	id                          int
	state, comment, name        string
	script                      []byte
	restarts, cores, mem, limit int
	exit                        int
	held, noRequeue             bool
	submitted, started, ended   time.Time
	out                         string
	partition, admin            string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return &fake{user: u.Username, conf: "SLURM_VERSION = 22.05.8\nMinJobAge = 300 sec\nRequeueExitHold = (null)\n", jobs: map[int]*fakeJob{}, steps: map[int]bool{}}
}

func (f *fake) Run(_ context.Context, c command.Call) (command.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c.String())
	if c.Effect && f.cut != nil {
		if err := f.cut(c, false); err != nil {
			return command.Output{}, err
		}
	}
	out, stderr := f.answer(c)
	if c.Effect && f.cut != nil {
		if err := f.cut(c, true); err != nil {
			return command.Output{}, err
		}
	}
	if stderr != "" {
		return command.Output{}, &command.Failed{Call: c, Status: 1, Stderr: stderr, Cause: command.Cause(stderr, c.Effect)}
	}
	return command.Output{Stdout: []byte(out)}, nil
}

// Launch starts a step.
func (f *fake) Launch(c command.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c.String())
	for _, a := range c.Args {
		id := 0
		if n, err := fmt.Sscanf(a, "--jobid=%d", &id); n == 1 && err == nil {
			f.steps[id] = true
		}
	}
	return nil
}

func (f *fake) answer(c command.Call) (out, stderr string) {
	line := strings.Join(c.Args, " ")
	switch {
	case c.Name == "sinfo":
		return "main|16|16384\n", ""
	case c.Name == "sbatch":
		return f.submit(c), ""
	case line == "show config":
		return f.conf, ""
	case c.Name == "squeue" && strings.Contains(line, "--steps"):
		if j := f.job(c); j != nil && f.steps[j.id] {
			return "batch\npitchpipe-listen\n", ""
		}
		return "batch\n", ""
	case c.Name == "squeue" && strings.Contains(line, "%A|%k"):
		return f.each(func(j *fakeJob) string { return fmt.Sprintf("%d|%s\n", j.id, j.comment) }), ""
	case c.Name == "squeue":
		return f.each(func(j *fakeJob) string {
			return fmt.Sprintf("%d|%d|N/A|N/A|%s|None|%d|%d|%dM|%d:00|main|\n", j.id, j.id, j.state, j.restarts, j.cores, j.mem, j.limit)
		}), ""
	case line == "-o show job":
		return f.each(f.record), ""
	}
	j := f.job(c)
	switch {
	case j == nil:
		return "", "slurm_load_jobs error: Invalid job id specified"
	case strings.HasPrefix(line, "-o show job"):
		return f.record(j), ""
	case strings.HasPrefix(line, "write batch_script"):
		return string(j.script), ""
	case strings.HasPrefix(line, "release"):
	case strings.HasPrefix(line, "requeue Incomplete"):
		f.requeue(j)
	case c.Name == "scancel" && strings.Contains(line, "--signal"):
	case c.Name == "scancel":
		f.end(j, "CANCELLED", 0)
	case strings.HasPrefix(line, "update"):
		return "", f.update(j, c.Args[2:])
	default:
		return "", "what is " + c.String()
	}
	return "", ""
}

func (f *fake) each(text func(*fakeJob) string) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		b.WriteString(text(f.jobs[id]))
	}
	return b.String()
}

func (f *fake) job(c command.Call) *fakeJob {
	for _, a := range c.Args {
		id := 0
		if n, err := fmt.Sscanf(strings.TrimPrefix(a, "JobId="), "%d", &id); n == 1 && err == nil {
			return f.jobs[id]
		}
	}
	return nil
}

func (f *fake) submit(c command.Call) string {
	j := &fakeJob{
		id: len(f.jobs) + 1, state: "PENDING", out: f.stdout, script: slices.Clone(c.Stdin), cores: 1, mem: 100,
		submitted: time.Now().UTC().Truncate(time.Second),
	}
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a, "--comment="); ok {
			j.comment = v
		}
		if v, ok := strings.CutPrefix(a, "--job-name="); ok {
			j.name = v
		}
	}
	f.jobs[j.id] = j
	return fmt.Sprintln(j.id)
}

func (f *fake) requeue(j *fakeJob) {
	if j.state == "RUNNING" {
		j.state, j.restarts = "PENDING", j.restarts+1
		j.submitted = time.Now().UTC().Truncate(time.Second)
	}
}

func (f *fake) end(j *fakeJob, state string, exit int) {
	j.state, j.exit, j.ended = state, exit, time.Now().UTC().Truncate(time.Second)
}

func (f *fake) update(j *fakeJob, args []string) string {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n := 0
		_, _ = fmt.Sscanf(value, "%d", &n)
		if j.state != "PENDING" && j.state != "SPECIAL_EXIT" {
			return "Job is no longer pending execution for job"
		}
		switch key {
		case "NumCPUs":
			j.cores = n
		case "MinMemoryNode":
			j.mem = n
		case "TimeLimit":
			j.limit = n
		}
	}
	return ""
}

func (f *fake) record(j *fakeJob) string {
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return "Unknown"
		}
		return t.Format("2006-01-02T15:04:05")
	}
	host, limit := "", "UNLIMITED"
	if j.state != "PENDING" && !j.started.IsZero() {
		host = "BatchHost=n1 "
	}
	if j.limit > 0 {
		limit = fmt.Sprintf("%02d:%02d:00", j.limit/60, j.limit%60)
	}
	priority, requeue := 1, 1
	if j.held {
		priority = 0
	}
	if j.noRequeue {
		requeue = 0
	}
	return fmt.Sprintf("JobId=%d JobName=%s UserId=%s(1) GroupId=g(1) Priority=%d Account=(null) QOS=normal JobState=%s Reason=None "+
		"Dependency=(null) Requeue=%d Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%d:0 TimeLimit=%s SubmitTime=%s EligibleTime=%s "+
		"StartTime=%s EndTime=%s Partition=%s NodeList=n1 %sNumNodes=1 NumCPUs=%d NumTasks=1 CPUs/Task=%d MinMemoryNode=%dM "+
		"Command=(null) WorkDir=/ AdminComment=%s Comment=%s StdErr=%s StdIn=/dev/null StdOut=%s Power= \n",
		j.id, j.name, f.user, priority, j.state, requeue, j.restarts, j.exit, limit, stamp(j.submitted), stamp(j.submitted),
		stamp(j.started), stamp(j.ended), cmp.Or(j.partition, "main"), host, j.cores, j.cores, j.mem, j.admin, j.comment, j.out, j.out)
}

// run lets a waiting job start.
func (f *fake) run(id driver.JobID) {
	f.with(id, func(j *fakeJob) {
		j.state, j.started = "RUNNING", time.Now().UTC().Truncate(time.Second)
	})
}

func (f *fake) with(id driver.JobID, do func(*fakeJob)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	_, _ = fmt.Sscan(string(id), &n)
	do(f.jobs[n])
}

// count is how many calls began so.
func (f *fake) count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// last is the latest call that began so.
func (f *fake) last(prefix string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range slices.Backward(f.calls) {
		if strings.HasPrefix(c, prefix) {
			return c
		}
	}
	return ""
}
