package respond

import "math"

// law is one way in which a job may answer to cores. The work of an epoch takes
//
//	T(n) = (1-p) + p/n + k·(n-1)
//
// of its time on one core when n cores work on it: Amdahl, "Validity of the single processor
// approach to achieving large scale computing capabilities" (1967), with the coherence term
// of Gunther, "Guerrilla Capacity Planning" (2007). Its joules are those of its CPU time plus
// idle of every core that it has, for as long as it runs.
type law struct {
	parallel  float64 // p, the share that runs in parallel
	coherence float64 // k, what each further core costs
	idle      float64 // watts of an idle core over those that a busy one adds
}

func (l law) time(cores float64) float64 {
	n := max(cores, 1)
	return (1 - l.parallel) + l.parallel/n + l.coherence*(n-1)
}

// joules of an epoch, in those of its CPU time.
func (l law) joules(cores float64) float64 { return 1 + l.idle*max(cores, 1)*l.time(cores) }

// busy is how many cores work on average.
func (l law) busy(cores float64) float64 { return 1 / l.time(cores) }

// laws are those that are weighed, with their prior weights.
func laws() ([]law, []float64) {
	var out []law
	var weights []float64
	for _, p := range []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1} {
		for _, k := range []struct{ value, weight float64 }{{0, 0.8}, {0.003, 0.08}, {0.01, 0.06}, {0.03, 0.03}, {0.2, 0.01}} {
			for i := range idleSteps {
				// Idle watts of a core are about two fifths of what work adds, give or take a
				// factor of two: node power from published idle and full loads of servers.
				z := -2 + 4*float64(i)/float64(idleSteps-1)
				out = append(out, law{p, k.value, 0.4 * math.Exp(0.7*z)})
				weights = append(weights, k.weight*math.Exp(-z*z/2))
			}
		}
	}
	return out, weights
}

const idleSteps = 5
