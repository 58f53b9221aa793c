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

// weighed is a value with its prior weight.
type weighed struct{ value, weight float64 }

// laws are those that are weighed for a job whose owner asked for so many cores, with their
// prior weights: of the time and the CPU time only.
func laws(own float64) iter.Seq2[law, float64] {
	parallel := [...]float64{0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.99, 0.995, 1}
	coherence := [...]weighed{{0, 0.84}, {0.001, 0.07}, {0.006, 0.07}, {0.03, 0.015}, {0.2, 0.005}}
	saturated := [...]weighed{{math.Inf(1), 0.8}, {0.75, 0.05}, {0.5, 0.05}, {0.25, 0.05}, {0.1, 0.05}}
	spinning := [...]weighed{{0, 0.7}, {0.4, 0.2}, {1, 0.1}}
	return func(yield func(law, float64) bool) {
		for _, p := range parallel {
			for _, k := range coherence {
				for _, s := range saturated {
					if p == 0 && !math.IsInf(s.value, 1) {
						continue
					}
					for _, a := range spinning {
						l := law{parallel: p, saturated: max(s.value*own, 1), coherence: k.value, spinning: a.value}
						if !yield(l, k.weight*s.weight*a.weight) {
							return
						}
					}
				}
			}
		}
	}
}

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
