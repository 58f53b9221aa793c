package energy_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/exporter/collector/energy"
)

// whole is the energy of a machine in one part.
func whole(total, idle float64) energy.Split {
	return energy.Split{Total: total, Idle: idle, Parts: []energy.Part{{Component: energy.Node, Package: energy.Whole, Total: total, Idle: idle}}}
}

func TestTheActivePartFollowsTheWork(t *testing.T) {
	t.Parallel()
	load := func(seconds, cores, cycles, misses float64) energy.Use {
		return energy.Use{Load: energy.Load{CPUSeconds: seconds, Cores: cores, Cycles: cycles, Misses: misses}}
	}
	socket := func(total, idle float64) energy.Split {
		return energy.Split{Total: total, Idle: idle, Parts: []energy.Part{{Component: energy.Package, Package: 0, Total: total, Idle: idle}}}
	}
	dram := func(total, idle float64) energy.Split {
		return energy.Split{Total: total, Idle: idle, Parts: []energy.Part{{Component: energy.DRAM, Package: 0, Total: total, Idle: idle}}}
	}
	for _, tc := range []struct {
		name   string
		split  energy.Split
		busy   float64 // of 4 cores
		uses   []energy.Use
		jobs   []energy.Joules
		system energy.Joules
	}{
		{
			"an idle job pays for the cores that it holds", whole(100, 60), 2,
			[]energy.Use{load(1, 1, 0, 0), load(0, 2, 0, 0)},
			[]energy.Joules{{Active: 20, Idle: 15}, {Idle: 30}},
			energy.Joules{Active: 20, Idle: 15},
		},
		{
			"cycles count where they are known of every job that ran", socket(100, 60), 3,
			[]energy.Use{load(1, 1, 3e9, 0), load(1, 1, 1e9, 0), load(0, 1, 0, 0)},
			// who is in no job has the mean: 2e9 of 6e9
			[]energy.Joules{{Active: 20, Idle: 15}, {Active: 40.0 / 6, Idle: 15}, {Idle: 15}},
			energy.Joules{Active: 80.0 / 6, Idle: 15},
		},
		{
			"and CPU seconds where those of one are not", socket(100, 60), 2,
			[]energy.Use{load(1, 1, 3e9, 0), load(1, 1, 0, 0)},
			[]energy.Joules{{Active: 20, Idle: 15}, {Active: 20, Idle: 15}},
			energy.Joules{Idle: 30},
		},
		{
			"DRAM follows the cache misses", dram(30, 10), 2,
			[]energy.Use{load(1, 2, 1e9, 3e6), load(1, 2, 1e9, 1e6)},
			[]energy.Joules{{Active: 15, Idle: 5, DRAMActive: 15, DRAMIdle: 5}, {Active: 5, Idle: 5, DRAMActive: 5, DRAMIdle: 5}},
			energy.Joules{},
		},
		{
			"or the cycles where misses are not counted", dram(30, 10), 2,
			[]energy.Use{load(1, 2, 3e9, 0), load(1, 2, 1e9, 0)},
			[]energy.Joules{{Active: 15, Idle: 5, DRAMActive: 15, DRAMIdle: 5}, {Active: 5, Idle: 5, DRAMActive: 5, DRAMIdle: 5}},
			energy.Joules{},
		},
		{
			"jobs whose clocks and cpusets sum to more than there is share what there is", whole(100, 60), 1,
			[]energy.Use{load(3, 4, 0, 0), load(1, 4, 0, 0)},
			[]energy.Joules{{Active: 30, Idle: 30}, {Active: 10, Idle: 30}},
			energy.Joules{},
		},
		{
			"without jobs all is the system's", whole(100, 60), 1, nil, []energy.Joules{}, energy.Joules{Active: 40, Idle: 60},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			act := energy.Activity{Elapsed: time.Second, Busy: tc.busy, Cores: 4}
			jobs, system := energy.Share(tc.split, act, tc.uses)
			near := cmpopts.EquateApprox(0, 1e-9)
			if diff := cmp.Diff(tc.jobs, jobs, near); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.system, system, near); diff != "" {
				t.Errorf("system (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASocketIsPaidForByThoseWhoRunOnIt(t *testing.T) {
	t.Parallel()
	split := energy.Split{Total: 500, Idle: 200, Parts: []energy.Part{
		{Component: energy.Package, Package: 0, Total: 400, Idle: 100}, {Component: energy.Package, Package: 1, Total: 100, Idle: 100},
	}}
	act := energy.Activity{Elapsed: time.Second, Busy: 8, Cores: 16, Packages: map[int]energy.Cores{0: {Busy: 8, Count: 8}, 1: {Count: 8}}}
	on := func(pkg int, seconds float64) energy.Use {
		l := energy.Load{CPUSeconds: seconds, Cores: 8}
		return energy.Use{Load: l, Packages: map[int]energy.Load{pkg: l}}
	}
	jobs, system := energy.Share(split, act, []energy.Use{on(0, 8), on(1, 0)})
	want := []energy.Joules{{Active: 300, Idle: 100}, {Idle: 100}}
	if diff := cmp.Diff(want, jobs); diff != "" || system != (energy.Joules{}) {
		t.Errorf("system %+v, jobs (-want +got):\n%s", system, diff)
	}
	// A job that ran at an unknown place is everywhere alike.
	jobs, _ = energy.Share(split, act, []energy.Use{{Load: energy.Load{CPUSeconds: 8, Cores: 16}}})
	if got := jobs[0]; got.Active != 150 || got.Idle != 200 {
		t.Errorf("%+v, want half of the busy socket's active joules", got)
	}
}

// Whatever jobs do, what they and the system get is what the node took.
func TestSharesSumToTheNodeWhateverTheJobsDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		sockets := rapid.IntRange(1, 3).Draw(rt, "sockets")
		cores := rapid.IntRange(1, 64).Draw(rt, "cores of a socket")
		var book energy.Book
		var truth float64
		jobs := map[string]float64{}
		number := func(name string, most float64) float64 { return rapid.Float64Range(0, most).Draw(rt, name) }
		for range rapid.IntRange(1, 8).Draw(rt, "intervals") {
			act := energy.Activity{Elapsed: time.Second, Cores: sockets * cores, Packages: map[int]energy.Cores{}}
			var split energy.Split
			for s := range sockets {
				busy := number("busy", 2*float64(cores))
				act.Packages[s] = energy.Cores{Busy: busy, Count: cores}
				act.Busy += busy
				for _, c := range []energy.Component{energy.Package, energy.DRAM} {
					total := number("total", 1e4)
					split.Parts = append(split.Parts, energy.Part{Component: c, Package: s, Total: total, Idle: total * number("idle", 1)})
				}
			}
			if rapid.Bool().Draw(rt, "a part of all") {
				split.Parts = append(split.Parts, energy.Part{Component: energy.Node, Package: energy.Whole, Total: number("node", 1e4)})
			}
			if rapid.Bool().Draw(rt, "packages are not known") {
				act.Packages = nil
			}
			for _, p := range split.Parts {
				split.Total, split.Idle = split.Total+p.Total, split.Idle+p.Idle
			}
			uses := make([]energy.Use, rapid.IntRange(0, 5).Draw(rt, "jobs")) // they come and go
			for i := range uses {
				load := func() energy.Load {
					return energy.Load{CPUSeconds: number("cpu", 100), Cores: number("alloc", 128), Cycles: number("cycles", 1e11), Misses: number("misses", 1e9)}
				}
				uses[i].Load = load()
				if rapid.Bool().Draw(rt, "located") {
					uses[i].Packages = map[int]energy.Load{}
					for s := range sockets {
						uses[i].Packages[s] = load()
					}
				}
			}
			before := book.System
			sum := 0.0
			for i, j := range book.Add(split, act, uses) {
				if j.Active < 0 || j.Idle < 0 || j.DRAMActive > j.Active+1e-9 || j.DRAMIdle > j.Idle+1e-9 {
					rt.Fatalf("job %+v", j)
				}
				sum += j.Total()
				jobs[fmt.Sprint(i)] += j.Total()
			}
			system := book.System.Total() - before.Total()
			if book.System.Active < before.Active || book.System.Idle < before.Idle {
				rt.Fatalf("the system's counter went down from %+v to %+v", before, book.System)
			}
			if math.Abs(sum+system-split.Total) > 1e-9*split.Total+1e-6 {
				rt.Fatalf("jobs %v and system %v of %v", sum, system, split.Total)
			}
			truth += split.Total
			all, own := number("cards", 1e3), number("of jobs", 1e3)
			book.AddGPUs(all, own)
			if own > 0 {
				jobs["cards"] += own
			}
		}
		sum := book.System.Total()
		for _, j := range jobs {
			sum += j
		}
		if node := book.Node.Total(); math.Abs(sum-node) > 1e-9*node+1e-6 || math.Abs(book.Node.Active+book.Node.Idle-truth) > 1e-9*truth+1e-6 {
			rt.Fatalf("jobs and system %v, node %v, of which meters %v", sum, node, truth)
		}
	})
}

func TestCardsAreNeverCountedTwice(t *testing.T) {
	t.Parallel()
	var book energy.Book
	book.AddGPUs(100, 60)
	book.AddGPUs(0, 50) // the jobs' readings are one ahead
	book.AddGPUs(100, 30)
	if book.Node.GPU != 200 || book.System.GPU != 60 {
		t.Errorf("node %+v, system %+v; want 200 J, of which 140 the jobs'", book.Node, book.System)
	}
}
