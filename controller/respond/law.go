package respond

import (
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// law is one way in which a job may answer to cores. The work of an epoch takes
//
//	T(n) = (1-p) + p/min(n,s) + k·(n-1)
//
// of its time on one core: Amdahl, "Validity of the single processor approach to achieving large
// scale computing capabilities" (1967), with the coherence term of Gunther, "Guerrilla Capacity
// Planning" (2007), and with at most s useful cores (Williams, Waterman and Patterson, "Roofline",
// 2009). Cores that wait for memory or for each other's caches look busy, and so does the share of
// the others that waits actively.
type law struct {
	parallel  float64 // p, the share that runs in parallel
	saturated float64 // s
	coherence float64 // k, what each further core costs
	spinning  float64 // share of the waiting cores that look busy
	threads   float64 // that it keeps whatever its cores are
	crowding  float64 // what each further thread per core costs
	power
}

// power is what the joules of an epoch are made of besides those of its CPU time.
type power struct {
	idle  float64 // watts of an idle core over those that a busy one adds
	floor float64 // watts per core of the owner's that no setting lowers, over the same
}

func (l law) time(cores float64) float64 {
	n := max(cores, 1)
	return ((1 - l.parallel) + l.parallel/min(n, l.saturated) + l.coherence*(n-1)) * l.crowd(n)
}

func (l law) crowd(n float64) float64 { return 1 + l.crowding*max(l.threads/n-1, 0) }

func (l law) busy(cores float64) float64 {
	n := max(cores, 1)
	b := ((1 - l.parallel) + l.parallel*n/min(n, l.saturated) + l.coherence*(n-1)*n) * l.crowd(n) / l.time(n)
	return b + l.spinning*max(n-b, 0)
}

// joules of an epoch, in watts that a busy core adds, where its owner asked for own cores.
func (l law) joules(cores, own float64) float64 {
	return (l.busy(cores) + l.idle*max(cores, 1) + l.floor*max(own, 1)) * l.time(cores)
}

// balanced is the parallel share that makes so many cores look busy where nothing waits actively;
// outside 0 to 1 where no share explains it.
func (l law) balanced(busy, n float64) float64 {
	most, lost := min(n, l.saturated), l.coherence*(n-1)
	return (busy - 1 - lost*(n-busy)) / (n/most - 1 + busy*(1-1/most))
}

type weighed[T any] struct {
	value  T
	weight float64
}

// shapes are the laws without a parallel share.
func shapes(own float64) []weighed[law] {
	var out []weighed[law]
	for _, k := range []weighed[float64]{{0, 0.84}, {0.001, 0.07}, {0.006, 0.07}, {0.03, 0.015}, {0.2, 0.005}} {
		for _, s := range []weighed[float64]{{math.Inf(1), 0.8}, {0.75, 0.05}, {0.5, 0.05}, {0.25, 0.05}, {0.1, 0.05}} {
			out = append(out, weighed[law]{law{saturated: max(s.value*own, 1), coherence: k.value}, k.weight * s.weight})
		}
	}
	return out
}

const (
	// fineness is how much the cores that really work differ from one law to the next, in natural
	// logarithms.
	fineness = 0.1

	// How likely it is beforehand that the cores which wait look idle, that all of them look
	// busy, and that some do.
	waitIdle  = 0.75
	waitBusy  = 0.10
	waitMixed = 0.15

	// chatty is from how many voluntary context switches per CPU second on waits are so brief
	// that runtimes of OpenMP and MPI wait actively before they sleep.
	chatty = 1000

	// fitting is how many owners, per owner of whom nothing is presumed, asked for what their job
	// uses.
	fitting = 0.4

	// few is the number of cores that evenly uses to space its laws for a job of one core, whose
	// use of that core says nothing.
	few = 16

	// faint is the weight, as a share of the largest, below which a law is left out.
	faint = 3e-3
)

// laws are those that explain how many cores look busy. What really works is in some of the jobs
// what their owners may be presumed to have asked for, and else as likely one core as all, on a
// logarithmic scale; of the others none waits actively, or all do, or a part that makes up the
// difference.
func (u Usage) laws(own float64) []weighed[law] {
	if u.Cores < 2 {
		return evenly(own, few)
	}
	busy := min(max(u.Busy/max(1-min(u.Waiting, 0.9), 0.1), 1), u.Cores)
	sd := math.Hypot(usageSD, 0.5*u.Waiting+0.5*u.Pressure)
	if u.Busy < 1 { // it sleeps, and may work on many cores in between
		sd = math.Hypot(sd, 0.3*(1-u.Busy))
	}
	idle, mixed := waitIdle, waitMixed
	if u.Switches > chatty && u.Waiting < 0.1 {
		idle, mixed = waitMixed, waitIdle // brief waits are spun before they sleep
	}
	span := math.Log(u.Cores)
	steps := math.Ceil(span / fineness)
	seen := math.Exp(-math.Pow(math.Log(busy/u.Cores)/sd, 2)/2) / (sd * math.Sqrt(2*math.Pi)) // that all look busy
	var out []weighed[law]
	for _, shape := range shapes(own) {
		l, w := shape.value, shape.weight
		// The errors of the CPU time that is measured are in standard deviations.
		for _, z := range []weighed[float64]{{-1.6, 0.092}, {-0.8, 0.242}, {0, 0.332}, {0.8, 0.242}, {1.6, 0.092}} {
			used := busy * math.Exp(z.value*sd)
			l.parallel = min(max(l.balanced(used, u.Cores), 0), 1)
			missed := math.Log(used/l.busy(u.Cores)) / sd
			out = append(out, weighed[law]{l, idle * w * z.weight * math.Exp(-missed*missed/2)})
		}
		for i := range int(steps) {
			work := math.Exp((float64(i) + 0.5) * span / steps)
			if l.parallel = l.balanced(work, u.Cores); l.parallel < 0 || l.parallel > 1 {
				continue
			}
			l.spinning = 1
			out = append(out, weighed[law]{l, waitBusy * w * seen * span / steps})
			if work < busy {
				l.spinning = (busy - work) / (u.Cores - work)
				out = append(out, weighed[law]{l, mixed * w * min(busy/(u.Cores-work), 0.4/sd) * span / steps})
				l.spinning = 0
			}
		}
	}
	for i, l := range out {
		out[i].weight *= 1 + fitting*span*l.value.asked(u.Cores)/(presumedSD*math.Sqrt(2*math.Pi))
	}
	return out
}

// evenly returns equally likely laws: the working cores are spaced evenly on a logarithmic scale.
func evenly(own, n float64) []weighed[law] {
	steps := math.Ceil(math.Log(n) / fineness)
	var out []weighed[law]
	for _, l := range shapes(own) {
		for i := range int(steps) + 1 {
			p := l.value.balanced(math.Exp(float64(i)/steps*math.Log(n)), n)
			if p >= -1e-9 && p <= 1+1e-9 {
				l.value.parallel = min(max(p, 0), 1)
				out = append(out, l)
			}
		}
	}
	return out
}

// asked is how well a law fits an owner who asked for the cores that make the job faster.
func (l law) asked(own float64) float64 {
	z := math.Log(presumed*own*l.time(own)) / presumedSD
	return math.Exp(-min(z*z, 100) / 2)
}

// meters are the powers that are weighed with each law. Idle watts of a core are about two fifths
// of what work adds, give or take a factor of two: node power from published idle and full
// loads of servers. The exporter shares out idle by cores; a meter of the whole node also
// counts what the machine takes when no core works, most of all where the cores are many or slow.
func meters(whole bool) []weighed[power] {
	floors := []weighed[float64]{{0, 1}}
	if whole {
		floors = []weighed[float64]{{0.4, 0.12}, {1.5, 0.40}, {4, 0.48}}
	}
	var out []weighed[power]
	for _, z := range []float64{-1.5, 0, 1.5} {
		for _, f := range floors {
			out = append(out, weighed[power]{power{0.4 * math.Exp(0.7*z), f.value}, f.weight * math.Exp(-z*z/2)})
		}
	}
	return out
}

// weigh takes the laws that explain the CPU time, with all that may be true of the power.
func (m *Model) weigh() {
	var explain []weighed[law]
	u := m.facts.Usage
	if u != nil {
		explain = share(u.laws(m.own), 1-otherWork)
	}
	if u == nil || u.Other { // its owner asked for what makes it faster, or guessed
		blind := evenly(m.own, max(m.own, few))
		for i, l := range blind {
			blind[i].weight *= guess + l.value.asked(m.own)
		}
		explain = append(explain, share(blind, otherWork)...)
	}
	best := heaviest(explain)
	watts := []weighed[power]{{weight: 1}}
	if m.joules = math.Abs(m.objectiveOf(m.facts.Own)(1, 2)) > 1e-9; m.joules {
		own, _ := tuning.Reference(m.facts.Trials)
		watts = meters(m.facts.Usage == nil || own.Source == tuning.Replayed)
		m.onGPU = gpuShare(m.facts.Usage, own)
	}
	threads := m.own * u.threads()
	crowdings := m.crowdings(threads)
	for _, l := range explain {
		if l.weight < faint*best {
			continue
		}
		for _, c := range crowdings {
			for _, w := range watts {
				l.value.crowding, l.value.threads, l.value.power = c.value, threads, w.value
				m.laws = append(m.laws, weighed[law]{l.value, l.weight * c.weight * w.weight})
			}
		}
	}
}

// crowdings are what threads that share cores may cost where the job's script sets their number.
func (m *Model) crowdings(threads float64) []weighed[float64] {
	follows := slices.ContainsFunc(m.facts.Policy.Knobs, func(k tuning.Knob) bool { return k.Follows == tuning.Cores })
	if follows || threads < 2 {
		return []weighed[float64]{{0, 1}}
	}
	return []weighed[float64]{{0, 0.55}, {0.06, 0.25}, {0.18, 0.2}}
}

// GPUs take their joules for as long as the job runs.
func (m *Model) joulesOf(l law, cores float64) float64 {
	return (1-m.onGPU)*l.joules(cores, m.own)/l.joules(m.own, m.own) + m.onGPU*l.time(cores)/l.time(m.own)
}

// gpuShare is the share of the owner's joules that the GPUs took.
func gpuShare(u *Usage, own tuning.Trial) float64 {
	switch {
	case u == nil || !(u.GPUWatts > 0):
		return 0
	case own.Joules == nil || !(*own.Joules > 0) || !(own.Seconds > 0):
		return 1
	}
	return min(u.GPUWatts*own.Seconds/float64(*own.Joules), 1)
}

// learn weighs the laws by a measured ratio; joules is NaN where unknown.
func (m *Model) learn(from, cores, time, joules, sd float64) {
	if !(sd > 0) || !tuning.Finite(time) {
		return
	}
	if math.IsInf(joules, 0) || !m.joules {
		joules = math.NaN()
	}
	z := make([]float64, len(m.laws))
	least := math.Inf(1)
	for i, x := range m.laws {
		l := x.value
		says := math.Log(l.time(cores) / l.time(from))
		variance := sd*sd + m.misfit(says, math.Log2(cores/from))
		z[i] = (time-says)*(time-says)/variance + math.Log(variance)
		if !math.IsNaN(joules) {
			d := joules - math.Log(m.joulesOf(l, cores)/m.joulesOf(l, from))
			z[i] += d*d/variance + math.Log(variance)
		}
		if x.weight > 0 {
			least = min(least, z[i])
		}
	}
	var sum, says float64
	for i := range m.laws {
		x := &m.laws[i]
		x.weight *= math.Exp(-min(z[i]-least, 400) / 2)
		sum, says = sum+x.weight, says+x.weight*math.Log(x.value.time(cores)/x.value.time(from))
	}
	if sum > 0 {
		m.amiss = max(m.amiss, (math.Abs(time-says/sum)-2*sd)/math.Abs(math.Log2(cores/from)))
	}
}

// hint weighs the laws by the times of two runs. Where they did other work these say nothing.
func (m *Model) hint(from, cores, time, sd float64) {
	for i := range m.laws {
		x := &m.laws[i]
		says := math.Log(x.value.time(cores) / x.value.time(from))
		off := (time - says) * (time - says) / (sd*sd + m.misfit(says, math.Log2(cores/from)))
		x.weight *= otherWork + (1-otherWork)*math.Exp(-off/2)
	}
}

// share gives the laws a sum of weights.
func share(laws []weighed[law], all float64) []weighed[law] {
	sum := tuning.Sum(laws, func(l weighed[law]) float64 { return l.weight })
	for i := range laws {
		laws[i].weight *= all / sum
	}
	return laws
}

func heaviest(laws []weighed[law]) float64 {
	most := 0.0
	for _, l := range laws {
		most = max(most, l.weight)
	}
	return most
}

func (m *Model) misfit(change, octaves float64) float64 {
	return lawShare*lawShare*change*change + (lawSD*lawSD+m.amiss*m.amiss)*octaves*octaves
}

// onlyCores is the cores of settings that differ from the owner's in these alone.
func (m *Model) onlyCores(s tuning.Settings) (float64, bool) {
	c := s[tuning.Cores].Float()
	return c, c >= 1 && c != m.own && m.facts.Policy.CoresAlone(m.facts.Own, s)
}

// strange is what a knob without a law does to seconds and joules when it goes from one
// value to another. A limit on a processor's power or clock has half of what the cube law
// allows, give or take as much: watts rise with the cube of the clock, seconds fall with it at
// most, and a processor below its limit feels nothing. Threads and the like have half of what
// Amdahl allows. Of any other nothing is known.
func strange(name string, was, now float64) (time, joules Ratio) {
	power, n := powers(name), math.Log(now/was)
	switch {
	case !(was > 0) || !(now > 0):
	case power > 0:
		p := power * n
		return Ratio{-p / 6, math.Abs(p) / 6}, Ratio{p / 6, math.Abs(p) / 4}
	case tuning.IsSystem(name) || slices.Contains([]string{"nodes", "replicas", "workers"}, name): // as many do the work
		return Ratio{-n / 4, math.Abs(n) / 2}, Ratio{0, math.Abs(n) / 2}
	}
	return Ratio{0, knobSD}, Ratio{0, knobSD}
}

// powers is the exponent with which a processor's watts rise with a knob that bounds them.
func powers(name string) float64 {
	for _, unit := range []string{"_watts", "_mhz", "_ghz", "_khz"} {
		name = strings.TrimSuffix(name, unit)
	}
	switch {
	case slices.Contains([]string{tuning.PowerLimit, "power_cap"}, name):
		return 1
	case slices.Contains([]string{"frequency", "clock"}, name):
		return 3
	}
	return 0
}

// slope is what a knob without a law does, by what this job measured under other values of it.
func (m *Model) slope(name string, s tuning.Settings) (time, joules Ratio) {
	was := m.facts.Own[name].Float()
	time, joules = strange(name, was, s[name].Float())
	own, ok := tuning.Reference(m.facts.Trials)
	to := math.Log(s[name].Float() / was)
	if !ok || !tuning.Finite(to) || to == 0 {
		return time, joules
	}
	for _, t := range m.facts.Trials {
		by := math.Log(t.Settings[name].Float() / was)
		if t.Reference || !(math.Abs(by) > 0) || math.IsInf(by, 0) || len(m.facts.Own.Diff(t.Settings)) > 1 {
			continue
		}
		scale := to / by
		sd := math.Hypot(m.trialSD(t, own)*math.Abs(scale), strangeSD*math.Abs(to-by))
		time = join(time, Ratio{scale * math.Log(t.Seconds/own.Seconds), sd})
		if j := t.JoulesRatio(own); !math.IsNaN(j) {
			joules = join(joules, Ratio{scale * j, sd})
		}
	}
	return time, joules
}
