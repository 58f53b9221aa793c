package sampler_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// written is the administrator's folder.
type written struct {
	mu  sync.Mutex
	b   api.Budget
	err error
}

func (w *written) write(b api.Budget, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b, w.err = b, err
}

func (w *written) Budget(manager, id string) (api.Budget, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if manager != "slurm" || id != "42" {
		return api.Budget{}, nil
	}
	return w.b, w.err
}

func allowed(t *testing.T, store *window.Store, id string) api.Budget {
	t.Helper()
	if b := see(t, store, id).Job.Budget; b != nil {
		return *b
	}
	return api.Budget{}
}

func TestTheAdministratorsBudgetFollowsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 1}
		w.jobs[slurm("43")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 1}
		file := &written{}
		_, store := runWith(t, w, sampler.Config{Budget: file.Budget})
		for _, step := range []struct {
			name string
			b    api.Budget
			err  error
			want api.Budget
		}{
			{"no file", api.Budget{}, nil, api.Budget{}},
			{"it is written", api.Budget{Joules: 10}, nil, api.Budget{Joules: 10, By: api.ByAdministrator}},
			{"it is changed", api.Budget{Joules: 20, Seconds: 5}, nil, api.Budget{Joules: 20, Seconds: 5, By: api.ByAdministrator}},
			{"it cannot be read", api.Budget{}, errors.New("half written"), api.Budget{Joules: 20, Seconds: 5, By: api.ByAdministrator}},
			{"it is gone", api.Budget{}, nil, api.Budget{}},
		} {
			file.write(step.b, step.err)
			wait(2*time.Second + time.Millisecond)
			if diff := cmp.Diff(step.want, allowed(t, store, "42")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			if got := allowed(t, store, "43"); got != (api.Budget{}) {
				t.Errorf("%s: another job has %+v", step.name, got)
			}
		}
	})
}

func TestABudgetSurvivesARestartOfTheExporter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}
		s, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
		wait(2*time.Second + time.Millisecond)
		first := see(t, store, "42").Job.First
		key := window.Key(see(t, store, "42").Job)
		store.Allow(key, api.ByController, api.Budget{Joules: 90, Used: 3})
		store.Allow(key, api.ByOwner, api.Budget{Joules: 70})
		wait(2 * time.Second)
		_, again := runWith(t, w, sampler.Config{Keep: true, Boot: "this", Earlier: s.Snapshot().State})
		wait(2 * time.Second)
		job := see(t, again, "42").Job
		if diff := cmp.Diff(&api.Budget{Joules: 70, Used: 3, By: api.ByOwner}, job.Budget); diff != "" {
			t.Errorf("budget (-want +got):\n%s", diff)
		}
		if !job.First.Equal(first) || !job.Started.After(first) {
			t.Errorf("first seen %v and %v, was %v", job.First, job.Started, first)
		}
		again.Allow(key, api.ByOwner, api.Budget{}) // what each said is kept apart
		if got := allowed(t, again, "42"); got.Joules != 90 || got.By != api.ByController {
			t.Errorf("without the owner's word: %+v", got)
		}
	})
}

func TestAUsersJoulesGoOnFromJobToJob(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"unified": t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("1")] = &burn{from: time.Now(), cores: 1, dirs: dirs, uid: 1000, confirmed: true, attempt: 1}
		s, store := runWith(t, w, sampler.Config{})
		wait(10*time.Second + time.Millisecond)
		w.change(func() {
			w.jobs[slurm("1")].to = time.Now()
			w.jobs[slurm("2")] = &burn{from: time.Now(), cores: 1, dirs: dirs, uid: 1000, confirmed: true, attempt: 1}
			w.jobs[slurm("3")] = &burn{from: time.Now(), cores: 1, dirs: dirs, uid: 1001, confirmed: true, attempt: 1}
		})
		wait(10 * time.Second)
		snap := s.Snapshot()
		got := map[uint32]float64{}
		for _, u := range snap.Users {
			got[u.UID] = u.Joules.Total()
		}
		for uid, ids := range map[uint32][]string{1000: {"1", "2"}, 1001: {"3"}} {
			want := 0.0
			for _, id := range ids {
				want += joules(t, store, id)
			}
			if want <= 0 || math.Abs(got[uid]-want) > 1e-6*want {
				t.Errorf("user %d took %v J, his jobs %v J", uid, got[uid], want)
			}
		}
		if snap.Covered < 18 || snap.Covered > 21 {
			t.Errorf("%v s of 20 s are covered", snap.Covered)
		}
	})
}
