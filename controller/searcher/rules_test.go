package searcher_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// story tells a searcher events in short words and returns its actions: "open", "1@2=0.5" (trial 1 reports 0.5
// after epoch 2), "1@2=nan", "1 succeeded" (its job ended so).
func story(t *testing.T, s *searcher.Searcher, words ...string) string {
	t.Helper()
	var out []string
	for i, w := range words {
		e := searcher.Event{Kind: searcher.Opened, Report: searcher.Report{At: float64(i)}}
		var end string
		switch n, _ := fmt.Sscanf(w, "%d@%d=%g", &e.Trial, &e.Report.Epoch, &e.Report.Value); {
		case n == 3 && math.IsNaN(e.Report.Value):
			e.Kind = searcher.Broke
		case n == 3:
			e.Kind, e.Report.Seconds = searcher.Reported, float64(e.Report.Epoch)
		default:
			if n, _ := fmt.Sscanf(w, "%d %s", &e.Trial, &end); n == 2 {
				e.Kind, e.End = searcher.Ended, searcher.End(end)
			}
		}
		actions, err := s.Handle(e)
		if err != nil {
			t.Fatalf("%s: %v", w, err)
		}
		var did []string
		for _, a := range actions {
			did = append(did, strings.TrimSuffix(fmt.Sprintf("%s %d", a.Kind, a.Trial), " 0"))
		}
		out = append(out, strings.Join(did, ", "))
	}
	return strings.Join(out, "; ")
}

func TestWhatASearchDoesAboutItsEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		trials  int
		resumes bool
		change  func(p *searcher.Plan)
		events  []string
		want    string
	}{
		{
			name: "the first trial at a rung goes on where it could not be resumed, a worse one ends", trials: 3,
			events: []string{"open", "1@2=0.5", "1@6=0.6", "1@18=0.9", "1 succeeded", "2@2=0.4", "2 cancelled", "3@2=0.6"},
			want:   "create 1; ; ; ; create 2; stop 2; create 3; ",
		},
		{
			name: "of many trials the first ones only show what is usual", trials: 27,
			events: []string{"open", "1@2=0.5", "1 cancelled", "2@2=0.6", "2 cancelled", "3@2=0.7", "3 cancelled", "4@2=0.8", "4 cancelled", "5@2=0.9", "5@6=0.9"},
			want:   "create 1; stop 1; create 2; stop 2; create 3; stop 3; create 4; stop 4; create 5; ; ",
		},
		{
			name: "with a checkpoint a trial waits until others compare with it, and the best goes on", trials: 9, resumes: true,
			events: []string{"open", "1@2=0.5", "1 cancelled", "2@2=0.6", "2 cancelled", "3@2=0.4", "3 cancelled", "2@6=0.7"},
			want:   "create 1; pause 1; create 2; pause 2; create 3; pause 3; resume 2; pause 2",
		},
		{
			name: "where nothing else is left the best that waits is trained to its end", trials: 2, resumes: true,
			events: []string{"open", "1@2=0.5", "1 cancelled", "2@2=0.6", "2 cancelled", "2@6=0.7", "2 cancelled", "2@18=0.8", "2 succeeded"},
			want:   "create 1; pause 1; create 2; pause 2; resume 2; pause 2; resume 2; ; finish",
		},
		{
			name: "where the best fails on its way the next one is trained to its end", trials: 9, resumes: true,
			events: []string{
				"open", "1@2=0.9", "1 cancelled", "2@2=0.8", "2 cancelled", "3@2=0.7", "3 cancelled", "1@6=0.9", "1 cancelled",
				"4@2=0.6", "4 cancelled", "5@2=0.5", "5 cancelled", "6@2=0.4", "6 cancelled", "2@6=0.8", "2 cancelled",
				"7@2=0.3", "7 cancelled", "8@2=0.2", "8 cancelled", "9@2=0.1", "9 cancelled", "3@6=0.7", "3 cancelled", "1 failed",
			},
			want: "create 1; pause 1; create 2; pause 2; create 3; pause 3; resume 1; pause 1; create 4; pause 4; create 5; pause 5; create 6; pause 6; resume 2; pause 2; " +
				"create 7; pause 7; create 8; pause 8; create 9; pause 9; resume 3; pause 3; resume 1; resume 2",
		},
		{
			name: "a trial that is worse than one that failed is not given up", trials: 4, resumes: true,
			events: []string{"open", "1@2=0.5", "1 cancelled", "2@2=0.6", "2 cancelled", "3@2=0.9", "3 failed", "4@2=0.8", "4 cancelled"},
			want:   "create 1; pause 1; create 2; pause 2; create 3; ; create 4; pause 4; resume 4",
		},
		{
			name: "a restart that costs more than it saves is none", trials: 9, resumes: true,
			change: func(p *searcher.Plan) { p.Parallel = 2 },
			events: []string{"open", "1 lost", "1@2=0.5", "2@2=0.4", "2 cancelled"},
			want:   "create 1, create 2; resume 1; pause 1; pause 2; create 3",
		},
		{
			name: "a trial that failed takes its place among the worst", trials: 9,
			events: []string{"open", "1 failed", "2 out-of-memory", "3@2=0.1"},
			want:   "create 1; create 2; create 3; ",
		},
		{
			name: "a trial that diverges ends, and the search goes on", trials: 9,
			events: []string{"open", "1@1=nan", "1 cancelled", "2@2=0.1"},
			want:   "create 1; stop 1; create 2; ",
		},
		{
			name: "a lost job is run again, three times never", trials: 1,
			events: []string{"open", "1 lost", "1 lost", "1 lost"},
			want:   "create 1; resume 1; resume 1; finish",
		},
		{
			name: "a trial that reaches the target ends there", trials: 2,
			change: func(p *searcher.Plan) { p.Target = new(float64); *p.Target = 0.9 },
			events: []string{"open", "1@1=0.95", "1 cancelled", "2@1=0.1", "2@2=0.2"},
			want:   "create 1; stop 1; create 2; ; stop 2",
		},
		{
			name: "a program that trains on after a whole trial is ended once", trials: 1,
			events: []string{"open", "1@18=0.1", "1@19=0.1", "1@20=0.1", "1 cancelled"},
			want:   "create 1; ; stop 1; ; finish",
		},
		{
			name: "too many failed trials end a search", trials: 9,
			change: func(p *searcher.Plan) { p.Failures = 1 },
			events: []string{"open", "1 failed", "2 failed"},
			want:   "create 1; create 2; finish",
		},
		{
			name: "no trial begins after the budget of time", trials: 9,
			change: func(p *searcher.Plan) { p.Time = 2e9 },
			events: []string{"open", "1@1=0.1", "1@2=0.1", "1 cancelled"},
			want:   "create 1; ; stop 1; finish",
		},
		{
			name: "brackets begin at higher and higher rungs", trials: 9,
			change: func(p *searcher.Plan) { p.Method, p.Parallel = tuning.Hyperband, 5 },
			events: []string{"open", "1@2=0.1", "4@2=0.9", "4@6=0.9"},
			want:   "create 1, create 2, create 3, create 4, create 5; ; ; ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := searcher.Plan{
				Search:  tuning.Search{Method: tuning.ASHA, Trials: tt.trials, Parallel: 1, Epochs: 18, Eta: 3, Seed: 1},
				Resumes: tt.resumes,
			}
			for x := range 50 {
				p.Settings = append(p.Settings, tuning.Settings{"x": tuning.Number(float64(x))})
			}
			if tt.change != nil {
				tt.change(&p)
			}
			if got := story(t, searcher.New(p, searcher.Snapshot{}), tt.events...); got != tt.want {
				t.Errorf("%q\ngot  %s\nwant %s", tt.events, got, tt.want)
			}
		})
	}
}

func TestATrialSaysWhyItWentNoFurther(t *testing.T) {
	t.Parallel()
	s := searcher.New(searcher.Plan{
		Search:  tuning.Search{Method: tuning.ASHA, Trials: 3, Parallel: 1, Epochs: 18, Eta: 3, Seed: 1},
		Resumes: true, Settings: []tuning.Settings{{"x": tuning.Number(1)}, {"x": tuning.Number(2)}, {"x": tuning.Number(3)}},
	}, searcher.Snapshot{})
	story(t, s, "open", "1@2=0.5", "1 cancelled", "2@2=0.6", "2 cancelled", "3@2=0.4", "3 cancelled", "2@6=0.7", "2 cancelled", "2@12=0.8", "2 succeeded")
	for i, want := range []string{"rank 2 of 2 after 2 epochs", "its job ended after 12 of 18 epochs", "rank 3 of 3 after 2 epochs"} {
		if got := s.Trials[i]; got.Reason != want {
			t.Errorf("trial %d is %s: %s, want %s", i+1, got.State, got.Reason, want)
		}
	}
}

// TestNoSearchDoesMoreThanItMay plays any events.
func TestNoSearchDoesMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := draw(t)
		plan.Search.Energy = tuning.Joules(rapid.IntRange(0, 20).Draw(t, "joules"))
		s := searcher.New(plan, searcher.Snapshot{})
		actions, err := s.Handle(searcher.Event{Kind: searcher.Opened})
		used := 0.0
		for range 80 {
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range actions {
				if spent := plan.Energy > 0 && used >= float64(plan.Energy); spent && (a.Kind == searcher.Create || a.Kind == searcher.Resume) {
					t.Fatalf("%s of trial %d after %g of %g joules", a.Kind, a.Trial, used, float64(plan.Energy))
				}
			}
			if s.Busy() > plan.Parallel || len(s.Trials) > plan.Search.Trials {
				t.Fatalf("%d busy of %d, %d trials of %d", s.Busy(), plan.Parallel, len(s.Trials), plan.Search.Trials)
			}
			e, ok := happens(t, s)
			if !ok {
				break
			}
			if e.Trial > 0 {
				joules := float64(e.Report.Epoch)
				e.Report.Joules = &joules
			}
			before := slices.Clone(s.Trials)
			actions, err = s.Handle(e)
			used, _, _ = s.Spent()
			for i, was := range before {
				if now := s.Trials[i].State; now != was.State && was.State != searcher.Running && was.State != searcher.Paused {
					t.Fatalf("trial %d was %s and is %s", i+1, was.State, now)
				}
			}
			if e.Kind == searcher.Reported && e.Report.Epoch <= before[e.Trial-1].Last().Epoch && len(s.Trials[e.Trial-1].Reports) != len(before[e.Trial-1].Reports) {
				t.Fatalf("epoch %d of trial %d counts twice", e.Report.Epoch, e.Trial)
			}
		}
	})
}

func TestJoulesCompareWithJoulesOfTheirSourceAlone(t *testing.T) {
	t.Parallel()
	joules := func(v float64, source string, seconds float64) searcher.Report {
		return searcher.Report{Epoch: 1, Joules: &v, Source: source, Seconds: seconds}
	}
	unknown := searcher.Report{Epoch: 1, Seconds: 10, Metered: 7}
	for _, tt := range []struct {
		name           string
		reached, other searcher.Report // the other has not reached the target yet
		stops          bool
		best           int // once it has
	}{
		{"more joules", joules(50, "rapl", 10), joules(100, "rapl", 1), true, 1},
		{"fewer joules", joules(50, "rapl", 1), joules(10, "rapl", 10), false, 2},
		{"joules that no seconds equal", unknown, joules(100, "rapl", 1), false, 2},
		{"no joules, and more seconds", joules(100, "rapl", 1), unknown, true, 1},
		{"joules of another source", joules(50, "modelled", 10), joules(100, "rapl", 1), false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := searcher.New(searcher.Plan{
				Search: tuning.Search{Method: tuning.Random, Trials: 2, Parallel: 2, Epochs: 18, Eta: 3}, Target: new(0.9),
				Settings: []tuning.Settings{{"x": tuning.Number(1)}, {"x": tuning.Number(2)}},
			}, searcher.Snapshot{})
			story(t, s, "open")
			tt.reached.Value, tt.other.Value = 0.9, 0.1
			var did []searcher.Action
			for i, r := range []searcher.Report{tt.reached, tt.other} {
				var err error
				if did, err = s.Handle(searcher.Event{Kind: searcher.Reported, Trial: i + 1, Report: r}); err != nil {
					t.Fatal(err)
				}
			}
			if (len(did) > 0) != tt.stops {
				t.Errorf("actions %v, want that the other trial ends: %t", did, tt.stops)
			}
			s.Trials[1].Reports[0].Value = 0.9
			if got := s.Ranking()[0].Number; got != tt.best {
				t.Errorf("trial %d is the best, want %d", got, tt.best)
			}
			want := tt.reached.Measured() + tt.other.Measured()
			if got, _, _ := s.Spent(); got != want || want < 60 {
				t.Errorf("%g joules were measured, want %g", got, want)
			}
		})
	}
}

func TestTrialsCompareByWhatTheyUsedUpToTheTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		objective tuning.Objective
		weight    *float64
		best      int // 1 took 80 J and 1 s, 2 took 50 J and 9 s
	}{
		{tuning.Energy, nil, 2}, {tuning.Time, nil, 1}, {tuning.EDP, nil, 1}, {tuning.Blend, nil, 2}, {tuning.Blend, new(0.9), 2}, {tuning.Blend, new(0.1), 1}, {tuning.Cost, nil, 2},
	} {
		s := searcher.New(searcher.Plan{
			Search: tuning.Search{Method: tuning.Random, Trials: 2, Parallel: 2, Epochs: 18, Eta: 3}, Objective: tt.objective, Weight: tt.weight, Target: new(0.9),
			Settings: []tuning.Settings{{"x": tuning.Number(1)}, {"x": tuning.Number(2)}},
		}, searcher.Snapshot{})
		story(t, s, "open")
		for _, r := range []struct {
			trial, epoch           int
			joules, seconds, value float64
		}{{2, 1, 20, 4, 0.5}, {1, 1, 80, 1, 0.9}, {2, 2, 50, 9, 0.9}, {2, 3, 90, 11, 0.95}} { // the last one before its job was ended
			report := searcher.Report{Epoch: r.epoch, Joules: new(r.joules), Seconds: r.seconds, CoreHours: 1 / r.seconds, Value: r.value}
			if _, err := s.Handle(searcher.Event{Kind: searcher.Reported, Trial: r.trial, Report: report}); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Ranking()[0].Number; got != tt.best {
			t.Errorf("%s: trial %d is the best, want %d", tt.objective, got, tt.best)
		}
	}
}

func TestModelledJoulesEndASearchOnlyWhereTheSiteLetsThem(t *testing.T) {
	t.Parallel()
	const spent = "the budget of 5J is used up"
	for _, tt := range []struct {
		source string
		site   bool
		want   string
	}{
		{"rapl", false, spent},
		{tuning.Modelled, false, ""},
		{tuning.Part(tuning.Modelled, 4), false, ""},
		{tuning.Modelled, true, spent},
	} {
		s := searcher.New(searcher.Plan{
			Search:   tuning.Search{Method: tuning.Random, Trials: 2, Parallel: 1, Epochs: 9, Energy: 5},
			Settings: []tuning.Settings{{"x": tuning.Number(1)}}, EnforceModel: tt.site,
		}, searcher.Snapshot{})
		story(t, s, "open")
		report := searcher.Report{Epoch: 1, Joules: new(6.0), Source: tt.source}
		if _, err := s.Handle(searcher.Event{Kind: searcher.Reported, Trial: 1, Report: report}); err != nil || s.Closing != tt.want {
			t.Errorf("6 J by %s, which the site lets count: %t: the search ends by %q (%v), want %q", tt.source, tt.site, s.Closing, err, tt.want)
		}
	}
}

func TestWhatATrialUsedIsALowerBoundWhereAnEpochWasNotMeasured(t *testing.T) {
	t.Parallel()
	trial := searcher.Trial{
		Reports: []searcher.Report{{Epoch: 1, Seconds: 1, Joules: new(6.0)}},
		Log:     []searcher.Event{{Kind: searcher.Broke, Report: searcher.Report{Epoch: 2, Seconds: 2, Metered: 6}}},
	}
	if r := trial.Used(); r.Joules != nil || r.Measured() != 6 || r.Seconds != 2 {
		t.Errorf("%+v, want 6 J of 2 s at least", r)
	}
}

// BenchmarkHandle is the report of one of 50 running trials of 1,000, which ends it and begins another.
func BenchmarkHandle(b *testing.B) {
	for _, m := range []tuning.SearchMethod{tuning.ASHA, tuning.ASHAGP} {
		b.Run(string(m), func(b *testing.B) {
			p := searcher.Plan{Search: tuning.Search{Method: m, Trials: math.MaxInt, Parallel: 50, Epochs: 81, Eta: 3, Seed: 1}}
			p.Settings = searcher.Candidates([]tuning.Knob{
				{Name: "x", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear},
				{Name: "y", Min: tuning.Number(1), Max: tuning.Number(1000), Scale: tuning.Log},
				{Name: "z", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear},
				{Name: "w", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear},
			}, 8192, 1)
			s := searcher.New(p, searcher.Snapshot{})
			handle := func(e searcher.Event) {
				if _, err := s.Handle(e); err != nil {
					b.Fatal(err)
				}
			}
			handle(searcher.Event{Kind: searcher.Opened})
			next := 1
			one := func() {
				handle(searcher.Event{Kind: searcher.Reported, Trial: next, Report: searcher.Report{Epoch: 3, Value: math.Sin(float64(7 * next))}})
				handle(searcher.Event{Kind: searcher.Ended, Trial: next, End: searcher.Succeeded})
				next++
			}
			for len(s.Trials) < 1000 {
				one()
			}
			for b.Loop() {
				one()
			}
		})
	}
}
