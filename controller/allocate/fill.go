package allocate

import "slices"

// Fill hands out what is free beyond the sizes that the jobs have: always to the job that
// gains most per dominant share, of equal ones to the first, until no job gains or nothing fits. A
// job may skip sizes at which it gains less than at a larger one. Jobs that wait get nothing.
func Fill(jobs []Job, from []int, v Value) []int {
	sizes, left := slices.Clone(from), free(jobs, from)
	steps := make([]step, len(jobs))
	for i := range jobs {
		steps[i] = next(jobs[i], sizes[i], left, v)
	}
	for {
		best := 0
		for i, s := range steps {
			if s.gain > steps[best].gain {
				best = i
			}
		}
		if len(steps) == 0 || !(steps[best].gain > 0) {
			return sizes
		}
		j, to := jobs[best], steps[best].to
		if room(j, sizes[best], to, left) { // else others took it since the step was found
			for k := range left {
				left[k] -= j.Sizes[to].Need[k] - j.Sizes[sizes[best]].Need[k]
			}
			sizes[best] = to
		}
		steps[best] = next(j, sizes[best], left, v)
	}
}

// step is the best next size of a job.
type step struct {
	to   int
	gain float64 // per dominant share; 0: none
}

// next is the step that gains most per dominant share among those that fit.
func next(j Job, at int, left []float64, v Value) (out step) {
	if at == Waits {
		return step{}
	}
	for to := at + 1; to < len(j.Sizes); to++ {
		more := max(j.Sizes[to].dominant()-j.Sizes[at].dominant(), rounding)
		if gain := (v(j, to) - v(j, at)) / more; gain > out.gain && room(j, at, to, left) {
			out = step{to, gain}
		}
	}
	return out
}

func room(j Job, at, to int, left []float64) bool {
	for k, free := range left {
		if j.Sizes[to].Need[k]-j.Sizes[at].Need[k] > free+rounding {
			return false
		}
	}
	return true
}
