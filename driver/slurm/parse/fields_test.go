package parse_test

import (
	"slices"
	"strings"
	"testing"

	"pitchpipe/driver/slurm/parse"
)

// Each of these follows the field before it, whose value may hold blanks.
func TestAFieldOfAnotherVersionIsNotPartOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, with string
		want      func(j parse.Job) bool
	}{
		{"StdOut=/o Power=", "StdOut=/o CPU_max_freq=High Power=", func(j parse.Job) bool { return j.StdOut == "/o" }},
		{"StdOut=/o Power=", "StdOut=/o GresEnforceBind=Yes,SpreadJob=Yes OOMKillStep=0", func(j parse.Job) bool { return j.StdOut == "/o" }},
		{"BatchHost=n1", "BatchHost=n1 FedOrigin=c1", func(j parse.Job) bool { return j.Node == "n1" }},
		{"EndTime=Unknown", `EndTime=Unknown Deadline=N/A CronJob=Yes CrontabSpec="* * * * *"`, func(j parse.Job) bool { return j.Deadline.IsZero() }},
		{"MinMemoryNode=0", "MinMemoryTRES=0 MemPerTres=gres/gpu:1024", func(j parse.Job) bool {
			return j.MemoryBytes == 0 && !j.MemoryPerCPU && slices.Equal(j.Picky, []string{"MemPerTres=gres/gpu:1024"})
		}},
		{"MinMemoryNode=0", "MinMemoryNode=1M Comment=MinMemoryTRES=0", func(j parse.Job) bool { return j.MemoryBytes == 1<<20 }}, // its owner wrote it
	} {
		jobs, err := parse.Jobs([]byte(strings.Replace(strings.Replace(requeued, "Comment=x = y ", "", 1), c.old, c.with, 1)))
		if err != nil || len(jobs) != 1 || !c.want(jobs[0]) {
			t.Errorf("%s: %+v (%v)", c.with, jobs, err)
		}
	}
}

// From 23.11 on Slurm prints it for -c too.
func TestCoresOfATaskAreNotWhatAJobAsksForBesideItsSize(t *testing.T) {
	t.Parallel()
	for tres, want := range map[string][]string{
		"cpu:24": nil, "cpu=2": nil, "cpu=2,gres/gpu=1": {"TresPerTask=gres/gpu=1"}, "gres/gpu:1,cpu:2": {"TresPerTask=gres/gpu:1"},
	} {
		jobs, err := parse.Jobs([]byte(requeued + "TresPerTask=" + tres))
		if err != nil || len(jobs) != 1 || !slices.Equal(jobs[0].Picky, want) {
			t.Errorf("%s: %+v (%v), want %q", tres, jobs, err, want)
		}
	}
}
