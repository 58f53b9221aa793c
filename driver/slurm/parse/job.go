package parse

import (
	"errors"
	"fmt"
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
	Dependency                          string
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

	// Picky are the fields by which the job asks for more than CPUs, memory and time, as
	// KEY=VALUE: devices, features, licences, nodes.
	Picky []string

	Submitted, Eligible, Started, Ended time.Time     // Submitted is that of the last requeue
	Deadline                            time.Time     // by which it has to end, else Slurm removes it; zero = none
	Paused                              time.Time     // when it was last suspended or resumed; zero = never
	Ran                                 time.Duration // of its run before that
}

// pickyKeys are the fields that make a job harder to place than its size.
const pickyKeys = "ReqNodeList Features Prefer Licenses Reservation TresPerJob TresPerNode TresPerSocket TresPerTask"

func picky(f map[string]string) (out []string) {
	for key := range strings.FieldsSeq(pickyKeys) {
		if v := none(f[key]); v != "" {
			out = append(out, key+"="+v)
		}
	}
	if v := f["OverSubscribe"]; v != "" && v != "OK" && v != "YES" { // it wants whole nodes
		out = append(out, "OverSubscribe="+v)
	}
	return out
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
		Reason: r.word("Reason"), Dependency: r.word("Dependency"), Comment: f["Comment"], AdminComment: r.word("AdminComment"), Reservation: r.word("Reservation"),
		Node: r.word("BatchHost"), WorkDir: r.word("WorkDir"), StdOut: r.word("StdOut"), StdErr: r.word("StdErr"), Command: r.word("Command"),
		Requeue: read(&r, "Requeue", flag), Batch: read(&r, "BatchFlag", count) > 0, Held: f["Priority"] == "0",
		State: read(&r, "JobState", state), Restarts: read(&r, "Restarts", count), Exit: read(&r, "ExitCode", ExitStatus),
		Nodes: read(&r, "NumNodes", low), CPUs: read(&r, "NumCPUs", low), Tasks: maybe(&r, "NumTasks", low), CPUsPerTask: maybe(&r, "CPUs/Task", count),
		TimeLimit: read(&r, "TimeLimit", Limit), Picky: picky(f),
		Submitted: read(&r, "SubmitTime", Instant), Eligible: read(&r, "EligibleTime", Instant), Started: read(&r, "StartTime", Instant),
		Ended: read(&r, "EndTime", Instant), Deadline: maybe(&r, "Deadline", Instant), Paused: maybe(&r, "SuspendTime", Instant),
	}
	who := read(&r, "UserId", numbered)
	j.User, j.UID = who.name, who.number
	memory := "MinMemoryNode"
	if _, j.MemoryPerCPU = f["MinMemoryCPU"]; j.MemoryPerCPU {
		memory = "MinMemoryCPU"
	}
	j.MemoryBytes = read(&r, memory, Memory)
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
