package simulate

import (
	"context"
	"fmt"
	"slices"
)

// Wear is wear.
func Wear(left, rate, most float64) (float64, float64) { return wear(left, rate, most) }

// Ran is how long a job ran in all, and what it had to do.
func Ran(j *Job) (ran, duration float64) { return j.ran, j.duration }

// Watched is a policy that finds at each moment whether the units of a pool are taken by who runs, and by none twice but
// in pairs.
func Watched(s Spec, fault func(error)) Spec {
	under := s.New
	s.New = func(ctx context.Context, in Input) (func(*Pool) Policy, error) {
		each, err := under(ctx, in)
		return func(p *Pool) Policy { return &watched{each(p), p, fault, map[*Job]int{}} }, err
	}
	return s
}

type watched struct {
	Policy

	pool  *Pool
	fault func(error)
	ended map[*Job]int
}

func (w *watched) Ended(j *Job) {
	if w.ended[j]++; w.ended[j] > 1 || j.Running() || slices.Contains(w.pool.Running, j) {
		w.fault(fmt.Errorf("job %s ended %d times, running %t", j.ID, w.ended[j], j.Running()))
	}
	w.Policy.Ended(j)
}

func (w *watched) Expire(j *Job) {
	if x, ok := w.Policy.(Expirer); ok {
		x.Expire(j)
	}
}

func (w *watched) Decide() float64 {
	again := w.Policy.Decide()
	taken, users := map[*node]int{}, map[*place]int{}
	for _, j := range w.pool.Running {
		if users[j.place]++; users[j.place] > 1 {
			continue
		}
		n := 0
		for _, s := range j.place.of {
			taken[s.node] += s.units
			n += s.units
		}
		if n != j.Units {
			w.fault(fmt.Errorf("job %s has %d units of %d", j.ID, n, j.Units))
		}
	}
	free := 0
	for _, n := range w.pool.nodes {
		free += n.free
		if n.free < 0 || n.free != w.pool.PerNode-taken[n] {
			w.fault(fmt.Errorf("a node has %d free and %d of %d taken", n.free, taken[n], w.pool.PerNode))
		}
		delete(taken, n)
	}
	if free != w.pool.Free() || len(taken) > 0 {
		w.fault(fmt.Errorf("%d free, want %d; %d nodes are taken that are gone", w.pool.Free(), free, len(taken)))
	}
	for at, n := range users {
		if n > 2 || n != at.users {
			w.fault(fmt.Errorf("%d jobs on the same units, want %d, at most 2", n, at.users))
		}
	}
	return again
}
