package faultnomad_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

// What scripts/fault asks for. Without flags it is a sample for every test run, in this
// process.
var (
	options    = fault.Flags()
	sampleFlag = flag.Bool("in-process", true, "use the server in this process although nomad is on PATH")
	withinFlag = flag.Duration("within", 0, "for how long finished work may run again without the completion marker; 0 = not judged, since others keep the machine busy")
)

// TestFaultsLoseNoWorkAndDoNoneTwice runs the same jobs twice, with a tuner and without one,
// where their owners move them by hand. Both meet the same kills of Nomad's own processes.
func TestFaultsLoseNoWorkAndDoNoneTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the processes of two clusters: make check runs it")
	}
	var tuned, byHand *fault.Result[verdict]
	var agent string
	t.Run("systems", func(t *testing.T) { // ends when both have
		t.Run("with a tuner", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, true)
			agent = w.agent.Name()
			fault.Progress("on the %s", agent)
			if !w.agent.Real {
				t.Logf("not done: %s, and %s by a node that is not eligible: the server in this process has no client of its own and no eligibility", kindClient, kindRoom)
			}
			tuned = w.campaign(t, *options)
		})
		t.Run("without a tuner", func(t *testing.T) {
			t.Parallel()
			few := *options
			few.Faults = max(1, options.Faults/20) // as many as meet Nomad itself with a tuner
			byHand = newWorld(t, false).campaign(t, few)
		})
	})
	if tuned == nil || byHand == nil {
		return
	}
	fault.Publish(t, fmt.Sprintf("%s, seed %d, %d jobs with a tuner, %v; %d jobs without, %v\n\n%s\n%s", agent, options.Seed, len(tuned.Verdicts),
		tuned.Took.Round(time.Second), len(byHand.Verdicts), byHand.Took.Round(time.Second), table(tuned), beside(tuned, byHand)))
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

// outcome reports whether a job did its work once, what failed where that is ours, and
// what is worth a note. Without a tuner nothing is ours.
func (w *world) outcome(v verdict) (right bool, failure, note string) {
	switch {
	case v.nomads:
		note = "Nomad's: " + w.explain(v)
	case !v.once && !w.tuned:
		note = w.explain(v)
	case !v.once:
		failure = w.explain(v)
	case v.again:
		note = fmt.Sprintf("its finished work began again, ran for %v and was over after %v: %s", v.took, v.whole, w.explain(v))
	}
	return v.once, failure, note
}
