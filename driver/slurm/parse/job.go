package parse

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Job is one record of `scontrol -o show job`.
type Job struct {
	ID        string // the number; of an array's task its own
	ArrayJob  string // empty outside of arrays
	ArrayTask string // one number, or a set such as 3-5%2 where tasks wait; see EachTask
	HetJob    string // leader of a heterogeneous job

	Name, User, Account, QOS, Partition string
	UID                                 uint32 // of the user
	State, Reason                       string
	Comment, AdminComment, Reservation  string
	Node                                string // the batch host, empty where it never ran
	WorkDir, StdOut, StdErr, Command    string

	Requeue, Batch bool
	Held           bool // its priority is 0
	Restarts       int
	Exit           Status

	Nodes, CPUs, Tasks, CPUsPerTask int
	MemoryBytes                     int64 // a node, or a CPU where MemoryPerCPU; 0 = none asked for
	MemoryPerCPU                    bool
	TimeLimit                       time.Duration // 0 = none
	GPUs                            int           // that it asks for in all
	Least                           int           // CPUs of a node that it gets at least
	Whole                           bool          // it gets whole nodes; one that shares them with its user's jobs alone does not
	FewThreads                      bool          // see FewThreads
	Nice                            int           // how much its priority is lower; only from Every

	// Picky are the fields that ask for more than CPUs, memory and time, as KEY=VALUE:
	// devices, features, licences, nodes.
	Picky []string

	Submitted, Eligible, Started, Ended time.Time     // Submitted is that of the last requeue
	Deadline                            time.Time     // it must end by then, else Slurm removes it; zero = none
	Paused                              time.Time     // when it was last suspended or resumed; zero = never
	Ran                                 time.Duration // of its run before that
}

// pickyKeys are the fields that make a job harder to place than its size.
const pickyKeys = "ReqNodeList Features Prefer Licenses Reservation TresPerJob TresPerNode TresPerSocket TresPerTask CpusPerTres MemPerTres"

func picky(f map[string]string) (out []string) {
	cores := func(item string) bool { return strings.HasPrefix(item, "cpu=") || strings.HasPrefix(item, "cpu:") }
	for key := range strings.FieldsSeq(pickyKeys) {
		v := Given(f[key])
		if key == "TresPerTask" { // from 23.11 on it repeats -c
			v = strings.Join(slices.DeleteFunc(strings.Split(v, ","), cores), ",")
		}
		if v != "" {
			out = append(out, key+"="+v)
		}
	}
	if v := f["OverSubscribe"]; v != "" && v != "OK" && v != "YES" { // it wants whole nodes
		out = append(out, "OverSubscribe="+v)
	}
	return out
}

// Asks reports whether the job has a field of Picky.
func (j Job) Asks(key string) bool {
	return slices.ContainsFunc(j.Picky, func(item string) bool { return strings.HasPrefix(item, key+"=") })
}

// FewThreads reports whether a job names a number of threads of a core, last in a text such as
// *:*:1: then it gets the others too, and uses as many cores as it asks for CPUs.
func FewThreads(text string) bool {
	threads := text[strings.LastIndexByte(text, ':')+1:]
	return threads != "" && threads != "*" && threads != "0"
}

// gpus counts the GPUs in a text such as gres/gpu:a100:2,gres/gpu:1 or gres:gpu=2.
func gpus(text string) int {
	sum := 0
	for item := range strings.SplitSeq(text, ",") {
		name := strings.TrimPrefix(strings.TrimPrefix(item, "gres/"), "gres:")
		rest, ok := strings.CutPrefix(name, "gpu")
		if !ok || rest != "" && rest[0] != ':' && rest[0] != '=' {
			continue
		}
		n, err := strconv.Atoi(rest[strings.LastIndexAny(rest, ":=")+1:])
		if err != nil || n < 0 || n > 1<<20 {
			n = 1 // its type alone, or nothing
		}
		sum += n
	}
	return sum
}

// Jobs reads `scontrol -o show job`: one record a line. It returns every record
// that it could read, and what was wrong with the others: one job's odd name hides
// no other job.
func Jobs(output []byte) ([]Job, error) {
	var out []Job
	var faults []error
	for text := range strings.SplitSeq(string(output), "\nJobId=") {
		text = strings.TrimSpace(strings.TrimPrefix(text, "JobId="))
		if text == "" || text == "No jobs in the system" {
			continue
		}
		j, err := job("JobId=" + text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out = append(out, j)
	}
	return out, errors.Join(faults...)
}

func job(line string) (Job, error) {
	f, err := record(line, jobKeys())
	if err != nil {
		return Job{}, fmt.Errorf("job %.20q: %w", line, err)
	}
	r := reader{fields: f}
	j := Job{
		ID: r.text("JobId"), ArrayJob: r.word("ArrayJobId"), ArrayTask: r.word("ArrayTaskId"), HetJob: r.word("HetJobId"),
		Name: r.text("JobName"), Account: r.word("Account"), QOS: r.word("QOS"), Partition: r.text("Partition"),
		Reason: r.word("Reason"), Comment: f["Comment"], AdminComment: r.word("AdminComment"), Reservation: r.word("Reservation"),
		Node: r.word("BatchHost"), WorkDir: r.word("WorkDir"), StdOut: r.word("StdOut"), StdErr: r.word("StdErr"), Command: r.word("Command"),
		Requeue: read(&r, "Requeue", flag), Batch: read(&r, "BatchFlag", count) > 0, Held: f["Priority"] == "0",
		State: read(&r, "JobState", state), Restarts: read(&r, "Restarts", count), Exit: read(&r, "ExitCode", ExitStatus),
		Nodes: read(&r, "NumNodes", low), CPUs: read(&r, "NumCPUs", low), Tasks: maybe(&r, "NumTasks", low), CPUsPerTask: maybe(&r, "CPUs/Task", count),
		TimeLimit: read(&r, "TimeLimit", Limit), Picky: picky(f), Least: maybe(&r, "MinCPUsNode", count), Whole: f["OverSubscribe"] == "NO", FewThreads: FewThreads(f["ReqB:S:C:T"]),
		Submitted: read(&r, "SubmitTime", Instant), Eligible: read(&r, "EligibleTime", Instant), Started: read(&r, "StartTime", Instant),
		Ended: read(&r, "EndTime", Instant), Deadline: maybe(&r, "Deadline", Instant), Paused: maybe(&r, "SuspendTime", Instant),
	}
	who := read(&r, "UserId", numbered)
	j.User, j.UID = who.name, who.number
	memory := "MinMemoryNode"
	if _, j.MemoryPerCPU = f["MinMemoryCPU"]; j.MemoryPerCPU {
		memory = "MinMemoryCPU"
	}
	if _, perTRES := f["MinMemoryTRES"]; !perTRES || f[memory] != "" { // else MemPerTres says how much
		j.MemoryBytes = read(&r, memory, Memory)
	}
	for _, g := range []struct {
		key   string
		times int
	}{{"TresPerJob", 1}, {"TresPerNode", max(j.Nodes, 1)}, {"TresPerTask", max(j.Tasks, 1)}} {
		j.GPUs = max(j.GPUs, g.times*gpus(f[g.key]))
	}
	if !j.Paused.IsZero() {
		j.Ran = time.Duration(read(&r, "SecsPreSuspend", count)) * time.Second
	}
	if r.err == nil && j.ArrayTask != "" {
		_, r.err = Tasks(j.ArrayTask)
	}
	if r.err == nil && strings.Trim(j.ID+j.ArrayJob, "0123456789") != "" {
		r.err = badValue("JobId", j.ID+" of "+j.ArrayJob)
	}
	j.StdOut, j.StdErr = padded(j.StdOut, j), padded(j.StdErr, j)
	return j, r.err
}

// numbered reads NAME(NUMBER).
func numbered(field, s string) (who struct {
	name   string
	number uint32
}, err error,
) {
	name, rest, ok := strings.Cut(s, "(")
	number, end, ok2 := strings.Cut(rest, ")")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !ok || !ok2 || end != "" || name == "" {
		return who, badValue(field, s)
	}
	who.name, who.number = name, uint32(n)
	return who, nil
}

// Running reports whether a state of Slurm is that of a job whose processes are there.
func Running(state string) bool {
	return slices.Contains([]string{"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "COMPLETING"}, state)
}

// Waiting reports whether a state of Slurm is that of a job in the queue.
func Waiting(state string) bool {
	return slices.Contains([]string{"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}, state)
}

// Ended reports whether a state of Slurm is final: none of those that are known not to be.
func Ended(state string) bool { return !Running(state) && !Waiting(state) }

// Cores are those that are asked for: of the job's task, or of the job where none are
// named; at least 1. One task is given no fewer than the CPUs of the job, which an update
// may have raised alone. Once it runs those of the job are what it was given, which may be
// more than it asked for.
func (j Job) Cores() int {
	switch {
	case j.CPUsPerTask == 0:
		return max(j.CPUs, 1)
	case j.Tasks > 1 || j.Nodes > 1:
		return j.CPUsPerTask
	case Waiting(j.State):
		return max(j.CPUsPerTask, j.CPUs)
	}
	return j.CPUsPerTask
}

// Raised reports whether a job waits and will be given more cores than it will then say that
// it asked for.
func (j Job) Raised() bool {
	running := j
	running.State = "RUNNING"
	return Waiting(j.State) && j.Cores() > running.Cores()
}

// Limit is the time limit that was asked for; 0 = none. Slurm's backfill writes a
// year for the limit of a job that has none.
func (j Job) Limit() time.Duration {
	const aYear = 365 * 24 * time.Hour
	if j.TimeLimit == aYear {
		return 0
	}
	return j.TimeLimit
}

// Suspended is how long the attempt that runs, or ran last, has been suspended. Slurm shows
// the last time that it was suspended or resumed, and how long it had run by then.
func (j Job) Suspended(now time.Time) time.Duration {
	if j.Paused.IsZero() || j.Started.IsZero() || j.Paused.Before(j.Started) {
		return 0
	}
	sum := max(j.Paused.Sub(j.Started)-j.Ran, 0)
	if j.State == "SUSPENDED" {
		sum += max(now.Sub(j.Paused), 0)
	}
	return sum
}

// MaxTasks is how many waiting tasks of one array are listed. The others follow when
// those before them have begun.
const MaxTasks = 1000

// Tasks reads the tasks of an array, as Slurm writes them (1,3,5-7,10-20:5%4), and returns
// the first of them, at most MaxTasks. Of a set that Slurm cut short (SLURM_BITSTR_LEN)
// it returns those that were printed whole.
func Tasks(s string) ([]int, error) {
	const field, maxTask = "ArrayTaskId", 4_000_001 // Slurm's own bound of MaxArraySize
	list, throttle, throttled := strings.Cut(s, "%")
	if n, err := count(field, throttle); throttled && (err != nil || n == 0) {
		return nil, badValue(field, s)
	}
	if whole, cut := strings.CutSuffix(list, "..."); cut {
		list = whole[:max(strings.LastIndexByte(whole, ','), 0)] // what follows it may go on
	}
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		ends, step, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(ends, "-")
		if !ranged {
			last = first
		}
		if !stepped {
			step = "1"
		}
		from, err := count(field, first)
		to, err2 := count(field, last)
		by, err3 := count(field, step)
		if errors.Join(err, err2, err3) != nil || to < from || to >= maxTask || by == 0 || stepped && !ranged {
			return nil, badValue(field, s)
		}
		for n := from; n <= to && len(out) < MaxTasks; n += by {
			out = append(out, n)
		}
	}
	return out, nil
}

// Unnumbered reports whether a task may not have its own number yet. Tasks that wait, or
// were cancelled together while they did, share the record of their array if they were not
// changed since. The last of them keeps the array's number.
func (j Job) Unnumbered() bool {
	return j.ArrayJob != "" && j.ID == j.ArrayJob && j.Node == "" && j.Restarts == 0
}

// EachTask returns the jobs that a record is about: itself, or the tasks of an
// array that it stands for, at most MaxTasks of them.
func (j Job) EachTask() []Job {
	if j.ArrayTask == "" || strings.Trim(j.ArrayTask, "0123456789") == "" {
		return []Job{j}
	}
	numbers, _ := Tasks(j.ArrayTask) // Jobs could read it
	out := make([]Job, 0, len(numbers))
	for _, n := range numbers {
		out = append(out, j.Task(strconv.Itoa(n)))
	}
	return out
}

// Task returns the job of one of the tasks that a record stands for.
func (j Job) Task(n string) Job {
	if j.ArrayTask != n {
		j.ArrayTask = n
		j.StdOut, j.StdErr = ofTask(j.StdOut, j), ofTask(j.StdErr, j)
	}
	return j
}

// noTask is what Slurm puts into the names of files where a record stands for
// several tasks.
const noTask = "4294967294"

func ofTask(path string, j Job) string {
	return padded(strings.ReplaceAll(path, noTask, j.ArrayTask), j)
}

// padded fills in what scontrol leaves of the names of files: numbers with a width.
func padded(path string, j Job) string {
	if j.ArrayJob == "" || !strings.Contains(path, "%") {
		return path
	}
	values := map[string]string{"A": j.ArrayJob, "a": j.ArrayTask, "j": j.ID}
	return regexp.MustCompile(`%\d{1,2}[Aaj]`).ReplaceAllStringFunc(path, func(s string) string {
		end := len(s) - 1
		v := values[s[end:]]
		width, _ := strconv.Atoi(s[1:end])
		if strings.Trim(v, "0123456789") != "" {
			return s
		}
		return strings.Repeat("0", max(0, min(width, 10)-len(v))) + v
	})
}
