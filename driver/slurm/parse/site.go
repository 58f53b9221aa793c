package parse

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Partition is one record of `scontrol -o show partition`.
type Partition struct {
	Name      string
	QOS       string // empty = none
	Weights   string // TRESBillingWeights; empty = it bills the number of CPUs
	Exclusive bool   // each job gets whole nodes, whatever it asked for
	Hidden    bool   // only scontrol -a and the like show it
	Default   bool   // of jobs that name none

	MaxTime       time.Duration // of a job; 0 = none
	MaxMemPerNode int64         // bytes that one job may have; 0 = what the cluster says, as the next
	MaxMemPerCPU  int64
	Select        string // its own SelectTypeParameters; empty = the cluster's
}

// PartitionRecords reads `scontrol -o show partition`.
func PartitionRecords(output []byte) ([]Partition, error) {
	return each("partition", output, words, func(r *reader) Partition {
		return Partition{
			Name: r.text("PartitionName"), QOS: Given(r.text("QoS")), Weights: r.fields["TRESBillingWeights"],
			Exclusive: r.fields["OverSubscribe"] == "EXCLUSIVE", Hidden: r.fields["Hidden"] == "YES", Default: r.fields["Default"] == "YES", Select: strings.TrimPrefix(r.word("SelectTypeParameters"), "NONE"),
			MaxTime: maybe(r, "MaxTime", Limit), MaxMemPerNode: maybe(r, "MaxMemPerNode", most), MaxMemPerCPU: maybe(r, "MaxMemPerCPU", most),
		}
	})
}

// most reads an amount of memory, or UNLIMITED, which is 0.
func most(field, s string) (int64, error) {
	if s == "UNLIMITED" {
		return 0, nil
	}
	return Memory(field, s)
}

// Weights is what a partition bills of what a job has: for each CPU, GiB of memory and
// GPU. A GPU of a type is billed as one and as one of its type, the dearest type.
type Weights struct{ CPU, GiB, GPU float64 }

// Billing reads Partition.Weights. A weight is for one, and for one MiB of memory; a
// suffix makes it that for 1024 times as much, and again for each further one. Of memory
// K and M change nothing. Names of resources are in any case.
func Billing(s string) (Weights, error) {
	if s == "" {
		return Weights{CPU: 1}, nil
	}
	var w Weights
	var typed float64
	for item := range strings.SplitSeq(s, ",") {
		name, text, _ := strings.Cut(item, "=")
		name = strings.ToLower(name)
		number := strings.TrimRight(text, "KMGTPkmgtp")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0 && v <= 1e12) || len(text)-len(number) > 1 || strings.ContainsAny(number, "xXpP_") {
			return Weights{}, badValue("TRESBillingWeights", s)
		}
		steps := strings.Index("KMGTP", strings.ToUpper(text[len(number):])) + 1
		if len(number) == len(text) {
			steps = 0
		}
		switch {
		case name == "cpu":
			w.CPU = math.Ldexp(v, -10*steps)
		case name == "mem":
			w.GiB = math.Ldexp(v, 10-10*max(steps-2, 0))
		case name == "gres/gpu":
			w.GPU = math.Ldexp(v, -10*steps)
		case strings.HasPrefix(name, "gres/gpu:"):
			typed = max(typed, math.Ldexp(v, -10*steps))
		}
	}
	w.GPU += typed
	return w, nil
}

// SacctFields are what sacct is asked for, with -n -p -X and a Delimiter.
const SacctFields = "JobIDRaw,User,State,ExitCode,Submit,Start,End,ReqCPUS,ReqMem,Timelimit,Partition,Account,QOS,NNodes,JobName"

// Accounting reads the output of sacct under SacctFields. Of what is in a Job it says little.
func Accounting(output []byte, delimiter string) ([]Job, error) {
	var out []Job
	rows, err := delimited("sacct", strings.Split(SacctFields, ","), delimiter, output)
	for _, r := range rows {
		j := Job{
			ID: read(&r, "JobIDRaw", digits), Name: r.fields["JobName"], User: r.fields["User"], Partition: r.fields["Partition"], Account: r.fields["Account"],
			QOS: r.fields["QOS"], State: read(&r, "State", state), Exit: read(&r, "ExitCode", ExitStatus), CPUs: read(&r, "ReqCPUS", count),
			Nodes: read(&r, "NNodes", count), Tasks: 1, Submitted: read(&r, "Submit", Instant), Started: read(&r, "Start", Instant),
			Ended: read(&r, "End", Instant), TimeLimit: maybe(&r, "Timelimit", Limit),
		}
		j.CPUsPerTask = j.CPUs
		j.MemoryBytes = maybe(&r, "ReqMem", func(field, s string) (int64, error) { return ReqMem(field, s, j.CPUs, j.Nodes) })
		if r.err != nil {
			return nil, r.err
		}
		out = append(out, j)
	}
	return out, err
}

// CPUFields are what sacct is asked for, with -n -P and without -X, to find CPU times.
const CPUFields = "JobIDRaw,TotalCPU"

// CPUTimes reads the output of sacct under CPUFields: the CPU time of each job, by its number.
func CPUTimes(output []byte) (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	rows, err := Rows("sacct", output, 2)
	for _, f := range rows {
		if strings.Trim(f[0], "0123456789") == "" { // no step
			clock, _, _ := strings.Cut(f[1], ".")
			if out[f[0]], err = Limit("TotalCPU", clock); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// Reservation is a time in which nodes are kept from other jobs.
type Reservation struct {
	Name       string
	Start, End time.Time
	Nodes      string // a host list
	Partition  string
	Flexible   bool // jobs in it may run on after its end (FLEX)
}

// Reservations reads `scontrol -o show reservation`.
func Reservations(output []byte) ([]Reservation, error) {
	keys := strings.Fields(`ReservationName StartTime EndTime Duration Nodes NodeCnt CoreCnt Features PartitionName Flags TRES
		Users Groups Accounts Licenses State BurstBuffer Watts MaxStartDelay Comment`)
	if bytes.HasPrefix(output, []byte("No reservations")) {
		return nil, nil
	}
	fields := func(line string) (map[string]string, error) { return record(line, keys) }
	return each("reservation", output, fields, func(r *reader) Reservation {
		return Reservation{
			Name: r.text("ReservationName"), Start: read(r, "StartTime", Instant), End: read(r, "EndTime", Instant),
			Nodes: r.word("Nodes"), Partition: r.word("PartitionName"), Flexible: slices.Contains(strings.Split(r.fields["Flags"], ","), "FLEX"),
		}
	})
}

// ExpectedStart reads what `sbatch --test-only` says: when the job would start.
func ExpectedStart(stderr []byte) (time.Time, error) {
	m := regexp.MustCompile(`Job \d+ to start at (\S+) `).FindSubmatch(stderr)
	if m == nil {
		return time.Time{}, fmt.Errorf("%w: sbatch --test-only: %.200q", ErrFormat, stderr)
	}
	return Instant("start", string(m[1]))
}

// Conf are the settings of `scontrol show config`. A setting without a value is empty.
type Conf map[string]string

// Config reads the output of `scontrol show config`.
func Config(output []byte) Conf {
	out := Conf{}
	for line := range strings.Lines(string(output)) {
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); ok && key != "" && !strings.ContainsAny(key, " \t") {
			out[key] = Given(strings.TrimSpace(value))
		}
	}
	return out
}

// NextJob is the number that slurmctld gives next.
func (c Conf) NextJob() (int, error) { return count("NEXT_JOB_ID", c["NEXT_JOB_ID"]) }

// Booted is when slurmctld was started; zero where it does not say.
func (c Conf) Booted() (time.Time, error) { return Instant("BOOT_TIME", c["BOOT_TIME"]) }

// Accounts reports whether there is accounting to ask.
func (c Conf) Accounts() bool { return c["AccountingStorageType"] == "accounting_storage/slurmdbd" }

// Remembers is how long an ended job is remembered (MinJobAge); 0 = for good, negative
// = the configuration does not say.
func (c Conf) Remembers() time.Duration {
	return time.Duration(c.Number("MinJobAge")) * time.Second
}

// Number reads a number, which may have a unit after it, such as 300 sec; -1 where there is none,
// or no limit.
func (c Conf) Number(key string) int {
	word, _, _ := strings.Cut(c[key], " ")
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return -1
}

// HidesJobs reports whether a user is not shown the jobs of others.
func (c Conf) HidesJobs() bool {
	return c.Has("PrivateData", "jobs", "all")
}

// Has reports whether a list has one of the words, in any case.
func (c Conf) Has(key string, words ...string) bool {
	return slices.ContainsFunc(List(c[key]), func(have string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, have) })
	})
}

// List splits a list of a setting.
func List(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// Requeues reports whether a job that leaves with an exit status is put back into the queue.
func (c Conf) Requeues(exit int) bool {
	return c.Status("RequeueExit", exit) || c.Status("RequeueExitHold", exit)
}

// Status reports whether a list of statuses and of ranges of them has one.
func (c Conf) Status(key string, status int) bool {
	return slices.ContainsFunc(List(c[key]), func(part string) bool {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		low, err := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		return err == nil && err2 == nil && low <= status && status <= high
	})
}
