package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func submit(t *testing.T, c *daemontest.Controller, s api.Submission) api.Job {
	t.Helper()
	if s.Filename == "" {
		s.Filename = "job.sh"
	}
	job, err := c.Client.Submit(t.Context(), s)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return job
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

func TestAJobFromSubmissionToStory(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{EnergySource: "rapl"}})
	source := daemontest.Script("train", 4, 0.05, daemontest.Tuned("observe")...)
	job := submit(t, c, api.Submission{Request: "r1", Source: source})
	if job.ID == "" || job.Owner != me(t) || job.Name != "train" || job.Ended {
		t.Fatalf("submitted %+v", job)
	}
	again := submit(t, c, api.Submission{Request: "r1", Source: source})
	if again.ID != job.ID {
		t.Errorf("the repeated request made %s beside %s", again.ID, job.ID)
	}
	if other := submit(t, c, api.Submission{Source: source}); other.ID == job.ID {
		t.Error("a submission without a request id is not a repeat")
	}

	done := c.Until(t, job.ID, daemontest.Ended)
	if done.State != "succeeded" || done.Phase != "ended" || done.Epoch != 4 || done.Total != 4 || done.Attempt != 1 ||
		done.Policy == nil || done.Policy.Mode != tuning.Observe || done.Own["cores"] != tuning.Number(1) {
		t.Errorf("ended as %+v", done)
	}
	if done.Joules == nil || done.Source != "rapl" || done.Restarts+done.Probes != 0 {
		t.Errorf("joules %v from %q, %d restarts, %d probes", done.Joules, done.Source, done.Restarts, done.Probes)
	}

	var out bytes.Buffer
	if _, err := c.Client.Logs(t.Context(), job.ID, 0, &out); err != nil || !strings.Contains(out.String(), "epoch 4/4 loss") {
		t.Errorf("logs %q (%v)", out.String(), err)
	}
	var rest bytes.Buffer
	if n, err := c.Client.Logs(t.Context(), job.ID, 10, &rest); err != nil || out.String()[10:] != rest.String() || n != int64(rest.Len()) {
		t.Errorf("logs from byte 10: %q (%v)", rest.String(), err)
	}
	story, err := c.Client.Explain(t.Context(), job.ID)
	if err != nil || story.Job != job.ID || len(story.Lines) < 2 {
		t.Fatalf("story %+v (%v)", story, err)
	}
	first, last := story.Lines[0].Text, story.Lines[len(story.Lines)-1].Text
	if !strings.Contains(first, `submitted "train"`) || !strings.Contains(last, "finished its work") {
		t.Errorf("the story begins with %q and ends with %q", first, last)
	}
	if !strings.Contains(story.Spent, "core-hours") {
		t.Errorf("what it held is %q", story.Spent)
	}
	jobs, err := c.Client.Jobs(t.Context())
	if err != nil || len(jobs) != 2 || jobs[0].ID != job.ID {
		t.Errorf("jobs %+v (%v)", jobs, err)
	}
	events, err := c.Client.History(t.Context())
	if err != nil || len(events) == 0 {
		t.Fatalf("history %+v (%v)", events, err)
	}
	for i, e := range events {
		if e.Text == "" || e.Job == "" || i > 0 && e.At.Before(events[i-1].At) {
			t.Errorf("event %d of the history: %+v", i, e)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		known, err := c.Client.Knowledge(t.Context())
		if err == nil && len(known.Kinds) == 1 && known.Kinds[0].Runs == 2 && strings.HasPrefix(known.Kinds[0].Kind, me(t)+"/train@") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("knowledge %+v (%v)", known, err)
		}
	}
}

func TestAJobWithoutStanzaIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	job := submit(t, c, api.Submission{Source: daemontest.Script("plain", 2, 0.02, "#SIM exit=3")})
	done := c.Until(t, job.ID, daemontest.Ended)
	if done.State != "failed" || done.ExitCode != 3 || done.Attempt != 1 || done.Policy != nil {
		t.Errorf("ended as %+v", done)
	}
}

// forgetful is a scheduler that forgets what has ended.
type forgetful struct {
	driver.Driver

	forgot atomic.Bool
}

func (f *forgetful) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if f.forgot.Load() {
		return driver.Job{}, fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
	}
	return f.Driver.Get(ctx, id)
}

func (f *forgetful) List(ctx context.Context) ([]driver.Job, error) {
	if f.forgot.Load() {
		return nil, nil
	}
	return f.Driver.List(ctx)
}

func TestAJobThatItsSchedulerHasForgottenIsShownFromItsRecord(t *testing.T) {
	t.Parallel()
	scheduler := &forgetful{}
	c := daemontest.Start(t, daemontest.Options{Driver: func(d driver.Driver) driver.Driver { scheduler.Driver = d; return scheduler }})
	ctx := t.Context()
	job := submit(t, c, api.Submission{Source: daemontest.Script("job", 3, .2, daemontest.Tuned("observe")...)})
	before := c.Until(t, job.ID, daemontest.Ended)
	told, err := c.Client.Explain(ctx, job.ID)
	if err != nil {
		t.Fatal(err)
	}
	scheduler.forgot.Store(true)
	after, err := c.Client.Job(ctx, job.ID)
	if err != nil || !after.Ended || after.State != "succeeded" || after.Epoch != 3 || after.Seconds != before.Seconds || *after.CoreHours != *before.CoreHours {
		t.Errorf("status %+v (%v), before %+v", after, err, before)
	}
	if again, err := c.Client.Explain(ctx, job.ID); err != nil || again.Verdict != told.Verdict || again.Spent != told.Spent || len(again.Lines) != len(told.Lines) {
		t.Errorf("explain %+v (%v), before %+v", again, err, told)
	}
	if table, err := c.Client.Report(ctx, "", ""); err != nil || len(table.Lines) != 1 || table.Lines[0].CoreHours == nil || *table.Lines[0].CoreHours != *before.CoreHours {
		t.Errorf("report %+v (%v)", table, err)
	}
	for name, err := range map[string]error{"stop": c.Client.Stop(ctx, job.ID), "off": c.Client.Off(ctx, job.ID)} {
		if !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: %v, want %v", name, err, api.ErrNotFound)
		}
	}
	if _, err := c.Client.Logs(ctx, job.ID, 0, &bytes.Buffer{}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("logs: %v, want %v", err, api.ErrNotFound)
	}
}

func TestStopCancelsAJob(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	job := submit(t, c, api.Submission{Source: daemontest.Script("long", 1000, 1, daemontest.Tuned("observe")...)})
	if err := c.Client.Stop(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if done := c.Until(t, job.ID, daemontest.Ended); done.State != "cancelled" || done.Reason != tuning.ReasonCancelled {
		t.Errorf("ended as %+v", done)
	}
	if err := c.Client.Stop(t.Context(), job.ID); err != nil {
		t.Errorf("stopping an ended job: %v", err)
	}
}

func TestWrongRequestsAreRefusedWithTheirKind(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	ctx := t.Context()
	for _, x := range []struct {
		name string
		do   func() error
		want error
		says string
	}{
		{"a stanza with an unknown key names line and column", func() error {
			_, err := c.Client.Submit(ctx, api.Submission{Filename: "bad.sh", Source: daemontest.Script("bad", 2, 0.01, "#TUNE modus=apply")})
			return err
		}, api.ErrInvalid, "bad.sh:6:7"},
		{"every error of a stanza is reported", func() error {
			_, err := c.Client.Submit(ctx, api.Submission{Filename: "bad.sh", Source: daemontest.Script("bad", 2, 0.01, "#TUNE modus=apply", "#TUNE mode=always")})
			return err
		}, api.ErrInvalid, "bad.sh:7:"},
		{"a file that is no job", func() error {
			_, err := c.Client.Submit(ctx, api.Submission{Filename: "x.txt", Source: []byte("hello")})
			return err
		}, api.ErrInvalid, ""},
		{"a file that is too large", func() error {
			_, err := c.Client.Submit(ctx, api.Submission{Filename: "x.sh", Source: make([]byte, 1<<20)})
			return err
		}, api.ErrInvalid, "larger than 1024 KiB"},
		{"a file that is too large to be looked at", func() error {
			_, err := c.Client.Validate(ctx, api.Draft{Filename: "x.sh", Source: make([]byte, 13<<20)})
			return err
		}, api.ErrInvalid, "larger than 6144 KiB"},
		{"a job that no node can hold", func() error {
			_, err := c.Client.Submit(ctx, api.Submission{Filename: "x.sh", Source: []byte("#!/bin/sh\n#SBATCH --cpus-per-task=999\n#SIM epochs=1 seconds=1\ntrue\n")})
			return err
		}, api.ErrInvalid, "999"},
		{"a job that does not exist", func() error { _, err := c.Client.Job(ctx, "absent-1"); return err }, api.ErrNotFound, ""},
		{"the story of one", func() error { _, err := c.Client.Explain(ctx, "absent-1"); return err }, api.ErrNotFound, ""},
		{"the output of one", func() error { _, err := c.Client.Logs(ctx, "absent-1", 0, &bytes.Buffer{}); return err }, api.ErrNotFound, ""},
		{"switching one off", func() error { return c.Client.Off(ctx, "absent-1") }, api.ErrNotFound, ""},
		{"stopping one", func() error { return c.Client.Stop(ctx, "absent-1") }, api.ErrNotFound, ""},
		{"an id that tries to leave its place", func() error { _, err := c.Client.Job(ctx, "../pauses"); return err }, api.ErrNotFound, "there is no job ../pauses"},
		{"an id that is only dots", func() error { return c.Client.Off(ctx, "..") }, api.ErrNotFound, "there is no job .."},
		{"an id with two slashes", func() error { return c.Client.Stop(ctx, "team//b") }, api.ErrNotFound, "there is no job team//b"},
		{"an id that begins with a slash", func() error { _, err := c.Client.Explain(ctx, "/abs"); return err }, api.ErrNotFound, "there is no job /abs"},
		{"an id with a question mark", func() error { _, err := c.Client.Job(ctx, "a?b=c#d%"); return err }, api.ErrNotFound, ""},
		{"a scope that does not exist", func() error { return c.Client.Pause(ctx, api.Pause{Scope: "galaxy"}) }, api.ErrInvalid, "galaxy"},
		{"a cluster with a name", func() error { return c.Client.Pause(ctx, api.Pause{Scope: "cluster", Name: "x"}) }, api.ErrInvalid, ""},
		{"a user without a name", func() error { return c.Client.Pause(ctx, api.Pause{Scope: "user"}) }, api.ErrInvalid, ""},
		{"a pause of a job that does not exist", func() error { return c.Client.Pause(ctx, api.Pause{Scope: "job", Name: "absent-1"}) }, api.ErrNotFound, "absent-1"},
		{"the end of a pause that is not in force", func() error { return c.Client.Resume(ctx, "user", "bob") }, api.ErrInvalid, "user bob is not paused"},
		{"the end of a pause in no scope", func() error { return c.Client.Resume(ctx, "", "") }, api.ErrInvalid, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			if err := x.do(); !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v; want %v with %q", err, x.want, x.says)
			}
		})
	}
	if jobs, err := c.Client.Jobs(ctx); err != nil || len(jobs) != 0 {
		t.Errorf("refused submissions left %+v (%v)", jobs, err)
	}
}
