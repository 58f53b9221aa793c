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

// record splits KEY=VALUE pairs of one line at the keys that are known. Values
// may hold blanks, so that nothing else shows where one ends. A known key that
// appears twice is an error: one of the two was written by a user.
func record(line string, known []string) (map[string]string, error) {
	type mark struct{ start, value int }
	var marks []mark
	out := map[string]string{}
	var keys []string
	for i := 0; i < len(line); i++ {
		if i > 0 && line[i-1] != ' ' && line[i-1] != '\n' {
			continue
		}
		equals := strings.IndexByte(line[i:], '=')
		if equals < 0 {
			break
		}
		key := line[i : i+equals]
		if !slices.Contains(known, key) {
			continue
		}
		if slices.Contains(keys, key) {
			return nil, fmt.Errorf("%w: the field %s stands twice", ErrFormat, key)
		}
		keys = append(keys, key)
		marks = append(marks, mark{i, i + equals + 1})
	}
	for i, m := range marks {
		end := len(line)
		if i+1 < len(marks) {
			end = marks[i+1].start
		}
		out[keys[i]] = strings.TrimSpace(line[m.value:end])
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
