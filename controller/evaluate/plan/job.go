package plan

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Job is one whole recorded job.
type Job struct {
	Workload string
	Machine  string
	Part     string // what of it was never to move, such as "gpus=2"; empty = nothing tells it apart

	Epochs int             // in all
	Own    tuning.Settings // its owner's, of the knobs that may move
	Policy tuning.Policy   // its stanza
	Site   tuning.Site

	Restart time.Duration // what a move takes, the queue left out
	Wait    time.Duration // in the queue at each move
	Seed    int           // its luck
	Noise   Noise         // of what it is seen to take, where nothing recorded tells
	begins  time.Duration // after the site began

	table table
}

// Cost is what work took. Joules are NaN where they were not measured.
type Cost struct{ Seconds, Joules float64 }

func (c Cost) plus(o Cost) Cost { return Cost{c.Seconds + o.Seconds, c.Joules + o.Joules} }

func (c Cost) times(n float64) Cost { return Cost{c.Seconds * n, c.Joules * n} }

// score is the logarithm of what the policy's objective minimises.
func (c Cost) score(p tuning.Policy) float64 {
	joules, seconds := p.Objective.Weights(p.Weight)
	out := seconds * math.Log(c.Seconds)
	if joules > 0 { // so that joules that are missing do not matter where they do not count
		out += joules * math.Log(c.Joules)
	}
	return out
}

// Epoch is one epoch as the controller gets to see it.
type Epoch struct {
	Length  time.Duration
	Joules  *tuning.Joules // nil: not measured
	Loss    *float64
	Quality *float64
}

// Epoch is what an epoch takes in an attempt under the given settings, and false where
// these were never recorded. The same job gives the same answer: an attempt is one of the
// recorded repeats of its settings, and its epochs vary as those of recorded curves did;
// where there are none that differ, it varies by the job's noise.
func (j Job) Epoch(attempt, number int, s tuning.Settings) (Epoch, bool) {
	repeats := j.table.cells[j.key(s)]
	if len(repeats) == 0 {
		return Epoch{}, false
	}
	luck := j.luck(s, attempt, 0)
	c := repeats[luck.IntN(len(repeats))]
	if j.Noise.Attempt > 0 && alike(repeats) {
		c = c.times(math.Exp(j.Noise.Attempt * luck.NormFloat64()))
	}
	if n := len(j.table.noise); n > 0 {
		c = c.times(j.table.noise[j.luck(s, attempt, number).IntN(n)])
	} else if j.Noise.Epoch > 0 {
		c = c.times(math.Exp(j.Noise.Epoch * j.luck(s, attempt, number).NormFloat64()))
	}
	out := Epoch{Length: max(time.Microsecond, time.Duration(c.Seconds*float64(time.Second)))}
	if !math.IsNaN(c.Joules) {
		joules := tuning.Joules(c.Joules)
		out.Joules = &joules
	}
	if stories := j.table.stories; len(stories) > 0 {
		if story := stories[j.Seed%len(stories)]; number <= len(story) {
			out.Loss, out.Quality = story[number-1].loss, story[number-1].quality
		}
	}
	if out.Quality == nil && j.Policy.Quality != nil {
		same := 1.0 // the knobs leave alone what is learned
		out.Quality = &same
	}
	return out, true
}

// alike tells whether repeats took the same time, up to how it was rounded.
func alike(repeats []Cost) bool {
	return !slices.ContainsFunc(repeats, func(c Cost) bool { return math.Abs(c.Seconds/repeats[0].Seconds-1) > rounding })
}

// rounding is by how much numbers differ that were printed and read.
const rounding = 1e-6

// Expected is the mean of what an epoch cost under the settings; false: never recorded.
func (j Job) Expected(s tuning.Settings) (Cost, bool) {
	repeats := j.table.cells[j.key(s)]
	return mean(repeats), len(repeats) > 0
}

func mean(repeats []Cost) Cost {
	var sum Cost
	for _, c := range repeats {
		sum = sum.plus(c)
	}
	return sum.times(1 / float64(len(repeats)))
}

// key names the cell of settings.
func (j Job) key(s tuning.Settings) string {
	return s.Only(func(name string) bool { _, ok := j.Own[name]; return ok }).Key()
}

// luck is what is random about an attempt, or about one of its epochs.
func (j Job) luck(s tuning.Settings, attempt, epoch int) *rand.Rand {
	h := fnv.New64a()
	for _, part := range []string{j.Workload, j.Machine, j.Part, j.key(s)} {
		_, _ = h.Write([]byte(part + "\x00")) // a hash never fails
	}
	return rand.New(rand.NewPCG(h.Sum64(), uint64(j.Seed)<<40|uint64(attempt)<<24|uint64(epoch)))
}

// cost is what a course took in expectation. A move is charged with what it takes at the
// power of the owner's settings, and with its wait.
func (j Job) cost(c Course) Cost {
	own, _ := j.Expected(j.Own)
	counts := map[string]int{}
	for _, s := range c.Under {
		counts[j.key(s)]++
	}
	var sum Cost
	for _, key := range sortedKeys(counts) {
		sum = sum.plus(mean(j.table.cells[key]).times(float64(counts[key])))
	}
	restart := j.Restart.Seconds()
	return sum.plus(Cost{restart + j.Wait.Seconds(), restart * own.Joules / own.Seconds}.times(float64(c.Restarts)))
}

// ratio is what a course cost relative to a job that was never moved, in what the
// objective minimises.
func (j Job) ratio(c Course) float64 {
	own, _ := j.Expected(j.Own)
	return math.Exp(j.cost(c).score(j.Policy) - own.times(float64(j.Epochs)).score(j.Policy))
}
