package fault

import (
	"math/rand/v2"
	"slices"
)

// Fault is one thing that is done to the system.
type Fault struct {
	Kind   string // row of the table
	Point  string // where something is struck, for kinds that need one
	Action string // what is done, for kinds with several
	Owner  int    // index of whose controller or jobs
}

// Family is a kind with how often it comes in a plan, in proportion.
type Family struct {
	Kind            string
	Weight          int
	Points, Actions []string
}

// Points are those at which a kind can strike.
func Points(fs []Family, kind string) []string {
	for _, f := range fs {
		if f.Kind == kind {
			return f.Points
		}
	}
	return nil
}

// Plan is a list of n faults for the jobs of so many owners: every kind comes before any
// comes again, and then by weight. Points and actions follow one another, so that none is
// left out for long.
func Plan(random *rand.Rand, fs []Family, owners, n int) []Fault {
	next := map[string]int{}
	make1 := func(f Family) Fault {
		i := next[f.Kind]
		next[f.Kind]++
		out := Fault{Kind: f.Kind, Owner: random.IntN(owners)}
		if len(f.Points) > 0 {
			out.Point = f.Points[i%len(f.Points)]
		}
		if len(f.Actions) > 0 {
			out.Action = f.Actions[i%len(f.Actions)]
		}
		return out
	}
	fs = slices.Clone(fs)
	for i := range fs {
		fs[i].Points = slices.Clone(fs[i].Points)
		random.Shuffle(len(fs[i].Points), func(a, b int) { fs[i].Points[a], fs[i].Points[b] = fs[i].Points[b], fs[i].Points[a] })
	}
	random.Shuffle(len(fs), func(a, b int) { fs[a], fs[b] = fs[b], fs[a] })
	var out []Fault
	for _, f := range fs {
		out = append(out, make1(f))
	}
	var urn []Family
	for len(out) < n {
		if len(urn) == 0 {
			for _, f := range fs {
				for range f.Weight {
					urn = append(urn, f)
				}
			}
			random.Shuffle(len(urn), func(a, b int) { urn[a], urn[b] = urn[b], urn[a] })
		}
		out = append(out, make1(urn[0]))
		urn = urn[1:]
	}
	return out[:n]
}
