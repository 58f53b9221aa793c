package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/test/site"
)

func month(seed uint64, load float64) (simulate.Input, []site.Job) {
	o := site.Month()
	o.Load = load
	jobs := site.Draw(seed, o)
	in := simulate.Input{Partitions: []simulate.Partition{{Nodes: o.Nodes, PerNode: o.CoresPerNode}}}
	for _, j := range jobs {
		in.Log.Jobs = append(in.Log.Jobs, j.Job)
	}
	return in, jobs
}

// The seeds played no part in the choice of the constants.
func TestForecastsShortenTheQueueOfASite(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the jobs of two months: make check runs it")
	}
	t.Parallel()
	for _, c := range []struct {
		seed     uint64
		load     float64
		nameless bool // as in the Standard Workload Format
	}{{12, 0.7, true}, {13, 0.8, false}} {
		t.Run(fmt.Sprint(c.load), func(t *testing.T) {
			t.Parallel()
			in, _ := month(c.seed, c.load)
			for i := range in.Log.Jobs {
				if c.nameless {
					in.Log.Jobs[i].Name = ""
				}
			}
			var rows [2]evaluate.Line
			raised := 0.0
			for i, name := range []string{"easy", "easy-forecast"} {
				r, err := simulate.Run(t.Context(), in, spec(t, name), nil)
				if err != nil {
					t.Fatal(err)
				}
				rows[i] = simulate.Rows(r)[0]
				for _, j := range r.Jobs {
					if i > 0 && r.Spec.Cells(j)[1] > 0 {
						raised += 1 / float64(len(r.Jobs))
					}
				}
			}
			change := func(key string) float64 { return float64(rows[1].Figure(key)/rows[0].Figure(key)) - 1 }
			t.Logf("slowdown %+.2f, mean wait %+.2f, p99.9 %+.2f; limits raised %.4f", change("mean_bounded_slowdown"), change("mean_wait"), change("p999_wait"), raised)
			if change("mean_bounded_slowdown") > -0.4 || change("mean_wait") > 0 || change("p999_wait") > 0.2 || raised > 0.005 || rows[0]["killed"] != rows[1]["killed"] {
				t.Errorf("want a slowdown at least 40 %% lower, shorter waits, the longest by 20 %% longer at most, few limits raised, and no job killed for it:\n%v", rows)
			}
		})
	}
}

func TestAForecastLowersLimitsOfUsersThatAreKnownUntilItFails(t *testing.T) {
	t.Parallel()
	const owner = 36000
	in := simulate.Input{Partitions: []simulate.Partition{{Nodes: 1, PerNode: 100}}}
	jobs := func(n int, user string, at, seconds float64) (last int) {
		for i := range n {
			in.Log.Jobs = append(in.Log.Jobs, joblog.Job{User: user, Submit: at + float64(i), Duration: seconds, Limit: owner, CPUs: 1})
		}
		return len(in.Log.Jobs) - 1
	}
	jobs(200, "ann", 0, 60)
	stranger, known := jobs(1, "bob", 1000, 3000), jobs(1, "ann", 1000, 60)
	jobs(10, "ann", 10000, 9000) // all much longer at once
	later := jobs(1, "ann", 12000, 60)
	jobs(3000, "ann", 30000, 60)
	settled := jobs(1, "ann", 50000, 60)
	r := simulated(t, in, spec(t, "easy-forecast"))
	lowered := func(job int) bool { return r.Spec.Cells(r.Jobs[job])[0] < owner }
	for _, c := range []struct {
		what string
		job  int
		want bool
	}{
		{"of a user of whom no job has ended", stranger, false},
		{"of a user who is known", known, true},
		{"that begins when too many have reached theirs", later, false},
		{"that begins when few have", settled, true},
	} {
		if lowered(c.job) != c.want {
			t.Errorf("the limit of a job %s is lowered: %v, want %v", c.what, !c.want, c.want)
		}
	}
	in.Log.Jobs[stranger].Limit = 0
	if r = simulated(t, in, spec(t, "easy-forecast")); !lowered(stranger) {
		t.Error("a job whose owner asked for no limit has no forecast")
	}
	for i := range in.Log.Jobs {
		in.Log.Jobs[i].User = ""
	}
	if r = simulated(t, in, spec(t, "easy-forecast")); !lowered(known) {
		t.Error("where the log names no users no limit is lowered")
	}
}

// textbook is when jobs, in the order of their arrival, begin under EASY, which counts nodes.
func textbook(jobs []joblog.Job, each, nodes int) []float64 {
	type run struct {
		nodes         int
		end, expected float64
	}
	first := slices.Repeat([]float64{math.NaN()}, len(jobs))
	var running []run
	free, waiting, next := nodes, []int(nil), 0
	for now := 0.0; ; {
		running = slices.DeleteFunc(running, func(r run) bool {
			if r.end <= now {
				free += r.nodes
			}
			return r.end <= now
		})
		for ; next < len(jobs) && jobs[next].Submit <= now; next++ {
			waiting = append(waiting, next)
		}
		shadow, extra, head := 0.0, 0, true
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			j, need := jobs[i], jobs[i].CPUs/each
			if head && need > free {
				head, extra = false, free
				slices.SortFunc(running, func(a, b run) int { return int(a.expected - b.expected) })
				for _, r := range running {
					if extra >= need && r.expected > shadow {
						break
					}
					shadow, extra = r.expected, extra+r.nodes
				}
				extra -= need
				return false
			}
			gone := head || now+j.Limit <= shadow
			if need > free || !gone && need > extra {
				return false
			}
			if !gone {
				extra -= need
			}
			free -= need
			first[i] = now
			running = append(running, run{need, now + min(j.Duration, j.Limit), now + j.Limit})
			return true
		})
		soon := math.Inf(1)
		if next < len(jobs) {
			soon = jobs[next].Submit
		}
		for _, r := range running {
			soon = min(soon, r.end)
		}
		if math.IsInf(soon, 1) {
			return first
		}
		now = soon
	}
}

func TestEasyOnWholeNodesIsThatOfTheTextbook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, each := rapid.IntRange(1, 9).Draw(t, "nodes"), rapid.SampledFrom([]int{1, 4}).Draw(t, "cores per node")
		var l joblog.Log
		at := 0
		for i := range rapid.IntRange(1, 80).Draw(t, "jobs") {
			at += rapid.SampledFrom([]int{0, 1, 20, 400}).Draw(t, "later")
			l.Jobs = append(l.Jobs, joblog.Job{
				ID: fmt.Sprint(i), Line: i + 1, Submit: float64(at), CPUs: each * rapid.IntRange(1, nodes).Draw(t, "nodes"),
				Duration: float64(rapid.IntRange(1, 2000).Draw(t, "duration")), Limit: float64(rapid.SampledFrom([]int{20, 100, 400, 2000}).Draw(t, "limit")),
			})
		}
		in, err := simulate.Prepare(l, simulate.Shape{Nodes: nodes, CoresPerNode: each})
		if err != nil {
			t.Fatal(err)
		}
		want := textbook(l.Jobs, each, nodes)
		for i, j := range simulated(t, in, spec(t, "easy")).Jobs {
			if j.First != want[i] {
				t.Fatalf("job %s begins at %g, want %g", j.ID, j.First, want[i])
			}
		}
	})
}
