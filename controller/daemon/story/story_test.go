package story_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite the golden stories")

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func cores(n int) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(float64(n))} }

// epochs are n epochs of two seconds with joules from a source, or none.
func epochs(n int, joules float64, source string) []tuning.Epoch {
	out := make([]tuning.Epoch, n)
	for i := range out {
		out[i] = tuning.Epoch{Number: i + 1, Attempt: 1, Start: at(2 * i), End: at(2*i + 2), Settings: cores(8)}
		if source != "" {
			j := tuning.Joules(joules)
			out[i].Joules, out[i].Source = &j, source
		}
	}
	return out
}

// tuned is a job that was probed, moved, got worse and was rolled back.
func tuned() *reconcile.Record {
	probe := tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonUnknownProbe, Settings: cores(4), Evidence: []tuning.Evidence{
		{Name: "class_reason", Text: "too-far"}, {Name: "remaining_seconds", Value: 120}, {Name: "margin", Value: 1.5},
	}}
	move := tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(2), Evidence: []tuning.Evidence{
		{Name: "best_log_ratio", Value: -0.25}, {Name: "settings_tried", Value: 3},
	}}
	back := tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonRegressed, Settings: cores(8)}
	class := tuning.Class{Reason: tuning.ReasonTooFar, NearestID: "c1", Distance: 4.5, Radius: 2.25}
	worse := tuning.Outcome{
		Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed, Measure: tuning.Energy, LogRatio: 0.1, Low: 0.05, High: 0.15, Level: 0.95, Pairs: 7,
	}
	return &reconcile.Record{
		Identity: reconcile.Identity{Job: "7", Name: "train", Owner: "alice", Submitted: start},
		Request:  reconcile.Request{Own: cores(8)},
		Course:   reconcile.Course{Ended: at(200), State: driver.Succeeded, Started: start, Peak: 3 << 30, Runs: []reconcile.Run{{Attempt: 1, Settings: cores(8), CPU: 40, CPUOver: 20}, {Attempt: 2, Settings: cores(4)}, {Attempt: 3, Settings: cores(2)}, {Attempt: 4, Settings: cores(8)}}, Epochs: epochs(50, 12.5, "rapl")},
		Phase:    reconcile.Ended,
		Tuning:   reconcile.Tuning{Restarts: []time.Time{at(40), at(80)}, Probed: []time.Time{at(20)}},
		Story: reconcile.Story{History: []reconcile.Entry{
			{At: at(0), From: reconcile.Seen, To: reconcile.Waiting, Trigger: reconcile.StanzaRead},
			{At: at(0), Reason: tuning.ReasonFirstSeen, Decision: &tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonFirstSeen}},
			{At: at(10), Reason: class.Reason, Class: &class},
			{At: at(10), From: reconcile.Profiling, To: reconcile.Changing, Trigger: reconcile.DecidedChange, Decision: &probe},
			{At: at(20), From: reconcile.Changing, To: reconcile.Profiling, Trigger: reconcile.IntentDone, Attempt: 2},
			{At: at(30), From: reconcile.Profiling, To: reconcile.Changing, Trigger: reconcile.DecidedChange, Decision: &move},
			{At: at(40), From: reconcile.Changing, To: reconcile.Verifying, Trigger: reconcile.IntentDone, Attempt: 3},
			{At: at(70), From: reconcile.Verifying, To: reconcile.Settled, Trigger: reconcile.OutcomeKnown, Reason: worse.Reason, Outcome: &worse},
			{At: at(70), From: reconcile.Settled, To: reconcile.Changing, Trigger: reconcile.Worse, Decision: &back},
			{At: at(80), From: reconcile.Changing, To: reconcile.Settled, Trigger: reconcile.IntentDone, Attempt: 4},
			{At: at(200), From: reconcile.Settled, To: reconcile.Ended, Trigger: reconcile.JobEnded, Outcome: &worse, Detail: "its work was done; another run of it was stopped"},
		}},
	}
}

// troubled is a job that nothing went well with.
func troubled() *reconcile.Record {
	return &reconcile.Record{
		Identity: reconcile.Identity{Job: "8", Name: "big run", Owner: "bob", Submitted: start},
		Course:   reconcile.Course{Ended: at(90), State: driver.MemoryExceeded, Epochs: epochs(3, 0, "")},
		Phase:    reconcile.Ended,
		Story: reconcile.Story{History: []reconcile.Entry{
			{At: at(0), From: reconcile.Seen, To: reconcile.Waiting, Trigger: reconcile.StanzaRead, Detail: "The driver for slurm cannot bring its knobs to it: threads stay as they are"},
			{At: at(1), Reason: tuning.ReasonUnreachable, Detail: "connection refused"},
			{At: at(12), From: reconcile.Changing, To: reconcile.Profiling, Trigger: reconcile.IntentVoid, Reason: tuning.ReasonGraceExpired},
			{At: at(13), Reason: tuning.ReasonOutOfMemory, Attempt: 2},
			{At: at(20), From: reconcile.Held, To: reconcile.Seen, Trigger: reconcile.OwnerChanged, Reason: tuning.ReasonOwnerChanged},
			{
				At: at(30), From: reconcile.Profiling, To: reconcile.Held, Trigger: reconcile.DecidedHold, Reason: tuning.ReasonRecommend,
				Decision: &tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonRecommend, Advice: cores(2)},
			},
			{At: at(40), From: reconcile.Held, To: reconcile.Settled, Trigger: reconcile.OurFailure, Reason: tuning.ReasonUnsupported, Detail: "no carrier"},
			{At: at(90), From: reconcile.Settled, To: reconcile.Ended, Trigger: reconcile.JobEnded},
		}},
	}
}

func TestStoriesReadAsTheyShould(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*reconcile.Record{"tuned": tuned(), "troubled": troubled(), "considered": considered()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := story.Tell(r)
			if s.Job != string(r.Job) {
				t.Errorf("the story is about job %s, want %s", s.Job, r.Job)
			}
			got := text(s)
			path := filepath.Join("testdata", name+".golden")
			fixtures.Golden(t, *update, path, got)
		})
	}
}

func text(s api.Story) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict  %s\neffect   %s\nnext     %s\n", s.Verdict, s.Effect, s.Next)
	for _, u := range s.Usage {
		fmt.Fprintf(&b, "%s %s of %s\n", u.Resource, u.Text(u.Used), u.Asked())
	}
	for _, l := range s.Lines {
		fmt.Fprintf(&b, "%s %s\n", l.At.Format("15:04:05"), l.Text)
		for _, why := range l.Why {
			fmt.Fprintf(&b, "         %s\n", why)
		}
	}
	return b.String()
}

func TestAComparisonWithOtherRunsSaysSo(t *testing.T) {
	t.Parallel()
	o := tuning.Outcome{
		Verdict: tuning.Improved, Reason: tuning.ReasonImproved, Measure: tuning.Cost, LogRatio: -0.5, Low: -0.9, High: -0.1, Level: 0.9, Runs: 2, Tuned: cores(4),
	}
	r := &reconcile.Record{Identity: reconcile.Identity{Job: "9", Name: "train", Owner: "alice", Submitted: start}, Request: reconcile.Request{Own: cores(8)}, Story: reconcile.Story{History: []reconcile.Entry{{At: at(1), Reason: o.Reason, Outcome: &o}}}}
	lines := story.Tell(r).Lines
	if len(lines) != 2 || !strings.HasPrefix(lines[1].Text, "Compared with runs of its kind under its owner's settings: it does better than untuned") ||
		!strings.HasSuffix(lines[1].Why[0], "over 2 runs of its kind under cores=4") {
		t.Errorf("%+v", lines)
	}
}

func TestAnEndingSaysWhatIsKnownAndWhatIsNot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		state     driver.State
		epochs    []tuning.Epoch
		want, not string
	}{
		{"measured", driver.Succeeded, epochs(4, 2.5, "rapl"), "with 10.0 J (rapl) in its epochs.", "not measured"},
		{"energy not measured", driver.Succeeded, epochs(4, 0, ""), "its energy was not measured throughout", " J ("},
		{"energy measured in part", driver.Succeeded, append(epochs(1, 5, "rapl"), epochs(2, 0, "")[1:]...), "its energy was not measured throughout", " J ("},
		{"no epoch at all", driver.NotStarted, nil, "could not be started", "energy"},
		{"cancelled", driver.Cancelled, nil, "It was cancelled", ""},
		{"lost", driver.Lost, nil, "Its scheduler lost it", ""},
		{"too long", driver.TimeExceeded, nil, "reached its time limit", ""},
		{"by itself", driver.Failed, nil, "It failed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := &reconcile.Record{Identity: reconcile.Identity{Submitted: at(-90)}, Course: reconcile.Course{Started: start, Ended: at(10), State: tc.state, Epochs: tc.epochs}}
			got, ok := story.Sentence(r, reconcile.Entry{To: reconcile.Ended, Trigger: reconcile.JobEnded})
			if !ok || !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("got %q, want %q in it and %q not", got, tc.want, tc.not)
			}
			if !strings.Contains(got, "after 10.0 s and ") {
				t.Errorf("got %q, want the time that it ran", got)
			}
			if r.Started = (time.Time{}); len(tc.epochs) == 0 {
				got, _ = story.Sentence(r, reconcile.Entry{To: reconcile.Ended, Trigger: reconcile.JobEnded})
				if !strings.Contains(got, "after 1 min 40 s in the queue") {
					t.Errorf("got %q of a job that never started, want the time in the queue", got)
				}
			}
		})
	}
}

func TestAnEndingHasTheJoulesOutsideTheEpochs(t *testing.T) {
	t.Parallel()
	r := &reconcile.Record{Course: reconcile.Course{
		Started: start, Ended: at(10), Epochs: epochs(4, 2.5, "rapl"), Runs: []reconcile.Run{{Attempt: 1, Joules: new(tuning.Joules(50)), Source: "rapl"}},
	}}
	if got, _ := story.Sentence(r, reconcile.Entry{To: reconcile.Ended}); !strings.Contains(got, "and 4 epochs, with 50.0 J (rapl).") {
		t.Error(got)
	}
}

// Whatever the record holds, the output is whole sentences in the order of the history, and
// each acting decision shows the settings that it wanted.
func TestEveryEntryIsASentence(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../tuning/REASONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []tuning.Reason
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` ").FindAllSubmatch(page, -1) {
		reasons = append(reasons, tuning.Reason(row[1]))
	}
	rapid.Check(t, func(t *rapid.T) {
		states := []driver.State{
			driver.Pending, driver.Running, driver.Stopped, driver.Succeeded, driver.Failed, driver.MemoryExceeded,
			driver.TimeExceeded, driver.NotStarted, driver.Cancelled, driver.Lost,
		}
		r := &reconcile.Record{Identity: reconcile.Identity{Job: "1", Name: "n", Owner: "o", Submitted: start}, Course: reconcile.Course{State: rapid.SampledFrom(states).Draw(t, "state")}}
		arrows := reconcile.Arrows()
		for i := range rapid.IntRange(0, 8).Draw(t, "entries") {
			a := rapid.SampledFrom(arrows).Draw(t, "arrow")
			e := reconcile.Entry{At: at(i), From: a.From, To: a.To, Trigger: a.By, Reason: rapid.SampledFrom(reasons).Draw(t, "reason"), Attempt: i}
			if rapid.Bool().Draw(t, "decided") {
				e.Decision = &tuning.Decision{
					Action: rapid.SampledFrom([]tuning.Action{tuning.Hold, tuning.Probe, tuning.Move, tuning.RollBack}).Draw(t, "action"), Reason: e.Reason, Settings: cores(i + 11),
					Evidence: []tuning.Evidence{{Name: "log_ratio", Value: 0.5}, {Name: "pairs", Value: 3}, {Name: "knob", Text: "lr"}},
				}
			}
			r.History = append(r.History, e)
		}
		s := story.Tell(r)
		if len(s.Lines) == 0 || !s.Lines[0].At.Equal(start) {
			t.Fatalf("the story does not begin with the submission: %+v", s.Lines)
		}
		all := text(s)
		for i, l := range s.Lines {
			if len(l.Text) < 10 || !strings.HasSuffix(l.Text, ".") || strings.ToUpper(l.Text[:1]) != l.Text[:1] && i > 0 {
				t.Errorf("no sentence: %q", l.Text)
			}
			if i > 0 && l.At.Before(s.Lines[i-1].At) {
				t.Errorf("line %d is earlier than the one before it", i)
			}
		}
		if strings.Contains(all, "%!") || strings.Contains(all, "map[") {
			t.Errorf("badly printed: %s", all)
		}
		for i, e := range r.History {
			if d := e.Decision; d != nil && d.Action != tuning.Hold && !strings.Contains(all, d.Settings.String()) {
				t.Errorf("entry %d wants %s, which is not told:\n%s", i, d.Settings, all)
			}
			if d := e.Decision; d != nil && !strings.Contains(all, e.Reason.Sentence()) {
				t.Errorf("entry %d is for the reason %q, which is not told:\n%s", i, e.Reason.Sentence(), all)
			}
		}
	})
}

func TestWhatAJobHeldAndWasChargedIsSaid(t *testing.T) {
	t.Parallel()
	span := report.Span{Start: at(0), End: at(7200), Cores: 3}
	priced := tuning.Policy{Tariff: tuning.Tariff{CoreHour: .5, Unit: "EUR"}}
	energy := tuning.Policy{Tariff: tuning.Tariff{CoreHour: .5, KWh: 1, Unit: "EUR"}}
	for _, c := range []struct {
		name string
		row  report.Row
		want string
	}{
		{"a site without prices counts core-hours", report.Row{Spans: []report.Span{span}}, "Its attempts ran 2 h in all and held 6.00 core-hours."},
		{"a site with prices names the cost", report.Row{Spans: []report.Span{span}, Policy: priced}, "Its attempts ran 2 h in all and held 6.00 core-hours, which cost 3.00 EUR."},
		{"energy that is free for want of joules is named", report.Row{Spans: []report.Span{span}, Policy: energy}, "Its attempts ran 2 h in all and held 6.00 core-hours, which cost 3.00 EUR without their energy, which was not measured throughout."},
		{"what is unknown is not said", report.Row{}, ""},
		{"a job that has not begun held nothing", report.Row{Spans: []report.Span{}}, ""},
		{"cores that are not known are not none", report.Row{Spans: []report.Span{{Start: at(0), End: at(60)}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := story.Spent(c.row); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
