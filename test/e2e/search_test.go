package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/test/fault"
)

var kills = flag.Int("kills", 12, "how often a search loses its controller")

// search runs a search of faultjobs while its controller is killed so many times, at random moments.
func (s *stage) search(parallel, kills int, rng *rand.Rand) trials.State {
	s.t.Helper()
	const number, epochs = 9, 9
	folder := filepath.Join(s.dir, "work")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		s.t.Fatal(err)
	}
	// A search ends when it ends: one that is to be killed more often has longer epochs.
	epoch := time.Duration(150+40*kills) * time.Millisecond
	source := fault.SearchFile("learn", s.progs.path("faultjob"), folder, number, parallel, epochs, epoch.String(), "")
	s.start()
	id := ""
	s.await("the search to begin", func() error {
		x, err := s.client.Search(s.t.Context(), api.Submission{Request: "learn", Filename: "learn.sbatch", Source: []byte(source), Dir: folder})
		id = x.ID
		return err
	})
	done := 0
	for ; done < kills; done++ {
		time.Sleep(time.Duration(100+rng.IntN(1400)) * time.Millisecond)
		if x, err := s.client.SearchState(s.t.Context(), id); err == nil && x.Over {
			break
		}
		s.kill()
		s.start()
	}
	if done < kills {
		s.t.Errorf("the search was over after %d kills of %d", done, kills)
	}
	var x trials.State
	s.await("the search to end", func() (err error) {
		if !s.alive() {
			s.start()
		}
		if x, err = s.client.SearchState(s.t.Context(), id); err == nil && !x.Settled() {
			err = fmt.Errorf("%d trials, %d busy", len(x.Trials), x.Searcher().Busy())
		}
		return err
	})
	for n, wrong := range fault.Judge(x, folder) {
		s.t.Errorf("trial %d: %q", n, wrong)
	}
	return x
}

// TestKillsChangeNoSearch: with one trial at a time a search becomes what it becomes without kills, and with more the
// events that were logged lead to what it became.
func TestKillsChangeNoSearch(t *testing.T) {
	if testing.Short() {
		t.Skip("plays three searches with kills: make check runs it")
	}
	progs := build(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var whole, killed, wide trials.State
	t.Run("searches", func(t *testing.T) {
		for i, one := range []struct {
			name            string
			parallel, kills int
			out             *trials.State
		}{{"undisturbed", 1, 0, &whole}, {"one trial at a time", 1, *kills, &killed}, {"three trials at a time", 3, *kills, &wide}} {
			t.Run(one.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				s := newStage(t, progs)
				*one.out = s.search(one.parallel, one.kills, rand.New(rand.NewPCG(seed, uint64(i)))) //nolint:gosec // 0, 1 or 2
				t.Logf("%d kills, %d trials, %.0f s", s.lives-1, len(one.out.Trials), time.Since(began).Seconds())
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, a := range apart(whole, killed) {
		t.Error(a)
	}
	resumed := 0
	for _, x := range []trials.State{killed, wide} {
		for _, tr := range x.Trials {
			if tr.Attempt > 1 {
				resumed++
			}
		}
		if b := x.Searcher().Ranking()[0]; b.State != searcher.Done {
			t.Errorf("the best trial is %s", b.State)
		}
	}
	if resumed == 0 {
		t.Error("no trial went on after a pause, so that little was shown")
	}
}

// apart returns where two searches decided differently on the same trials, which each depend on their hyperparameters
// alone.
func apart(a, b trials.State) (out []string) {
	for i := range max(len(a.Trials), len(b.Trials)) {
		if i >= min(len(a.Trials), len(b.Trials)) {
			return append(out, fmt.Sprintf("%d trials, and %d", len(a.Trials), len(b.Trials)))
		}
		x, y := a.Trials[i], b.Trials[i]
		a, b := x.Decisive(), y.Decisive()
		if x.State != y.State || !x.Settings.Equal(y.Settings) || x.Passed != y.Passed || a.Epoch != b.Epoch || a.Value != b.Value {
			out = append(out, fmt.Sprintf("trial %d: %s with %s, %d rungs, %g after %d epochs; and %s with %s, %d, %g, %d", x.Number,
				x.State, x.Settings, x.Passed, a.Value, a.Epoch, y.State, y.Settings, y.Passed, b.Value, b.Epoch))
		}
	}
	return out
}
