package preview

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/searcher"
)

// Epoch is what an epoch of a simulated trial has.
type Epoch struct {
	Value   float64 // NaN: the trial diverged
	Seconds float64
	Joules  *float64 // nil: not measured
	Cores   float64
	Fails   bool // the job fails in it
}

// Cluster is where simulated trials run.
type Cluster struct {
	Start float64 // seconds from the submission of a job until it runs
	End   float64 // seconds from its last epoch, or from the decision to end it, until its place is free
	Epoch func(t *searcher.Trial, epoch int) Epoch
	Every bool // the trials report every epoch, not those of the rungs alone
}

type happening struct {
	searcher.Event
	at float64
}

// player is a search under way.
type player struct {
	Cluster
	s     *searcher.Searcher
	rungs []int
	now   float64
	next  []happening // at most one of each trial
}

// Play runs a search to its end.
func Play(p searcher.Plan, c Cluster) (*searcher.Searcher, error) {
	g := player{Cluster: c, s: searcher.New(p, searcher.Snapshot{}), rungs: p.Rungs()}
	e := happening{Event: searcher.Event{Kind: searcher.Opened, Cost: c.Start}}
	for {
		g.now, e.Report.At = e.at, e.at
		actions, err := g.s.Handle(e.Event)
		if err != nil {
			return nil, fmt.Errorf("simulate a search: %w", err)
		}
		if e.Kind == searcher.Reported {
			g.train(e.Trial, 0)
		}
		for _, a := range actions {
			switch a.Kind {
			case searcher.Create, searcher.Resume:
				g.train(a.Trial, c.Start)
			case searcher.Stop, searcher.Pause:
				g.forget(a.Trial)
				g.add(searcher.Event{Kind: searcher.Ended, Trial: a.Trial, End: searcher.Cancelled}, g.now+g.End)
			case searcher.Finish:
				return g.s, nil
			}
		}
		if len(g.next) == 0 {
			return g.s, nil
		}
		e = slices.MinFunc(g.next, func(a, b happening) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Trial, b.Trial))
		})
		g.forget(e.Trial)
	}
}

func (g *player) add(e searcher.Event, at float64) { g.next = append(g.next, happening{e, at}) }

func (g *player) forget(trial int) {
	g.next = slices.DeleteFunc(g.next, func(h happening) bool { return h.Trial == trial })
}

// train adds what the trial does next: its next report, or its end.
func (g *player) train(trial int, wait float64) {
	t := &g.s.Trials[trial-1]
	r := t.Last()
	before := r.Seconds
	for {
		if r.Epoch >= g.s.Epochs {
			g.add(searcher.Event{Kind: searcher.Ended, Trial: trial, End: searcher.Succeeded}, g.now+g.End)
			return
		}
		r.Epoch++
		e := g.Epoch(t, r.Epoch)
		r.Value, r.Cores = e.Value, e.Cores
		r.Seconds += e.Seconds
		r.CoreHours += e.Seconds * e.Cores / 3600
		switch {
		case e.Joules == nil || r.Joules == nil && r.Epoch > 1:
			r.Joules = nil
		case r.Joules == nil:
			r.Joules = e.Joules
		default:
			r.Joules = new(*r.Joules + *e.Joules)
		}
		at := g.now + wait + r.Seconds - before
		switch {
		case e.Fails:
			g.add(searcher.Event{Kind: searcher.Ended, Trial: trial, End: searcher.Broken, Reason: "exit status 1"}, at)
			return
		case math.IsNaN(e.Value):
			g.add(searcher.Event{Kind: searcher.Broke, Trial: trial, Report: r}, at)
			return
		case g.Every, slices.Contains(g.rungs, r.Epoch):
			g.add(searcher.Event{Kind: searcher.Reported, Trial: trial, Report: r}, at)
			return
		}
	}
}
