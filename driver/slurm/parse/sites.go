package parse

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SacctFields are what sacct is asked for, with -n -P -X. The name comes last: it
// is free text.
const SacctFields = "JobIDRaw,User,State,ExitCode,Submit,Start,End,ReqCPUS,ReqMem,Timelimit,Partition,Account,QOS,NNodes,JobName"

// Past is one job as the accounting remembers it.
type Past struct {
	ID, Name, User, State, Partition, Account, QOS string
	Exit                                           Status
	Submitted, Started, Ended                      time.Time
	CPUs, Nodes                                    int
	MemoryBytes                                    int64
	TimeLimit                                      time.Duration
}

// Accounting reads the output of sacct under SacctFields. A name may have several lines:
// one that is no record belongs to the name of the job before it.
func Accounting(output []byte) ([]Past, error) {
	var out []Past
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		names := strings.Split(SacctFields, ",")
		v := strings.SplitN(line, "|", len(names))
		if len(out) > 0 && (len(v) != len(names) || strings.Trim(v[0], "0123456789") != "") {
			out[len(out)-1].Name += "\n" + line
			continue
		}
		if len(v) != len(names) {
			return nil, fmt.Errorf("%w: sacct: %d fields in %q", ErrFormat, len(v), line)
		}
		f := make(map[string]string, len(names))
		for i, n := range names {
			f[n] = v[i]
		}
		r := reader{fields: f}
		p := Past{
			ID: r.text("JobIDRaw"), Name: f["JobName"], User: f["User"], Partition: f["Partition"], Account: f["Account"], QOS: f["QOS"],
			State: read(&r, "State", state), Exit: read(&r, "ExitCode", ExitStatus), CPUs: r.number("ReqCPUS", count),
			Nodes: r.number("NNodes", count), Submitted: read(&r, "Submit", Instant), Started: read(&r, "Start", Instant),
			Ended: read(&r, "End", Instant),
		}
		if f["Timelimit"] != "" {
			p.TimeLimit = read(&r, "Timelimit", Limit)
		}
		if f["ReqMem"] != "" {
			p.MemoryBytes = read(&r, "ReqMem", func(field, s string) (int64, error) { return ReqMem(field, s, p.CPUs, p.Nodes) })
		}
		if r.err != nil {
			return nil, r.err
		}
		out = append(out, p)
	}
	return out, nil
}

// NodesFormat is what sinfo -h -e -o is asked for.
const NodesFormat = "%R|%c|%m"

// Nodes is a group of equal nodes of a partition.
type Nodes struct {
	Partition   string
	Cores       int
	MemoryBytes int64
}

// Partitions reads the output of sinfo under NodesFormat. A + behind a number says
// that some of the group have more.
func Partitions(output []byte) ([]Nodes, error) {
	rows, err := Rows("sinfo", output, 3)
	var out []Nodes
	for _, f := range rows {
		cores, err := count("CPUs", strings.TrimSuffix(f[1], "+"))
		memory, err2 := Memory("Memory", strings.TrimSuffix(f[2], "+"))
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		out = append(out, Nodes{Partition: f[0], Cores: cores, MemoryBytes: memory})
	}
	return out, err
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
			Nodes: none(f["Nodes"]), Partition: none(f["PartitionName"]), Flexible: slices.Contains(strings.Split(f["Flags"], ","), "FLEX"),
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
