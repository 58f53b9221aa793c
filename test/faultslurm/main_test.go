package faultslurm_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

// What scripts/fault-slurm asks for. Without flags it is a sample for every test run.
var (
	faultsFlag = flag.Int("faults", 10, "how many faults to inject")
	seedFlag   = flag.Uint64("seed", 1, "seed of which fault comes when")
	keepFlag   = flag.Duration("for", 19*time.Minute, "how long to go on until there were that many")
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		if play, ok := map[string]func(string) error{roleController: controller, roleBroker: serveBroker}[os.Args[1]]; ok {
			if err := play(os.Args[2]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// perRound is how many faults meet the jobs of one round.
const perRound = 34

func TestFaultsLoseNoJobAndRunNoneTwice(t *testing.T) {
	t.Logf("faults %d, seed %d", *faultsFlag, *seedFlag)
	began := time.Now()
	w := newWorld(t)
	stop := w.administer()
	random := rand.New(rand.NewPCG(*seedFlag, 0))
	todo := fault.Plan(random, families(w.owners[0].disk), 2, *faultsFlag)
	small := *faultsFlag <= perRound
	s := &score{w: w, verdicts: map[string]verdict{}}
	done := 0
	for number := 1; done < *faultsFlag && time.Since(began) < *keepFlag; number++ {
		r := &round{Round: fault.NewRound(*seedFlag, number), w: w}
		if err := r.submit(small); err != nil {
			t.Errorf("round %d: %v", number, err)
			break
		}
		// What is left in the end is what is hard to meet: a round has other faults as well.
		for !small && len(todo) < perRound {
			todo = append(todo, fault.Plan(random, families(w.owners[0].disk), 2, perRound)...)
		}
		// A few more than are wanted: some meet nothing.
		n := min(perRound, len(todo), 2*(*faultsFlag-done)+4)
		left := r.inject(todo[:n])
		for i := range left {
			left[i].Owner = 1 - left[i].Owner // there may be something that it can meet
		}
		todo = append(todo[n:], left...)
		done += len(r.Strikes())
		if len(todo) == 0 {
			todo = fault.Plan(random, families(w.owners[0].disk), 2, *faultsFlag-done+2)
		}
		fault.Progress("round %d: %d faults met %d jobs in %v; %d faults after %v", number, len(r.Strikes()), len(r.jobs),
			time.Since(r.Began).Round(time.Second), done, time.Since(began).Round(time.Second))
		s.rounds.Go(func() { s.close(r) })
	}
	s.rounds.Wait()
	stop()
	w.remains()
	text := fmt.Sprintf("seed %d, %d jobs, %v\n\n%s", *seedFlag, len(s.verdicts), time.Since(began).Round(time.Second), table(s.strikes, s.verdicts)) +
		fmt.Sprintf("sbatch --wait took the status of a job that left (RequeueExitHold) for its end %d times.\n", w.early.Load()) +
		fmt.Sprintf("sacct shows REQUEUED of %d jobs that their owner cancelled while they were being put back.\n", w.unwritten.Load())
	t.Log("\n" + text)
	if path := os.Getenv("FAULT_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // it is for people
			t.Error(err)
		}
	}
	if done < *faultsFlag {
		t.Errorf("%d faults met something within %v, want %d", done, *keepFlag, *faultsFlag)
	}
}

// score is what became of all jobs.
type score struct {
	w      *world
	rounds sync.WaitGroup // whose jobs come to their end

	mu       sync.Mutex
	strikes  []fault.Strike
	verdicts map[string]verdict
}

// close waits for the end of a round's jobs and takes them in.
func (s *score) close(r *round) {
	t := s.w.t
	got, err := r.finish()
	if err != nil {
		t.Errorf("round %d: %v", r.Number, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strikes = append(append(s.strikes, r.Strikes()...), r.passive()...)
	fine := 0
	for id, v := range got {
		s.verdicts[id] = v
		if v.right() {
			fine++
		}
		if !v.fine {
			t.Errorf("round %d: %s", r.Number, s.w.explain(v))
		} else if len(v.why) > 0 {
			s.w.story.Logf("round %d: Slurm's: job %s (%s of %s): %s\n%s", r.Number, id, v.job.name, v.job.owner.name, strings.Join(v.why, "; "), fault.Shorten(v.job.journal()))
		}
	}
	for _, c := range r.Complaints() {
		t.Errorf("round %d: %s", r.Number, c)
	}
	if err := r.clear(); err != nil {
		t.Errorf("round %d: %v", r.Number, err)
	}
	fault.Progress("round %d: %d of %d jobs ended exactly once", r.Number, fine, len(r.jobs))
}
