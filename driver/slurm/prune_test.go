package slurm_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/driver/slurm"
)

// TestOldRecordsGoWhileTheControllerRuns: one that runs for months is never restarted.
func TestOldRecordsGoWhileTheControllerRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *slurm.Config) {
			c.Commands, c.Interval, c.Keep = &priced{fake: c.Commands.(*fake)}, time.Minute, 2*time.Hour
		})
		kept := func(folder string) int {
			files, err := filepath.Glob(filepath.Join(r.cfg.Dir, folder, "*"))
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		job := r.start(t)
		r.f.run(job.ID)
		r.job(t, job.ID)
		ctx, cancel := context.WithCancel(t.Context())
		events, err := r.d.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for e := range events {
				r.job(t, e.Job)
			}
		}()
		r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
		time.Sleep(90 * time.Minute)
		if jobs, requests := kept("jobs"), kept("requests"); jobs != 1 || requests != 1 {
			t.Errorf("%d records and %d requests of a job that ended a while ago, want one of each", jobs, requests)
		}
		r.forgetAll()
		time.Sleep(2 * time.Hour)
		if jobs, requests := kept("jobs"), kept("requests"); jobs != 0 || requests != 0 {
			t.Errorf("%d records and %d requests are left of a job that ended long ago", jobs, requests)
		}
		cancel()
		<-over
	})
}
