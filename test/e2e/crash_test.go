package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/e2e/table"
)

// script is a job of short epochs that notes each one in a journal. With each thread they
// get much shorter, so that a job which is long enough to be tuned ends soon once it is.
const script = `#!/bin/sh
#SBATCH --job-name=%s
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#TUNE mode=apply objective=time
#TUNE knob threads env=THREADS values=1,2,3
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'
#TUNE checkpoint signal=USR1 grace=20s exit=85
#TUNE profile warmup_epochs=0 epochs=2
#TUNE budget restarts=4 probes=2
export THREADS=${THREADS:-1}
exec %s tick --epochs %d --epoch-seconds "$(awk "BEGIN { print 0.4 / $THREADS ^ 2 }")" --journal %s --state %s
`

// submit repeats the same request until the controller, which may be dead,
// answers.
func (s *stage) submit(ctx context.Context, name string, progs programs, epochs int) {
	s.t.Helper()
	work := filepath.Join(s.dir, "work", name)
	if err := os.MkdirAll(work, 0o755); err != nil {
		s.t.Fatal(err)
	}
	source := fmt.Sprintf(script, name, progs.path("workload"), epochs, filepath.Join(work, "journal"), filepath.Join(work, "state"))
	s.await("submit "+name, func() error {
		if !s.alive() {
			s.start()
		}
		_, err := s.client.Submit(ctx, api.Submission{
			Request: "request-" + name, Filename: name + ".sbatch", Source: []byte(source), Dir: work,
		})
		if err != nil && !errors.Is(err, api.ErrUnavailable) {
			s.t.Fatalf("submit %s: %v", name, err)
		}
		return err
	})
}

// check holds what must hold whatever was killed: each job once, to its end,
// every epoch in order and once, or again where an attempt was thrown away.
func (s *stage) check(jobs []api.Job, names []string, epochs int) (moves int) {
	s.t.Helper()
	byName := map[string][]api.Job{}
	for _, j := range jobs {
		byName[j.Name] = append(byName[j.Name], j)
	}
	for _, name := range names {
		js := byName[name]
		if len(js) != 1 {
			s.t.Errorf("%s: %d jobs, want one", name, len(js))
			continue
		}
		j := js[0]
		if j.State != "succeeded" {
			s.t.Errorf("%s: ended as %s (%s), want succeeded", name, j.State, j.Detail)
		}
		moves += j.Attempt - 1
		journal, err := os.ReadFile(filepath.Join(s.dir, "work", name, "journal"))
		if err != nil {
			s.t.Errorf("%s: %v", name, err)
			continue
		}
		story, err := s.client.Explain(s.t.Context(), j.ID)
		if err != nil {
			s.t.Errorf("%s: %v", name, err)
			continue
		}
		did, discards := strings.Fields(string(journal)), table.Discards(story)
		if !table.InOrder(did, epochs, discards) {
			s.t.Errorf("%s: epochs done: %v, want each of 1 to %d in order and once, or again after %d discards", name, did, epochs, discards)
		}
	}
	return moves
}

// finished waits until every job ended, and keeps the controller alive meanwhile.
func (s *stage) finished(ctx context.Context, n int) []api.Job {
	s.t.Helper()
	var jobs []api.Job
	s.await(fmt.Sprintf("%d jobs to end", n), func() error {
		if !s.alive() {
			s.start()
		}
		var err error
		if jobs, err = s.client.Jobs(ctx); err != nil {
			return err
		}
		open := 0
		for _, j := range jobs {
			if !j.Ended {
				open++
			}
		}
		if open > 0 || len(jobs) < n {
			return fmt.Errorf("%d of %d are open", open, len(jobs))
		}
		return nil
	})
	return jobs
}

// tell logs a job's story.
func (s *stage) tell(id string) {
	s.t.Helper()
	story, err := s.client.Explain(s.t.Context(), id)
	if err != nil {
		s.t.Logf("explain: %v", err)
	}
	for _, l := range story.Lines {
		s.t.Logf("%s %s %v", l.At.Format("05.000"), l.Text, l.Why)
	}
}

// The tests of kills have the machine for themselves: they count moments.
func TestEveryDurableStepSurvivesAKill(t *testing.T) {
	progs := build(t)
	steps := []string{
		"driver claimed", "driver created", "driver planned", "driver forked", "driver running",
		"saved probe ", "driver asking", "driver signal-sent", "saved probe checkpointing", "driver stopped",
		"saved probe stopped", "driver changed", "saved probe changed", "driver queued", "driver ended",
	}
	deaths := filepath.Join(t.TempDir(), "deaths")
	// A kill at one step may carry a job past the next one, and a job that waits out
	// many lives may end before it is moved. So machines come, each new to its jobs,
	// until every step was met.
	missed, moves := steps, 0
	for round := 1; round <= 8 && len(missed) > 0; round++ {
		moves += deadlyRound(t, progs, deaths)
		seen, err := os.ReadFile(deaths)
		if err != nil {
			t.Fatal(err)
		}
		died := strings.Split(strings.TrimSuffix(string(seen), "\n"), "\n")
		missed = slices.DeleteFunc(slices.Clone(steps), func(step string) bool { return slices.Contains(died, step) })
		t.Logf("round %d: killed at %d durable steps so far, %d moves", round, len(died), moves)
	}
	if len(missed) > 0 {
		t.Errorf("the controller was never killed at %q", missed)
	}
}

// deadlyRound runs a few jobs on a controller that dies at each durable step that
// is not yet among the deaths, and tells how many moves the jobs made.
func deadlyRound(t *testing.T, progs programs, deaths string) int {
	t.Helper()
	const epochs = 300 // two minutes untuned: enough for what a probe could cost
	s := newStage(t, progs, envDeadly+"="+deaths)
	s.start()
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		s.submit(t.Context(), name, progs, epochs)
	}
	jobs := s.finished(t.Context(), len(names))
	moves := s.check(jobs, names, epochs)
	if moves == 0 {
		s.tell(jobs[0].ID)
	}
	s.kill()
	return moves
}

func TestRandomKillsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	progs := build(t)
	s := newStage(t, progs)
	s.start()
	// A restart that was hit by a kill is dear, and only a long job can afford more of them.
	const jobs, kills, short, long = 12, 30, 5, 600
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	names := map[int][]string{}
	next := 0
	start := time.Now()
	for kill := range kills {
		// Jobs come as a stream, so that kills meet submissions too.
		for next < jobs && next <= kill*jobs/(kills/4) {
			epochs := short
			if next%4 == 0 {
				epochs = long
			}
			name := fmt.Sprintf("job%02d", next)
			s.submit(t.Context(), name, progs, epochs)
			names[epochs] = append(names[epochs], name)
			next++
		}
		time.Sleep(time.Duration(150+rng.IntN(700)) * time.Millisecond)
		s.kill()
		s.start()
	}
	all := s.finished(t.Context(), jobs)
	moves := s.check(all, names[short], short) + s.check(all, names[long], long)
	if moves == 0 {
		t.Error("no job was moved, so the kills proved little")
	}
	t.Logf("%d kills, %d lives, %d moves, %.0f s", kills, s.lives, moves, time.Since(start).Seconds())
}
