package reconcile

import (
	"testing"
	"time"

	"pitchpipe/controller/allocate"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestJobsOfAPartitionAreDividedOnceAllWereNoted(t *testing.T) {
	t.Parallel()
	now, tick := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Second
	// A job on two cores that scales well; how much it has left decides. Nothing left: unknown.
	job := func(partition string, at int, runs bool, left float64) *elastic {
		e := &elastic{partition: partition, submitted: now, runs: runs, at: at, job: allocate.Job{Left: left, Restart: 1}}
		for n := 1.0; n <= 2; n++ {
			e.settings = append(e.settings, tuning.Settings{tuning.Cores: tuning.Number(n)})
			e.job.Sizes = append(e.job.Sizes, allocate.Size{Need: []float64{n / 2}, Speed: n})
		}
		return e
	}
	var c caps
	look := func(after time.Duration, id driver.JobID, e *elastic) (cores int, free float64) {
		to, free := c.divide(now.Add(after), id, e, tick)
		return to[tuning.Cores].Int(), free
	}
	long, short, other := job("a", 1, true, 1000), job("a", 0, false, 100), job("b", 0, true, 1000)
	for _, test := range []struct {
		name  string
		after time.Duration
		id    driver.JobID
		job   *elastic
		cores int     // 0: none yet
		free  float64 // that the other running jobs leave
	}{
		{"the first look decides nothing", 0, "1", long, 0, 1},
		{"nor does the next job's", 0, "2", short, 0, 0},
		{"a tick later the long job shrinks", tick, "1", long, 1, 1},
		{"and the waiting one gets the rest", tick, "2", short, 1, 0},
		{"jobs of another partition are none of theirs", tick, "3", other, 0, 1},
		{"and get all that is theirs", 3 * tick, "3", other, 2, 1},
	} {
		if cores, free := look(test.after, test.id, test.job); cores != test.cores || free < test.free || free > test.free+1e-6 {
			t.Errorf("%s: %d cores, %g free, want %d and %g", test.name, cores, free, test.cores, test.free)
		}
	}
	c.remove("2")
	if cores, _ := look(5*tick, "1", job("a", 0, true, 900)); cores != 2 {
		t.Errorf("when the other has ended it gets %d cores, want 2", cores)
	}
	if jobs := guess([]allocate.Job{long.job, {Sizes: short.job.Sizes}}); jobs[1].Left != 1000 {
		t.Errorf("an unknown job is taken to have %g s left, want as much as the other", jobs[1].Left)
	}
	if jobs := guess([]allocate.Job{{Sizes: short.job.Sizes}}); jobs[0].Left != 3600 {
		t.Errorf("a job among unknown ones is taken to have %g s left, want an hour", jobs[0].Left)
	}
}
