package parse

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/jobfile/sbatch"
)

// ErrFormat is wrapped by every error of this package.
var ErrFormat = errors.New("unknown output of Slurm")

func badValue(field, value string) error {
	return fmt.Errorf("%w: %s is %q", ErrFormat, field, value)
}

// Instant reads a time. Unknown, N/A and NONE are the zero time.
func Instant(field, s string) (time.Time, error) {
	switch s {
	case "Unknown", "N/A", "NONE", "None", "(null)", "":
		return time.Time{}, nil
	}
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return time.Time{}, badValue(field, s)
	}
	return t, nil
}

// Limit reads a time limit: [D-]HH:MM:SS, MM:SS, or UNLIMITED, which is 0.
func Limit(field, s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "INFINITE", "Partition_Limit", "NOT_SET", "INVALID", "":
		return 0, nil
	}
	limit, ok := sbatch.TimeLimit(s)
	if colons := strings.Count(s, ":"); !ok || colons == 0 || colons == 1 && strings.Contains(s, "-") {
		return 0, badValue(field, s) // only minutes, or hours after days: no command prints these
	}
	return limit, nil
}

// Memory reads an amount in MiB, or with K, M, G or T after it, as bytes.
func Memory(field, s string) (int64, error) {
	number, shift := s, 20
	if i := strings.IndexAny(s, "KMGT"); i >= 0 && i == len(s)-1 {
		number, shift = s[:i], 10*(strings.IndexByte("KMGT", s[i])+1)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || f > math.MaxInt64/2/float64(int64(1)<<shift) || number != strings.TrimLeft(number, "+-xXiInN") {
		return 0, badValue(field, s)
	}
	return int64(f * float64(int64(1)<<shift)), nil
}

// ReqMem reads what sacct says about the memory that a job asked for, in all. Before
// 21.08 an n or a c after it says that it is that of each node or CPU.
func ReqMem(field, s string, cpus, nodes int) (int64, error) {
	each := 1
	switch {
	case strings.HasSuffix(s, "n"):
		each = max(nodes, 1)
	case strings.HasSuffix(s, "c"):
		each = max(cpus, 1)
	}
	bytes, err := Memory(field, strings.TrimRight(s, "nc"))
	if err != nil || len(s)-len(strings.TrimRight(s, "nc")) > 1 || bytes > math.MaxInt64/int64(each) {
		return 0, badValue(field, s)
	}
	return bytes * int64(each), nil
}

// Status is how a job's script ended.
type Status struct {
	Exit   int
	Signal int
}

// Code is the exit status as a shell says it: 128 and the signal where there was
// one.
func (s Status) Code() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Exit
}

// ExitStatus reads STATUS:SIGNAL.
func ExitStatus(field, s string) (Status, error) {
	a, b, ok := strings.Cut(s, ":")
	exit, err := strconv.ParseUint(a, 10, 16)
	signal, err2 := strconv.ParseUint(b, 10, 16)
	if !ok || err != nil || err2 != nil {
		return Status{}, badValue(field, s)
	}
	return Status{Exit: int(exit), Signal: int(signal)}, nil
}

func count(field, s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, badValue(field, s)
	}
	return int(n), nil
}

func flag(field, s string) (bool, error) {
	if s != "0" && s != "1" {
		return false, badValue(field, s)
	}
	return s == "1", nil
}

// low reads N or the lower end of N-M.
func low(field, s string) (int, error) {
	a, _, _ := strings.Cut(s, "-")
	return count(field, a)
}

// state takes a state's word, without what sacct adds after it.
func state(field, s string) (string, error) {
	word, rest, _ := strings.Cut(s, " ")
	if word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || rest != "" && !strings.HasPrefix(rest, "by ") {
		return "", badValue(field, s)
	}
	return word, nil
}

// Given empties what Slurm writes for nothing.
func Given(s string) string {
	if s == "(null)" || s == "N/A" || s == "None" {
		return ""
	}
	return s
}

// Digits reports whether a text is a number without a sign.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func digits(field, s string) (string, error) {
	if !Digits(s) {
		return "", badValue(field, s)
	}
	return s, nil
}

// The longest numbers: of a job 32 bits, of a task Slurm's own bound of MaxArraySize.
const (
	longestJob  = 10
	longestTask = 7
)

// Named reports whether a name is one of a job: its number, or of a task of an array the
// number of the array and that of the task.
func Named(name string) bool {
	array, task, isTask := strings.Cut(name, "_")
	return Digits(array) && len(array) <= longestJob && (!isTask || Digits(task) && len(task) <= longestTask)
}

// Rows reads lines of so many fields with | between them; empty lines count for nothing.
func Rows(command string, output []byte, fields int) ([][]string, error) {
	var out [][]string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		row := strings.Split(line, "|")
		if len(row) != fields {
			return nil, fmt.Errorf("%w: %s: %d fields in %.200q", ErrFormat, command, len(row), line)
		}
		out = append(out, row)
	}
	return out, nil
}

// table reads lines of the fields of a format, KEY:|,KEY:| as squeue -O and sinfo -O take it.
func table[T any](command, format string, output []byte, row func(r *reader) T) ([]T, error) {
	keys := strings.Split(strings.ReplaceAll(format, ":|", ""), ",")
	return each(command, output, func(line string) (map[string]string, error) {
		values := strings.Split(line, "|")
		if len(values) != len(keys)+1 {
			return nil, fmt.Errorf("%w: %d fields in %.200q", ErrFormat, len(values), line)
		}
		return named(keys, values).fields, nil
	}, row)
}

// Delimiter returns what is to stand after each value of one answer. Whoever writes a name or a
// comment cannot know it, so that no text of his looks like another job.
func Delimiter() string { return "|" + rand.Text() + "|" }

// delimited reads lines in which a delimiter ends the value of each key. Values may have several
// lines.
func delimited(command string, keys []string, delimiter string, output []byte) ([]reader, error) {
	values := strings.Split(strings.TrimSuffix(string(output), "\n"), delimiter)
	last := len(values) - 1
	if last%len(keys) != 0 || values[last] != "" {
		return nil, fmt.Errorf("%w: %s: %d fields, and %.200q after them", ErrFormat, command, last, values[last])
	}
	var out []reader
	for row := range slices.Chunk(values[:last], len(keys)) {
		row[0] = strings.TrimPrefix(row[0], "\n")
		out = append(out, named(keys, row))
	}
	return out, nil
}

// each reads lines of fields; empty lines count for nothing.
func each[T any](of string, output []byte, fields func(line string) (map[string]string, error), read func(r *reader) T) ([]T, error) {
	var out []T
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f, err := fields(line)
		r := reader{fields: f, err: err}
		if err == nil {
			out = append(out, read(&r))
		}
		if r.err != nil {
			return nil, fmt.Errorf("%s: %w", of, r.err)
		}
	}
	return out, nil
}

// reader keeps the first error of many fields.
type reader struct {
	fields map[string]string
	err    error
}

// named are values under their keys, as far as there are some.
func named(keys, values []string) reader {
	r := reader{fields: make(map[string]string, len(keys))}
	for i, key := range keys[:min(len(keys), len(values))] {
		r.fields[key] = values[i]
	}
	return r
}

// text is a field that must be there.
func (r *reader) text(key string) string {
	v := r.fields[key]
	if v == "" && r.err == nil {
		r.err = fmt.Errorf("%w: no field %s", ErrFormat, key)
	}
	return v
}

// word is a field that may be missing, or (null).
func (r *reader) word(key string) string { return Given(r.fields[key]) }

// read reads a field that must be there.
func read[T any](r *reader, key string, as func(field, s string) (T, error)) (v T) {
	text := r.text(key)
	if r.err == nil {
		v, r.err = as(key, text)
	}
	return v
}

// maybe reads a field that may be missing, or (null).
func maybe[T any](r *reader, key string, as func(field, s string) (T, error)) (v T) {
	if r.word(key) == "" {
		return v
	}
	return read(r, key, as)
}

// Word is a field of a record that holds no blanks; empty where it is not there.
func Word(record, key string) string {
	_, rest, _ := strings.Cut(" "+record, " "+key+"=")
	w, _, _ := strings.Cut(rest, " ")
	return strings.TrimSpace(w)
}

// record splits KEY=VALUE pairs of one line at the keys that are known. Values
// may hold blanks, so that nothing else shows where one ends. A known key that
// appears twice is an error: one of the two was written by a user.
func record(line string, known []string) (map[string]string, error) {
	out := map[string]string{}
	key, value := "", 0
	for i := 0; i < len(line); i++ {
		if i > 0 && line[i-1] != ' ' && line[i-1] != '\n' {
			continue
		}
		equals := strings.IndexByte(line[i:], '=')
		if equals < 0 {
			break
		}
		next := line[i : i+equals]
		if !slices.Contains(known, next) {
			continue
		}
		if _, twice := out[next]; twice || next == key {
			return nil, fmt.Errorf("%w: the field %s stands twice", ErrFormat, next)
		}
		out[key] = strings.TrimSpace(line[value:i])
		key, value = next, i+equals+1
	}
	out[key] = strings.TrimSpace(line[value:])
	delete(out, "") // what stands before the first key
	return out, nil
}

// jobKeys are the fields of `scontrol -o show job`, those of newer versions
// included, so that free text never swallows one.
func jobKeys() []string {
	return strings.Fields(`JobId ArrayJobId ArrayTaskId ArrayTaskThrottle HetJobId HetJobOffset HetJobIdSet JobName
		UserId GroupId MCS_label Priority Nice Account QOS WCKey JobState Reason FailedNode Dependency Requeue Restarts
		BatchFlag Reboot ExitCode DerivedExitCode RunTime TimeLimit TimeMin SubmitTime EligibleTime AccrueTime StartTime EndTime
		Deadline PreemptEligibleTime PreemptTime SuspendTime SecsPreSuspend LastSchedEval Scheduler ResizeTime Partition
		AllocNode:Sid ReqNodeList ExcNodeList NodeList BatchHost SchedNodeList StepMgrEnabled NumNodes NumCPUs NumTasks CPUs/Task
		ReqB:S:C:T TRES ReqTRES AllocTRES Socks/Node NtasksPerN:B:S:C CoreSpec ThreadSpec MinCPUsNode MinMemoryNode MinMemoryCPU
		MinTmpDiskNode Features Prefer DelayBoot Reservation OverSubscribe Contiguous Licenses LicensesAlloc Network Command
		Submitline SubmitLine WorkDir AdminComment SystemComment Comment Extra StdErr StdIn StdOut BatchFeatures ClusterFeatures
		CpusPerTres MemPerTres TresBind TresFreq TresPerJob TresPerNode TresPerSocket TresPerTask MailUser MailType
		OriginalCluster BurstBuffer BurstBufferState Switches Container ContainerID SegmentSize Power NtasksPerTRES
		CronJob CrontabSpec FedOrigin FedViableSiblings FedActiveSiblings CPU_min_freq CPU_max_freq Governor GresAllowTaskSharing
		GresEnforceBind GresOneTaskPerSharing KillOInInvalidDependent SpreadJob OOMKillStep MinMemoryTRES SELinuxContext ResvPorts JOB_GRES`)
}
