package faultslurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

// What scripts/fault asks for. Without flags it is a sample for every test run.
var options = fault.Flags()

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

// TestFaultsLoseNoJobAndRunNoneTwice runs the same jobs twice, with a tuner and without one,
// where their owners move them by hand. Both meet the same kills of Slurm's own processes,
// so that what slurmctld itself forgets is shown next to what happens to tuned jobs.
func TestFaultsLoseNoJobAndRunNoneTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the processes of two clusters: make check and make fault-slurm run it")
	}
	var tuned, byHand *fault.Result[verdict]
	var notes string
	t.Run("systems", func(t *testing.T) { // ends when both have
		t.Run("with a tuner", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, true)
			tuned = w.campaign(t, *options)
			notes = fmt.Sprintf("sbatch --wait took the status of a job that left (RequeueExitHold) for its end %d times.\n", w.early.Load()) +
				fmt.Sprintf("sacct shows REQUEUED of %d jobs that their owner cancelled while they were being put back.\n", w.unwritten.Load())
		})
		t.Run("without a tuner", func(t *testing.T) {
			t.Parallel()
			few := *options
			few.Faults = max(min(options.Faults/4, 5), options.Faults*3/20) // as many as meet Slurm itself with a tuner, and each kind
			byHand = newWorld(t, false).campaign(t, few)
		})
	})
	if tuned == nil || byHand == nil {
		return
	}
	fault.Publish(t, fmt.Sprintf("seed %d, %d jobs with a tuner, %v; %d jobs without, %v\n\n%s\n%s\n%s", options.Seed, len(tuned.Verdicts), tuned.Took.Round(time.Second),
		len(byHand.Verdicts), byHand.Took.Round(time.Second), table(tuned), beside(tuned, byHand), notes))
}

// campaign injects the faults that this world can meet.
func (w *world) campaign(t *testing.T, o fault.Options) *fault.Result[verdict] {
	t.Helper()
	defer w.remains()
	return fault.Campaign[verdict]{
		Options: o, Owners: len(w.owners), Families: w.families(), Story: w.story,
		Begin: func(r *fault.Round) (fault.Jobs[verdict], error) {
			own := &round{Round: r, w: w}
			return own, own.submit(o.Sample())
		},
		Administer: w.administer, Judge: w.outcome,
	}.Run(t)
}

// outcome reports whether a job ended once, what failed where that is ours, and what is
// worth a note. Without a tuner nothing is ours.
func (w *world) outcome(v verdict) (right bool, failure, note string) {
	switch {
	case !v.fine && w.tuned:
		failure = w.explain(v)
	case !v.fine:
		note = w.explain(v)
	case len(v.why) > 0:
		note = fmt.Sprintf("Slurm's: job %s (%s of %s): %s\n%s", v.job.id, v.job.name, v.job.owner.name, strings.Join(v.why, "; "), fault.Shorten(v.job.journal()))
	}
	return v.right(), failure, note
}
