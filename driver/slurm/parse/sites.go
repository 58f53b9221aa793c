package parse

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SacctFields are what sacct is asked for, with -n -P -X. The name comes last: it
// is free text.
const SacctFields = "JobIDRaw,User,State,ExitCode,Submit,Start,End,ReqCPUS,ReqMem,Timelimit,Partition,Account,QOS,NNodes,JobName"

// Accounting reads the output of sacct under SacctFields. Of what is in a Job it says little.
// A name may have several lines: one that is no record belongs to the name of the job before it.
func Accounting(output []byte) ([]Job, error) {
	var out []Job
	names := strings.Split(SacctFields, ",")
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		v := strings.SplitN(line, "|", len(names))
		if len(out) > 0 && (len(v) != len(names) || strings.Trim(v[0], "0123456789") != "") {
			out[len(out)-1].Name += "\n" + line
			continue
		}
		if len(v) != len(names) {
			return nil, fmt.Errorf("%w: sacct: %d fields in %q", ErrFormat, len(v), line)
		}
		r := reader{fields: make(map[string]string, len(names))}
		for i, n := range names {
			r.fields[n] = v[i]
		}
		j := Job{
			ID: r.text("JobIDRaw"), Name: r.fields["JobName"], User: r.fields["User"], Partition: r.fields["Partition"], Account: r.fields["Account"],
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
	return out, nil
}

// NodesFormat is what sinfo -h -e -O is asked for.
const NodesFormat = "PartitionName:|,CPUs:|,Memory:|"

// Nodes is a group of equal nodes of a partition.
type Nodes struct {
	Partition   string
	Cores       int
	MemoryBytes int64
}

// Partitions reads the output of sinfo under NodesFormat. A + behind a number says
// that some of the group have more.
func Partitions(output []byte) ([]Nodes, error) {
	return table("sinfo", NodesFormat, output, func(r *reader) Nodes {
		r.fields["CPUs"], r.fields["Memory"] = strings.TrimSuffix(r.fields["CPUs"], "+"), strings.TrimSuffix(r.fields["Memory"], "+")
		return Nodes{Partition: r.fields["PartitionName"], Cores: read(r, "CPUs", count), MemoryBytes: read(r, "Memory", Memory)}
	})
}

// Reservation is a time for which nodes are kept from other jobs.
type Reservation struct {
	Name       string
	Start, End time.Time
	Nodes      string // a host list
	Partition  string
	Flexible   bool // jobs in it may run on behind its end (FLEX)
}

// Reservations reads `scontrol -o show reservation`.
func Reservations(output []byte) ([]Reservation, error) {
	keys := strings.Fields(`ReservationName StartTime EndTime Duration Nodes NodeCnt CoreCnt Features PartitionName Flags TRES
		Users Groups Accounts Licenses State BurstBuffer Watts MaxStartDelay Comment`)
	var out []Reservation
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "No reservations") {
			continue
		}
		f, err := record(line, keys)
		if err != nil {
			return nil, fmt.Errorf("reservation: %w", err)
		}
		r := reader{fields: f}
		out = append(out, Reservation{
			Name: r.text("ReservationName"), Start: read(&r, "StartTime", Instant), End: read(&r, "EndTime", Instant),
			Nodes: r.word("Nodes"), Partition: r.word("PartitionName"), Flexible: slices.Contains(strings.Split(f["Flags"], ","), "FLEX"),
		})
		if r.err != nil {
			return nil, r.err
		}
	}
	return out, nil
}

// ExpectedStart reads what `sbatch --test-only` says: when the job would start.
func ExpectedStart(stderr []byte) (time.Time, error) {
	m := regexp.MustCompile(`Job \d+ to start at (\S+) `).FindSubmatch(stderr)
	if m == nil {
		return time.Time{}, fmt.Errorf("%w: sbatch --test-only: %.200q", ErrFormat, stderr)
	}
	return Instant("start", string(m[1]))
}
