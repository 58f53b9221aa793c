package command

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/test/fixtures"
)

// began is when the searches of these tests began.
func began() time.Time { return time.Date(2026, 3, 4, 10, 0, 0, 0, time.Local) }

// aSearch has nine trials; six began.
func aSearch(change ...func(*trials.State)) trials.State {
	p := tuning.DefaultPolicy()
	s := tuning.DefaultSearch()
	s.Trials, s.Parallel, s.Epochs, s.Energy = 9, 2, 9, 5000
	p.Search, p.Quality, p.Checkpoint = &s, &tuning.Quality{Direction: "max"}, &tuning.Checkpoint{Signal: "SIGUSR1"}
	x := trials.State{Search: trials.Search{
		ID: "q7", Name: "digits", Owner: "alice", Created: began(), Policy: p, Plan: searcher.Plan{Search: s, Resumes: true}, Job: trials.JobFile{Dir: "/home/alice"},
	}}
	trial := func(state searcher.State, busy bool, reason string, values ...float64) {
		n := len(x.Trials) + 1
		t := trials.Trial{
			Trial: searcher.Trial{
				Number: n, Settings: tuning.Settings{"lr": tuning.Number(float64(n) / 100)}, State: state, Busy: busy, Attempt: 1, Reason: reason,
			},
			Jobs: []driver.JobID{driver.JobID("local-" + string(rune('0'+n)))},
		}
		for i, v := range values {
			e := float64(i + 1)
			t.Reports = append(t.Reports, searcher.Report{
				Epoch: i + 1, Value: v, At: 20*float64(n-1) + 10*e, Seconds: 10 * e, Joules: new(100 * e), Source: "rapl", CoreHours: e / 180, Cores: 2,
			})
		}
		x.Trials = append(x.Trials, t)
	}
	trial(searcher.Done, false, "", 0.5, 0.6, 0.7, 0.75, 0.8, 0.82, 0.83, 0.84, 0.83)
	trial(searcher.Paused, false, "rank 2 of 2 after 3 epochs", 0.4, 0.5, 0.55)
	trial(searcher.Failed, false, "out of memory")
	trial(searcher.Stopped, true, "rank 3 of 4 after 3 epochs", 0.3, 0.4, 0.5)
	trial(searcher.Running, true, "", 0.8, 0.9)
	trial(searcher.Running, true, "")
	x.Trials[5].Jobs = nil
	for _, c := range change {
		c(&x)
	}
	return x
}

func over(x *trials.State) {
	x.Over, x.Ended = true, began().Add(3*time.Minute)
	for i := range x.Trials {
		t := &x.Trials[i]
		if t.Busy = false; t.State == searcher.Running {
			t.State = searcher.Done
		}
	}
}

func TestASearchAsAPersonReadsIt(t *testing.T) {
	t.Parallel()
	few := func(x *trials.State) { over(x); x.Plan.Trials = len(x.Trials) }
	all := func(x *trials.State) { few(x); x.Policy.Search.Trials = len(x.Trials) }
	stopped := func(x *trials.State) { over(x); x.Closing = "stopped by alice" }
	measured := func(x *trials.State) { x.Policy.Quality.Measures = []string{tuning.ByQuality, tuning.ByEnergy} }
	for name, x := range map[string]trials.State{
		"runs":    aSearch(),
		"over":    aSearch(all),
		"front":   aSearch(all, measured),
		"stopped": aSearch(stopped),
		"target":  aSearch(all, func(x *trials.State) { x.Plan.Target, x.Plan.Objective = new(0.8), tuning.Time }),
		"ends":    aSearch(func(x *trials.State) { x.Closing = "the budget of 5kJ is used up" }),
		"begins": aSearch(func(x *trials.State) {
			x.Trials = x.Trials[5:]
			x.Trials[0].Number, x.Plan.Epochs, x.Trials[0].Trouble = 1, 0, "sbatch: timed out"
		}),
		"few-values":     aSearch(few),
		"nothing-learnt": aSearch(stopped, func(x *trials.State) { x.Trials = x.Trials[2:3]; x.Trials[0].Number = 1 }),
		"unseen": aSearch(stopped, func(x *trials.State) {
			x.Trials = x.Trials[2:3]
			t := &x.Trials[0]
			t.Number, t.Reason = 1, searcher.Unseen+": the progress pattern has to match"
			t.Log = []searcher.Event{{Kind: searcher.Ended, Report: searcher.Report{At: 60, Seconds: 60, CoreHours: 1. / 30}}}
		}),
		"no-joules": aSearch(all, measured, func(x *trials.State) {
			for _, t := range x.Trials {
				for i := range t.Reports {
					t.Reports[i].Joules, t.Reports[i].Source = nil, ""
				}
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := began().Add(150 * time.Second)
			var out bytes.Buffer
			a := &app{World: World{Stdout: &out}}
			a.printf("%s", searchBrief(x, now))
			line, _ := searchLine(x, now)
			a.printf("\n%s\n\n", line)
			a.printf("%s\n%s\n", searchList([]trials.State{x}, now), searchTrials(x))
			if err := a.printResults(x, 2, now); err != nil {
				t.Fatal(err)
			}
			a.printf("\n%s", searchPicture(x, now, 60))
			fixtures.Golden(t, *update, filepath.Join("testdata/search", name+".txt"), out.String())
		})
	}
}

func TestASearchThatCannotGoOnIsNotToBeResumed(t *testing.T) {
	t.Parallel()
	for _, x := range []trials.State{
		aSearch(over, func(x *trials.State) { x.Closing, x.Plan.Energy = "the budget of 1kJ is used up", 1000 }),
		aSearch(over, func(x *trials.State) {
			x.Closing, x.Plan.Trials, x.Trials[1].State = "stopped by alice", len(x.Trials), searcher.Stopped
		}),
	} {
		if next := searchNext(x, x.Searcher(), began()); !strings.HasPrefix(next, "pitchpipe search best q7 ") {
			t.Errorf("%s: next %s", x.Closing, next)
		}
	}
}

func TestASearchThatIsLateEndsNotBeforeASecondHasPassed(t *testing.T) {
	t.Parallel()
	x := aSearch(func(x *trials.State) { x.Plan.Time = time.Minute })
	if next := searchNext(x, x.Searcher(), began().Add(time.Hour)); !strings.HasSuffix(next, "in 1.0 s") {
		t.Errorf("next %s", next)
	}
}

func TestJoulesThatEpochsLackAreSaid(t *testing.T) {
	t.Parallel()
	x := aSearch(func(x *trials.State) { // its third epoch was not measured
		r := &x.Trials[1].Reports[2]
		r.Joules, r.Metered = nil, 200
	})
	if text := searchBrief(x, began().Add(time.Minute)); !strings.Contains(text, "at least 1.60 kJ (rapl) of 5.00 kJ, ") {
		t.Errorf("%s", text)
	}
	x.Trials[1].Reports[2].Source = tuning.Modelled
	if text := searchBrief(x, began().Add(time.Minute)); !strings.Contains(text, "(rapl, modelled) of 5.00 kJ (not enforced by modelled joules), ") {
		t.Errorf("%s", text)
	}
}

func TestWhatIsWorthALineWhileASearchRuns(t *testing.T) {
	t.Parallel()
	mark := func(x trials.State) string { _, m := searchLine(x, began()); return m }
	was := mark(aSearch())
	for _, tt := range []struct {
		name   string
		change func(*trials.State)
		worth  bool
	}{
		{"a worse epoch is not", func(x *trials.State) { x.Trials[5].Reports = []searcher.Report{{Epoch: 1, Value: 0.1}} }, false},
		{"a better value is", func(x *trials.State) { x.Trials[5].Reports = []searcher.Report{{Epoch: 1, Value: 0.99}} }, true},
		{"the end of a trial is", func(x *trials.State) { x.Trials[3].Busy = false }, true},
		{"the end of a budget is", func(x *trials.State) { x.Closing = "the budget is used up" }, true},
	} {
		if worth := mark(aSearch(tt.change)) != was; worth != tt.worth {
			t.Errorf("%s: %t", tt.name, worth)
		}
	}
}

func TestWarningsBeforeASearch(t *testing.T) {
	t.Parallel()
	search := tuning.DefaultSearch()
	p := tuning.DefaultPolicy()
	p.Search = &search
	p.Knobs = []tuning.Knob{{Name: "lr", Env: "LR"}, {Name: tuning.Cores}}
	kept := p
	kept.Checkpoint = &tuning.Checkpoint{}
	single := kept
	single.Knobs = []tuning.Knob{{Name: "lr", Env: "LR", Values: []tuning.Value{tuning.Number(1)}}}
	fixed := kept
	still := search
	still.System, fixed.Search = tuning.Fixed, &still
	prospects := func(when tuning.When) []tuning.Prospects {
		return []tuning.Prospects{{Headline: "valid, but nothing can be tuned: max_mode", Knobs: []tuning.Prospect{{Knob: tuning.Cores, When: when}}}}
	}
	comment := api.Verdict{Policy: &kept, Warnings: jobfile.Errors{{Pos: jobfile.Pos{Filename: "a.sh", Line: 4, Column: 1}, Found: "a comment that looks like a tuning line", Want: "want #TUNE"}}}
	if got := searchWarnings(comment, 4, 4); !slices.Equal(got, []string{"warning: a.sh:4:1: a comment that looks like a tuning line; want #TUNE"}) {
		t.Errorf("a comment: %q", got)
	}
	for _, tt := range []struct {
		name     string
		policy   *tuning.Policy
		when     tuning.When
		parallel int
		want     string
	}{
		{"a good job has none", &kept, tuning.Now, 4, ""},
		{"without a checkpoint nothing is resumed", &p, tuning.Now, 4, "no checkpoint block"},
		{"a machine that is too small", &kept, tuning.Now, 2, "2 of the 4 parallel trials"},
		{"a knob with one value", &single, tuning.Now, 4, "the knob lr has one value"},
		{"a site that lets nothing be tuned", &kept, tuning.Never, 4, "inside the trials nothing can be tuned: max_mode"},
		{"which does not matter where the system is fixed", &fixed, tuning.Never, 4, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(searchWarnings(api.Verdict{Policy: tt.policy, Prospects: prospects(tt.when)}, 4, tt.parallel), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || strings.Count(got, "\n") > 0 {
				t.Errorf("warnings %q; want %q", got, tt.want)
			}
		})
	}
}

func TestANameCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	const name, want = "a\u009b31m\x1bb", "a?31m?b"
	for of, got := range map[string]string{
		"status":    named(name, trials.Lineage{}),
		"advice":    adviceTable([]advise.Item{{Name: name, Detail: name}}),
		"pauses":    pauseList([]api.Pause{{Scope: "user", Name: "eve", By: "eve", Why: name}}),
		"knowledge": knowledgeText(api.Knowledge{Kinds: []api.KnownKind{{Kind: name}}, Classes: []api.KnownClass{{Kinds: []string{name}}}}),
	} {
		if strings.ContainsAny(got, "\u009b\x1b") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", of, got, want)
		}
	}
}

func TestAListIsDrawnOverTheOneBefore(t *testing.T) {
	t.Parallel()
	p := (&app{}).screen()
	jobs := []api.Job{{ID: "1", Ended: true}, {ID: "2", Ended: true}, {ID: "3", Ended: true}}
	for _, c := range []struct {
		jobs   []api.Job
		height int
		want   string
	}{
		{jobs, 4, "1   epoch 0  ,   0 ms\n2   epoch 0  ,   0 ms\n3   epoch 0  ,   0 ms\n"},
		{jobs[1:2], 4, "\x1b[3A\r\x1b[J2   epoch 0  ,   0 ms\n"},
		{jobs, 3, "\x1b[1A\r\x1b[Jand 2 older\n3   epoch 0  ,   0 ms\n"},
		{nil, 3, "\x1b[2A\r\x1b[J"},
	} {
		if got := p.picture(c.jobs, 80, c.height); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
