package slurm_test

import (
	"context"
	"fmt"
	"maps"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// fake answers as Slurm 22.05.8 was seen to, for jobs that do what the test says.
type fake struct {
	mu     sync.Mutex
	user   string
	conf   string
	gives  string // more fields of the partition's record
	free   string // what sinfo says about the nodes
	waits  string // who waits for it
	stdout string
	jobs   map[int]*fakeJob
	calls  []string
	steps  map[int]bool // jobs that have a listener's step

	dependants string // of all jobs, as squeue prints them

	// cut is asked before and after each call that has an effect; an error is what
	// the caller gets.
	cut func(c command.Call, after bool) error
}

type fakeJob struct {
	id                          int // of its own; that of an array's task counts once it is numbered
	array, task                 int // of a task
	numbered                    bool
	state, comment, name        string
	script                      []byte
	restarts, cores, mem, limit int
	exit                        int
	held, noRequeue             bool
	submitted, started, ended   time.Time
	eligible                    time.Time // zero: when it was submitted
	out                         string
	partition, admin            string
	more                        string // of its record
}

func newFake(t *testing.T) *fake {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return &fake{user: u.Username, free: "n1|main|up|mixed|1/15/0/16|1|16384|100|\n", conf: "SLURM_VERSION = 22.05.8\nMinJobAge = 300 sec\nRequeueExitHold = (null)\n", jobs: map[int]*fakeJob{}, steps: map[int]bool{}}
}

func (f *fake) Run(ctx context.Context, c command.Call) (command.Output, error) {
	if f.hangs(c) {
		<-ctx.Done()
		return command.Output{}, fmt.Errorf("%s: %w", c.Name, driver.ErrUnknown)
	}
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
	if strings.HasSuffix(out, " not found") { // so says scontrol of a task
		return command.Output{Stdout: []byte(out)}, &command.Failed{Call: c, Status: 1, Cause: command.Cause("", c.Effect)}
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
	case c.Name == "sinfo" && strings.HasSuffix(line, "%Y|%Z"):
		return "8|2\n", ""
	case c.Name == "sinfo":
		return f.free, ""
	case c.Name == "squeue" && strings.HasSuffix(line, parse.WaitFormat):
		return f.waits, ""
	case c.Name == "sbatch":
		return f.submit(c), ""
	case line == "show config":
		return f.conf, ""
	case line == "-a -o show partition":
		return "PartitionName=main QoS=N/A MaxTime=UNLIMITED" + f.gives + "\n", ""
	case c.Name == "squeue" && strings.Contains(line, "--steps"):
		if j := f.job(c); j != nil && f.steps[j.id] {
			return "batch\npitchpipe-listen\n", ""
		}
		return "batch\n", ""
	case c.Name == "squeue" && strings.HasSuffix(line, "%i %U %E %j"):
		return f.dependants, ""
	case c.Name == "squeue":
		return f.each(func(j *fakeJob) string {
			array, task := j.number(), "N/A"
			if j.array > 0 {
				array, task = j.array, fmt.Sprint(j.task)
			}
			return fmt.Sprintf("%d|%d|%s|N/A|%s|None|%d|%d|%dM|%d:00|main|\n", j.number(), array, task, j.state, j.restarts, j.cores, j.mem, j.limit)
		}), ""
	case line == "-o show job":
		return f.records(0), ""
	}
	if array, ok := f.isArray(c); ok && strings.HasPrefix(line, "-o show job") {
		return f.records(array), ""
	}
	j := f.job(c)
	if j == nil && strings.HasPrefix(line, "write batch_script") { // of an array as of its tasks
		j = f.named(c.Args[2] + "_3")
	}
	if j != nil && c.Effect && j.array > 0 {
		if c.Name == "scancel" && !j.numbered && !strings.Contains(line, "--signal") {
			delete(f.jobs, j.id) // nothing is left of it
			return "", ""
		}
		j.numbered = true
	}
	switch {
	case j == nil && strings.HasPrefix(line, "-o show job") && strings.Contains(c.Args[3], "_"):
		return "Job " + c.Args[3] + " not found", ""
	case j == nil:
		return "", "slurm_load_jobs error: Invalid job id specified"
	case strings.HasPrefix(line, "-o show job"):
		return f.record(j), ""
	case strings.HasPrefix(line, "write batch_script"):
		return string(j.script), ""
	case strings.HasPrefix(line, "release"):
		j.state, j.held = "PENDING", false
	case strings.HasPrefix(line, "requeue Incomplete"):
		f.requeue(j)
	case strings.HasPrefix(line, "requeue"):
		if !j.ended.IsZero() {
			j.state, j.ended = "RUNNING", time.Time{}
		}
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
		a = strings.TrimPrefix(a, "JobId=")
		if n, err := fmt.Sscanf(a, "%d", &id); n == 1 && err == nil {
			return f.named(a)
		}
	}
	return nil
}

// named is the job of a number, or the task ARRAY_TASK.
func (f *fake) named(id string) *fakeJob {
	n, task := 0, 0
	if _, err := fmt.Sscanf(id, "%d_%d", &n, &task); err != nil {
		if j := f.jobs[n]; j != nil && (j.array == 0 || j.numbered) {
			return j
		}
		return nil
	}
	for _, j := range f.jobs {
		if j.array == n && j.task == task {
			return j
		}
	}
	return nil
}

func (f *fake) submit(c command.Call) string {
	j := &fakeJob{
		id: len(f.jobs) + 1, state: "PENDING", out: f.stdout, script: slices.Clone(c.Stdin), cores: 1, mem: 100,
		submitted: time.Now().UTC().Truncate(time.Second), name: "sbatch",
	}
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a, "--comment="); ok {
			j.comment = v
		}
		if v, ok := strings.CutPrefix(a, "--job-name="); ok {
			j.name = v
		}
		if v, ok := strings.CutPrefix(a, "--begin="); ok {
			j.wait(v)
		}
	}
	array, n := j.id, 0
	if m := regexp.MustCompile(`(?m)^#SBATCH --array=1-(\d+)`).FindSubmatch(c.Stdin); m != nil {
		_, _ = fmt.Sscan(string(m[1]), &n)
	}
	for task := 1; task < n; task++ { // the last has the number of the array
		one := *j
		one.id, one.array, one.task = array+task, array, task
		f.jobs[one.id] = &one
	}
	if n > 0 {
		j.array, j.task = array, n
	}
	f.jobs[j.id] = j
	return fmt.Sprintln(array)
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
		case "StartTime":
			j.wait(value)
		case "Requeue":
			j.noRequeue = n == 0
		}
	}
	return ""
}

// run lets a waiting job start.
func (f *fake) run(id driver.JobID) {
	f.with(id, func(j *fakeJob) {
		j.state, j.started, j.numbered = "RUNNING", time.Now().UTC().Truncate(time.Second), true
	})
}

func (f *fake) with(id driver.JobID, do func(*fakeJob)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.named(string(id)))
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
