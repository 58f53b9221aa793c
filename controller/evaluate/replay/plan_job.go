package replay

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/propose"
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
	stories [][]tuning.Epoch          // what runs under the owner's settings reported, by epoch
}

// Epoch is what the controller gets to see of an epoch in an attempt under the given settings, as if
// it began at the zero time, and false where these were never recorded. The same job gives the same answer: an attempt is one of the
// recorded repeats of its settings, and its epochs vary as those of recorded curves did;
// where there are none that differ, it varies by the job's noise.
func (j Job) Epoch(attempt, number int, s tuning.Settings) (tuning.Epoch, bool) {
	repeats := j.cells[j.key(s)]
	if len(repeats) == 0 {
		return tuning.Epoch{}, false
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
	length := max(time.Microsecond, time.Duration(c.Seconds*float64(time.Second)))
	out := tuning.Epoch{Number: number, Attempt: attempt, Settings: s, Machine: j.Machine, End: time.Time{}.Add(length)}
	if !math.IsNaN(c.Joules) {
		out.Joules, out.Source = new(tuning.Joules(c.Joules)), tuning.Replayed
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

// rounding is how much numbers change by being printed and read.
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

// movable reports whether a knob changes what an epoch costs and not what it does.
func movable(name string) bool {
	return slices.Contains([]string{tuning.Cores, tuning.Threads, tuning.PowerLimit, "frequency", "nodes", "replicas", "placement"}, unitless(name))
}

// minute is how long an epoch takes under the owner's settings where a table has only
// rates: as many samples as they do in a minute.
const minute = 60.0

// jobOf makes cells of the rows that differ from the owner's settings only in what may
// move. Runs that failed do not count: the controller is not sent to settings whose cost is
// unknown.
func (in PlanInput) jobOf(p piece) Job {
	out := Job{piece: p, Restart: in.Restart, Wait: in.Wait, Noise: in.Noise, cells: map[string][]tuning.Spent{}}
	all := tuning.Each(p.Rows, knobsOf)
	own := all[nearest(all, p.wanted, p.table.Knobs(), evaluate.Indices(all))]
	free := slices.DeleteFunc(p.table.Knobs(), func(name string) bool {
		if len(in.Knobs) > 0 {
			return !slices.Contains(in.Knobs, name)
		}
		return !movable(name)
	})
	rated, _ := tuning.First(p.Rows, func(r evaluate.Row) bool {
		_, ok := r.Float("samples_per_second")
		return ok && r.Knobs.Equal(own)
	})
	rate, _ := rated.Float("samples_per_second")
	epoch := func(r evaluate.Row) (run, string) { return measured(r, p.table.Has("epochs"), minute*rate) }
	rows := evaluate.Only(p.Rows, func(r evaluate.Row) bool {
		one, why := epoch(r)
		fixed := slices.ContainsFunc(own.Diff(r.Knobs), func(name string) bool { return !slices.Contains(free, name) })
		return why == "" && !fixed && !one.failed && one.epoch.Seconds > 0
	})
	free = independent(free, tuning.Each(rows, knobsOf))
	only := func(s tuning.Settings) tuning.Settings {
		return s.Only(func(name string) bool { return slices.Contains(free, name) })
	}
	out.Own = only(own)
	var cells []tuning.Settings
	for _, r := range rows {
		one, _ := epoch(r)
		s := only(r.Knobs)
		if out.cells[s.Key()] == nil {
			cells = append(cells, s)
		}
		out.cells[s.Key()] = append(out.cells[s.Key()], one.epoch)
		if !s.Equal(out.Own) {
			continue
		}
		if n, ok := r.Float("epochs"); ok && n >= 1 {
			out.lengths = append(out.lengths, int(math.Round(n)))
		}
		cpu, worked := r.Float("cpu_seconds")
		if seconds, ok := r.Float("seconds"); worked && ok && seconds > 0 {
			out.Busy = cpu / seconds
		}
	}
	for _, c := range in.Curves {
		out.learn(own, c)
	}
	in.rule(&out, complete(free, out.Own, cells))
	return out
}

func knobsOf(r evaluate.Row) tuning.Settings { return r.Knobs }

// independent are the knobs that vary, without those that another one decides.
func independent(names []string, points []tuning.Settings) []string {
	var out []string
	for i, name := range names {
		varies := slices.ContainsFunc(points, func(s tuning.Settings) bool { return s[name] != points[0][name] })
		decided := false
		for j, other := range names {
			decided = decided || i != j && propose.Tells(points, other, name) > 0 && (j < i || propose.Tells(points, name, other) == 0)
		}
		if varies && !decided {
			out = append(out, name)
		}
	}
	return out
}

// complete makes knobs of settings, every combination of whose values was recorded: the
// value that misses the most is left out until none is missed. The owner's stay.
func complete(names []string, own tuning.Settings, settings []tuning.Settings) []tuning.Knob {
	for {
		var out []tuning.Knob
		product := 1
		for _, name := range names {
			k := tuning.Knob{Name: name, Quality: tuning.QualitySame}
			if name != tuning.Cores {
				k.Env = "KNOB_" + strings.ToUpper(name)
			}
			k.Values = tuning.Each(settings, func(s tuning.Settings) tuning.Value { return s[name] })
			slices.SortFunc(k.Values, tuning.Value.Compare)
			k.Values = slices.Compact(k.Values)
			product *= len(k.Values)
			out = append(out, k)
		}
		if product == len(settings) {
			return slices.DeleteFunc(out, func(k tuning.Knob) bool { return len(k.Values) < 2 })
		}
		worst, least := "", math.Inf(1)
		var drop tuning.Value
		for _, k := range out {
			for _, v := range k.Values {
				n := len(evaluate.Only(settings, func(s tuning.Settings) bool { return s[k.Name] == v }))
				if share := float64(n*len(k.Values)) / float64(product); v != own[k.Name] && share < least {
					worst, least, drop = k.Name, share, v
				}
			}
		}
		if worst == "" { // not even the owner's settings
			return nil
		}
		settings = slices.DeleteFunc(slices.Clone(settings), func(s tuning.Settings) bool { return s[worst] == drop })
	}
}

// learn takes from curves how epochs vary, and what runs under the owner's settings report.
func (j *Job) learn(own tuning.Settings, curves evaluate.Table) {
	for _, run := range evaluate.Runs(curves.Rows) {
		first := run[0]
		input := j.Input != "" && first.Input() != "" && first.Input() != j.Input
		if first.Workload != j.Workload || input || first.Machine != "" && first.Machine != j.Machine {
			continue
		}
		var lengths []float64
		sum := 0.0
		for i := 1; i < len(run); i++ { // the first epoch warms up
			from, ok := run[i-1].Float("seconds")
			to, too := run[i].Float("seconds")
			if ok && too && to > from {
				lengths, sum = append(lengths, to-from), sum+to-from
			}
		}
		for _, v := range lengths {
			j.varies = append(j.varies, v*float64(len(lengths))/sum)
		}
		if distance(first.Knobs, own) > 0 {
			continue
		}
		j.stories = append(j.stories, tuning.Each(run, func(r evaluate.Row) (out tuning.Epoch) {
			if v, ok := r.Float("loss"); ok {
				out.Loss = &v
			}
			if v, ok := r.Float("quality"); ok {
				out.Quality = &v
			}
			return out
		}))
	}
}
