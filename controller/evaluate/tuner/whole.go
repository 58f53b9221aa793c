package tuner

import (
	"fmt"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// wholeReplay lets a job return n times that cannot be moved while it runs: each return
// runs as a whole under one point, which is what the controller does before a job starts.
// It tries at most so many times (0: no limit), and never on more than a site's share of
// the returns. Nothing is stopped; a run that does not reach its end failed under its
// point, and is run again under what is known to be best, paid too.
func (w *world) wholeReplay(n, tries int) (sum paid, final int, tried int, err error) {
	var past recur.Whole
	past.Space, past.Goal = w.space, w.goal
	share := tuning.DefaultSite().ProbeShare
	for range n {
		advice, err := past.Next()
		if err != nil {
			return paid{}, 0, 0, fmt.Errorf("whole runs: %w", err)
		}
		point := advice.Best.Point
		within := float64(tried+1) <= share*float64(len(past.Runs)+1)
		if advice.Trying && (tries == 0 || tried < tries) && within {
			point = advice.Next.Point
			tried++
		}
		for range patience {
			run, reached := w.once(point, &sum)
			if reached {
				past.Runs = append(past.Runs, run)
				break
			}
			past.Failed = append(past.Failed, point)
			point = advice.Best.Point
		}
		sum.cores += w.cores(point)
	}
	advice, err := past.Next()
	if err != nil {
		return paid{}, 0, 0, fmt.Errorf("whole runs: %w", err)
	}
	return sum, advice.Best.Point, tried, nil
}

// once runs a job to its end under one point.
func (w *world) once(point int, sum *paid) (recur.Run, bool) {
	w.begin()
	epochs := min(w.epochs(point), w.longest())
	reached := w.epochs(point) <= w.longest() && !w.cells[point].failed
	w.pay(sum, point, w.cost(point).Times(epochs))
	return recur.Run{
		Parts:  []recur.Part{{Point: point, Epochs: epochs, Cost: w.cost(point)}},
		Epochs: epochs, Weight: 1,
	}, reached
}

// fillWhole adds to a row what a job that cannot be moved reaches. A goal of least cores
// has no whole runs to try, see recur.Whole.
func (in Input) fillWhole(r *Row, w *world, n int) error {
	if in.Goal.Least() {
		return nil
	}
	var cumulative, energy, final, tried, broken float64
	own := w.expected(w.space.Own).Times(float64(n))
	for seed := range in.Seeds {
		w.rng = rngOf(w.table, seed)
		sum, best, tries, err := w.wholeReplay(n, in.Probes)
		if err != nil {
			return err
		}
		share := 1 / float64(in.Seeds)
		cumulative += share * w.ratio(sum, float64(n))
		energy += share * sum.Joules / own.Joules
		final += share * w.share(best)
		tried += share * float64(tries)
		if !w.keeps(best) {
			broken += share
		}
	}
	if energy > 0 { // neither missing nor not a number
		r.WholeEnergy = &energy
	}
	r.WholeCumulative, r.WholeFinal, r.WholeTried, r.WholeLimitsBroken = &cumulative, &final, &tried, &broken
	return nil
}
