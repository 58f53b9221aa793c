package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/e2e/table"
	"pitchpipe/test/sandbox"
)

// newFlow is a machine on which the programs that ship run, controller included.
func newFlow(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, build(t))
	config := filepath.Join(s.dir, "controller.yaml") // nothing of the machine's own configuration
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.argv = []string{
		s.progs.path("pitchpipe"), "controller", "--config", config, "--site", filepath.Join(s.dir, "site.yaml"),
		"--socket", filepath.Join(s.dir, "controller.sock"), "--state", filepath.Join(s.dir, "state"),
		"--local.dir", filepath.Join(s.dir, "jobs"), "--local.cluster", cluster(s.dir), "--resync", "2s",
		"--exporter.socket", filepath.Join(s.dir, "exporter.sock"), "--listen", "",
	}
	return s
}

// open starts the controller and waits until it answers. What runs when the test
// ends is stopped.
func (s *stage) open() {
	s.t.Helper()
	s.start()
	s.ready()
	s.t.Cleanup(s.sweep)
}

func (s *stage) ready() {
	s.t.Helper()
	s.await("the controller", func() error {
		a := s.pitchpipe("status")
		if a.code != command.ExitOK {
			return errors.New(a.errors)
		}
		return nil
	})
}

// sweep stops every job, so that none outlives its test, and the controller.
func (s *stage) sweep() {
	if !s.alive() {
		s.start()
		s.ready()
	}
	jobs := told[[]api.Job](s, "status")
	for _, j := range jobs {
		if !j.Ended {
			s.ok("stop", j.ID)
		}
	}
	s.finished(context.WithoutCancel(s.t.Context()), len(jobs))
	s.quit()
}

// quit asks the controller to end, as a service manager does.
func (s *stage) quit() {
	s.t.Helper()
	if err := s.ctl.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("the controller that was told to end: %v", err)
		}
		s.ended <- err
	case <-time.After(10 * time.Second):
		s.t.Fatal("the controller was told to end and did not")
	}
}

// answer is what a command said.
type answer struct {
	out, errors string
	code        int
}

// pitchpipe runs one command line as the user who runs the tests.
func (s *stage) pitchpipe(args ...string) answer { return s.as(nil, args...) }

// as runs one command line as another user.
func (s *stage) as(user *syscall.Credential, args ...string) answer {
	s.t.Helper()
	// Not the test's context: what cleans up asks too.
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.progs.path("pitchpipe"),
		append(args, "--socket", filepath.Join(s.dir, "controller.sock"))...)
	cmd.Dir, cmd.Env = s.dir, sandbox.Environ("HOME="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("pitchpipe %v: %v", args, err)
	}
	return answer{out.String(), said.String(), cmd.ProcessState.ExitCode()}
}

// ok is the output of a command that must succeed and has nothing to complain of. Run says
// what will happen next to its output.
func (s *stage) ok(args ...string) string {
	s.t.Helper()
	a := s.pitchpipe(args...)
	told := args[0] == "run" && strings.Contains(a.errors, ": valid")
	if a.code != command.ExitOK || a.errors != "" && !told {
		s.t.Fatalf("pitchpipe %v: exit %d, %s", args, a.code, a.errors)
	}
	return a.out
}

// told is what a command prints as JSON.
func told[T any](s *stage, args ...string) (v T) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.ok(append(args, "--json")...)), &v); err != nil {
		s.t.Fatalf("pitchpipe %v --json: %v", args, err)
	}
	return v
}

// job is one job's status.
func (s *stage) job(id string) api.Job {
	s.t.Helper()
	jobs := told[[]api.Job](s, "status", id)
	if len(jobs) != 1 || jobs[0].ID != id {
		s.t.Fatalf("status %s: %+v", id, jobs)
	}
	return jobs[0]
}

// until waits for something to be true of a job.
func (s *stage) until(id, what string, is func(api.Job) bool) (j api.Job) {
	s.t.Helper()
	s.await(id+" "+what, func() error {
		if j = s.job(id); !is(j) {
			return fmt.Errorf("it is %s, %s (%s), epoch %d/%d, attempt %d", j.State, j.Phase, j.Reason, j.Epoch, j.Total, j.Attempt)
		}
		return nil
	})
	return j
}

func ended(j api.Job) bool { return j.Ended }

// write puts a job file into its own folder and returns its path.
func (s *stage) write(name, text string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, "work", strings.TrimSuffix(name, filepath.Ext(name)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// jobspec is a job file that ships.
func jobspec(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../jobspecs", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// epochsOf are the epochs that an output reports, in its order.
func epochsOf(t *testing.T, output string, total int) (epochs []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^epoch (\d+)/(\d+) `).FindAllStringSubmatch(output, -1) {
		if m[2] != fmt.Sprint(total) {
			t.Errorf("an epoch of %s, want %d: %q", m[2], total, m[0])
		}
		epochs = append(epochs, m[1])
	}
	return epochs
}

// whole checks that a job did all its epochs, that each was measured, and that it printed each
// of them in order and once, or again where an attempt was thrown away.
func (s *stage) whole(id string, total int) {
	s.t.Helper()
	j := s.job(id)
	if j.State != "succeeded" || j.ExitCode != 0 || !j.Ended || j.Epoch != total || j.Total != total {
		s.t.Errorf("%s (%s): %s, exit %d, ended %v, epoch %d/%d, %s; want %d epochs and success",
			id, j.Name, j.State, j.ExitCode, j.Ended, j.Epoch, j.Total, j.Detail, total)
	}
	discards := table.Discards(told[api.Story](s, "explain", id))
	if got := epochsOf(s.t, s.ok("logs", id), total); !table.InOrder(got, total, discards) {
		s.t.Errorf("%s (%s): its output has the epochs %v, want each of %d in order and once, or again after %d discards", id, j.Name, got, total, discards)
	}
}
