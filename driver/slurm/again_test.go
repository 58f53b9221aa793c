package slurm_test

import (
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
)

// Slurm keeps the cores that it was tuned to.
func TestAJobThatItsOwnerRequeuesAfterItsEndKeepsItsVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRig(t, func(c *slurm.Config) { c.TaskProlog, c.SettingsDir = true, dir })
	job := r.start(t)
	in := intent(job, nil)
	in.Change.Env = map[string]string{"RATE": "1"}
	for step := (driver.Step{}); !step.Kind.Done(); {
		var err error
		if step, err = r.d.Advance(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "FAILED", 1) })
	r.job(t, job.ID)
	file := filepath.Join(dir, string(job.ID))
	if text, err := os.ReadFile(file); err == nil {
		t.Errorf("%q is left of a job that ended", text)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts = "PENDING", 1 })
	if got := r.job(t, job.ID); got.Change.Env["RATE"] != "1" || got.Change.Cores != 2 {
		t.Errorf("its change is %+v, want the one from before", got.Change)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "RATE=1\n" {
		t.Errorf("settings %q, %v; want RATE=1", text, err)
	}
}
