package faultslurm_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// fault is one thing that is done to the system.
type fault struct {
	kind   string // row of the table
	point  string // where a controller is struck, for kinds that need one
	action string // what the owner does, for kinds that are his
	owner  int    // index of whose controller or jobs
}

// The kinds.
const (
	kindAfter     = "controller killed after a step"
	kindBefore    = "controller killed before an effect"
	kindSaved     = "controller killed after its own record"
	kindAnywhere  = "controller killed at any moment"
	kindCancel    = "owner cancels in the move"
	kindHold      = "owner holds and releases in the move"
	kindUpdate    = "owner updates in the move"
	kindDisk      = "journal's disk is full"
	kindSettings  = "settings folder is not to be trusted"
	kindCtldSaved = "slurmctld killed when it had saved"
	kindCtldKill  = "slurmctld killed with work not saved"
	kindCtldTerm  = "slurmctld ended and restarted"
	kindCtldStop  = "slurmctld stands still"
	kindNode      = "slurmd restarted"
	kindBroker    = "broker killed after a step"
	kindBrokerAny = "broker killed at any moment"
	kindEnd       = "job ends while it is moved"
)

// steps are the durable steps of a move, in their order.
func steps() []string {
	return []string{
		"asking", "signal-sent", "signalled", "stopping", "requeued", "requeue-acknowledged", "delayed", "released", "stopped",
		"settings", "changing", "changed", "queued", "followed", "listening",
	}
}

// effects are those of a move on Slurm.
func effects() []string {
	return []string{"before:signal", "before:requeue", "before:update", "before:release"}
}

// saves are the controller's own records in a move.
func saves() []string {
	return []string{"saved:probing:", "saved:probing:checkpointing", "saved:probing:stopped", "saved:probing:changed", "saved:classified:"}
}

// brokerSteps are those of the broker.
func brokerSteps() []string {
	var out []string
	for _, verb := range []string{"signal", "requeue", "update", "release"} {
		out = append(out, verb+"-recorded", verb+"-done")
	}
	return out
}

// between are the steps at which the owner does something.
func between() []string {
	return []string{"signalled", "requeue-acknowledged", "stopped", "changed", "before:update", "before:requeue", "queued"}
}

// ownersUpdates are what an owner changes of his job.
func ownersUpdates() []string { return []string{"TimeLimit=00:15:00", "NumCPUs=2", "Comment=mine"} }

// family is a kind with how often it comes in a plan, in proportion.
type family struct {
	kind           string
	weight         int
	points, action []string
}

func families(disk bool) []family {
	out := []family{
		{kind: kindAfter, weight: 14, points: steps()},
		{kind: kindCtldSaved, weight: 2},
		{kind: kindCtldKill, weight: 1},
		{kind: kindUpdate, weight: 3, points: between(), action: ownersUpdates()},
		{kind: kindSettings, weight: 2, action: []string{"writable", "foreign", "closed"}},
		{kind: kindBefore, weight: 4, points: effects()},
		{kind: kindHold, weight: 3, points: between()},
		{kind: kindCtldStop, weight: 2},
		{kind: kindCancel, weight: 3, points: between()},
		{kind: kindNode, weight: 2},
		{kind: kindBroker, weight: 5, points: brokerSteps()},
		{kind: kindBrokerAny, weight: 1},
		{kind: kindAnywhere, weight: 3},
		{kind: kindSaved, weight: 4, points: saves()},
		{kind: kindCtldTerm, weight: 1},
	}
	if disk {
		out = append(out, family{kind: kindDisk, weight: 3})
	}
	return out
}

// elsewhere is the same fault at another point, for one that met nothing where it was.
func (f fault) elsewhere(random func(int) int) fault {
	if points := pointsOf(f.kind); len(points) > 0 {
		f.point = points[random(len(points))]
	}
	return f
}

// pointsOf are the points at which a kind can strike.
func pointsOf(kind string) []string {
	for _, f := range families(true) {
		if f.kind == kind {
			return f.points
		}
	}
	return nil
}

// plan is a list of n faults: every kind comes before any comes again, and then by
// weight. Points and actions follow one another, so that none is left out for long.
func plan(random *rand.Rand, fs []family, n int) []fault {
	next := map[string]int{}
	make1 := func(f family) fault {
		i := next[f.kind]
		next[f.kind]++
		out := fault{kind: f.kind, owner: random.IntN(2)}
		if len(f.points) > 0 {
			out.point = f.points[i%len(f.points)]
		}
		if len(f.action) > 0 {
			out.action = f.action[i%len(f.action)]
		}
		return out
	}
	fs = slices.Clone(fs)
	for i := range fs {
		random.Shuffle(len(fs[i].points), func(a, b int) { fs[i].points[a], fs[i].points[b] = fs[i].points[b], fs[i].points[a] })
	}
	random.Shuffle(len(fs), func(a, b int) { fs[a], fs[b] = fs[b], fs[a] })
	var out []fault
	for _, f := range fs {
		out = append(out, make1(f))
	}
	var urn []family
	for len(out) < n {
		if len(urn) == 0 {
			for _, f := range fs {
				for range f.weight {
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

func TestAPlanHasEveryKindBeforeAnyComesAgain(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3} {
		fs := families(true)
		got := plan(rand.New(rand.NewPCG(seed, 0)), fs, 200)
		if again := plan(rand.New(rand.NewPCG(seed, 0)), families(true), 200); !slices.Equal(got, again) {
			t.Errorf("seed %d gives another plan each time", seed)
		}
		first, points := map[string]bool{}, map[string]bool{}
		for i, f := range got {
			if i < len(fs) && first[f.kind] {
				t.Errorf("seed %d: %s comes twice among the first", seed, f.kind)
			}
			first[f.kind] = true
			points[f.kind+f.point] = true
		}
		for _, f := range fs {
			for _, p := range f.points {
				if !points[f.kind+p] {
					t.Errorf("seed %d: no %s at %s in 200", seed, f.kind, p)
				}
			}
		}
	}
}
