package report_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

func pairNames(pairs []report.Pair) []string {
	out := []string{}
	for _, p := range pairs {
		out = append(out, p.Tuned.Job+"+"+p.Untuned.Job)
	}
	return out
}

func TestWhichJobsArePaired(t *testing.T) {
	t.Parallel()
	other := func(f func(*report.Row)) func(*report.Row) { return f }
	for _, c := range []struct {
		name string
		rows []report.Row
		want []string
	}{
		{"a tuned and an untuned job", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned)}, []string{"t+u"}},
		{"the nearest before, each once", []report.Row{job("t1", 0, tuned(.5)), job("t2", 5, tuned(.5)), job("u1", 9, untuned), job("u2", 10, untuned)}, []string{"t2+u1", "t1+u2"}},
		{"one that waited", []report.Row{job("u", 0, untuned), job("t1", 5, tuned(.5)), job("t2", 9, tuned(.5))}, []string{"t1+u"}},
		{"of another kind", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, by("bob", ""))}, []string{}},
		{"for another objective", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Policy.Objective = tuning.Energy }))}, []string{}},
		{"of more epochs", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) {
			r.Total, r.Epochs = 5, append(r.Epochs, tuning.Epoch{Number: 5, Attempt: 1})
		}))}, []string{}},
		{"whose owner asked for other settings", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Own = tuning.Settings{"cores": tuning.Number(1)} }))}, []string{}},
		{"that did not finish", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Epochs = r.Epochs[:3] }))}, []string{}},
		{"that failed", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Succeeded = false }))}, []string{}},
		{"that runs", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Ended = time.Time{} }))}, []string{}},
		{"that was neither changed nor drawn", []report.Row{job("t", 0, tuned(.5)), job("held", 9)}, []string{}},
		{"that was drawn and yet changed", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, tuned(.5))}, []string{}},
		{"that is forgotten", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Forgotten = true }))}, []string{}},
		{"that is only observed", []report.Row{job("t", 0, tuned(.5)), job("u", 9, untuned, other(func(r *report.Row) { r.Policy.Mode = tuning.Observe }))}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, pairNames(report.Match(c.rows))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func drawRows(t *rapid.T) []report.Row {
	var rows []report.Row
	for i := range rapid.IntRange(0, 30).Draw(t, "n") {
		r := job(fmt.Sprintf("j%02d", i), rapid.IntRange(0, 40).Draw(t, "minute"))
		r.Kind.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind")
		switch rapid.IntRange(0, 3).Draw(t, "side") {
		case 0:
			untuned(&r)
		case 1, 2:
			tuned(.7)(&r)
		}
		rows = append(rows, r)
	}
	return rows
}

func TestAPairStaysWhateverEndsLater(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		all := report.Match(rapid.Permutation(rows).Draw(t, "order"))
		if diff := cmp.Diff(pairNames(report.Match(rows)), pairNames(all)); diff != "" {
			t.Fatalf("the order of the rows matters: %s", diff)
		}
		used := map[string]bool{}
		for _, p := range all {
			for _, r := range []report.Row{p.Tuned, p.Untuned} {
				if used[r.Job] {
					t.Fatalf("%s is used twice", r.Job)
				}
				used[r.Job] = true
			}
			if p.Tuned.Kind != p.Untuned.Kind || !p.Tuned.Tuned || !p.Untuned.Control {
				t.Fatalf("%s and %s do not belong together", p.Tuned.Job, p.Untuned.Job)
			}
		}
		// The jobs that ended until some moment give the first of all pairs.
		until := noon().Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "until")) * time.Minute)
		var early []report.Row
		for _, r := range rows {
			if !r.Ended.After(until) {
				early = append(early, r)
			}
		}
		before := pairNames(report.Match(early))
		if diff := cmp.Diff(before, pairNames(all)[:min(len(before), len(all))]); diff != "" {
			t.Fatalf("later jobs changed a pair: %s", diff)
		}
	})
}

// charged are an untuned job, and a tuned one that probed and restarted twice.
func charged() (plain, moved report.Row) {
	at := func(s float64) time.Time { return noon().Add(time.Duration(s * float64(time.Second))) }
	epoch := func(n, attempt int, from, to, joules float64, warmup bool) tuning.Epoch {
		j := tuning.Joules(joules)
		return tuning.Epoch{Number: n, Attempt: attempt, Start: at(from), End: at(to), Joules: &j, Source: "rapl", Warmup: warmup}
	}
	plain = job("u", 9, untuned, func(r *report.Row) {
		r.Epochs = []tuning.Epoch{epoch(1, 1, 0, 10, 100, true), epoch(2, 1, 10, 20, 100, false), epoch(3, 1, 20, 30, 100, false), epoch(4, 1, 30, 40, 100, false)}
	})
	moved = job("t", 0, tuned(1), func(r *report.Row) {
		r.Probed = []int{2}
		r.Epochs = []tuning.Epoch{
			epoch(1, 1, 0, 10, 100, true),
			epoch(2, 2, 13, 27, 150, true), // a probe, 4 s and 50 J more; 3 s passed before it
			epoch(3, 3, 29, 40, 110, true), // warm-up after the second restart: 1 s and 10 J more; 2 s passed
			epoch(4, 3, 40, 45, 40, false),
		}
	})
	return plain, moved
}

func TestWhatTuningCostIsCharged(t *testing.T) {
	t.Parallel()
	plain, moved := charged()
	got := report.Match([]report.Row{plain, moved})
	if len(got) != 1 {
		t.Fatalf("%d pairs", len(got))
	}
	// 5 s between attempts at 400 J in 40 s of epochs.
	if p := got[0]; p.Evidence.ChargeSeconds != 3+4+2+1 || p.Evidence.ChargeJoules != 50+10+5*10 || p.Evidence.ChargeSource != "rapl" || p.Evidence.JoulesUnknown {
		t.Errorf("charged %g s and %g J", p.Evidence.ChargeSeconds, float64(p.Evidence.ChargeJoules))
	}
	if p := report.Match([]report.Row{job("u", 0, untuned), job("t", 9, tuned(.5))}); p[0].Evidence.ChargeSeconds != 0 || p[0].Evidence.ChargeJoules != 0 {
		t.Errorf("one that was tuned before it started is charged %g s", p[0].Evidence.ChargeSeconds)
	}
	plain.Epochs = slices.Delete(plain.Epochs, 1, 2) // the probe has no partner
	if p := report.Match([]report.Row{plain, moved})[0].Evidence; p.ChargeSeconds != 3+4+2+1 || !p.JoulesUnknown {
		t.Errorf("charged %g s, joules unknown: %t; want 10 s, since its other epochs took 10 s each, and unknown joules", p.ChargeSeconds, p.JoulesUnknown)
	}
}

func TestAnEpochThatWasDoneAgainIsCharged(t *testing.T) {
	t.Parallel()
	plain, moved := charged()
	lost := moved.Epochs[1] // the second epoch, in the first attempt, which saved nothing
	lost.Attempt, lost.Start, lost.End = 1, noon().Add(10*time.Second), noon().Add(13*time.Second)
	joules := tuning.Joules(30)
	lost.Joules = &joules
	moved.Epochs = append(moved.Epochs, lost)
	p := report.Match([]report.Row{plain, moved})[0]
	// The 3 s before the second attempt are epoch now and no pause, so that the mean power
	// of the epochs counts for the 2 s before the third alone.
	if p.Evidence.ChargeSeconds != 3+4+2+1 || p.Evidence.ChargeJoules != 30+50+10+2*10 || p.Evidence.JoulesUnknown {
		t.Errorf("charged %g s and %g J (unknown %v)", p.Evidence.ChargeSeconds, float64(p.Evidence.ChargeJoules), p.Evidence.JoulesUnknown)
	}
	moved.Epochs[len(moved.Epochs)-1].Joules = nil
	if p := report.Match([]report.Row{plain, moved})[0]; !p.Evidence.JoulesUnknown || p.Evidence.ChargeSeconds != 10 {
		t.Errorf("it was not measured, and the charge is %g s and %g J", p.Evidence.ChargeSeconds, float64(p.Evidence.ChargeJoules))
	}
	// An untuned job that was put back into the queue is charged nothing for it.
	again := plain.Epochs[3]
	again.Attempt = 2
	plain.Epochs = append(plain.Epochs, again)
	if p := report.Match([]report.Row{plain, moved})[0]; p.Evidence.ChargeSeconds != 10 {
		t.Errorf("charged %g s", p.Evidence.ChargeSeconds)
	}
}

func TestSavings(t *testing.T) {
	t.Parallel()
	var better, equal, modelledOnly []report.Row
	for i := range 8 {
		wobble := 1 + 0.01*float64(i%3)
		energy := func(r *report.Row) { r.Policy.Objective = tuning.Energy }
		source := func(r *report.Row) {
			for i := range r.Epochs {
				r.Epochs[i].Source = tuning.Modelled
			}
		}
		id := func(side string) string { return fmt.Sprintf("%s%d", side, i) }
		better = append(better, job(id("t"), i, tuned(.7*wobble)), job(id("u"), i, untuned))
		equal = append(equal, job(id("t"), i, tuned(.97+.03*wobble*float64(i%2))), job(id("u"), i, untuned))
		modelledOnly = append(modelledOnly, job(id("t"), i, energy, tuned(.7*wobble), source), job(id("u"), i, energy, untuned, source))
	}
	second := func(r *report.Row) { r.Kind.Name = "other" }
	more := func(r *report.Row) { r.Own = tuning.Settings{"cores": tuning.Number(4)} }
	for _, c := range []struct {
		name    string
		rows    []report.Row
		verdict tuning.Verdict // of the first
		says    []string       // one a saving
	}{
		{"nothing ran", nil, "", []string{}},
		{"only held jobs ran", []report.Row{job("1", 0), job("2", 1)}, "", []string{}},
		{"nothing was drawn", []report.Row{job("1", 0, tuned(.5))}, "", []string{report.NoUntuned}},
		{"nothing was tuned", []report.Row{job("1", 0, untuned)}, "", []string{"no tuned job has finished"}},
		{"a single pair proves nothing", better[:2], tuning.Inconclusive, []string{"1 pair is too few for an interval"}},
		{"many pairs that agree", better, tuning.Improved, []string{"8 pairs"}},
		{"many pairs without an effect", equal, tuning.Inconclusive, []string{"cannot tell"}},
		{"modelled joules claim nothing", modelledOnly, tuning.Inconclusive, []string{"modelled, not measured"}},
		{
			"several kinds, and all together before them",
			append([]report.Row{job("x", 0, tuned(.5), second)}, better...),
			tuning.Improved,
			[]string{"8 pairs", report.NoUntuned, "8 pairs"},
		},
		{
			"requests of one kind, each with its own line",
			append([]report.Row{job("x", 0, tuned(.5), more)}, better...),
			tuning.Improved,
			[]string{"8 pairs", "@f1, 4 epochs, requested cores=2: improved", "@f1, 4 epochs, requested cores=4: " + report.NoUntuned},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			table := report.Build(c.rows, query(report.ByJob))
			if len(table.Savings) != len(c.says) {
				t.Fatalf("%d savings, want %d: %+v", len(table.Savings), len(c.says), table.Savings)
			}
			_, text, _ := strings.Cut(report.Text(table), "control group:\n")
			for i, line := range strings.Split(text, "\n")[:len(c.says)] {
				if !strings.Contains(line, c.says[i]) {
					t.Errorf("%q does not say %q", line, c.says[i])
				}
			}
			if c.verdict == "" {
				return
			}
			if o := table.Savings[0].Outcome; o == nil || o.Verdict != c.verdict {
				t.Errorf("outcome %+v, want %s", o, c.verdict)
			}
		})
	}
}

func TestAPeriodPairsNoJobOtherwiseThanTheWholeDoes(t *testing.T) {
	t.Parallel()
	rows := []report.Row{job("old", 0, tuned(.5)), job("u", 60, untuned), job("new", 120, tuned(.5))}
	q := query(report.ByJob)
	q.Since = noon().Add(30 * time.Minute)
	s := report.Build(rows, q).Savings
	if len(s) != 1 || s[0].Pairs != 0 || s[0].Tuned != 1 || s[0].Untuned != 1 || !strings.Contains(s[0].Note, "before it") {
		t.Errorf("%+v", s)
	}
}

func TestJobsThatDidNotFinishAreCounted(t *testing.T) {
	t.Parallel()
	died := func(r *report.Row) { r.Succeeded = false }
	table := report.Build([]report.Row{job("1", 0, tuned(.5), died), job("2", 1, tuned(.5)), job("3", 2, untuned)}, query(report.ByJob))
	if s := table.Savings[0]; s.TunedUnfinished != 1 || s.UntunedUnfinished != 0 || s.Pairs != 1 {
		t.Errorf("%+v", s)
	}
	if text := report.Text(table); !strings.Contains(text, "did not finish: 1 tuned, 0 untuned") {
		t.Errorf("%s", text)
	}
}

func TestJoulesOfTuningThatWereNotMeasuredAreNotZero(t *testing.T) {
	t.Parallel()
	without := func(e *tuning.Epoch) { e.Joules, e.Source = nil, "" }
	computed := func(e *tuning.Epoch) { e.Source = tuning.Modelled }
	for _, c := range []struct {
		name           string
		spoil          func(*tuning.Epoch)
		tuned, untuned int // the epoch that is spoilt, 0 = none
		unknown        bool
	}{
		{"all measured", without, 0, 0, false},
		{"a probe without joules", without, 2, 0, true},
		{"the partner of a probe without joules", without, 0, 2, true},
		{"a warm-up without joules", without, 3, 0, true},
		{"a probe of another source than its partner", computed, 2, 0, true},
		{"an epoch that gives the mean power without joules", without, 4, 0, true},
		{"modelled joules in the mean power", computed, 1, 0, true},
		{"an epoch that nothing is charged for", without, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plain, moved := charged()
			if c.tuned > 0 {
				c.spoil(&moved.Epochs[c.tuned-1])
			}
			if c.untuned > 0 {
				c.spoil(&plain.Epochs[c.untuned-1])
			}
			p := report.Match([]report.Row{plain, moved})
			if len(p) != 1 || p[0].Evidence.JoulesUnknown != c.unknown || p[0].Evidence.ChargeSeconds != 10 {
				t.Fatalf("pairs %+v", p)
			}
			if joules := p[0].Evidence.ChargeJoules; c.unknown != (joules == 0) || !c.unknown && joules != 110 {
				t.Errorf("charged %g J", float64(joules))
			}
			for objective, pairs := range map[tuning.Objective]int{tuning.Time: 1, tuning.Energy: 1} {
				if c.unknown && objective == tuning.Energy {
					pairs = 0
				}
				if o := verify.Compare(verify.Input{Measure: tuning.Measure{Objective: objective}, Pairs: evidence(p)}); o.Pairs != pairs {
					t.Errorf("%s compared on %d pairs, want %d", objective, o.Pairs, pairs)
				}
			}
		})
	}
}

func TestAJobThatWasTunedFromItsBeginningIsChargedNothingWhateverIsMissing(t *testing.T) {
	t.Parallel()
	p := report.Match([]report.Row{job("u", 0, untuned), job("t", 9, tuned(.5), func(r *report.Row) { r.Epochs[2].Joules = nil })})
	if len(p) != 1 || p[0].Evidence.JoulesUnknown || p[0].Evidence.ChargeJoules != 0 {
		t.Errorf("%+v", p)
	}
}

func TestWhatTuningHeldIsChargedToTheTunedJob(t *testing.T) {
	t.Parallel()
	probed := tuned(1)
	rows := []report.Row{job("u", 0, untuned, priced(tuning.Tariff{CoreHour: 36, KWh: 1, Unit: "EUR"})), job("t", 1, probed, func(r *report.Row) {
		r.Policy.Tariff = tuning.Tariff{CoreHour: 36, KWh: 1, Unit: "EUR"}
		for i := range r.Epochs[1:] { // a restart 10 s after the first epoch; the second was a probe on four cores
			r.Epochs[i+1].Attempt = min(2+i, 3)
			r.Epochs[i+1].Start = r.Epochs[i+1].Start.Add(10 * time.Second)
			r.Epochs[i+1].End = r.Epochs[i+1].End.Add(10 * time.Second)
		}
		r.Probed = []int{2}
	})}
	pairs := report.Match(rows)
	// A core-second costs a cent. The probe took 150 s on four cores, where the untuned job
	// took as long on two, and the restart 10 s of the owner's two.
	if want := 150*.02 + 10*.02; len(pairs) != 1 || math.Abs(pairs[0].Evidence.ChargeHeld-want) > 1e-9 {
		t.Errorf("%+v, want a charge of %g", pairs, want)
	}
}

func evidence(pairs []report.Pair) []verify.Pair {
	return tuning.Each(pairs, func(p report.Pair) verify.Pair { return p.Evidence })
}

func TestEpochsThatChoseTheSettingDoNotJudgeIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		probed []int
		want   tuning.Reason
	}{{nil, tuning.ReasonImproved}, {[]int{0, 1}, tuning.ReasonNoSamples}} {
		var rows []report.Row
		for i := range 10 {
			rows = append(rows, job(fmt.Sprint("t", i), 2*i, tuned(.5), func(r *report.Row) { r.Probed = c.probed }), job(fmt.Sprint("u", i), 2*i+1, untuned))
		}
		if got := verify.Compare(verify.Input{Pairs: evidence(report.Match(rows))}); got.Reason != c.want {
			t.Errorf("attempts that chose %v: %s, want %s", c.probed, got.Reason, c.want)
		}
		if rows[0].Epochs[2].Warmup {
			t.Error("the row itself was changed")
		}
	}
}
