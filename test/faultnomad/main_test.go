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

func TestFaultsLoseNoWorkAndDoNoneTwice(t *testing.T) {
	w := newWorld(t)
	fault.Progress("on the %s", w.agent.Name())
	if !w.agent.Real {
		t.Logf("not done: %s, and %s by a node that is not eligible: the server in this process has no client of its own and no eligibility", kindClient, kindRoom)
	}
	stop := w.administer()
	result := fault.Campaign[verdict]{
		Options: *options, Owners: len(w.owners), Families: families(w.agent.Real), Story: w.story,
		Begin: func(r *fault.Round) (fault.Jobs[verdict], error) {
			own := &round{Round: r, w: w}
			return own, own.submit(options.Sample())
		},
		Judge: w.outcome,
	}.Run(t)
	stop()
	w.remains()
	fault.Publish(t, fmt.Sprintf("%s, seed %d, %d jobs, %v\n\n%s", w.agent.Name(), options.Seed, len(result.Verdicts), result.Took.Round(time.Second), table(result.Strikes, result.Verdicts)))
}

// outcome reports whether a job did its work once, what failed where that is ours, and
// what is worth a note.
func (w *world) outcome(v verdict) (right bool, failure, note string) {
	switch {
	case v.nomads:
		note = "Nomad's: " + w.explain(v)
	case !v.once:
		failure = w.explain(v)
	case v.again:
		note = fmt.Sprintf("its finished work began again, ran for %v and was over after %v: %s", v.took, v.whole, w.explain(v))
	}
	return v.once, failure, note
}
