package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sim"
)

func TestTheWayOfAJobThroughTheCommands(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{EnergySource: "rapl"}})
	at := func(args ...string) []string { return append(args, "--socket", c.Config.Socket) }
	file := jobFile(t, "train", 4, 0.5, daemontest.Tuned("observe")...)

	// Submitted, and repeated without a second job.
	id := strings.TrimSpace(ok(t, at("run", file, "--request", "once")...))
	var again api.Job
	decoded(t, &again, at("run", file, "--request", "once")...)
	if again.ID != id || again.Name != "train" {
		t.Fatalf("run printed %q and then %+v", id, again)
	}
	c.Until(t, id, daemontest.Ended)

	var one, all []api.Job
	decoded(t, &one, at("status", id)...)
	decoded(t, &all, at("status")...)
	if len(one) != 1 || len(all) != 1 || one[0].ID != id || one[0].Epoch != 4 || one[0].State != "succeeded" || all[0].ID != id {
		t.Errorf("status of one %+v and of all %+v", one, all)
	}
	table := strings.Split(ok(t, at("status")...), "\n")
	if len(table) != 3 || !strings.HasPrefix(table[0], "JOB") || !strings.Contains(table[1], "train") || !strings.Contains(table[1], "4/4") || !strings.Contains(table[1], "(rapl)") {
		t.Errorf("status table %q", table)
	}
	if watched := ok(t, at("status", "--watch")...); !strings.Contains(watched, "epoch 4/4") {
		t.Errorf("status --watch of a job that ended: %q", watched)
	}

	var story api.Story
	decoded(t, &story, at("explain", id)...)
	if story.Job != id || len(story.Lines) < 2 {
		t.Errorf("story %+v", story)
	}
	if text := ok(t, at("explain", id)...); !strings.HasPrefix(text, "verdict  "+story.Verdict+"\neffect   "+story.Effect+"\nnext     ") || strings.Contains(text, story.Lines[0].Text) {
		t.Errorf("explain printed %q", text)
	}
	if text := ok(t, at("explain", "-v", id)...); !strings.Contains(text, story.Lines[0].Text) || !strings.Contains(text, "It finished its work") {
		t.Errorf("explain -v printed %q", text)
	}
	decoded(t, &story, at("explain", id, "--replay")...)
	if len(story.Replays) == 0 || !story.Replays[0].Same || story.Replays[0].State == nil {
		t.Errorf("the decisions made again: %+v", story.Replays)
	}
	if text := ok(t, at("explain", id, "--replay")...); !strings.Contains(text, "A replay decides the same") {
		t.Errorf("explain --replay printed %q", text)
	}

	var events []api.Event
	decoded(t, &events, at("history")...)
	if len(events) == 0 || events[0].Job != id {
		t.Errorf("history %+v", events)
	}
	if text := ok(t, at("history")...); strings.Count(text, "\n") != len(events) || !strings.Contains(text, events[0].Text) {
		t.Errorf("history printed %q", text)
	}

	if text := ok(t, at("history", id)...); strings.Count(text, "\n") != len(events) {
		t.Errorf("history of the only job printed %q", text)
	}
	if text := ok(t, at("logs", "-f", id)...); !strings.Contains(text, "epoch 4/4 loss") {
		t.Errorf("logs -f of a job that ended: %q", text)
	}
	if text := ok(t, at("status", "--user", "somebody", "--state", "running,pending")...); strings.Count(text, "\n") != 1 {
		t.Errorf("status of the jobs of no user: %q", text)
	}
	if text := ok(t, at("logs", id)...); !strings.Contains(text, "epoch 4/4 loss") {
		t.Errorf("logs %q", text)
	}
	var logs struct{ Job, Output string }
	if decoded(t, &logs, at("logs", id)...); logs.Job != id || !strings.Contains(logs.Output, "epoch 4/4 loss") {
		t.Errorf("logs %+v", logs)
	}

	var known api.Knowledge
	decoded(t, &known, at("knowledge")...)
	if len(known.Kinds) != 1 || known.Kinds[0].Runs != 1 {
		t.Errorf("knowledge %+v", known)
	}
	if text := ok(t, at("knowledge")...); !strings.Contains(text, "/train@") || !strings.Contains(text, "1 run,") {
		t.Errorf("knowledge printed %q", text)
	}
}

func TestWaitTellsHowTheJobEnded(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	good := jobFile(t, "good", 3, 0.4, daemontest.Tuned("observe")...) // long enough that it is seen to run on a busy machine
	bad := jobFile(t, "bad", 2, 0.02, "#SIM exit=3")

	r := pitchpipe(t, "run", good, "--wait", "--socket", c.Config.Socket)
	if r.out != "1\n" || !strings.Contains(r.errors, "epoch 3/3") || !strings.Contains(r.errors, "succeeded") {
		t.Errorf("run --wait printed %q, %q: want the id alone, and how far it is beside it", r.out, r.errors)
	}
	var job api.Job
	if decoded(t, &job, "run", good, "--wait", "--off", "--socket", c.Config.Socket); !job.Ended || job.State != "succeeded" || job.Reason != "off" {
		t.Errorf("run --wait --off: %+v", job)
	}

	r = pitchpipe(t, "run", bad, "--wait", "--socket", c.Config.Socket)
	if r.code != command.ExitFailed || !strings.Contains(r.errors, "ended as failed (exit status 3)") {
		t.Errorf("a job that failed: exit %d, errors %q", r.code, r.errors)
	}
	r = pitchpipe(t, "run", bad, "--wait", "--json", "--socket", c.Config.Socket)
	if err := json.Unmarshal([]byte(r.out), &job); err != nil || r.code != command.ExitFailed || job.ExitCode != 3 || job.State != "failed" {
		t.Errorf("a job that failed, as JSON: exit %d, %v, %s", r.code, err, r.out)
	}
}

func TestWaitEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	file := jobFile(t, "long", 1000, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	code := command.Run(ctx, command.World{
		Args: []string{"run", file, "--wait", "--socket", c.Config.Socket}, Stdout: &strings.Builder{}, Stderr: &strings.Builder{},
	})
	if code != command.ExitFailed {
		t.Errorf("exit %d, want %d", code, command.ExitFailed)
	}
	if jobs, err := c.Client.Jobs(t.Context()); err != nil || len(jobs) != 1 || jobs[0].State != "running" {
		t.Errorf("the job did not go on: %+v (%v)", jobs, err)
	}
}

func TestRunTellsBesideTheIDWhatWillHappen(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Site: "default:\n  max_mode: apply\n"})
	file := jobFile(t, "told", 3, 0.05, daemontest.Tuned("apply")...)
	r := pitchpipe(t, "run", file, "--socket", c.Config.Socket)
	const want = ": valid, but nothing can be tuned: cores=2,4 is above your request of 1; the site's policy lacks above_request [above_request=false (default)]\n"
	if id := strings.TrimSpace(r.out); r.code != command.ExitOK || strings.ContainsAny(id, " \n") || !strings.HasPrefix(r.errors, file+want) {
		t.Errorf("exit %d, output %q, beside it %q", r.code, r.out, r.errors)
	}
	for _, args := range [][]string{{"run", "--off", file}, {"run", "--json", file}, {"run", jobFile(t, "plain", 1, 0.01)}} {
		if r := pitchpipe(t, append(args, "--socket", c.Config.Socket)...); r.code != command.ExitOK || r.errors != "" {
			t.Errorf("%q: exit %d, errors %q", args, r.code, r.errors)
		}
	}
}

func TestSteeringAJob(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	at := func(args ...string) []string { return append(args, "--socket", c.Config.Socket) }
	id := strings.TrimSpace(ok(t, at("run", jobFile(t, "long", 1000, 60, daemontest.Tuned("apply")...))...))

	var pauses []api.Pause
	decoded(t, &pauses, at("pause", "--why", "reboot")...)
	if len(pauses) != 1 || pauses[0].Scope != "cluster" || pauses[0].Why != "reboot" || pauses[0].By == "" {
		t.Errorf("pauses %+v", pauses)
	}
	if text := ok(t, at("pause", "--why", "reboot")...); text != "paused: cluster by "+pauses[0].By+" reboot\n" {
		t.Errorf("pause printed %q", text)
	}
	if text := ok(t, at("pause", "job", id)...); !strings.Contains(text, "paused: cluster") || !strings.Contains(text, "paused: job "+id) {
		t.Errorf("pause printed %q", text)
	}
	for name, warned := range map[string]bool{pauses[0].By: false, "mispelt": true} {
		if r := pitchpipe(t, at("pause", "user", name)...); r.code != command.ExitOK || strings.Contains(r.errors, "no job of user") != warned {
			t.Errorf("pause of user %s: status %d, errors %q", name, r.code, r.errors)
		}
		ok(t, at("resume", "user", name)...)
	}
	if text := ok(t, at("resume")...); text != "resumed: cluster\n" {
		t.Errorf("resume printed %q", text)
	}
	var resumed map[string]string
	if decoded(t, &resumed, at("resume", "job", id)...); resumed["resumed"] != "job" || resumed["name"] != id {
		t.Errorf("resume as JSON: %v", resumed)
	}
	if decoded(t, &pauses, at("pause", "--list")...); len(pauses) != 0 {
		t.Errorf("pauses left: %+v", pauses)
	}

	var off map[string]string
	if decoded(t, &off, at("off", id)...); off["off"] != id {
		t.Errorf("off as JSON: %v", off)
	}
	c.Until(t, id, func(j api.Job) bool { return j.Reason == "off" })
	if text := ok(t, at("off", id)...); !strings.Contains(text, id) {
		t.Errorf("off printed %q", text)
	}
	if text := ok(t, at("stop", id)...); !strings.Contains(text, "stopping "+id) {
		t.Errorf("stop printed %q", text)
	}
	if j := c.Until(t, id, daemontest.Ended); j.State != "cancelled" {
		t.Errorf("after stop: %+v", j)
	}
	var stopped map[string]string
	if decoded(t, &stopped, at("stop", id)...); stopped["stopped"] != id {
		t.Errorf("stop as JSON: %v", stopped)
	}
	if text := ok(t, at("stop", id)...); text != id+" has already ended: cancelled\n" {
		t.Errorf("stop of a job that ended printed %q", text)
	}
}

func TestTheControllersAnswersHaveTheirExitStatus(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	at := func(args ...string) []string { return append(args, "--socket", c.Config.Socket) }
	for _, args := range [][]string{{"status", "77"}, {"explain", "77"}, {"logs", "77"}, {"logs", "77", "--json"}, {"off", "77"}, {"stop", "77"}} {
		if r := pitchpipe(t, at(args...)...); r.code != command.ExitNotFound || r.out != "" || strings.Count(r.errors, "\n") != 1 {
			t.Errorf("%v: exit %d, output %q, errors %q; want %d", args, r.code, r.out, r.errors, command.ExitNotFound)
		}
	}
	bad := jobFile(t, "bad", 2, 0.1, "#TUNE mod=apply", "#TUNE objective=speed")
	r := pitchpipe(t, at("run", bad)...)
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, bad+":6:7:") || !strings.Contains(r.errors, bad+":7:") {
		t.Errorf("a stanza with errors: exit %d, errors %q", r.code, r.errors)
	}
	if r := pitchpipe(t, at("pause", "galaxy", "x")...); r.code != command.ExitInvalid || !strings.Contains(r.errors, "galaxy") {
		t.Errorf("a scope that does not exist: exit %d, errors %q", r.code, r.errors)
	}
	var jobs []api.Job
	if decoded(t, &jobs, at("status")...); len(jobs) != 0 {
		t.Errorf("jobs were left behind: %+v", jobs)
	}
	if text := strings.TrimSpace(ok(t, at("status", "--json")...)); text != "[]" {
		t.Errorf("no jobs as JSON are %q", text)
	}
}

func TestRunHandsTheEnvironmentOn(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	file := jobFile(t, "show", 1, 0.01, "#SIM show_env=COLOUR")
	id := strings.TrimSpace(ok(t, "run", file, "--env", "COLOUR=blue=green", "--socket", c.Config.Socket))
	c.Until(t, id, daemontest.Ended)
	if text := ok(t, "logs", id, "--socket", c.Config.Socket); !strings.Contains(text, "env COLOUR=blue=green") {
		t.Errorf("the environment did not reach the job: %q", text)
	}
}

// rightless is the scheduler of a site whose users submit and stop their jobs themselves.
type rightless struct {
	driver.Driver
	name string
}

func (r rightless) Name() string { return r.name }

func (r rightless) Capabilities() driver.Capabilities {
	c := r.Driver.Capabilities()
	c.UsersSubmit = true
	return c
}

func (rightless) Stop(_ context.Context, id driver.JobID) error {
	return fmt.Errorf("job %s: %w", id, driver.ErrDenied)
}

func TestStopIsTheUsersOwnWhereTheControllerHasNoRightTo(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	agent := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.InProcess, ACL: true})
	for _, tt := range []struct {
		name, scheduler, token, says string
		code                         int
		cancelled, deregistered      bool
	}{
		{"Slurm's job is cancelled by scancel", "slurm", "", "stopping", command.ExitOK, true, false},
		{"Nomad's job is deregistered with the caller's token", "nomad", agent.Token, "stopping", command.ExitOK, false, true},
		{"what the caller's token lacks is named", "nomad", "", "the token lacks the capability deregister-job", command.ExitDenied, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) { // each job is called 1
			c := daemontest.Start(t, daemontest.Options{Driver: func(d driver.Driver) driver.Driver { return rightless{d, tt.scheduler} }})
			job, err := c.Cluster.Start(t.Context(), "r", driver.Spec{Owner: me.Username, Filename: "job.sh", Source: daemontest.Script("long", 1000, 1)})
			if err != nil {
				t.Fatal(err)
			}
			file := fmt.Sprintf("job %q {\n  type = \"batch\"\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n"+
				"      config {\n        command = \"/bin/sleep\"\n        args = [\"60\"]\n      }\n    }\n  }\n}\n", job.ID)
			if _, err := (nomad.Submission{Client: agent.Client(t)}).Submit(t.Context(), driver.Spec{Filename: "job.nomad.hcl", Source: []byte(file)}); err != nil {
				t.Fatal(err)
			}
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "scancel"), []byte("#!/bin/sh\necho \"$@\" >"+bin+"/called\n"), 0o755); err != nil { //nolint:gosec // it is a program
				t.Fatal(err)
			}
			var said bytes.Buffer
			code := command.Run(t.Context(), command.World{
				Args:    []string{"stop", string(job.ID), "--slurm.bin", bin, "--socket", c.Config.Socket},
				Environ: []string{"NOMAD_ADDR=" + agent.Addr, "NOMAD_TOKEN=" + tt.token}, Stdout: &said, Stderr: &said,
			})
			if code != tt.code || !strings.Contains(said.String(), tt.says) {
				t.Errorf("exit %d, and stop printed %q; want %d and %q", code, said.String(), tt.code, tt.says)
			}
			called, err := os.ReadFile(filepath.Join(bin, "called"))
			if cancelled := err == nil && strings.TrimSpace(string(called)) == string(job.ID); cancelled != tt.cancelled {
				t.Errorf("scancel was called with %q (%v)", called, err)
			}
			there, _, err := agent.Client(t).Jobs().Info(string(job.ID), nil)
			if err != nil || *there.Stop != tt.deregistered {
				t.Errorf("Nomad's job is stopped: %v (%v), want %v", there.Stop, err, tt.deregistered)
			}
			if _, _, err := agent.Client(t).Jobs().Deregister(string(job.ID), true, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLogsFollowAJobToItsEnd(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	for _, form := range []string{"--json=false", "--json"} {
		id := strings.TrimSpace(ok(t, "run", jobFile(t, "short", 4, 0.2), "--socket", c.Config.Socket))
		if text := ok(t, "logs", "--follow", form, id, "--socket", c.Config.Socket); strings.Count(text, "epoch 4/4") != 1 || strings.Count(text, "epoch 1/4") != 1 {
			t.Errorf("logs --follow %s printed %q", form, text)
		}
	}
}
