package replay

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Job is one whole recorded job: what its epochs cost and report.
type Job struct {
	piece

	Epochs int             // in all
	Own    tuning.Settings // its owner's, of the knobs that may move
	Policy tuning.Policy   // its stanza
	Site   tuning.Site

	Restart time.Duration // what a move takes, the queue left out
	Wait    time.Duration // in the queue at each move
	Busy    float64       // cores at work under its owner's settings: cpu_seconds over seconds; 0: unknown
	Seed    int           // its luck
	Noise   Noise         // of what it is seen to take, where nothing recorded varies
	begins  time.Duration // after the site began

	cells   map[string][]tuning.Spent // what an epoch cost in each repeat, by settings
	lengths []int                     // epochs that runs under the owner's settings took; none: unknown
	varies  []float64                 // epochs of recorded curves, over the mean of their run
	stories [][]Epoch                 // what runs under the owner's settings reported, by epoch
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
	repeats := j.cells[j.key(s)]
	if len(repeats) == 0 {
		return Epoch{}, false
	}
	luck := j.luck(s, attempt, 0)
	c := repeats[luck.IntN(len(repeats))]
	if j.Noise.Attempt > 0 && alike(repeats) {
		c = c.Times(math.Exp(j.Noise.Attempt * luck.NormFloat64()))
	}
	if n := len(j.varies); n > 0 {
		c = c.Times(j.varies[j.luck(s, attempt, number).IntN(n)])
	} else if j.Noise.Epoch > 0 {
		c = c.Times(math.Exp(j.Noise.Epoch * j.luck(s, attempt, number).NormFloat64()))
	}
	out := Epoch{Length: max(time.Microsecond, time.Duration(c.Seconds*float64(time.Second)))}
	if !math.IsNaN(c.Joules) {
		out.Joules = new(tuning.Joules(c.Joules))
	}
	if stories := j.stories; len(stories) > 0 {
		if story := stories[j.Seed%len(stories)]; number <= len(story) {
			out.Loss, out.Quality = story[number-1].Loss, story[number-1].Quality
		}
	}
	return out, true
}

// alike reports whether repeats took the same time, up to how it was rounded.
func alike(repeats []tuning.Spent) bool {
	return !slices.ContainsFunc(repeats, func(c tuning.Spent) bool { return math.Abs(c.Seconds/repeats[0].Seconds-1) > rounding })
}

// rounding is by how much numbers differ that were printed and read.
const rounding = 1e-6

// Expected is the mean of what an epoch cost under the settings; false: never recorded.
func (j Job) Expected(s tuning.Settings) (tuning.Spent, bool) {
	repeats := j.cells[j.key(s)]
	var sum tuning.Spent
	for _, c := range repeats {
		sum = sum.Plus(c)
	}
	mean := sum.Times(1 / float64(len(repeats)))
	return j.Policy.Measure().Spent(mean.Seconds, mean.Joules, s), len(repeats) > 0
}

// key names the cell of settings.
func (j Job) key(s tuning.Settings) string {
	return s.Only(func(name string) bool { _, ok := j.Own[name]; return ok }).Key()
}

// luck is what is random about an attempt, or about one of its epochs.
func (j Job) luck(s tuning.Settings, attempt, epoch int) *rand.Rand {
	name := hash(j.Name(), j.Machine, j.part, j.key(s), "")
	return rand.New(rand.NewPCG(name, uint64(j.Seed)<<40|uint64(attempt)<<24|uint64(epoch)))
}

// cost is what a course took in expectation. A move is charged with what it takes under
// the owner's settings, and with the seconds of its wait.
func (j Job) cost(c Course) tuning.Spent {
	own, _ := j.Expected(j.Own)
	parts := map[string]Cut{} // of all epochs, by settings
	add := func(s tuning.Settings, share float64) { parts[j.key(s)] = Cut{s, parts[j.key(s)].Share + share} }
	for _, s := range c.Under {
		add(s, 1)
	}
	for _, x := range c.Cut {
		add(x.Settings, x.Share)
	}
	var sum tuning.Spent
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		one, _ := j.Expected(parts[key].Settings)
		sum = sum.Plus(one.Times(parts[key].Share))
	}
	restart := own.Times(j.Restart.Seconds() / own.Seconds).Plus(tuning.Spent{Seconds: j.Wait.Seconds()})
	return sum.Plus(restart.Times(float64(c.Restarts)))
}

// ratio is what a course cost relative to a job that was never moved, in what the
// objective minimises.
func (j Job) ratio(c Course) float64 {
	own, _ := j.Expected(j.Own)
	m := j.Policy.Measure()
	return math.Exp(m.Log(j.cost(c)) - m.Log(own.Times(float64(j.Epochs))))
}
