package profile_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// line is an epoch in one line: number, start-end, joules, w for warm-up, p for
// polluted.
func line(e tuning.Epoch) string {
	joules := "?"
	if e.Joules != nil {
		joules = fmt.Sprintf("%.4g", float64(*e.Joules))
	}
	s := fmt.Sprintf("%d: %.4g-%.4g %sJ", e.Number, e.Start.Sub(epoch0).Seconds(), e.End.Sub(epoch0).Seconds(), joules)
	if e.Warmup {
		s += " w"
	}
	if e.Polluted {
		s += " p"
	}
	return s
}

// asked is a window that was asked for then; seconds.
func asked(at float64, w api.Window) api.Window {
	w.Now = epoch0.Add(time.Duration(at * float64(time.Second)))
	return w
}

// heard is a window of a job whose lines are read since then; seconds.
func heard(since float64, w api.Window) api.Window {
	w.Job.Heard = at(since)
	return w
}

func TestMarksCutAWindowIntoEpochs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window api.Window
		spec   profile.Spec
		want   []string
	}{
		"without marks there are none": {window: steady().window(5)},
		"an empty window has none":     {},
		"each lasts from mark to mark, the first from the start": {
			window: steady().window(7, ended(1, 2), ended(2, 3.2), ended(3, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-3.2 36J", "3: 3.2-5 54J"},
		},
		"warm-up is what the stanza says": {
			window: steady().window(7, every(1, 4)...),
			spec:   profile.Spec{WarmupEpochs: 2},
			want:   []string{"1: 0-1 30J w", "2: 1-2 30J w", "3: 2-3 30J", "4: 3-4 30J"},
		},
		"an attempt that resumes warms up again": {
			window: steady().window(7, ended(6, 2), ended(7, 3)),
			want:   []string{"6: 0-2 60J w", "7: 2-3 30J"},
		},
		"a mark without a snapshot is interpolated": {
			window: steady().window(7, ended(1, 2), unsampled(2, 3.25), ended(3, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-3.25 37.5J", "3: 3.25-5 52.5J"},
		},
		"a mark behind the last snapshot has no joules": {
			window: steady().window(3, ended(1, 2), unsampled(2, 3.25)),
			want:   []string{"1: 0-2 60J w", "2: 2-3.25 ?J"},
		},
		"without an energy column joules are missing": {
			window: steady().without(api.ColJoules).window(4, ended(1, 2), ended(2, 3)),
			want:   []string{"1: 0-2 ?J w", "2: 2-3 ?J"},
		},
		"the joules of GPUs are in the sum already": {
			window: steady().with(api.ColJoules, 130).with(api.ColGPUJoules, 100).window(4, ended(1, 2), ended(2, 3)),
			want:   []string{"1: 0-2 260J w", "2: 2-3 130J"},
		},
		"where joules are missing at an end of an epoch it has none": {
			window: blind(steady().window(9, ended(1, 2), ended(2, 4), ended(3, 6), ended(4, 7)), 3, 5),
			want:   []string{"1: 0-2 60J w", "2: 2-4 ?J", "3: 4-6 ?J", "4: 6-7 30J"},
		},
		"where they are missing within one they are known": {
			window: blind(steady().window(9, ended(1, 2), ended(2, 7)), 3, 5),
			want:   []string{"1: 0-2 60J w", "2: 2-7 150J"},
		},
		"of two marks for one epoch the last wins": {
			window: steady().window(7, ended(1, 2), ended(2, 3), ended(2, 3.5), ended(3, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-3.5 45J", "3: 3.5-5 45J"},
		},
		"a number that goes back is ignored": {
			window: steady().window(7, ended(1, 2), ended(2, 3), ended(1, 3.5), ended(3, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J", "3: 3-5 60J"},
		},
		"numbers that cannot be are ignored": {
			window: steady().window(7, ended(-3, 1), ended(0, 1.2), ended(1, 2), ended(1e6, 2.5), ended(2, 3)),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J"},
		},
		"an epoch beyond the total is ignored": {
			window: steady().window(7, ended(1, 2), ended(9, 2.5), ended(2, 3)),
			spec:   profile.Spec{Total: 8},
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J"},
		},
		"numbers that are skipped share the time": {
			window: steady().window(7, ended(1, 2), ended(4, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J", "3: 3-4 30J", "4: 4-5 30J"},
		},
		"lines written in one go share the time": {
			window: steady().window(7, ended(1, 2), ended(2, 3.998), ended(3, 3.999), ended(4, 4)),
			want:   []string{"1: 0-2 60J w", "2: 2-2.666 19.98J", "3: 2.666-3.332 19.98J", "4: 3.332-3.998 19.98J"},
		},
		"marks that are delivered late end when they were told, and teach nothing": {
			window: steady().window(9, ended(1, 2), delivered(2, 3, 6), delivered(3, 4, 6.01), delivered(4, 5, 6.02), ended(5, 7), ended(6, 8)),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J p", "3: 3-4 30J p", "4: 4-5 30J p", "5: 5-7 60J p", "6: 7-8 30J"},
		},
		"a late mark that was told before the one before it has its snapshot's time": {
			window: steady().window(9, ended(1, 2), delivered(2, 1, 6), ended(3, 7), ended(4, 8)),
			want:   []string{"1: 0-2 60J w", "2: 2-6 120J p", "3: 6-7 30J p", "4: 7-8 30J"},
		},
		"a mark of a moment ago is not late": {
			window: steady().window(9, ended(1, 2), delivered(2, 3, 4), ended(3, 5)),
			want:   []string{"1: 0-2 60J w", "2: 2-4 60J", "3: 4-5 30J"},
		},
		"lines read in one go share the time, however long their delivery takes": {
			window: steady().window(9, ended(1, 2), delivered(2, 7.4, 7.4), delivered(3, 7.4001, 7.45), delivered(4, 7.4002, 7.5), ended(5, 8)),
			want:   []string{"1: 0-2 60J w", "2: 2-3.8 54J", "3: 3.8-5.6 54J", "4: 5.6-7.4 54J", "5: 7.4-8 18J"},
		},
		"a burst of which more may come is none yet": {
			window: asked(7.1, steady().window(7, ended(1, 2), delivered(2, 7, 7), delivered(3, 7.0001, 7.05))),
			want:   []string{"1: 0-2 60J w"},
		},
		"lines that may have waited for their reader are warm-up, as is the epoch after them": {
			window: heard(3, steady().window(9, delivered(1, 3.01, 3.02), delivered(2, 3.0101, 3.03), ended(3, 4), ended(4, 5))),
			want:   []string{"1: 0-1.505 45.15J w", "2: 1.505-3.01 45.15J w", "3: 3.01-4 29.7J w", "4: 4-5 30J"},
		},
		"what an attempt writes in one go first is warm-up": {
			window: steady().window(9, delivered(7, 4, 4), delivered(8, 4.0001, 4.01), delivered(9, 7, 7), delivered(10, 7.0001, 7.01)),
			want:   []string{"7: 0-2 60J w", "8: 2-4 60J w", "9: 4-5.5 45J", "10: 5.5-7 45J"},
		},
		"a reader that was there from the start finds nothing old": {
			window: heard(0.1, steady().window(9, delivered(1, 0.2, 0.2), delivered(2, 0.3, 0.3), ended(3, 4))),
			want:   []string{"1: 0-0.2 6J w", "2: 0.2-0.3 3J", "3: 0.3-4 111J"},
		},
		"what an earlier reader read stays as it was when another comes": {
			window: heard(3, steady().window(9, ended(1, 1), ended(2, 2), ended(3, 4))),
			want:   []string{"1: 0-1 30J w", "2: 1-2 30J", "3: 2-4 60J"},
		},
		"after the ring dropped samples the first mark is a beginning": {
			window: forgotten(steady().window(7, ended(5, 2), ended(6, 3), ended(7, 4))),
			spec:   profile.Spec{WarmupEpochs: 2},
			want:   []string{"6: 2-3 30J w", "7: 3-4 30J"},
		},
		"the first epoch is known even if it outlives the ring": {
			window: forgotten(steady().window(7, ended(1, 2), ended(2, 3))),
			want:   []string{"1: 0-2 ?J w", "2: 2-3 30J"},
		},
		"an unknown start is the first sample": {
			window: unstarted(steady().window(7, ended(1, 2), ended(2, 3))),
			want:   []string{"1: 0.5-2 45J w", "2: 2-3 30J"},
		},
		"samples out of order are put in order": {
			window: reversed(steady().window(7, ended(1, 2), ended(2, 3))),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J"},
		},
		"readings that are none are left out": {
			window: broken(steady().window(7, ended(1, 2), ended(2, 3))),
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J"},
		},
		"others on its cores pollute an epoch that the node's readings cover": {
			window: steady().with(api.ColNodeBusy, 4.5).window(7, ended(1, 2), ended(2, 3)),
			spec:   profile.Spec{NodeCores: 4},
			want:   []string{"1: 0-2 60J w", "2: 2-3 30J p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range profile.Epochs(c.window, c.spec) {
				got = append(got, line(e))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("epochs (-want +got):\n%s", diff)
			}
		})
	}
}

// blind is a window in whose samples of that time the joules are not known.
func blind(w api.Window, from, to float64) api.Window {
	for _, s := range w.Samples {
		if !s.Time.Before(at(from)) && !s.Time.After(at(to)) {
			delete(s.Values, api.ColJoules)
		}
	}
	return w
}

func forgotten(w api.Window) api.Window { w.Dropped, w.Samples = 1, w.Samples[1:]; return w }
func unstarted(w api.Window) api.Window { w.Job.Started = time.Time{}; return w }
func reversed(w api.Window) api.Window  { slices.Reverse(w.Samples); return w }

func broken(w api.Window) api.Window {
	for i, v := range []float64{math.NaN(), math.Inf(1), -5} {
		w.Samples = append(w.Samples, api.Sample{Time: at(0.6 + float64(i)/10), Values: map[string]float64{api.ColJoules: v}})
	}
	return w
}

func TestAnEpochCarriesWhatItsMarkSaid(t *testing.T) {
	t.Parallel()
	loss, quality := 0.25, 0.9
	m := ended(2, 3)
	m.Mark.Loss, m.Mark.Quality = &loss, &quality
	w := steady().window(5, ended(1, 2), m)
	w.Job.Attempt = 3
	got := profile.Epochs(w, profile.Spec{Settings: twoCores()})
	joules := tuning.Joules(30)
	want := tuning.Epoch{
		Number: 2, Attempt: 3, Start: at(2), End: at(3), Loss: &loss, Quality: &quality,
		Joules: &joules, Source: "rapl", Settings: twoCores(),
	}
	if diff := cmp.Diff(want, got[1]); diff != "" {
		t.Errorf("epoch 2 (-want +got):\n%s", diff)
	}
}

func TestMarksThatCannotBeTrueAreNotBelieved(t *testing.T) {
	t.Parallel()
	forged := ended(3, 6)
	forged.Mark.Total = 2
	for name, c := range map[string]struct {
		marks []api.Sample
		total int
		want  int // the last epoch
	}{
		"below one, back, beyond the total of the job or of the mark": {
			[]api.Sample{ended(0, 1), ended(1, 2), ended(1e6, 2.7), ended(2, 3), ended(1, 4), ended(99, 5), forged}, 50, 2,
		},
		"a jump of 4999 epochs": {[]api.Sample{ended(1, 1), ended(5000, 2)}, 0, 1},
		"a jump of 64":          {[]api.Sample{ended(1, 1), ended(65, 2)}, 0, 65},
		"a jump of 65":          {[]api.Sample{ended(1, 1), ended(65, 2), ended(130, 3)}, 0, 65},
	} {
		epochs := profile.Epochs(steady().window(8, c.marks...), profile.Spec{Total: c.total})
		if last := epochs[len(epochs)-1]; last.Number != c.want || len(epochs) != c.want {
			t.Errorf("%s: %d epochs, the last %s; want %d", name, len(epochs), line(last), c.want)
		}
	}
}

func TestAnAttemptHasNoMoreEpochsThanCanBeRead(t *testing.T) {
	t.Parallel()
	var reports []api.Sample
	for k := range 160 {
		reports = append(reports, ended(1+64*k, 0.1*float64(k+1)))
	}
	w := steady().window(20, reports...)
	if got := len(profile.Epochs(w, profile.Spec{})); got != 1+64*156 {
		t.Errorf("%d epochs, want %d", got, 1+64*156)
	}
}

func TestEachEpochOfABurstKeepsItsLoss(t *testing.T) {
	t.Parallel()
	one, other := delivered(2, 4, 4), delivered(3, 4.0001, 4.01)
	one.Mark.Loss, other.Mark.Loss = new(0.5), new(0.4)
	got := profile.Epochs(steady().window(6, ended(1, 2), one, other), profile.Spec{})
	if len(got) != 3 || got[1].Loss == nil || *got[1].Loss != 0.5 || *got[2].Loss != 0.4 || !got[1].Inner || got[1].Together != 0 || got[2].Inner || got[2].Together != 2 {
		t.Errorf("%+v", got)
	}
}

// A reader may find the lines of a block in two pieces, and a job's epochs may really be that short.
func TestABurstReadInPiecesIsOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		marks []api.Sample
		want  int // epochs of the last report
	}{
		{"5 ms after 4 s", []api.Sample{ended(1, 1), delivered(2, 5, 5), delivered(3, 5.0001, 5.01), delivered(4, 5.005, 5.02), delivered(5, 5.0051, 5.03)}, 4},
		{"5 ms after 5 ms", []api.Sample{ended(1, 1), delivered(2, 1.005, 1.005), delivered(3, 1.01, 1.01), delivered(4, 1.015, 1.015)}, 0},
		{"25 ms after 4 s", []api.Sample{ended(1, 1), delivered(2, 5, 5), delivered(3, 5.025, 5.025)}, 0},
	} {
		got := profile.Epochs(steady().window(8, c.marks...), profile.Spec{})
		if last := got[len(got)-1]; last.Together != c.want {
			t.Errorf("%s: %d epochs in the last report, want %d", c.name, last.Together, c.want)
		}
	}
}

func TestEpochsShareOutAllTimeAndJoulesWhateverIsReported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var reports []api.Sample
		now := 0.0
		for range rapid.IntRange(0, 12).Draw(t, "marks") {
			now += rapid.Float64Range(0.0001, 2).Draw(t, "pause")
			n := rapid.IntRange(-2, 30).Draw(t, "epoch")
			if rapid.Bool().Draw(t, "snapshot") {
				reports = append(reports, ended(n, now))
			} else {
				reports = append(reports, unsampled(n, now))
			}
		}
		w := steady().window(now+2, reports...)
		spec := profile.Spec{Total: rapid.IntRange(0, 30).Draw(t, "total"), WarmupEpochs: rapid.IntRange(0, 3).Draw(t, "warmup")}
		epochs := profile.Epochs(w, spec)
		total, first := 0.0, slices.IndexFunc(epochs, func(e tuning.Epoch) bool { return !e.Inner }) // of a report
		for i, e := range epochs {
			if i > 0 && (e.Number != epochs[i-1].Number+1 || !e.Start.Equal(epochs[i-1].End)) {
				t.Fatalf("epoch %s does not follow %s", line(e), line(epochs[i-1]))
			}
			if e.Number < 1 || spec.Total > 0 && e.Number > spec.Total || e.Seconds() < 0 || e.Joules == nil || *e.Joules < -1e-9 {
				t.Fatalf("an epoch that cannot be: %s", line(e))
			}
			if e.Warmup != (i < max(1, spec.WarmupEpochs) || i <= first) {
				t.Fatalf("warm-up is wrong at %d: %s", i, line(e))
			}
			total += float64(*e.Joules)
		}
		if n := len(epochs); n > 0 {
			if want := 30 * epochs[n-1].End.Sub(epoch0).Seconds(); math.Abs(total-want) > 1e-3 {
				t.Fatalf("%v J in all epochs, the job used %v", total, want)
			}
		}
	})
}
