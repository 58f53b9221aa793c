package allocate

import (
	"cmp"
	"math"
	"slices"
)

// Size is one size that a job can have.
type Size struct {
	Need  []float64 // share of all there is to hand out, by resource; each 0 to 1
	Speed float64   // work per second, above 0
}

// dominant returns the largest share of any resource that the size takes, 0 to 1.
func (s Size) dominant() float64 { return slices.Max(s.Need) }

// Job is one elastic job. A job that must not change has one size.
type Job struct {
	Sizes   []Size  // at least one, from small to large; all have as many resources
	Has     int     // index of the size that it runs at; Waits: it has not begun
	Left    float64 // work, in the unit of Speed; above 0
	Restart float64 // seconds that a change of a running job costs
	Waited  float64 // seconds since it could have begun
}

// Waits is the size of a job that gets nothing yet.
const Waits = -1

// seconds is how long the rest takes at a size.
func (j Job) seconds(size int) float64 { return j.Left / j.Sizes[size].Speed }

// Value is what it is worth that a job has a size. A Fill compares differences of it.
type Value func(j Job, size int) float64

// Optimus values a size by the time that the job itself saves.
func Optimus(j Job, size int) float64 { return -j.seconds(size) }

// Equal brings the dominant shares of all jobs as near to each other as they come: dominant
// resource fairness (Ghodsi et al., NSDI 2011).
func Equal(j Job, size int) float64 { return math.Log(j.Sizes[size].dominant()) }

// soonest values a size by the speed over that at the smallest size, weighed by a power of the
// time left: the higher the power, the more goes to the jobs that end first.
func soonest(power float64) Value {
	return func(j Job, size int) float64 {
		return j.Sizes[size].Speed / j.Sizes[0].Speed * math.Pow(j.seconds(0), -power)
	}
}

// rules are the rules that Choose plays.
func rules() []Value { return []Value{soonest(0), soonest(0.5), soonest(1), soonest(2), Optimus} }

// Choose returns an index into its sizes for each job, or Waits.
func Choose(jobs []Job) []int {
	best, least := []int(nil), math.Inf(1)
	for _, keep := range []bool{true, false} { // of equal ones, the one that changes less
		for _, v := range rules() {
			out := allot(jobs, v, keep)
			if total := play(jobs, out, v); total < least {
				best, least = out, total
			}
		}
	}
	if stay := start(jobs, true); play(jobs, stay, rules()[0]) <= least {
		return stay
	}
	return best
}

// allot fills from what the jobs have, or from nothing, and takes back what does not pay.
func allot(jobs []Job, v Value, keep bool) []int {
	out := Fill(jobs, start(jobs, keep), v)
	for i, j := range jobs { // a change that saves less than it costs
		if j.Has == Waits || out[i] == j.Has || j.seconds(j.Has)-j.seconds(out[i]) > j.Restart {
			continue
		}
		was := out[i]
		if out[i] = j.Has; !fits(jobs, out) {
			out[i] = was
		}
	}
	return out
}

// start is where a rule begins: running jobs at their smallest size, or at what they have, and the
// others admitted: first those that waited for longer than they would run, then those that end first.
func start(jobs []Job, keep bool) []int {
	return Admit(jobs, keep, func(j Job) float64 {
		if shortest := j.seconds(0); j.Waited <= shortest {
			return shortest
		}
		return -j.Waited / j.seconds(0)
	})
}

// Admit starts waiting jobs at their smallest size, those of the least rank first and equal ones as they
// came. None overtakes one whose rank is below 0. Running jobs get their smallest size, or keep what they have.
func Admit(jobs []Job, keep bool, rank func(Job) float64) []int {
	out := make([]int, len(jobs))
	var waiting []int
	for i, j := range jobs {
		switch {
		case j.Has == Waits:
			out[i], waiting = Waits, append(waiting, i)
		case keep:
			out[i] = j.Has
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(rank(jobs[a]), rank(jobs[b])) })
	for _, i := range waiting {
		if out[i] = 0; fits(jobs, out) {
			continue
		}
		if out[i] = Waits; rank(jobs[i]) < 0 {
			break
		}
	}
	return out
}

const rounding = 1e-9

// free returns the share of each resource that the sizes leave, 0 to 1.
func free(jobs []Job, sizes []int) []float64 {
	var out []float64
	for i, j := range jobs {
		if out == nil {
			out = slices.Repeat([]float64{1}, len(j.Sizes[0].Need))
		}
		if sizes[i] != Waits {
			for k, need := range j.Sizes[sizes[i]].Need {
				out[k] -= need
			}
		}
	}
	return out
}

func fits(jobs []Job, sizes []int) bool {
	return !slices.ContainsFunc(free(jobs, sizes), func(left float64) bool { return left < -rounding })
}
