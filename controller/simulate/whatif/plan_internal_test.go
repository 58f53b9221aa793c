package whatif

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/joblog"
)

// run is an hour of a program that keeps so many of its cores busy.
func run(cores int, busy float64) joblog.Job {
	return joblog.Job{User: "ann", Name: "fold-7", Duration: 3600, CPUs: cores, CPUSeconds: 3600 * busy, Memory: 16 << 30, MemoryUsed: 4 << 30}
}

func times(n int, j joblog.Job) []joblog.Job { return slices.Repeat([]joblog.Job{j}, n) }

func TestAJobIsChangedByWhatItsKindHadShown(t *testing.T) {
	t.Parallel()
	other := run(16, 1)
	other.Name = "dock-7"
	larger := run(16, 1)
	larger.Name = "fold-8"
	nameless := run(16, 1)
	nameless.Name = ""
	gpu := run(16, 1)
	gpu.GPUs = 1
	for _, c := range []struct {
		name string
		past []joblog.Job
		job  joblog.Job
		want string // cores, at best and at worst, GiB
	}{
		{"its own runs do not count before they ended", nil, run(16, 1), "16 1.00-1.00 16"},
		{"two runs are too few", times(2, run(16, 1)), run(16, 1), "16 1.00-1.00 16"},
		{"one busy core is enough for a serial program", times(3, run(16, 1)), run(16, 1), "1 1.00-1.00 5"},
		{"who waits for other things than cores needs one", times(3, run(16, 0.3)), run(16, 0.3), "1 1.00-1.00 5"},
		{"of few busy cores, as many as cost a tenth at worst", times(3, run(64, 8)), run(64, 8), "34 1.00-1.10 5"},
		{"of half of the cores busy no log says what fewer would do", times(3, run(16, 8)), run(16, 8), "16 1.00-1.00 5"},
		{"runs at another size say it", append(times(3, run(16, 8)), times(3, run(8, 8))...), run(16, 8), "8 1.00-1.00 10"},
		{"or say that it is slower there", append(times(3, run(16, 8)), times(3, run(8, 5.4))...), run(16, 8), "16 1.00-1.00 10"},
		{"full cores stay", times(3, run(16, 16)), run(16, 16), "16 1.00-1.00 5"},
		{"another program says nothing", times(3, other), run(16, 1), "16 1.00-1.00 16"},
		{"nor does a name that differs in a digit", times(3, larger), run(16, 1), "16 1.00-1.00 16"},
		{"without a name, user, cores and limit make the kind", times(3, nameless), nameless, "1 1.00-1.00 5"},
		{"jobs with GPUs keep their cores", times(3, gpu), gpu, "16 1.00-1.00 16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.job.Submit = 3601
			got := plan(append(c.past, c.job))[len(c.past)]
			if text := fmt.Sprintf("%d %.2f-%.2f %d", got.cores, got.fast, got.slow, got.memory>>30); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

func TestTheBoundsHoldForAmdahlAndForNarrowPrograms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.IntRange(2, 64).Draw(t, "cores")
		n := rapid.IntRange(1, c-1).Draw(t, "fewer")
		width := rapid.IntRange(1, c).Draw(t, "width")
		parallel := rapid.Float64Range(0, 1).Draw(t, "parallel")
		at := func(cores int) float64 { return 1 / (1 - parallel + parallel/float64(min(cores, width))) }
		p := &past{speeds: map[int]speed{}}
		for _, m := range rapid.SliceOfN(rapid.IntRange(1, c-1), 0, 3).Draw(t, "tried") {
			p.speeds[m] = speed{enoughRuns, at(m), 1}
		}
		fast, slow := p.bounds(at(c), c, n)
		if truth := at(c) / at(n); fast > truth*(1+1e-9) || slow < truth*(1-1e-9) || fast > slow || fast < 1-1e-9 {
			t.Fatalf("%g to %g, and it is %g", fast, slow, truth)
		}
	})
}
