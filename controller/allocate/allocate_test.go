package allocate_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/allocate"
)

// elastic is a job on 1 to most of so many cores whose serial share of the work is given.
func elastic(left, serial float64, cores, most, has int) allocate.Job {
	j := allocate.Job{Has: has, Left: left, Restart: 1}
	for c := 1; c <= most; c++ {
		n := float64(c)
		j.Sizes = append(j.Sizes, allocate.Size{Need: []float64{n / float64(cores)}, Speed: 1 / (serial + (1-serial)/n)})
	}
	return j
}

func TestChoose(t *testing.T) {
	slow := elastic(1000, 0, 4, 4, 3)
	old := elastic(1000, 0, 1, 1, allocate.Waits)
	old.Waited = 2000
	dear := elastic(10, 0, 4, 4, 1)
	dear.Restart = 8
	half := func(left, speed float64) allocate.Job {
		return allocate.Job{Left: left, Restart: 1, Sizes: []allocate.Size{{Need: []float64{0.5}, Speed: speed}}}
	}
	for _, test := range []struct {
		name string
		jobs []allocate.Job
		want []int
	}{
		{"nothing is divided among no jobs", nil, nil},
		{"a lone job gets all", []allocate.Job{elastic(100, 0.01, 4, 4, allocate.Waits)}, []int{3}},
		{"a job shrinks when another waits", []allocate.Job{slow, elastic(1000, 0.5, 4, 4, allocate.Waits)}, []int{2, 0}},
		{"a job grows when the cluster is empty", []allocate.Job{elastic(1000, 0, 4, 4, 0)}, []int{3}},
		{"a job does not grow where its restart costs more than it saves", []allocate.Job{dear}, []int{1}},
		{"more goes to the job that ends first", []allocate.Job{elastic(1000, 0, 4, 3, 0), elastic(50, 0, 4, 3, 0)}, []int{0, 2}},
		{"a job that scales gets what one that does not would waste", []allocate.Job{elastic(100, 0.9, 4, 4, 0), elastic(100, 0, 4, 4, 0)}, []int{0, 2}},
		{"a job that waited longer than it would run goes first", []allocate.Job{elastic(10, 0, 1, 1, allocate.Waits), old}, []int{allocate.Waits, 0}},
		{"of two that wait the shorter goes first", []allocate.Job{elastic(1000, 0, 1, 1, allocate.Waits), elastic(10, 0, 1, 1, allocate.Waits)}, []int{allocate.Waits, 0}},
		{"of two jobs the second ends 3 ms after the first", []allocate.Job{half(23536.35591565674, 0.14302060167127723), half(139710.01881500485, 0.8489593995678604)}, []int{0, 0}},
		{"a running job is not stopped for a shorter one", []allocate.Job{elastic(1000, 0, 1, 1, 0), elastic(10, 0, 1, 1, allocate.Waits)}, []int{0, allocate.Waits}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := allocate.Choose(test.jobs); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// anyJobs draws jobs on a cluster; those that run fit it.
func anyJobs(t *rapid.T) []allocate.Job {
	const cores = 8
	free := cores
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) allocate.Job {
		j := elastic(rapid.Float64Range(0.1, 1e6).Draw(t, "left"), rapid.Float64Range(0, 1).Draw(t, "serial"), cores, rapid.IntRange(1, cores).Draw(t, "most"), allocate.Waits)
		j.Waited, j.Restart = rapid.Float64Range(0, 1e6).Draw(t, "waited"), rapid.Float64Range(0, 1e4).Draw(t, "restart")
		for i := range j.Sizes {
			j.Sizes[i].Need = append(j.Sizes[i].Need, 0.1) // memory, whatever the cores
			j.Sizes[i].Speed *= rapid.Float64Range(0.5, 2).Draw(t, "luck")
		}
		if has := rapid.IntRange(1, cores).Draw(t, "has"); has <= min(free, len(j.Sizes)) {
			j.Has, free, j.Waited = has-1, free-has, 0
		}
		return j
	}), 0, 9).Draw(t, "jobs")
}

func TestEveryAllocationFitsAndStopsNoJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := anyJobs(t)
		before := slices.Clone(jobs)
		got := allocate.Choose(jobs)
		cores, memory := 0.0, 0.0
		for i, size := range got {
			if size == allocate.Waits {
				if jobs[i].Has != allocate.Waits {
					t.Fatalf("job %d runs and gets nothing: %v", i, got)
				}
				continue
			}
			cores, memory = cores+jobs[i].Sizes[size].Need[0], memory+jobs[i].Sizes[size].Need[1]
		}
		if math.Max(cores, memory) > 1+1e-6 {
			t.Fatalf("%g of the cores and %g of the memory are handed out", cores, memory)
		}
		if len(jobs) > 0 && !slices.ContainsFunc(got, func(size int) bool { return size != allocate.Waits }) {
			t.Fatal("the cluster is empty and no job gets anything")
		}
		if again := allocate.Choose(before); !slices.Equal(got, again) {
			t.Fatalf("the same jobs get %v and then %v", got, again)
		}
	})
}

func TestAFillGivesEqualSharesAndOptimusTheLongestJob(t *testing.T) {
	jobs := []allocate.Job{elastic(10, 0, 8, 8, 0), elastic(1000, 0, 8, 8, 0)}
	for name, test := range map[string]struct {
		value allocate.Value
		want  []int
	}{"equal": {allocate.Equal, []int{3, 3}}, "optimus": {allocate.Optimus, []int{0, 6}}} {
		if got := allocate.Fill(jobs, []int{0, 0}, test.value); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	var jobs []allocate.Job
	for i := range 30 {
		jobs = append(jobs, elastic(float64(100+i*50), float64(i)/60, 64, 16, i%3-1))
	}
	for b.Loop() {
		allocate.Choose(jobs)
	}
}
