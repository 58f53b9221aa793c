package sampler_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// deserted is a cgroup without a process; come lets one in.
func deserted(t *testing.T) (dir string, come func()) {
	t.Helper()
	dir = t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("")
	return dir, func() { write("1\n") }
}

func sampled(store *window.Store) int {
	return len(store.Jobs(func(api.Job) bool { return true }))
}

// A scheduler that was killed leaves the cgroups of its jobs behind.
func TestACgroupThatWasEmptyBeforeTheExporterBeganIsNoJobUntilSomebodyComes(t *testing.T) {
	t.Parallel()
	dir, come := deserted(t)
	later, _ := deserted(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), dirs: map[string]string{"unified": dir}, confirmed: true}
		_, store := runWith(t, w, sampler.Config{})
		wait(10*time.Second + time.Millisecond)
		if n := sampled(store); n != 0 {
			t.Errorf("%d jobs, want none: no one is in the cgroup", n)
		}
		// One that is made now is a job at once: its perf events are opened before its first process.
		w.change(func() {
			w.jobs[slurm("43")] = &burn{from: time.Now(), dirs: map[string]string{"unified": later}, confirmed: true}
		})
		wait(time.Second)
		if n := sampled(store); n != 1 {
			t.Errorf("%d jobs, want the one whose cgroup was just made", n)
		}
		come()
		wait(2 * time.Second)
		if n := sampled(store); n != 2 {
			t.Errorf("%d jobs, want both", n)
		}
	})
}

func TestACgroupThatIsMadeAnewUnderTheNameOfOneThatWasEmptyIsAJob(t *testing.T) {
	t.Parallel()
	dir, _ := deserted(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		b := &burn{from: time.Now(), dirs: map[string]string{"unified": dir}, birth: 5, confirmed: true}
		w.jobs[slurm("42")] = b
		_, store := runWith(t, w, sampler.Config{})
		wait(5*time.Second + time.Millisecond)
		w.change(func() { b.birth = 6 })
		wait(time.Second)
		if n := sampled(store); n != 1 {
			t.Errorf("%d jobs, want the one whose cgroup was made anew", n)
		}
	})
}

func TestAJobWhoseLastProcessLeftWhileNoExporterRanEndsWithWhatItHad(t *testing.T) {
	t.Parallel()
	dir, come := deserted(t)
	synctest.Test(t, func(t *testing.T) {
		come()
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}
		s, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
		wait(10*time.Second + time.Millisecond)
		before, saved := joules(t, store, "42"), s.Snapshot().State
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		idle := newWorld()
		idle.jobs = map[attrib.Key]*burn{slurm("42"): {from: time.Now(), dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}}
		_, again := runWith(t, idle, sampler.Config{Keep: true, Boot: "this", Earlier: saved})
		wait(20*time.Second + time.Millisecond)
		got := see(t, again, "42")
		if !got.Job.Ended || joules(t, again, "42") < before {
			t.Errorf("ended: %v with %v J, want it to have ended with its %v J", got.Job.Ended, joules(t, again, "42"), before)
		}
	})
}
