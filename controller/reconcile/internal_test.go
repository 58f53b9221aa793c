package reconcile

import (
	"fmt"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// The control group is a fixed function of the job's id; over many jobs its share
// is the site's, within five standard deviations of a fair draw, for ids of every
// form that schedulers give.
func TestTheControlGroupHasTheShareThatTheSiteWants(t *testing.T) {
	t.Parallel()
	const jobs = 10_000
	for _, form := range []string{"%d", "local-%06d", "job/%x/0"} {
		for _, share := range []float64{0, 0.01, 0.1, 0.5, 0.9, 1} {
			n := 0
			for i := range jobs {
				id := fmt.Sprintf(form, i)
				first := drawn(id, share)
				if first != drawn(id, share) {
					t.Fatalf("%s: drawn and not drawn", id)
				}
				if first {
					n++
				}
				if first && !drawn(id, min(1, share+0.05)) {
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
