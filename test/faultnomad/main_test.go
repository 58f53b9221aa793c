package faultnomad_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

// What scripts/fault-nomad asks for. Without flags it is a sample for every test run, in
// this process.
var (
	faultsFlag = flag.Int("faults", 10, "how many faults to inject")
	seedFlag   = flag.Uint64("seed", 1, "seed of which fault comes when")
	keepFlag   = flag.Duration("for", 19*time.Minute, "how long to go on until there were that many")
	sampleFlag = flag.Bool("in-process", true, "use the server in this process although nomad is on PATH")
	withinFlag = flag.Duration("within", 0, "for how long finished work may run again without the completion marker; 0 = not judged, since others keep the machine busy")
)

// perRound is how many faults meet the jobs of one round.
const perRound = 34

func TestFaultsLoseNoWorkAndDoNoneTwice(t *testing.T) {
	t.Logf("faults %d, seed %d", *faultsFlag, *seedFlag)
	began := time.Now()
	w := newWorld(t)
	fault.Progress("on the %s", w.agent.Name())
	if !w.agent.Real {
		t.Logf("not done: %s, and %s by a node that is not eligible: the server in this process has no client of its own and no eligibility", kindClient, kindRoom)
	}
	stop := w.administer()
	random := rand.New(rand.NewPCG(*seedFlag, 0))
	todo := fault.Plan(random, families(w.agent.Real), len(w.owners), *faultsFlag)
	s := &score{w: w, verdicts: map[string]verdict{}}
	done := 0
	for number := 1; done < *faultsFlag && time.Since(began) < *keepFlag; number++ {
		r := &round{Round: fault.NewRound(*seedFlag, number), w: w}
		if err := r.submit(*faultsFlag <= perRound/2); err != nil {
			t.Errorf("round %d: %v", number, err)
			break
		}
		n := min(perRound, len(todo))
		left := r.inject(todo[:n])
		for i := range left {
			left[i].Owner = 1 - left[i].Owner // there may be something that it can meet
		}
		todo = append(todo[n:], left...)
		done += len(r.Strikes())
		if len(todo) == 0 {
			todo = fault.Plan(random, families(w.agent.Real), len(w.owners), *faultsFlag-done+2)
		}
		fault.Progress("round %d: %d faults met %d jobs in %v; %d faults after %v", number, len(r.Strikes()), len(r.jobs),
			time.Since(r.Began).Round(time.Second), done, time.Since(began).Round(time.Second))
		s.rounds.Go(func() { s.close(r) })
	}
	s.rounds.Wait()
	stop()
	w.remains()
	text := fmt.Sprintf("%s, seed %d, %d jobs, %v\n\n%s", w.agent.Name(), *seedFlag, len(s.verdicts), time.Since(began).Round(time.Second), table(s.strikes, s.verdicts))
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
		switch {
		case v.once:
			fine++
		case v.nomads:
			s.w.story.Logf("round %d: Nomad's: %s", r.Number, s.w.explain(v))
		default:
			t.Errorf("round %d: %s", r.Number, s.w.explain(v))
		}
		if v.once && v.again {
			s.w.story.Logf("round %d: its finished work began again, ran for %v and was over after %v: %s", r.Number, v.took, v.whole, s.w.explain(v))
		}
	}
	for _, c := range r.Complaints() {
		t.Errorf("round %d: %s", r.Number, c)
	}
	if err := r.clear(); err != nil {
		t.Errorf("round %d: %v", r.Number, err)
	}
	fault.Progress("round %d: of %d of %d jobs the work was done exactly once", r.Number, fine, len(r.jobs))
}
