package nomad_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	controller "pitchpipe/controller/daemon/api"
	"pitchpipe/test/nomadagent"
)

// TestTheControllerRunsWithTheIdentityOfItsTask: the shipped job file, the shipped policy
// bound to that job, and no token anywhere. It sees a job with a stanza.
func TestTheControllerRunsWithTheIdentityOfItsTask(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real, ACL: true})
	dir, err := os.MkdirTemp("/tmp", "ppnomad-wi-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(dir, "pitchpipe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "pitchpipe/controller/cmd/pitchpipe").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// The agent of a test marks the processes of its jobs by a variable that is not ours.
	started := filepath.Join(dir, "started")
	script := "#!/bin/sh\nunset PITCHPIPE_NOMADAGENT\nexec " + program + " \"$@\"\n"
	if err := os.WriteFile(started, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	client := a.Client(t)
	bound := &api.ACLPolicy{Name: "pitchpipe", Rules: policy(t, "policy.hcl", ""), JobACL: &api.JobACL{Namespace: "default", JobID: "pitchpipe-controller"}}
	if _, err := client.ACLPolicies().Upsert(bound, nil); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile("../../jobspecs/nomad/controller.nomad.hcl")
	if err != nil {
		t.Fatal(err)
	}
	vars := fmt.Sprintf("program = %q\nstate = %q\ndirectory = %q\n", started, filepath.Join(dir, "state"), dir)
	job, err := client.Jobs().ParseHCLOpts(&api.JobsParseRequest{JobHCL: string(src), Variables: vars})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	stanza := sleeper("seen")
	no, one := false, int64(1)
	stanza.TaskGroups[0].Scaling = &api.ScalingPolicy{
		Min: &one, Max: &one, Enabled: &no, Type: "horizontal",
		Policy: map[string]any{"tuning": []any{map[string]any{"mode": "observe"}}},
	}
	if _, _, err := client.Jobs().Register(stanza, nil); err != nil {
		t.Fatal(err)
	}
	c := controller.NewClient(filepath.Join(dir, "controller.sock"))
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		seen, err := c.Job(ctx, "seen")
		if err == nil && seen.Phase != "" {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("it does not see the job: %+v, %v\n%s", seen, err, said(t, client))
		}
		out := said(t, client)
		if strings.Contains(out, "Terminated: ") {
			t.Fatalf("it ended: %s\n%s", out, output(t, a, client))
		}
		if strings.Contains(out, "Setup Failure") {
			t.Skipf("the node could not start the task, as beside other agents of one machine: %s", out)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// said is how the controller's task fares.
func said(t *testing.T, client *api.Client) string {
	t.Helper()
	all, _, err := client.Jobs().Allocations("pitchpipe-controller", true, nil)
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("no allocation (%v)", err)
	}
	out := all[0].ClientStatus
	if s := all[0].TaskStates["controller"]; s != nil {
		for _, e := range s.Events {
			out += "\n" + e.Type + ": " + e.DisplayMessage
		}
	}
	return out
}

// output is what the controller's task has logged.
func output(t *testing.T, a *nomadagent.Agent, client *api.Client) string {
	t.Helper()
	all, _, err := client.Jobs().Allocations("pitchpipe-controller", true, nil)
	if err != nil || len(all) == 0 {
		return fmt.Sprintf("no allocation (%v)", err)
	}
	_, text, err := a.Do(t.Context(), "GET", "/v1/client/fs/logs/"+all[0].ID+"?task=controller&type=stderr&plain=true&origin=start&offset=0", "")
	if err != nil {
		return err.Error()
	}
	return text
}
