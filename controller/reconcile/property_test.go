package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// fate is a random life of one job: how it behaves, what the planner says each
// time that it is asked, and what happens meanwhile.
type fate struct {
	behaviour string
	plans     []tuning.Decision
	verdicts  []tuning.Verdict
	events    []event
}

type event struct {
	wait time.Duration
	kind string
}

func drawFate(t *rapid.T) fate {
	f := fate{behaviour: fmt.Sprintf("epochs=%d seconds=%d start=%dms%s",
		rapid.IntRange(4, 10).Draw(t, "epochs"), rapid.IntRange(2, 8).Draw(t, "seconds"), rapid.IntRange(0, 2000).Draw(t, "start_ms"),
		rapid.SampledFrom([]string{
			" checkpoint=500ms", " checkpoint=500ms", " checkpoint=3s", " checkpoint=15s", " checkpoint=1s owner_changes_at=9s",
			" ignore_signal=true", " checkpoint=1s exit=3 at=4", " checkpoint=1s dies_at=7s", " checkpoint=1s missing=true",
		}).Draw(t, "way"))}
	f.plans = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) tuning.Decision {
		d := tuning.Decision{
			Action: rapid.SampledFrom([]tuning.Action{tuning.Hold, tuning.Probe, tuning.Move, tuning.RollBack}).Draw(t, "action"),
			Reason: rapid.SampledFrom([]tuning.Reason{
				tuning.ReasonProfiling, tuning.ReasonTooShort, tuning.ReasonAlreadyBest, tuning.ReasonFirstSeen, tuning.ReasonDoubted,
			}).Draw(t, "reason"),
		}
		if d.Action != tuning.Hold {
			d.Settings = cores(rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "cores"))
		}
		return d
	}), 1, 8).Draw(t, "plans")
	f.verdicts = rapid.SliceOfN(rapid.SampledFrom([]tuning.Verdict{
		tuning.Improved, tuning.Neutral, tuning.Regressed, tuning.Inconclusive,
	}), 1, 4).Draw(t, "verdicts")
	f.events = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{
			wait: time.Duration(rapid.IntRange(0, 4000).Draw(t, "wait_ms")) * time.Millisecond,
			kind: rapid.SampledFrom([]string{
				"look", "look", "look", "look twice", "crash", "pause", "resume", "answers get lost", "requests get lost",
				"scheduler away", "measurements away", "all well", "next save fails", "audit fails", "audit works", "stop",
			}).Draw(t, "kind"),
		}
	}), 5, 40).Draw(t, "events")
	return f
}

// live lets a fate happen and returns what was wrong about it. rapid's T may not
// be used in a bubble.
func (f fate) live(t *testing.T) (wrong []string) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(t.Context(), sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.cluster.Close()
		asked := 0
		w.decide = func(s tuning.State) tuning.Decision {
			d := f.plans[asked%len(f.plans)]
			asked++
			// As the planner does: a budget bounds what it may want.
			if d.Action != tuning.Hold && (s.Restarts+s.Probes >= 4 || s.Pending && d.Action != tuning.Move) {
				return hold(tuning.ReasonBudgetRestarts)
			}
			return d
		}
		compared := 0
		w.compare = verdicts(f.verdicts, &compared)
		job, err := w.submit("train", f.behaviour)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range f.events {
			time.Sleep(e.wait)
			w.happen(e.kind, job.ID)
		}
		// A gate that closed may stay closed for ever; all else gets well.
		w.happen("all well", job.ID)
		w.happen("audit works", job.ID)
		if err := w.drive(job.ID); err != nil {
			wrong = append(wrong, err.Error())
		}
		wrong = append(wrong, w.wrong(job.ID)...)
		wrong = append(wrong, w.gated()...)
	})
	return wrong
}

func (w *world) happen(kind string, id driver.JobID) {
	switch kind {
	case "look", "look twice":
		_ = w.look(id) // errors are part of the fate
		if kind == "look twice" {
			_ = w.look(id)
		}
	case "crash":
		w.restart()
	case "pause":
		w.gate = tuning.ReasonPaused
	case "resume":
		w.gate = tuning.ReasonNone
	case "answers get lost":
		w.fault(sim.OpAdvance, driver.ErrUnknown)
	case "requests get lost":
		w.fault(sim.OpAdvance, sim.ErrNotTaken)
	case "scheduler away":
		w.fault(sim.OpGet, driver.ErrTransient)
		w.fault(sim.OpAdvance, driver.ErrTransient)
	case "measurements away":
		w.fault(sim.OpWindow, driver.ErrTransient)
		w.fault(sim.OpOutlook, driver.ErrTransient)
	case "all well":
		for _, op := range []string{sim.OpAdvance, sim.OpGet, sim.OpWindow, sim.OpOutlook} {
			w.fault(op, nil)
		}
	case "next save fails":
		w.records.failNext = true
	case "audit fails":
		w.auditFails = true
	case "audit works":
		w.auditFails = false
	case "stop":
		if len(w.trace) > 5 { // rarely, or few fates get far
			_ = w.cluster.Stop(w.ctx, id)
		}
	}
}

// gated lists the first steps that were asked for while a gate was closed.
func (w *world) gated() []string {
	var out []string
	asked := map[string]bool{}
	for _, line := range w.trace {
		switch words := strings.Fields(line); {
		case words[0] == "advance":
			asked[words[1]] = true
		case words[0] == "gated" && !asked[words[2]] && words[3] != string(driver.Stopped):
			out = append(out, "while a gate was closed: "+line)
		}
	}
	return out
}

func TestWhateverHappensNoJobIsHeldOrStartedTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFate(rt)
		if wrong := f.live(t); len(wrong) > 0 {
			rt.Fatalf("%s\n\nfate: %+v", strings.Join(wrong, "\n"), f)
		}
	})
}
