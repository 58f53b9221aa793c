package respond

import (
	"iter"
	"math"
)

// law is one way in which a job may answer to cores. The work of an epoch takes
//
//	T(n) = (1-p) + p/min(n,s) + k·(n-1)
//
// of its time on one core when n cores work on it: Amdahl, "Validity of the single processor
// approach to achieving large scale computing capabilities" (1967), with the coherence term
// of Gunther, "Guerrilla Capacity Planning" (2007), and with at most s cores that make the
// parallel part faster, as where memory is the limit (Williams, Waterman and Patterson,
// "Roofline", 2009). Cores that wait for memory or for each other's caches look busy, and so
// does the share of the others that waits actively.
type law struct {
	parallel  float64 // p, the share that runs in parallel
	saturated float64 // s
	coherence float64 // k, what each further core costs
	spinning  float64 // share of the waiting cores that look busy
	power
}

// power is what the joules of an epoch are made of: those of the CPU time that it uses, plus
// idle of every core that it has, plus a floor that fewer cores do not lower, both for as long
// as it runs.
type power struct {
	idle  float64 // watts of an idle core over those that a busy one adds
	floor float64 // watts per core of the owner's that no setting lowers, over the same
}

func (l law) time(cores float64) float64 {
	n := max(cores, 1)
	return (1 - l.parallel) + l.parallel/min(n, l.saturated) + l.coherence*(n-1)
}

// busy is how many cores look busy on average.
func (l law) busy(cores float64) float64 {
	n := max(cores, 1)
	b := ((1 - l.parallel) + l.parallel*n/min(n, l.saturated) + l.coherence*(n-1)*n) / l.time(n)
	return b + l.spinning*max(n-b, 0)
}

// joules of an epoch, in watts that a busy core adds, where its owner asked for own cores.
func (l law) joules(cores, own float64) float64 {
	return (l.busy(cores) + l.idle*max(cores, 1) + l.floor*max(own, 1)) * l.time(cores)
}

// balanced is the parallel share by which so many cores look busy of n where nothing waits
// actively; outside 0 to 1 where no share explains it.
func (l law) balanced(busy, n float64) float64 {
	most, lost := min(n, l.saturated), l.coherence*(n-1)
	return (busy - 1 - lost*(n-busy)) / (n/most - 1 + busy*(1-1/most))
}

// weighed is a value with its prior weight.
type weighed struct{ value, weight float64 }

// shapes are the laws without a parallel share, for a job whose owner asked for so many cores.
func shapes(own float64) iter.Seq2[law, float64] {
	return func(yield func(law, float64) bool) {
		for _, k := range []weighed{{0, 0.84}, {0.001, 0.07}, {0.006, 0.07}, {0.03, 0.015}, {0.2, 0.005}} {
			for _, s := range []weighed{{math.Inf(1), 0.8}, {0.75, 0.05}, {0.5, 0.05}, {0.25, 0.05}, {0.1, 0.05}} {
				if !yield(law{saturated: max(s.value*own, 1), coherence: k.value}, k.weight*s.weight) {
					return
				}
			}
		}
	}
}

// fineness is by how much the cores that really work differ from one law to the next, in
// natural logarithms.
const fineness = 0.1

// How likely it is beforehand that the cores which wait look idle, that all of them look busy,
// and that some do.
const (
	waitIdle  = 0.75
	waitBusy  = 0.10
	waitMixed = 0.15
)

// usageErrors are those of the CPU time that is measured, in standard deviations.
func usageErrors() []weighed {
	return []weighed{{-1.6, 0.092}, {-0.8, 0.242}, {0, 0.332}, {0.8, 0.242}, {1.6, 0.092}}
}

// laws are those that explain how many cores look busy, with their weights. What really works
// is as likely one core as all, on a logarithmic scale; of the others none waits actively, or
// all do, or a part that makes up the difference.
func (u Usage) laws(own float64) iter.Seq2[law, float64] {
	if u.Cores < 2 {
		return evenly(own, few)
	}
	busy := min(max(u.Busy/max(1-min(u.Waiting, 0.9), 0.1), 1), u.Cores)
	sd := math.Hypot(usageSD, 0.5*u.Waiting+0.5*u.Pressure)
	if u.Busy < 1 { // it sleeps, and may work on many cores in between
		sd = math.Hypot(sd, 0.3*(1-u.Busy))
	}
	span := math.Log(u.Cores)
	steps := math.Ceil(span / fineness)
	seen := math.Exp(-math.Pow(math.Log(busy/u.Cores)/sd, 2)/2) / (sd * math.Sqrt(2*math.Pi)) // that all look busy
	return func(yield func(law, float64) bool) {
		for l, w := range shapes(own) {
			for _, z := range usageErrors() {
				used := busy * math.Exp(z.value*sd)
				l.parallel = min(max(l.balanced(used, u.Cores), 0), 1)
				missed := math.Log(used/l.busy(u.Cores)) / sd
				if !yield(l, waitIdle*w*z.weight*math.Exp(-missed*missed/2)) {
					return
				}
			}
			for i := range int(steps) {
				work := math.Exp((float64(i) + 0.5) * span / steps)
				if l.parallel = l.balanced(work, u.Cores); l.parallel < 0 || l.parallel > 1 {
					continue
				}
				l.spinning = 1
				if !yield(l, waitBusy*w*seen*span/steps) {
					return
				}
				if work >= busy {
					continue
				}
				l.spinning = (busy - work) / (u.Cores - work)
				if !yield(l, waitMixed*w*min(busy/(u.Cores-work), 0.4/sd)*span/steps) {
					return
				}
				l.spinning = 0
			}
		}
	}
}

// evenly returns laws that are all equally likely: the cores that work, out of n, are spaced
// evenly on a logarithmic scale.
func evenly(own, n float64) iter.Seq2[law, float64] {
	steps := math.Ceil(math.Log(n) / fineness)
	return func(yield func(law, float64) bool) {
		for l, w := range shapes(own) {
			for i := range int(steps) + 1 {
				if l.parallel = l.balanced(math.Exp(float64(i)/steps*math.Log(n)), n); l.parallel < -1e-9 || l.parallel > 1+1e-9 {
					continue
				}
				l.parallel = min(max(l.parallel, 0), 1)
				if !yield(l, w) {
					return
				}
			}
		}
	}
}

// presumedLaws are those of a job of which nothing says how many cores it keeps busy: its
// owner is presumed to have asked for what makes it faster.
func presumedLaws(own float64) iter.Seq2[law, float64] {
	return func(yield func(law, float64) bool) {
		for l, w := range evenly(own, max(own, few)) {
			z := math.Log(presumed*own*l.time(own)) / presumedSD
			if !yield(l, w*math.Exp(-min(z*z, 100)/2)) {
				return
			}
		}
	}
}

// few is the number of cores by which evenly spaces its laws for a job of one core, whose use
// of that core says nothing.
const few = 16

// meters are the powers that are weighed with each law. Idle watts of a core are about two fifths
// of what work adds, give or take a factor of two: node power from published idle and full
// loads of servers. The exporter shares out idle by cores; a meter of the whole node has a
// floor.
func meters(whole bool) ([]power, []float64) {
	var out []power
	var weights []float64
	floors := []weighed{{0, 1}}
	if whole {
		floors = []weighed{{0, 0.7}, {0.4, 0.2}, {1.5, 0.1}}
	}
	for _, z := range []float64{-1.5, 0, 1.5} {
		for _, f := range floors {
			out = append(out, power{0.4 * math.Exp(0.7*z), f.value})
			weights = append(weights, f.weight*math.Exp(-z*z/2))
		}
	}
	return out, weights
}
