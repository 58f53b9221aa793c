package halving

import "math"

// Epoch is what one epoch of a run brought.
type Epoch struct {
	Loss    float64 // after it; less is better
	Seconds float64 // of this epoch alone
	Failed  bool    // the run broke; its seconds are paid all the same
}

// Result is how far a search came.
type Result struct {
	Trials  []Trial
	Seconds float64 // paid, at most the budget
	Best    int     // the settings with the least loss that was reached, -1: none
	Loss    float64 // that loss, of the last epoch that the trial ran
}

// Run searches until the next epoch would cost more than what is left of the budget in
// seconds, or nothing is left to do. fresh names the settings of the next new trial,
// given those under way, or -1; epoch runs epoch n (from 1) of them.
func (l Ladder) Run(budget float64, fresh func(trials []Trial) int, epoch func(at, n int) Epoch) Result {
	r := Result{Best: -1, Loss: math.Inf(1)}
	best := map[int]float64{}
	for {
		i := l.Promote(r.Trials)
		if i < 0 {
			at := fresh(r.Trials)
			if at < 0 {
				break
			}
			i = len(r.Trials)
			r.Trials = append(r.Trials, Trial{At: at})
		}
		t := &r.Trials[i]
		from := 1
		if k := len(t.Losses); k > 0 {
			from = l.Rungs[k-1] + 1
		}
		last, paid := l.stretch(&r, t.At, from, l.Rungs[len(t.Losses)], budget, epoch)
		if !math.IsNaN(last.Loss) {
			best[t.At] = last.Loss
		}
		if last.Failed {
			last.Loss = math.NaN()
			delete(best, t.At)
		}
		if !paid {
			break
		}
		t.Losses = append(t.Losses, last.Loss)
	}
	for _, t := range r.Trials {
		if loss, ok := best[t.At]; ok && loss < r.Loss {
			r.Best, r.Loss = t.At, loss
		}
	}
	return r
}

// stretch runs epochs from one to another, both included, and returns the last that was
// paid for; its loss is NaN where there was none. False: the budget ended before.
func (l Ladder) stretch(r *Result, at, from, to int, budget float64, epoch func(at, n int) Epoch) (Epoch, bool) {
	last := Epoch{Loss: math.NaN()}
	for n := from; n <= to; n++ {
		e := epoch(at, n)
		if r.Seconds+e.Seconds > budget {
			return last, false
		}
		r.Seconds += e.Seconds
		last = e
		if e.Failed {
			return last, true
		}
	}
	return last, true
}
