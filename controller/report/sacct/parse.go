package sacct

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// ErrFormat is what every error of Parse wraps: the text is not what sacct -P prints.
var ErrFormat = errors.New("not the output of sacct -P")

// Fault is a line that cannot be read.
type Fault struct {
	Line int
	Why  string
}

// fault is about a field; empty: about the whole line.
func fault(line int, field, found, want string) Fault {
	if field != "" {
		field += ": "
	}
	return Fault{line, field + "found " + found + "; want " + want}
}

// Error prints one line.
func (f Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Why) }

// Unwrap returns ErrFormat.
func (f Fault) Unwrap() error { return ErrFormat }

// Job is one run of a job. Nil and 0 mean that the text does not say.
type Job struct {
	ID, User, Account, Partition, Name, State string

	Elapsed *time.Duration
	CPUs    int // allocated
	Nodes   int
	CPU     *time.Duration // that its processes used, user and system
	Asked   tuning.Bytes   // memory, of the whole job
	Peak    tuning.Bytes   // largest resident memory of a step, over its tasks

	Line          int       // of the text
	Submit, Start time.Time // as printed, read as UTC
	Limit         *time.Duration
	GPUs          int // allocated
}

// Ended reports whether the run is over, so that its numbers are final.
func (j Job) Ended() bool {
	word, _, _ := strings.Cut(j.State, " ") // "CANCELLED by 1000"
	return slices.Contains([]string{
		"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL", "PREEMPTED", "DEADLINE", "BOOT_FAIL",
		"REQUEUED", "REVOKED",
	}, strings.TrimSuffix(word, "+"))
}

// maxFaults is how many faults an error of Parse has: more are likely alike.
const maxFaults = 10

// History is what a text of sacct holds.
type History struct {
	Jobs    []Job
	Faults  []Fault // lines that are left out. Steps of a job that is left out are, too, and are not among them.
	records int
}

// Parse reads what `sacct -P` printed: fields between bars, their names in the
// first line, in any order. JobID is needed; fields that nothing here uses are
// left alone. A name of a job may hold bars and ends of lines where JobName is the last field. Steps (123.batch, 123.extern, 123.0) are merged into their job, and
// a job that was requeued counts once a run, as with --duplicates. Lines that cannot be
// read are left out and counted; it is an error where that are more than half of them.
func Parse(text string) (History, error) {
	h, err := Scan(text)
	if err != nil || 2*len(h.Faults) <= h.records {
		return h, err
	}
	faults := tuning.Each(h.Faults[:min(maxFaults, len(h.Faults))], func(f Fault) error { return f })
	if more := len(h.Faults) - maxFaults; more > 0 {
		faults = append(faults, fmt.Errorf("%w: and %d more", ErrFormat, more))
	}
	return History{}, errors.Join(faults...)
}

// Scan is Parse that refuses no text with a header, however many of its lines cannot be read.
func Scan(text string) (h History, err error) {
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	columns, err := header(strings.TrimSuffix(lines[0], "\r"))
	if err != nil {
		return h, err
	}
	name := -1               // the job whose name may go on
	last := map[string]int{} // job id → its newest run, -1 = it is left out
	for i, line := range lines[1:] {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		r := record{line: i + 2, columns: columns, fields: strings.Split(line, "|")}
		if h.records > 0 && r.continues() {
			if name >= 0 {
				h.Jobs[name].Name += "\n" + strings.TrimSuffix(line, "|")
			}
			continue
		}
		h.records++
		had := len(h.Jobs)
		if bad := r.into(&h.Jobs, last); bad != nil {
			h.Faults = append(h.Faults, *bad)
		}
		if name = -1; len(h.Jobs) > had {
			name = had
		}
	}
	return h, nil
}

// continues reports whether a line is not a record but a part of the name before it, in which
// its user put an end of line: it does not begin as records do.
func (r *record) continues() bool {
	end, id := len(r.columns)-1, slices.Index(r.columns, "jobid")
	return end > 0 && r.columns[end] == "jobname" && (id >= len(r.fields) || !begins(r.fields[id]))
}

// begins reports whether a field may be the id of a job or a step: a number, followed by nothing, a
// task, a component or a step.
func begins(id string) bool {
	rest := strings.TrimLeft(id, "0123456789")
	return rest != id && (rest == "" || strings.ContainsRune("_.+[", rune(rest[0]))) && !strings.ContainsAny(rest, " \t")
}

func header(line string) ([]string, error) {
	columns := strings.Split(line, "|")
	if len(columns) > 1 && columns[len(columns)-1] == "" {
		columns = columns[:len(columns)-1] // --parsable ends each line with a bar, --parsable2 does not
	}
	seen, twice := map[string]int{}, ""
	for i, c := range columns {
		name := strings.ToLower(strings.TrimSpace(c))
		columns[i] = name
		if seen[name]++; seen[name] > 1 && name != "" {
			twice = c
		}
	}
	if seen["jobid"] == 0 {
		return nil, fault(1, "", quote(line), "the names of the fields between bars, JobID among them, as `sacct -P -o JobID,User,…` prints without -n")
	}
	if twice != "" {
		return nil, fault(1, twice, "it twice", "each field once")
	}
	return columns, nil
}

// record is one line.
type record struct {
	line    int
	columns []string
	fields  []string
	fault   *Fault // the first
}

func (r *record) into(jobs *[]Job, last map[string]int) *Fault {
	if n := len(r.fields); n == len(r.columns)+1 && r.fields[n-1] == "" {
		r.fields = r.fields[:n-1]
	}
	end := len(r.columns) - 1
	if r.columns[end] == "jobname" && len(r.fields) > len(r.columns) { // after the last bar of the others all is the name
		r.fields = append(r.fields[:end:end], strings.Join(r.fields[end:], "|"))
	}
	if len(r.fields) != len(r.columns) {
		r.fail("", fmt.Sprintf("%d fields", len(r.fields)), fmt.Sprintf("%d as in the header; where the name of a job has a bar in it, ask for JobName as the last field", len(r.columns)))
		return r.fault
	}
	id := r.get("jobid")
	base, step, isStep := strings.Cut(id, ".")
	if base == "" || base[0] < '0' || base[0] > '9' || isStep && step == "" {
		r.fail("JobID", quote(id), "a number such as 123, 123_4 or 123.batch")
		return r.fault
	}
	at, known := last[base]
	if isStep && known && at < 0 {
		return nil
	}
	if isStep {
		if !known {
			r.fail("JobID", quote(id), "the line of job "+base+" before its steps; leave --state and similar filters of steps out")
			return r.fault
		}
		j := &(*jobs)[at]
		tasks := max(1, r.number("ntasks"))
		peak := r.bytes("maxrss")
		if r.fault == nil && peak <= math.MaxInt64/tuning.Bytes(tasks) {
			j.Peak = max(j.Peak, peak*tuning.Bytes(tasks))
		}
		return r.fault
	}
	j := Job{
		ID: base, User: r.get("user"), Account: r.get("account"), Partition: r.get("partition"), Name: r.get("jobname"), State: r.get("state"),
		Elapsed: r.duration("elapsed"), CPUs: max(r.number("alloccpus"), r.number("ncpus")), Nodes: max(r.number("nnodes"), r.number("allocnodes")),
		CPU: r.duration("totalcpu"), Peak: r.bytes("maxrss"),
		Line: r.line, Submit: r.time("submit"), Start: r.time("start"), Limit: r.limit(), GPUs: r.gpus(),
	}
	if raw := r.number("elapsedraw"); j.Elapsed == nil && r.get("elapsedraw") != "" {
		j.Elapsed = new(time.Duration(raw) * time.Second)
	}
	if j.CPU != nil && *j.CPU == 0 {
		j.CPU = nil // nothing runs without any: it was not gathered
	}
	j.Asked = r.memory(j)
	if r.fault != nil {
		last[base] = -1
		return r.fault
	}
	*jobs = append(*jobs, j)
	last[base] = len(*jobs) - 1
	return nil
}

func (r *record) get(column string) string {
	if i := slices.Index(r.columns, column); i >= 0 {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

func (r *record) fail(field, found, want string) {
	if r.fault == nil {
		r.fault = new(fault(r.line, field, found, want))
	}
}

func absent(text string) bool {
	return text == "" || slices.Contains([]string{"Unknown", "INVALID", "?", "None", "N/A"}, text)
}

func (r *record) number(column string) int {
	text := r.get(column)
	if absent(text) {
		return 0
	}
	return r.whole(column, text)
}

func (r *record) whole(column, text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		r.fail(column, quote(text), "a whole number")
		return 0
	}
	return int(n)
}

// duration reads [days-][hours:]minutes:seconds[.fraction].
func (r *record) duration(column string) *time.Duration {
	text := r.get(column)
	if absent(text) {
		return nil
	}
	d, ok := clock(text)
	if !ok {
		r.fail(column, quote(text), "a time such as 1-02:03:04, 02:03:04 or 03:04.567")
		return nil
	}
	return &d
}

// time reads a moment such as 2026-01-31T09:00:00.
func (r *record) time(column string) time.Time {
	text := r.get(column)
	if absent(text) {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		r.fail(column, quote(text), "a moment such as 2026-01-31T09:00:00")
	}
	return at
}

// limit is nil where the job has no own limit.
func (r *record) limit() *time.Duration {
	for _, column := range []string{"timelimitraw", "timelimit"} {
		if text := r.get(column); text == "UNLIMITED" || text == "Partition_Limit" {
			return nil
		}
	}
	if raw := r.number("timelimitraw"); raw > 0 {
		return new(time.Duration(raw) * time.Minute)
	}
	return r.duration("timelimit")
}

// gpus are those of AllocTRES, such as cpu=4,gres/gpu=2,gres/gpu:a100=2,node=1. A site
// may count GPUs by type alone.
func (r *record) gpus() int {
	typed := 0
	for part := range strings.SplitSeq(r.get("alloctres"), ",") {
		switch name, n, _ := strings.Cut(part, "="); {
		case name == "gres/gpu":
			return r.whole("AllocTRES", n)
		case strings.HasPrefix(name, "gres/gpu:"):
			typed += r.whole("AllocTRES", n)
		}
	}
	return typed
}

// bytes reads an amount such as 1234K or 1.5G; without a unit, as with --noconvert, it is
// in bytes. 0 is what is printed where nothing was seen.
func (r *record) bytes(column string) tuning.Bytes {
	text := r.get(column)
	if absent(text) {
		return 0
	}
	b, ok := amount(text, "")
	if !ok {
		r.fail(column, quote(text), "an amount of memory such as 1234K or 1.5G")
	}
	return b
}

// memory is what the whole job asked for: older versions print it per core (4Gc)
// or per node (4Gn), later ones for all of it.
func (r *record) memory(j Job) tuning.Bytes {
	text := r.get("reqmem")
	if absent(text) || text == "0" {
		return 0
	}
	times := 1
	if per, ok := strings.CutSuffix(text, "c"); ok {
		text, times = per, j.CPUs
	} else if per, ok := strings.CutSuffix(text, "n"); ok {
		text, times = per, j.Nodes
	}
	b, ok := amount(text, "M")
	if !ok || times > 0 && b > math.MaxInt64/tuning.Bytes(times) {
		r.fail("ReqMem", quote(r.get("reqmem")), "an amount of memory such as 4G, 4Gc or 4Gn")
		return 0
	}
	return b * tuning.Bytes(times)
}

func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}
