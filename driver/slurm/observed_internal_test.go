package slurm

import (
	"strings"
	"testing"
	"time"

	"pitchpipe/driver/slurm/parse"
)

func TestWhatIsSeenAndNotChanged(t *testing.T) {
	t.Parallel()
	batch := func(change func(*parse.Job)) parse.Job {
		j := parse.Job{ID: "7", State: "RUNNING", Batch: true, Nodes: 1, Tasks: 1}
		change(&j)
		return j
	}
	for name, c := range map[string]struct {
		job parse.Job
		why string // empty: it is changed
	}{
		"a job of sbatch":                        {batch(func(*parse.Job) {}), ""},
		"a task of an array":                     {batch(func(j *parse.Job) { j.ArrayJob, j.ArrayTask = "5", "1" }), ""},
		"a heterogeneous job and its components": {batch(func(j *parse.Job) { j.HetJob = "7" }), "heterogeneous"},
		"a job on two nodes":                     {batch(func(j *parse.Job) { j.Nodes = 2 }), "several nodes"},
		"a job of two tasks":                     {batch(func(j *parse.Job) { j.Tasks = 2 }), "several tasks"},
		"a job that has to end by a time":        {batch(func(j *parse.Job) { j.Deadline = time.Unix(1, 0) }), "--deadline"},
		"what srun or salloc allocated":          {batch(func(j *parse.Job) { j.Batch = false }), "only jobs of sbatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := observedOnly(c.job); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("%q, want %q", got, c.why)
			}
		})
	}
}
