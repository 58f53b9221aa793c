package sampler_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/sampler"
)

// On hosts where perf has its own tree, a cgroup in v2 is not where it looks.
func TestAJobGetsAPerfCgroupWhereItHasNoneInPerfsTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := &perfCgroups{tree: "perf_event", dir: "/leaf", put: map[string]int{}}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("7\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.jobs[slurm("42")] = &burn{from: time.Now(), confirmed: true, dirs: map[string]string{"unified": dir}}
		w.jobs[slurm("43")] = &burn{from: time.Now(), confirmed: true, dirs: map[string]string{"unified": dir, "perf_event": dir}}
		runWith(t, w, sampler.Config{PerfCgroups: l})
		wait(time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.put["slurm-42"] == 0 || len(l.put) != 1 {
			t.Errorf("put %v, want slurm-42 alone", l.put)
		}
	})
}
