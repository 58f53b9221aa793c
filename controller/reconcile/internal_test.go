package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// The control group is a fixed function of the job's id and its day. Over many jobs its share
// is the site's, within five standard deviations of a fair draw. This holds for ids of every
// form that schedulers give, and where all runs have the same id.
func TestTheControlGroupHasTheShareThatTheSiteWants(t *testing.T) {
	t.Parallel()
	const jobs = 10_000
	for _, form := range []string{"%d", "local-%06d", "job/%x/0", "train"} {
		for _, share := range []float64{0, 0.01, 0.1, 0.5, 0.9, 1} {
			n := 0
			for i := range jobs {
				id, at := form, time.Unix(int64(i)*86400+7, 0)
				if strings.Contains(form, "%") {
					id = fmt.Sprintf(form, i)
				}
				first := drawn(id, at, share)
				if first != drawn(id, at.Add(20*time.Minute), share) {
					t.Fatalf("%s: drawn and not drawn", id)
				}
				if first {
					n++
				}
				if first && !drawn(id, at, min(1, share+0.05)) {
					t.Errorf("%s: drawn at %g and not at a larger share", id, share)
				}
			}
			mean, variance := jobs*share, jobs*share*(1-share)
			if d := float64(n) - mean; d*d > 25*variance {
				t.Errorf("ids %s, share %g: %d of %d drawn, want %g within 5 standard deviations (variance %g)", form, share, n, jobs, mean, variance)
			}
		}
	}
}

func TestCapsAreCountedOverTheRightTimeAndPeople(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	of := func(id, owner string) *Record {
		return &Record{Identity: Identity{Job: driver.JobID(id), Owner: owner}}
	}
	for _, tc := range []struct {
		name  string
		site  tuning.Site
		done  []restart
		busy  []string // other jobs that are tuned now
		do    tuning.Action
		start bool // it waits for its start
		at    time.Duration
		want  string // the key of the cap
	}{
		{"nothing yet", tuning.Site{UserRestarts: 1, TotalRestarts: 1, MaxTuned: 1}, nil, nil, tuning.Move, false, 0, ""},
		{"no caps at all", tuning.Site{}, []restart{{start, "alice"}, {start, "alice"}}, []string{"x", "y"}, tuning.Move, false, 0, ""},
		{"the user's hour is full", tuning.Site{UserRestarts: 2}, []restart{{start, "alice"}, {start, "alice"}}, nil, tuning.Probe, false, time.Minute, "user_restarts"},
		{"others fill their own hour", tuning.Site{UserRestarts: 2}, []restart{{start, "bob"}, {start, "bob"}, {start, "alice"}}, nil, tuning.Probe, false, time.Minute, ""},
		{"all users fill the cluster's hour", tuning.Site{TotalRestarts: 2}, []restart{{start, "bob"}, {start, "carol"}}, nil, tuning.Move, false, time.Minute, "total_restarts"},
		{"an hour later it is free", tuning.Site{UserRestarts: 1, TotalRestarts: 1}, []restart{{start, "alice"}}, nil, tuning.Move, false, time.Hour + time.Second, ""},
		{"just before the hour it is not", tuning.Site{UserRestarts: 1}, []restart{{start, "alice"}}, nil, tuning.Move, false, time.Hour - time.Second, "user_restarts"},
		{"a change before the start costs no restart", tuning.Site{UserRestarts: 1, TotalRestarts: 1}, []restart{{start, "alice"}}, nil, tuning.Move, true, 0, ""},
		{"too many are tuned at a time", tuning.Site{MaxTuned: 2}, nil, []string{"x", "y"}, tuning.Probe, false, 0, "max_tuned"},
		{"too many, before the start too", tuning.Site{MaxTuned: 1}, nil, []string{"x"}, tuning.Move, true, 0, "max_tuned"},
		{"a job that is tuned already goes on", tuning.Site{MaxTuned: 1}, nil, []string{"1"}, tuning.Move, false, 0, ""},
		{"a return is never refused for their number", tuning.Site{MaxTuned: 1}, nil, []string{"x"}, tuning.RollBack, false, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := caps{restarts: tc.done}
			for _, id := range tc.busy {
				c.edit(driver.JobID(id), func(x *counted) { x.tuned = true })
			}
			r := of("1", "alice")
			if tc.start {
				r.Phase = Waiting
			}
			if got := c.admit(after(tc.at), r, tc.do, tc.site); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := c.live["1"].tuned; got != (tc.want == "") {
				t.Errorf("counted as tuned: %t", got)
			}
		})
	}
}

func TestCapsAreRestoredFromTheRecords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	own := Run{Attempt: 1, Action: tuning.Hold}
	var c caps
	c.restore([]*Record{
		{Identity: Identity{Job: "moving", Owner: "alice"}, Phase: Changing, Tuning: Tuning{Move: &Intent{Driver: driver.Intent{Attempt: 1}}}},
		{Identity: Identity{Job: "probed", Owner: "alice"}, Phase: Profiling, Tuning: Tuning{Probed: []time.Time{at}}},
		{Identity: Identity{Job: "recalled", Owner: "bob"}, Phase: Verifying, Course: Course{Runs: []Run{{Attempt: 1, Action: tuning.Move}}}},
		{Identity: Identity{Job: "left alone", Owner: "bob"}, Phase: Held, Course: Course{Runs: []Run{own}}},
		{Identity: Identity{Job: "over", Owner: "bob"}, Phase: Ended, Tuning: Tuning{Restarts: []time.Time{at, at}}},
	})
	for id, want := range map[driver.JobID]bool{"moving": true, "probed": true, "recalled": true, "left alone": false, "over": false} {
		if c.live[id].tuned != want {
			t.Errorf("%s counts as tuned: %t, want %t", id, c.live[id].tuned, want)
		}
	}
	if len(c.restarts) != 3 {
		t.Errorf("%d restarts, want 3", len(c.restarts))
	}
	if got := c.admit(at, &Record{Identity: Identity{Job: "new", Owner: "bob"}}, tuning.Move, tuning.Site{UserRestarts: 2}); got != "user_restarts" {
		t.Errorf("after the restart bob's hour is forgotten: %q", got)
	}
}

func TestOneOfAKindProbesASettingAtATime(t *testing.T) {
	t.Parallel()
	kind, start := tuning.JobKind{Name: "train"}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cores := func(n, rate float64) tuning.Settings {
		return tuning.Settings{tuning.Cores: tuning.Number(n), "lr": tuning.Number(rate)}
	}
	own := func(seconds float64) []tuning.Trial {
		return []tuning.Trial{{Settings: cores(4, .1), Epochs: 2, Seconds: seconds, Reference: true}}
	}
	shown := append(own(10), tuning.Trial{Settings: cores(2, .1), Epochs: 2, Seconds: 5})
	for _, tc := range []struct {
		name    string
		other   counted
		seconds float64
		want    bool
	}{
		{"no other job does", counted{}, 10, true},
		{"another one does, whatever its learning rate", counted{probing: &attempt{kind: kind, settings: cores(2, .1)}, shown: &knowledge.Observation{Trials: own(10)}}, 12, false},
		{"it has just begun", counted{probing: &attempt{kind: kind, settings: cores(2, .1)}}, 10, false},
		{"its epochs do other work", counted{probing: &attempt{kind: kind, settings: cores(2, .1)}, shown: &knowledge.Observation{Trials: own(40)}}, 10, true},
		{"it has shown what that does", counted{probing: &attempt{kind: kind, settings: cores(2, .1)}, shown: &knowledge.Observation{Trials: shown}}, 10, true},
		{"its scheduler restarts it", counted{probing: &attempt{kind: kind, settings: cores(2, .1), idle: start.Add(-20 * time.Second)}}, 10, false},
		{"its scheduler keeps it waiting", counted{probing: &attempt{kind: kind, settings: cores(2, .1), idle: start.Add(-time.Minute)}}, 10, true},
		{"it probes another setting", counted{probing: &attempt{kind: kind, settings: cores(1, .1)}}, 10, true},
		{"it is another kind", counted{probing: &attempt{kind: tuning.JobKind{Name: "render"}, settings: cores(2, .1)}}, 10, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := caps{live: map[driver.JobID]counted{"other": tc.other}}
			r := &Record{Identity: Identity{Job: "1", Kind: kind}}
			r.Policy = tuning.DefaultPolicy()
			d := tuning.Decision{Action: tuning.Probe, Settings: cores(2, .01)}
			if got := c.probe(start, r, d, own(tc.seconds)); got != tc.want || (c.live["1"].probing != nil) != tc.want {
				t.Errorf("it probes: %t, counted: %v, want %t", got, c.live["1"].probing, tc.want)
			}
		})
	}
	var c caps
	c.restore([]*Record{{Identity: Identity{Job: "other", Kind: kind}, Phase: Profiling, Course: Course{Runs: []Run{{Attempt: 2, Action: tuning.Probe, Settings: cores(2, .1)}}}}})
	if c.live["other"].probing == nil {
		t.Error("a restart of the controller forgets a probe")
	}
}

func TestSiblingsAreOfTheKindAndOnTheNode(t *testing.T) {
	t.Parallel()
	train, render := tuning.JobKind{Name: "train"}, tuning.JobKind{Name: "render"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c caps
	for id, x := range map[driver.JobID]struct {
		kind *tuning.JobKind
		runs bool
		node string
	}{
		"1": {&train, true, "a"}, "beside": {&train, true, "a"}, "elsewhere": {&train, true, "b"},
		"waiting": {&train, false, "a"}, "another kind": {&render, true, "a"}, "not read yet": {nil, true, "a"},
	} {
		c.edit(id, func(y *counted) { y.kind = x.kind })
		c.see(id, x.runs, x.node, now)
	}
	r := &Record{Identity: Identity{Job: "1", Kind: train}}
	if n := c.siblings(r); n != 1 {
		t.Errorf("%d siblings, want the one beside it", n)
	}
	c.see("beside", false, "a", now)
	if n := c.siblings(r); n != 0 {
		t.Errorf("%d siblings after its end, want none", n)
	}
}

func TestTheDelayOfAFailingJobGrowsToAMinute(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for failures := 1; failures < 100; failures++ {
		d := backoff(failures)
		if d < last || d <= 0 || d > time.Minute {
			t.Fatalf("after %d failures %s, before it was %s", failures, d, last)
		}
		last = d
	}
	if last != time.Minute {
		t.Errorf("it grows to %s, want a minute", last)
	}
}

// ran makes epochs of kinds of machines, one a letter; - is an unknown kind.
// Those in capitals ran under the owner's own settings.
func ran(kinds string) []tuning.Epoch {
	var out []tuning.Epoch
	for i, k := range kinds {
		e := tuning.Epoch{Number: i + 1, Machine: strings.Trim(strings.ToLower(string(k)), "-"), Settings: tuning.Settings{tuning.Cores: tuning.Number(2)}}
		if strings.ToUpper(string(k)) == string(k) {
			e.Settings = tuning.Settings{tuning.Cores: tuning.Number(1)}
		}
		out = append(out, e)
	}
	return out
}

func TestEpochsAreAlikeOnMachinesOfTheLatestKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, ran, alike string
		elsewhere        bool
	}{
		{"none", "", "", false},
		{"of one kind", "AAaa", "1234", false},
		{"of no known kind", "--", "12", false},
		{"of a kind that is known since later", "-Aa", "123", false},
		{"of another kind than the owner's own", "AAbb", "34", true},
		{"of the first kind again", "AAbbaa", "1256", false},
		{"of a kind on which his own were measured, too", "AABBbb", "3456", false},
		{"of another kind, where his own were never measured", "aabb", "34", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			epochs := ran(tc.ran)
			var got strings.Builder
			for _, e := range alike(epochs) {
				got.WriteByte('0' + byte(e.Number))
			}
			p := reconciliation{rec: &Record{Course: Course{Epochs: epochs}, Request: Request{Own: tuning.Settings{tuning.Cores: tuning.Number(1)}}}}
			if got.String() != tc.alike || p.elsewhere() != tc.elsewhere || len(epochs) != len(tc.ran) {
				t.Errorf("alike are %q, elsewhere %v; want %q, %v", got.String(), p.elsewhere(), tc.alike, tc.elsewhere)
			}
		})
	}
}

// Attempts that exporters know as one are told apart by when the next began; others need
// no bounds.
func TestAttemptsOfOneUnitAreBoundedByTheirStarts(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	p := &reconciliation{rec: &Record{Identity: Identity{Submitted: at(0)}}, job: driver.Job{Attempts: []driver.Attempt{
		{Number: 1, Unit: "a.main", Started: at(1), Ended: at(4)},
		{Number: 2, Unit: "a.main", Started: at(5), Ended: at(8)},
		{Number: 3, Unit: "b.main", Started: at(9)},
		{Number: 4, Started: at(12)},
		{Number: 5, Started: at(13)},
	}}}
	for i, want := range [][2]time.Time{{{}, at(5)}, {at(5), {}}, {}, {at(0), {}}, {at(0), {}}} { // an earlier job may have had the id
		if from, to := p.bounds(i + 1); !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("attempt %d: from %v to %v, want %v", i+1, from, to, want)
		}
	}
}

func TestOfSeveralNodesOnlyTheFirstIsMeasured(t *testing.T) {
	t.Parallel()
	joules := tuning.Joules(5)
	whole := func(r tuning.Reason) Measurement {
		return Measurement{
			Epochs:  []tuning.Epoch{{Number: 1, Joules: &joules, Source: "rapl"}, {Number: 2}},
			Profile: tuning.Profile{Schema: "sw/1", PeakRSS: 7}, Reason: r, Peak: 7, Total: 9,
			Joules: &joules, Source: "rapl",
		}
	}
	for _, c := range []struct {
		name         string
		reason, want tuning.Reason
	}{
		{"a profile of the first node is none of the job", tuning.ReasonNone, tuning.ReasonPartial},
		{"what else there is none for goes before", tuning.ReasonWarmingUp, tuning.ReasonWarmingUp},
	} {
		in := whole(c.reason)
		got := in.partial(4)
		if got.Reason != c.want || got.Peak != 0 || got.Profile.Schema != "" || got.Total != 9 {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.Epochs[0].Source != "rapl, 1 of 4 nodes" || got.Epochs[1].Source != "" || got.Source != "rapl, 1 of 4 nodes" {
			t.Errorf("%s: sources %q, %q and %q", c.name, got.Epochs[0].Source, got.Epochs[1].Source, got.Source)
		}
		if in.Epochs[0].Source != "rapl" {
			t.Errorf("%s: what was read has the source %q now", c.name, in.Epochs[0].Source)
		}
	}
}

// The scheduler says for how long in all a job was suspended; the epochs say after when.
func TestWhenAJobWasSuspended(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	p, began := &reconciliation{rec: &Record{Course: Course{Runs: []Run{{Attempt: 1}, {Attempt: 2}}}}}, at(10)
	for _, look := range []struct {
		name  string
		now   int64
		stood time.Duration
		ends  []int64 // of epochs that ended by the next look
		want  []tuning.Span
	}{
		{"never so far", 20, 0, nil, nil},
		{"in its first epoch", 30, 5 * time.Second, []int64{31}, []tuning.Span{{From: at(10), To: at(30)}}},
		{"not again", 40, 5 * time.Second, []int64{35}, []tuning.Span{{From: at(10), To: at(30)}}},
		{"again, and it stands still", 120, 65 * time.Second, nil, []tuning.Span{{From: at(10), To: at(30)}, {From: at(35), To: at(120)}}},
		{"and still does", 180, 125 * time.Second, []int64{200, 201, 202}, []tuning.Span{{From: at(10), To: at(30)}, {From: at(35), To: at(180)}}},
		{"and epochs ended before its resumption was seen", 203, 140 * time.Second, nil, []tuning.Span{{From: at(10), To: at(30)}, {From: at(35), To: at(200)}}},
	} {
		p.now = at(look.now)
		p.job.Attempts = []driver.Attempt{{Number: 1, Started: at(1)}, {Number: 2, Started: at(10), Suspended: look.stood}, {Number: 3, Started: at(10), Suspended: time.Hour}}
		before := p.rec.Runs[1].Still
		held := append([]tuning.Span(nil), before...)
		p.suspensions()
		if diff := cmp.Diff(look.want, p.rec.Runs[1].Still); diff != "" {
			t.Errorf("%s (-want +got):\n%s", look.name, diff)
		}
		if diff := cmp.Diff(held, append([]tuning.Span(nil), before...)); diff != "" {
			t.Errorf("%s: what others may hold has changed:\n%s", look.name, diff)
		}
		for _, end := range look.ends {
			p.rec.Epochs = append(p.rec.Epochs, tuning.Epoch{Attempt: 2, Start: began, End: at(end)})
			began = at(end)
		}
	}
	if n := len(p.rec.awake()); n != len(p.rec.Epochs)-2 {
		t.Errorf("%d of %d epochs tell of their settings, want all but the two in which it was suspended", n, len(p.rec.Epochs))
	}
	if p.rec.Runs[0].Still != nil || len(p.rec.Runs) != 2 {
		t.Errorf("the attempt before has %v of %d runs, want nothing of two", p.rec.Runs[0].Still, len(p.rec.Runs))
	}
}

// Others' requeues wait for room as long as it takes, and say nothing of what a move would cost. Nor does suspended time.
func TestOnlyRestartsThatTuningMadeHaveACost(t *testing.T) {
	t.Parallel()
	hours := func(from, to int) []tuning.Span {
		return []tuning.Span{{From: time.Unix(0, 0).Add(time.Duration(from) * time.Hour), To: time.Unix(0, 0).Add(time.Duration(to) * time.Hour)}}
	}
	for _, tc := range []struct {
		name   string
		action tuning.Action
		still  []tuning.Span
		want   []time.Duration
		cut    []tuning.Epoch
	}{
		{"a requeue by others", tuning.Hold, nil, nil, nil},
		{"a move", tuning.Move, nil, []time.Duration{6 * time.Hour}, nil},
		{"a move that cut an epoch", tuning.Move, nil, []time.Duration{3*time.Hour + 6*time.Minute}, []tuning.Epoch{{Number: 7, Attempt: 2, Start: time.Unix(0, 0).Add(13 * time.Hour), End: time.Unix(0, 0).Add(15 * time.Hour), Cut: true}}},
		{"a move, and it is suspended before its first epoch", tuning.Move, hours(15, 16), nil, nil},
		{"a move, and it was suspended long before", tuning.Move, hours(7, 8), []time.Duration{6 * time.Hour}, nil},
	} {
		p := &reconciliation{rec: &Record{Course: Course{Runs: []Run{{Attempt: 1, Action: tuning.Hold}, {Attempt: 2, Action: tuning.Hold}, {Attempt: 3, Action: tc.action, Still: tc.still}}, Cut: tc.cut}}}
		at := time.Unix(0, 0)
		for number := 1; number <= 9; number++ {
			if number%3 == 1 {
				at = at.Add(6 * time.Hour)
			}
			e := tuning.Epoch{Number: number, Attempt: (number + 2) / 3, Start: at, End: at.Add(time.Minute)}
			at = e.End
			p.merge(e.Attempt, Measurement{Epochs: []tuning.Epoch{e}}, 0)
		}
		if diff := cmp.Diff(tc.want, p.rec.RestartCosts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestAStartThatWasSuspendedHasNoLength(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, tc := range []struct {
		still []tuning.Span
		want  time.Duration
	}{{nil, 90 * time.Second}, {[]tuning.Span{{From: at(0), To: at(80)}}, 0}, {[]tuning.Span{{From: at(110), To: at(300)}}, 90 * time.Second}} {
		p := &reconciliation{rec: &Record{Course: Course{
			Runs: []Run{{Attempt: 1, Still: tc.still}}, Epochs: []tuning.Epoch{{Number: 1, Attempt: 1, Start: at(0), End: at(100)}, {Number: 2, Attempt: 1, Start: at(100), End: at(110)}},
		}}}
		if got := p.startup(); got != tc.want {
			t.Errorf("suspended in %v: the start took %s, want %s", tc.still, got, tc.want)
		}
	}
}

func TestAResizeBeforeTheStartDropsTheRunThatDidNotBegin(t *testing.T) {
	t.Parallel()
	p := &reconciliation{
		Loop: &Loop{cfg: Config{Log: slog.New(slog.DiscardHandler)}}, job: driver.Job{Attempt: 1, Resources: driver.Resources{Cores: 2}},
		rec: &Record{Phase: Verifying, Request: Request{Asked: &Asked{Cores: 4}}, Course: Course{Runs: []Run{{Attempt: 1}, {Attempt: 2}}, Queued: &Run{Attempt: 3}}},
	}
	if p.superseded(); len(p.rec.Runs) != 1 || p.rec.Queued != nil || p.rec.Phase != Seen {
		t.Errorf("it is %s with runs %+v, and %+v waits; want seen with the one that began", p.rec.Phase, p.rec.Runs, p.rec.Queued)
	}
}

func TestAJobThatBeganChangedStaysCountedAfterAProbeThatWasGivenUp(t *testing.T) {
	t.Parallel()
	p := &reconciliation{Loop: &Loop{cfg: Config{Log: slog.New(slog.DiscardHandler)}}, rec: &Record{
		Phase: Changing, Course: Course{Runs: []Run{{Attempt: 1, Action: tuning.Move}}},
		Tuning: Tuning{Move: &Intent{Driver: driver.Intent{Attempt: 1}, Decision: tuning.Decision{Action: tuning.Probe}}},
	}}
	p.caps.edit("", func(x *counted) { x.tuned = true })
	if p.void(driver.Step{}, tuning.ReasonGraceExpired); !p.caps.live[""].tuned {
		t.Error("it no longer counts as tuned")
	}
}

func TestWhatAnotherJobFileDidIsNoEvidence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		attempts []driver.Attempt
		done     int
	}{
		{"the edit restarted nothing", []driver.Attempt{{Number: 1}}, 3},
		{"and then the tuner did", []driver.Attempt{{Number: 1}, {Number: 2, Intent: "1/2"}}, 3},
		{"the edit restarted it", []driver.Attempt{{Number: 1}, {Number: 2}}, 0},
	} {
		p := &reconciliation{Loop: &Loop{cfg: Config{Log: slog.New(slog.DiscardHandler)}}, job: driver.Job{Fingerprint: "edited", Attempt: 1, Attempts: tc.attempts}, rec: &Record{
			Phase: Profiling, Identity: Identity{Fingerprint: "first"}, Course: Course{
				Runs: []Run{{Attempt: 1}}, Profiles: map[string]tuning.Profile{"cores=4": {}}, Peak: 1,
				Epochs: []tuning.Epoch{{Number: 3, Attempt: 1, Joules: new(tuning.Joules(5)), Source: "rapl"}},
			},
		}}
		p.superseded()
		if err := p.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		anew := tc.done == 0
		if j, _ := p.rec.SpentJoules(false); p.rec.Done() != tc.done || *j != 5 || (len(p.rec.Profiles) == 0) != anew || p.rec.Runs[0].Read != anew {
			t.Errorf("%s: %d epochs done with %v J, %d profiles, %+v", tc.name, p.rec.Done(), *j, len(p.rec.Profiles), p.rec.Runs)
		}
	}
}

func TestQueuedAndSuspendedTimeIsNotUsedUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	job := driver.Job{Resources: driver.Resources{TimeLimit: 3 * time.Hour}, Attempts: []driver.Attempt{
		{Number: 1, Started: ago(9*time.Hour + 10*time.Minute), Ended: ago(9 * time.Hour)},
		{Number: 2, Started: ago(160 * time.Minute), Suspended: 150 * time.Minute},
	}}
	if left, used := limitLeft(job, now), elapsed(job, now); left != 170*time.Minute || used != 20*time.Minute {
		t.Errorf("%v are left until the limit and %v were used; want 2h50m and 20m", left, used)
	}
}

func TestRestartsOfOthersUseUpNoBudget(t *testing.T) {
	t.Parallel()
	given := func(attempt int) []Entry {
		return []Entry{{Trigger: IntentVoid, Reason: tuning.ReasonGraceExpired, Attempt: attempt}}
	}
	for _, tc := range []struct {
		name    string
		cause   driver.Cause
		intents [2]string // of the second and the third attempt
		history []Entry
		want    int
	}{
		{"two requeues by others", "requeue", [2]string{}, nil, 0},
		{"it saved after its move was given up, as the scheduler knows", driver.CauseLate, [2]string{}, nil, 2},
		{"it saved after its move was given up, as the record knows", "requeue", [2]string{}, given(1), 1},
		{"the intent that was given up had its effect, and others requeued it then", "requeue", [2]string{"1/2", "1/2"}, nil, 1},
	} {
		attempts := []driver.Attempt{{Number: 1}, {Number: 2, Cause: tc.cause, Intent: tc.intents[0]}, {Number: 3, Cause: tc.cause, Intent: tc.intents[1]}}
		p := &reconciliation{Loop: &Loop{}, rec: &Record{Story: Story{History: tc.history}}, job: driver.Job{Attempts: attempts}}
		if err := p.adopt(t.Context()); err != nil || len(p.rec.Restarts) != tc.want {
			t.Errorf("%s: %d restarts, want %d: %v", tc.name, len(p.rec.Restarts), tc.want, err)
		}
	}
}

// Once an attempt is over the scheduler may not tell where it ran, and its last
// epochs must still be asked for, there.
func TestEachAttemptIsMeasuredWhereItRan(t *testing.T) {
	t.Parallel()
	type ask struct {
		attempt int
		node    string
	}
	var asked []ask
	l := New(Config{Log: slog.New(slog.DiscardHandler), Services: Services{
		Measure: func(_ context.Context, q MeasureRequest) (Measurement, error) {
			asked = append(asked, ask{q.Attempt, q.Node})
			return Measurement{Reason: tuning.ReasonProfiling}, nil
		},
	}})
	rec := &Record{Identity: Identity{Job: "7"}, Request: Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "^epoch"}}}}
	begun := time.Now()
	attempts := []driver.Attempt{{Number: 1, Started: begun}, {Number: 2, Started: begun, Cause: driver.CauseIntent}}
	for _, tc := range []struct {
		name string
		job  driver.Job
		want []ask
	}{
		{"it waits for its first start", driver.Job{State: driver.Pending}, nil},
		{"it begins, and the scheduler does not say where", driver.Job{State: driver.Running, Attempt: 1}, []ask{{1, ""}}},
		{"it runs", driver.Job{State: driver.Running, Attempt: 1, Node: "n1"}, []ask{{1, "n1"}}},
		{"it waits for its second start", driver.Job{State: driver.Pending, Attempt: 1}, []ask{{1, "n1"}}},
		{"it runs elsewhere", driver.Job{State: driver.Running, Attempt: 2, Node: "n2"}, []ask{{1, "n1"}, {2, "n2"}}},
		{"it ended", driver.Job{State: driver.Succeeded, Attempt: 2}, []ask{{1, "n1"}, {2, "n2"}}},
	} {
		asked = nil
		tc.job.ID, tc.job.Attempts = "7", attempts[:tc.job.Attempt]
		p := &reconciliation{Loop: l, now: begun, job: tc.job, rec: rec}
		if err := p.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.place()
		p.measure(t.Context())
		if diff := cmp.Diff(tc.want, asked, cmp.AllowUnexported(ask{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestAJobIsAnotherOnceItsAttemptsBeganAnew(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1000, 0)
	rec := &Record{Identity: Identity{Submitted: begun}, Course: Course{Runs: []Run{{Attempt: 1, Unit: "a.main"}, {Attempt: 2, Unit: "b.main"}}}}
	for _, tt := range []struct {
		name      string
		submitted time.Duration
		attempts  []driver.Attempt
		want      bool
	}{
		{"the same job", 0, []driver.Attempt{{Number: 1, Unit: "a.main"}, {Number: 2, Unit: "b.main"}}, false},
		{"put back into the queue, which its scheduler calls a submission", time.Minute, []driver.Attempt{{Number: 1}, {Number: 2}, {Number: 3}}, false},
		{"a later one that waits", time.Minute, nil, true},
		{"a later one in its first attempt", time.Minute, []driver.Attempt{{Number: 1, Unit: "c.main"}}, true},
		{"a later one in as many attempts", time.Minute, []driver.Attempt{{Number: 1, Unit: "c.main"}, {Number: 2, Unit: "d.main"}}, true},
		{"attempts that its scheduler forgot", 0, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job := driver.Job{Submitted: begun.Add(tt.submitted), Attempt: len(tt.attempts), Attempts: tt.attempts}
			if got := replaced(rec, job); got != tt.want {
				t.Errorf("another: %v, want %v", got, tt.want)
			}
		})
	}
}

// A scheduler that forgot a job may give its id to the next one within the same second.
func TestAJobOfAnotherRequestIsAnotherWheneverItWasSubmitted(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	rec := &Record{Identity: Identity{Submitted: at, Requested: "alice/search-s/1/1"}}
	ended := &Record{Identity: rec.Identity, Phase: Ended, Course: Course{Ended: at.Add(time.Second)}}
	for request, want := range map[driver.RequestID]bool{"alice/search-s/1/1": false, "alice/search-s/1/2": true, "": false} {
		job := driver.Job{Request: request, Submitted: at, State: driver.Pending}
		if got := replaced(rec, job); got != want {
			t.Errorf("%q in place of an open job: %t, want %t", request, got, want)
		}
		if got := !ended.Of(job); got != want {
			t.Errorf("%q in place of an ended job: %t, want %t", request, got, want)
		}
	}
}

func TestWhatAnAttemptMayUseIsWhatTheOthersLeft(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	joules := func(v tuning.Joules) *tuning.Joules { return &v }
	rec := &Record{
		Course: Course{Epochs: []tuning.Epoch{
			{Number: 1, Attempt: 1, Joules: joules(100), Source: "rapl"},
			{Number: 2, Attempt: 1, Joules: joules(30), Source: tuning.Modelled},
			{Number: 3, Attempt: 1},
			{Number: 4, Attempt: 2, Joules: joules(7), Source: "rapl"},
		}},
	}
	counted := []Run{{Attempt: 1, Joules: joules(180), Source: "rapl"}, {Attempt: 2, Joules: joules(9), Source: "rapl"}}
	job := driver.Job{Attempts: []driver.Attempt{{Number: 1, Started: noon, Ended: noon.Add(time.Hour)}, {Number: 2, Started: noon.Add(2 * time.Hour)}}}
	for _, tc := range []struct {
		name    string
		budget  tuning.Budget
		limit   time.Duration
		model   bool
		runs    []Run
		attempt int
		want    Allowance
	}{
		{"no budget of energy", tuning.Budget{Time: time.Hour}, time.Hour, false, nil, 1, Allowance{}},
		{"the first attempt", tuning.Budget{Energy: 500}, 0, false, nil, 1, Allowance{Energy: 500}},
		{"modelled joules of the first one do not count", tuning.Budget{Energy: 500}, 0, false, nil, 2, Allowance{Energy: 500, Used: 100}},
		{"unless the site says so", tuning.Budget{Energy: 500}, 0, true, nil, 2, Allowance{Energy: 500, Used: 130, Modelled: true}},
		{"what the first one used outside its epochs counts", tuning.Budget{Energy: 500}, 0, false, counted, 2, Allowance{Energy: 500, Used: 150}},
		{"the time is what the first one left", tuning.Budget{Energy: 500, Time: 3 * time.Hour}, 0, false, nil, 2, Allowance{Energy: 500, Used: 100, Time: 2 * time.Hour}},
		{"the scheduler's limit is nearer", tuning.Budget{Energy: 500, Time: 3 * time.Hour}, time.Hour, false, nil, 2, Allowance{Energy: 500, Used: 100, Time: time.Hour}},
		{"the scheduler's limit alone", tuning.Budget{Energy: 500}, time.Hour, false, nil, 1, Allowance{Energy: 500, Time: time.Hour}},
		{"no time is left", tuning.Budget{Energy: 500, Time: time.Minute}, time.Hour, false, nil, 2, Allowance{Energy: 500, Used: 100, Time: time.Second}},
	} {
		j := job
		j.Resources.TimeLimit = tc.limit
		rec.Policy.Budget, rec.Runs = tc.budget, tc.runs
		p := &reconciliation{Loop: &Loop{services: Services{Site: func(driver.Job) tuning.Site { return tuning.Site{EnforceModel: tc.model} }}}, job: j, rec: rec}
		if diff := cmp.Diff(tc.want, p.allowance(tc.attempt)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
