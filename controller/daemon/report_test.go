package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

func reportAs(t *testing.T, c *daemontest.Controller, who peer.Peer, query string) report.Table {
	t.Helper()
	var table report.Table
	w := as(t, c, who, "GET", "/v1/report"+query, "")
	if err := json.Unmarshal(w.Body.Bytes(), &table); err != nil || w.Code != http.StatusOK {
		t.Fatalf("report: %d %s", w.Code, w.Body)
	}
	return table
}

// Half of the jobs of one kind stay untuned; the others are probed, moved and in
// the end recalled. All in virtual time, by the real loop.
func TestTheReportComparesTunedJobsWithTheUntunedShare(t *testing.T) {
	t.Parallel()
	half := strings.Replace(site, "control: 0", "control: 0.5", 1)
	tune(t, half, func(t *testing.T, c *daemontest.Controller, _ *advances) {
		alice, bob := peer.Peer{UID: 4242, Name: "alice"}, peer.Peer{UID: 4243, Name: "bob"}
		const jobs = 5
		for range jobs {
			submitAs(t, c, alice, api.Submission{Filename: "job.sh", Source: tunable("work")})
			time.Sleep(4 * time.Minute)
		}
		submitAs(t, c, bob, api.Submission{Filename: "job.sh", Source: daemontest.Script("plain", 2, 10)})
		time.Sleep(time.Minute)

		all := reportAs(t, c, peer.Peer{Name: "root"}, "?by=user")
		if len(all.Lines) != 2 || all.Lines[0].Key != "alice" || all.Lines[0].Jobs != jobs || all.Total.Jobs != jobs+1 {
			t.Fatalf("by user: %+v", all)
		}
		mine := reportAs(t, c, alice, "")
		tuned, untuned := 0, 0
		for _, l := range mine.Lines {
			tuned += l.Tuned
			untuned += l.Untuned
			got := ask(t, c, l.Key)
			if l.Restarts == nil || *l.Restarts != got.Restarts || *l.Probes != got.Probes || *l.Epochs != epochs || l.State != "succeeded" || l.Tuned == l.Untuned {
				t.Errorf("line %+v of the job %+v", l, got)
			}
			ran := got.EndedAt.Sub(got.Started).Seconds()
			if l.Seconds == nil || *l.Seconds <= 0 || *l.Seconds > ran+1e-6 || l.CoreHours == nil || *l.CoreHours < *l.Seconds/3600-1e-9 {
				t.Errorf("%s ran %v s and %v core-hours within %g s", l.Key, l.Seconds, l.CoreHours, ran)
			}
		}
		if len(mine.Lines) != jobs || tuned+untuned != jobs || tuned < 1 || untuned < 1 {
			t.Fatalf("%d tuned and %d untuned of %d", tuned, untuned, len(mine.Lines))
		}
		if len(mine.Savings) != 1 {
			t.Fatalf("savings %+v", mine.Savings)
		}
		s := mine.Savings[0]
		if s.Outcome == nil || s.Pairs != min(tuned, untuned) || s.Objective != tuning.Time || s.Epochs != epochs || s.Outcome.Measure != tuning.Time {
			t.Fatalf("saving %+v", s)
		}
		if o := s.Outcome; o.LogRatio >= 0 || o.Low > o.LogRatio || o.High < o.LogRatio || s.Pairs >= 4 && o.Verdict != tuning.Improved {
			t.Errorf("outcome %+v of %d pairs", *o, s.Pairs)
		}
		if theirs := reportAs(t, c, bob, ""); theirs.Total.Jobs != 1 || len(theirs.Savings) != 0 {
			t.Errorf("bob sees %+v", theirs)
		}
		if far := reportAs(t, c, alice, "?since=90d"); len(far.Notes) != 1 || !strings.Contains(far.Notes[0], "forgotten") || len(mine.Notes) != 0 {
			t.Errorf("notes %q and %q", far.Notes, mine.Notes)
		}
		if none := reportAs(t, c, alice, "?since=1s"); none.Total.Jobs != 0 {
			t.Errorf("of the last second: %+v", none)
		}
	})
}

func TestWithoutAnUntunedJobThereIsNoSaving(t *testing.T) {
	t.Parallel()
	tune(t, site, func(t *testing.T, c *daemontest.Controller, _ *advances) {
		alice := peer.Peer{UID: 4242, Name: "alice"}
		submitAs(t, c, alice, api.Submission{Filename: "job.sh", Source: tunable("work")})
		time.Sleep(4 * time.Minute)
		s := reportAs(t, c, alice, "").Savings
		if len(s) != 1 || s[0].Outcome != nil || !strings.HasPrefix(s[0].Note, report.NoUntuned) || s[0].Tuned != 1 {
			t.Errorf("savings %+v", s)
		}
	})
}

func TestReportRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	for query, says := range map[string]string{"?by=planet": "want one of job, user", "?since=soon": "want a time", "?since=-1h": "negative"} {
		var p api.Problem
		w := as(t, c, peer.Peer{Name: "root"}, "GET", "/v1/report"+query, "")
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusBadRequest || p.Kind != "invalid" || !strings.Contains(p.Error, says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestKnowledgeOnEachObjectiveThatHasData(t *testing.T) {
	t.Parallel()
	tune(t, site, func(t *testing.T, c *daemontest.Controller, _ *advances) {
		alice := peer.Peer{UID: 4242, Name: "alice"}
		for range 2 {
			submitAs(t, c, alice, api.Submission{Filename: "job.sh", Source: tunable("work")})
			time.Sleep(4 * time.Minute)
		}
		var k api.Knowledge
		w := as(t, c, alice, "GET", "/v1/knowledge", "")
		if err := json.Unmarshal(w.Body.Bytes(), &k); err != nil || len(k.Kinds) != 1 || k.Observations != 2 {
			t.Fatalf("knowledge %s (%v)", w.Body, err)
		}
		var objectives []string
		for _, of := range k.Kinds[0].Effects {
			objectives = append(objectives, string(of.Objective))
			if len(of.Effects) == 0 || of.Effects[0].Runs == 0 || of.Effects[0].LogRatio == 0 {
				t.Errorf("effects %+v", of)
			}
			if joules := of.Objective != tuning.Time; joules != (len(of.Sources) > 0) {
				t.Errorf("%s by the sources %v", of.Objective, of.Sources)
			}
		}
		if fmt.Sprint(objectives) != "[time energy edp cost]" {
			t.Errorf("effects on %v", objectives)
		}
		if m := k.Model; m == nil || m.Name == "" || m.Confidence <= 0 || len(m.Strata) == 0 || m.Strata[0].Schema == "" || m.Strata[0].Runs == 0 {
			t.Fatalf("model %+v", m)
		}
		for who, strata := range map[peer.Peer]int{{UID: 4243, Name: "bob"}: 0, {Name: "root"}: len(k.Model.Strata)} {
			var seen api.Knowledge
			w := as(t, c, who, "GET", "/v1/knowledge", "")
			if err := json.Unmarshal(w.Body.Bytes(), &seen); err != nil || seen.Model == nil || len(seen.Model.Strata) != strata {
				t.Errorf("%s sees %s (%v)", who.Name, w.Body, err)
			}
		}
		if len(k.Classes) > 0 && (k.Classes[0].ID == "" || len(k.Classes[0].Kinds) != 1) {
			t.Errorf("classes %+v", k.Classes)
		}
	})
}

func TestValidateOverTheSocketSaysWhatTheCommandSays(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	good, err := c.Client.Validate(t.Context(), api.Draft{Filename: "job.sh", Source: tunable("work")})
	if err != nil || !good.Valid || good.Policy == nil || good.Policy.Mode != tuning.Apply || good.Policy.Budget.Probes != tuning.DefaultProbes || !strings.Contains(good.Text, "cores") {
		t.Errorf("a good file: %+v (%v)", good, err)
	}
	bad, err := c.Client.Validate(t.Context(), api.Draft{
		Filename: "job.sh", Source: daemontest.Script("work", 2, 1, "#TUNE mood=apply", "#TUNE knob cores values=many"),
	})
	if err != nil || bad.Valid || bad.Policy != nil || len(bad.Errors) < 2 {
		t.Fatalf("a bad file: %+v (%v)", bad, err)
	}
	for _, f := range bad.Errors {
		if f.Filename != "job.sh" || f.Line < 6 || f.Column == 0 || f.Found == "" {
			t.Errorf("fault %+v", f)
		}
	}
	plain, err := c.Client.Validate(t.Context(), api.Draft{Filename: "job.sh", Source: []byte("#!/bin/sh\n")})
	if err != nil || !plain.Valid || plain.Note == "" || plain.Policy != nil {
		t.Errorf("a file without a stanza: %+v (%v)", plain, err)
	}
	if jobs, err := c.Client.Jobs(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("judging made jobs: %+v (%v)", jobs, err)
	}
}

// A request that was refused may be made again, without --off.
func TestARefusedSubmissionLeavesNothingSwitchedOff(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	refused := api.Submission{
		Request: "r", Filename: "job.sh", Off: true,
		Source: daemontest.Script("work", 3, 0.02, append(daemontest.Tuned("observe"), "#SIM epochs=nonsense")...),
	}
	if job, err := c.Client.Submit(t.Context(), refused); err == nil {
		t.Fatalf("the job was not refused: %+v", job)
	}
	job := submit(t, c, api.Submission{Request: "r", Source: daemontest.Script("work", 3, 0.02, daemontest.Tuned("observe")...)})
	if done := c.Until(t, job.ID, daemontest.Ended); done.Reason == tuning.ReasonOff {
		t.Errorf("the job is off, as one was to be that never was: %+v", done)
	}
	// One that was accepted stays off, whatever is asked under its request later.
	off := submit(t, c, api.Submission{Request: "s", Off: true, Source: daemontest.Script("work", 100, 0.02, daemontest.Tuned("observe")...)})
	refused.Request = "s"
	if again, err := c.Client.Submit(t.Context(), refused); err == nil && again.ID != off.ID {
		t.Errorf("the repeated request made %+v", again)
	}
	if done := c.Until(t, off.ID, daemontest.Ended); done.Reason != tuning.ReasonOff {
		t.Errorf("the job is not off any more: %+v", done)
	}
}
