package parse

import (
	"fmt"
	"slices"
	"strings"
)

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
	lines, err := Rows(command, output, len(keys)+1)
	var out []T
	for _, f := range lines {
		r := reader{fields: make(map[string]string, len(keys))}
		for i, key := range keys {
			r.fields[key] = f[i]
		}
		out = append(out, row(&r))
		if r.err != nil {
			return nil, fmt.Errorf("%s: %w", command, r.err)
		}
	}
	return out, err
}

// reader keeps the first error of many fields.
type reader struct {
	fields map[string]string
	err    error
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
func (r *reader) word(key string) string { return none(r.fields[key]) }

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
		if key != "" {
			out[key] = strings.TrimSpace(line[value:i])
		}
		key, value = next, i+equals+1
	}
	if key != "" {
		out[key] = strings.TrimSpace(line[value:])
	}
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
		OriginalCluster BurstBuffer BurstBufferState Switches Container ContainerID SegmentSize Power NtasksPerTRES`)
}
