package faultslurm_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
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
const perRound = 26

func TestFaultsLoseNoJobAndRunNoneTwice(t *testing.T) {
	t.Logf("faults %d, seed %d", *faultsFlag, *seedFlag)
	began := time.Now()
	w := newWorld(t)
	stop := w.administer()
	random := rand.New(rand.NewPCG(*seedFlag, 0))
	todo := plan(random, families(w.owners[0].disk), *faultsFlag)
	small := *faultsFlag <= perRound
	var strikes []strike
	verdicts := map[string]verdict{}
	for number := 1; len(strikes) < *faultsFlag && time.Since(began) < *keepFlag; number++ {
		r := &round{w: w, number: number, dice: rand.New(rand.NewPCG(*seedFlag, uint64(number)))}
		if err := r.submit(small); err != nil {
			t.Fatalf("round %d: %v", number, err)
		}
		// A few more than are wanted: some meet nothing.
		n := min(perRound, len(todo))
		t.Logf("%s round %d begins", time.Now().Format("15:04:05.000"), number)
		left := r.inject(todo[:n])
		todo = append(todo[n:], left...)
		if len(todo) == 0 {
			todo = plan(random, families(w.owners[0].disk), *faultsFlag-len(strikes)-len(r.strikes)+2)
		}
		got, err := r.finish()
		if err != nil {
			t.Fatalf("round %d: %v", number, err)
		}
		strikes = append(append(strikes, r.strikes...), r.passive()...)
		for id, v := range got {
			verdicts[id] = v
			if !v.fine {
				t.Errorf("round %d: %s", number, w.explain(v))
			} else if len(v.why) > 0 {
				t.Logf("round %d: Slurm's: job %s (%s of %s): %s\n%s", number, id, v.job.name, v.job.owner.name, strings.Join(v.why, "; "), shorten(v.job.journal()))
			}
		}
		for _, c := range r.complaints {
			t.Errorf("round %d: %s", number, c)
		}
		if err := r.clear(); err != nil {
			t.Errorf("round %d: %v", number, err)
		}
		t.Logf("round %d: %d faults so far, %v", number, len(strikes), time.Since(began).Round(time.Second))
	}
	stop()
	w.remains()
	text := fmt.Sprintf("seed %d, %d jobs, %v\n\n%s", *seedFlag, len(verdicts), time.Since(began).Round(time.Second), table(strikes, verdicts)) +
		fmt.Sprintf("sbatch --wait took the status of a job that left (RequeueExitHold) for its end %d times.\n", w.early.Load())
	t.Log("\n" + text)
	if path := os.Getenv("FAULT_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // it is for people
			t.Error(err)
		}
	}
	if len(strikes) < *faultsFlag {
		t.Errorf("%d faults met something within %v, want %d", len(strikes), *keepFlag, *faultsFlag)
	}
}
