package worlds

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What scripts/worlds asks for. Without them only the small part is played.
var (
	worldsFlag = flag.Int("worlds", 0, "how many worlds to play")
	firstFlag  = flag.Uint64("first", 1, "seed of the first")
	groupFlag  = flag.String("group", "", "only worlds of this group: save, some, none, again or batch")
	worldFlag  = flag.Int64("world", -1, "seed of the one world whose story to tell")
	jsonFlag   = flag.String("json", "", "file to write all figures into")
)

// live plays a world and returns the outcomes of its runs; none where no run of it is in the
// group, if one is named.
func live(t *testing.T, seed uint64, g group, tell bool) (out rows) {
	t.Helper()
	w := draw(seed)
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		truths := make([]truth, len(w.runs))
		wanted := g == ""
		for i, j := range w.runs {
			truths[i] = w.find(t, j)
			if wanted = wanted || w.group(i, truths[i]) == g; !wanted && w.kind != second {
				return
			}
		}
		if !wanted {
			return
		}
		for i, p := range w.play(t, state) {
			r := w.row(i, truths[i], p)
			if out = append(out, r); !r.Changed && math.Abs(r.Ratio-1) > 1e-6 {
				t.Errorf("world %d run %d: nothing changed it, and it cost %v times as much: it met other noise", seed, i+1, r.Ratio)
			}
			if tell {
				fmt.Print(w.tell(i, truths[i], p))
			}
		}
	})
	return out
}

// tell is the whole story of a run.
func (w world) tell(n int, x truth, p played) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	j := w.runs[n]
	r := w.row(n, x, p)
	say("\n%s\n", r)
	if n == 0 {
		say("a node of %d cores\n%s\n", w.cores, j.source)
	}
	say("  %-20s %8s %8s %8s\n", "from its start under", "cost", "seconds", "quality")
	byCost := func(a, b setting) int { return cmp.Compare(x.whole[a].of(j.objective), x.whole[b].of(j.objective)) }
	for _, s := range slices.SortedFunc(maps.Keys(x.whole), byCost) {
		c, note := x.whole[s], ""
		if !x.permits(j, s) {
			note = "  not within the owner's limits"
		}
		say("  %-20s %8.3f %8.3f %8.4f%s\n", s, c.of(j.objective)/x.own.of(j.objective), c.Seconds/x.own.Seconds, c.quality/x.own.quality, note)
	}
	for _, a := range p.job.Attempts {
		say("  attempt %d: %8.0f s to %8.0f s under %s\n", a.Number, a.Started.Sub(p.job.Started).Seconds(), a.Ended.Sub(p.job.Started).Seconds(), j.under(a.Change))
	}
	for _, l := range p.story {
		say("  %8.0f s %s\n", l.At.Sub(p.job.Started).Seconds(), l.Text)
		for _, why := range l.Why {
			say("             %s\n", why)
		}
	}
	say("  cost %.3f, of it net oracle %.3f\n", r.Ratio, r.Oracle)
	return out.String()
}

// TestWorlds is what scripts/worlds runs. It fails where a run of a world goes wrong, not
// where an aim is missed.
func TestWorlds(t *testing.T) {
	if *worldFlag >= 0 {
		live(t, uint64(*worldFlag), "", true)
		return
	}
	if *worldsFlag == 0 {
		t.Skip("it takes minutes; scripts/worlds plays it")
	}
	began := time.Now()
	var mu sync.Mutex
	var all rows
	next, done := *firstFlag, 0
	t.Run("all", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("side by side", func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					seed, enough := next, done >= *worldsFlag
					next++
					mu.Unlock()
					if enough {
						return
					}
					since := time.Now()
					x := live(t, seed, group(*groupFlag), false)
					for i := range x {
						x[i].Took = time.Since(since).Seconds()
					}
					mu.Lock()
					if len(x) > 0 && done < *worldsFlag {
						all = append(all, x...)
						if done++; done%10 == 0 || done == *worldsFlag {
							fmt.Printf("%4d of %d worlds, %s\n", done, *worldsFlag, time.Since(began).Round(time.Second))
						}
					}
					mu.Unlock()
				}
			})
		}
	})
	slices.SortFunc(all, func(a, b row) int { return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Run, b.Run)) })
	fmt.Print(all)
	if *jsonFlag != "" {
		if err := all.write(*jsonFlag, time.Since(began)); err != nil {
			t.Error(err)
		}
	}
}

// TestAFewWorldsKeepTheirBars plays a handful that takes little time: jobs that could save,
// jobs that cannot, second runs and a kind with a batch size. The bars are what holds today:
// raise them with the planner, up to the aims.
func TestAFewWorldsKeepTheirBars(t *testing.T) {
	t.Parallel()
	const (
		kept    = 0.5   // share of the oracle's log saving, of jobs that could save 15 %
		dearest = 1.01  // tries included
		idle    = 1.003 // of a job that cannot save, where it was disturbed
	)
	seeds := []uint64{1, 20, 22, 25, 30, 35, 48, 61}
	played := make([]rows, len(seeds))
	t.Run("play", func(t *testing.T) {
		for i, seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				played[i] = live(t, seed, "", false)
			})
		}
	})
	all := slices.Concat(played...)
	for _, g := range groups() {
		if len(all.in(g)) == 0 {
			t.Errorf("no run is of the group %s", g)
		}
	}
	if got := all.in(save).kept(); !(got >= kept) {
		t.Errorf("of what the oracle saves %.3f is kept, want %.3f", got, kept)
	}
	for _, r := range all {
		switch {
		case !(r.Ratio <= dearest):
			t.Errorf("it costs more than %.3f: %s: %q", dearest, r, r.Why)
		case r.Group == none && r.Changed && !(r.Ratio <= idle):
			t.Errorf("it cannot save and was disturbed: %s: %q", r, r.Why)
		case r.Broken && !r.Trying:
			t.Errorf("its quality is %.4f of what it would have been: %s: %q", r.Quality, r, r.Why)
		}
	}
}

// TestTheOracleMeetsTheNoiseOfTheJobThatStays: epochs before the move are those of the job
// that no one moves, those after it are those of one that ran under the setting from its
// start, and in between lies one restart.
func TestTheOracleMeetsTheNoiseOfTheJobThatStays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w := draw(seed)
			j := w.runs[0]
			s := j.allowed[0]
			own, whole := w.alone(t, j, j.own, 0), w.alone(t, j, s, 0)
			moved := w.alone(t, j, s, own.marks[profiled-1])
			for i := 1; i < len(own.marks); i++ {
				want := whole.marks[i] - whole.marks[i-1]
				switch {
				case i < profiled:
					want = own.marks[i] - own.marks[i-1]
				case i == profiled:
					want += j.saves + j.starts
				}
				if late := moved.marks[i] - moved.marks[i-1] - want; late.Abs() > time.Millisecond {
					t.Errorf("world %d: epoch %d takes %s longer than it should", seed, i+1, late)
				}
			}
		})
	}
}
