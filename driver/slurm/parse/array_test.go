package parse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/driver/slurm/parse"
)

func TestSetsOfTasks(t *testing.T) {
	t.Parallel()
	for s, want := range map[string][]int{
		"3": {3}, "0": {0}, "3-5%2": {3, 4, 5}, "0-8:2": {0, 2, 4, 6, 8}, "1-10:4": {1, 5, 9}, "1,3,5-7%4": {1, 3, 5, 6, 7},
		"1-3,...": {1, 2, 3}, "1,4,7-8,52,6...%5": {1, 4, 7, 8, 52}, // 6 may be 61
	} {
		if got, err := parse.Tasks(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v (%v), want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "-", "1-", "-1", "a", "5-3", "1-2:0", "3:2", "1,,2", "1,", "%2", "1%0", "1%", "1%a", "...", "6...", "1-4000001", "1 2",
	} {
		if got, err := parse.Tasks(s); !errors.Is(err, parse.ErrFormat) {
			t.Errorf("%q is %v (%v), want %v", s, got, err, parse.ErrFormat)
		}
	}
}

func TestASetIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want []int
		var parts []string
		next := 0
		for range rapid.IntRange(1, 20).Draw(t, "ranges") {
			first := next + rapid.IntRange(0, 9).Draw(t, "gap")
			step := rapid.IntRange(1, 5).Draw(t, "step")
			n := rapid.IntRange(1, 200).Draw(t, "tasks")
			for i := range n {
				want = append(want, first+i*step)
			}
			next = first + n*step
			parts = append(parts, fmt.Sprintf("%d-%d:%d", first, next-1, step))
		}
		s := strings.Join(parts, ",") + rapid.SampledFrom([]string{"", "%3", ",...", ",1..."}).Draw(t, "end")
		if got, err := parse.Tasks(s); err != nil || !slices.Equal(got, want[:min(len(want), parse.MaxTasks)]) {
			t.Errorf("%s is %v (%v), want %v", s, got, err, want)
		}
	})
}

func FuzzTasks(f *testing.F) {
	for _, s := range []string{"1-1000:2", "1,3,5-7%4", "1-10,...", "58,6...%5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := parse.Tasks(s); err == nil && (len(got) == 0 || len(got) > parse.MaxTasks || slices.Min(got) < 0) {
			t.Errorf("%q has the tasks %v", s, got)
		}
	})
}

// task is what scontrol prints of some tasks of array 8.
func task(id, tasks, state, output string) string {
	return "JobId=" + id + " ArrayJobId=8 ArrayTaskId=" + tasks + ` ArrayTaskThrottle=2 JobName=a UserId=a(1) GroupId=a(1) MCS_label=N/A Priority=0 ` +
		`Nice=0 Account=(null) QOS=normal JobState=` + state + ` Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 ` +
		`RunTime=00:00:00 TimeLimit=UNLIMITED TimeMin=N/A SubmitTime=2026-11-21T05:21:40 EligibleTime=Unknown StartTime=2026-11-21T05:21:44 ` +
		`EndTime=Unknown Partition=main AllocNode:Sid=h:1 NodeList= NumNodes=1 NumCPUs=2 NumTasks=N/A CPUs/Task=1 MinMemoryNode=0 ` +
		`Command=(null) WorkDir=/a StdErr=` + output + ` StdIn=/dev/null StdOut=` + output + ` Power= ` + "\n"
}

func TestARecordOfSeveralTasksIsThoseTasks(t *testing.T) {
	t.Parallel()
	jobs, err := parse.Jobs([]byte(task("8", "3-4,9%2", "PENDING", "/a/x-8-4294967294-%3a.out") + task("9", "1", "PENDING", "/a/x-8-1-%3a.%j")))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d records (%v), want 2", len(jobs), err)
	}
	var got []string
	for _, j := range jobs {
		for _, each := range j.EachTask() {
			got = append(got, fmt.Sprintf("%s %s %t %s", each.ID, each.ArrayTask, each.Unnumbered(), each.StdOut))
		}
	}
	want := []string{
		"8 3 true /a/x-8-3-003.out", "8 4 true /a/x-8-4-004.out", "8 9 true /a/x-8-9-009.out", "9 1 false /a/x-8-1-001.%j",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	many, err := parse.Jobs([]byte(task("8", "1-4000000", "PENDING", "/dev/null")))
	if err != nil || len(many) != 1 || len(many[0].EachTask()) != parse.MaxTasks {
		t.Errorf("%d records (%v), want one of %d tasks", len(many), err, parse.MaxTasks)
	}
	if jobs, err := parse.Jobs([]byte(task("8", "1-x", "PENDING", "/dev/null"))); !errors.Is(err, parse.ErrFormat) {
		t.Errorf("tasks that no one can read are %+v (%v), want %v", jobs, err, parse.ErrFormat)
	}
}

func TestAQueueShowsABoundedNumberOfTasksThatWait(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range parse.MaxTasks + 10 {
		fmt.Fprintf(&b, "7|7|%d|N/A|PENDING|None|0|1|10M|1:00|main|\n", i)
	}
	b.WriteString("9|7|5000|N/A|RUNNING|None|0|1|10M|1:00|main|\n10|7|5001|N/A|PENDING|BeginTime|0|1|10M|1:00|main|\n11|11|N/A|N/A|PENDING|None|0|1|10M|1:00|main|\n")
	lines, err := parse.Queue([]byte(b.String()))
	if err != nil || len(lines) != parse.MaxTasks+3 {
		t.Errorf("%d lines (%v), want %d and three others", len(lines), err, parse.MaxTasks)
	}
}
