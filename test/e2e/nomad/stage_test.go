package nomad_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/api"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/jobspecs"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// policy has no control group, a random draw; jobs that ship ask for one core and are given more.
const policy = `default:
  max_mode: apply
  above_request: true
  control: 0
`

// patience is how long anything may take on a machine that is busy with others.
const patience = 4 * time.Minute

// stage is an agent, an exporter on its node, and a controller.
type stage struct {
	t      *testing.T
	dir    string
	agent  *nomadagent.Agent
	nomad  *nomadapi.Client
	client *api.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := bareStage(t, nomadagent.Options{})
	s.spawn(exec.CommandContext(context.WithoutCancel(t.Context()), s.path("pitchpipe-exporter"), "--socket", s.path("exporter.sock"),
		"--web.listen-address=", "--sampling.interval=250ms", "--log.level=error"), "exporter.log")
	s.calm(s.path("exporter.sock"), s.path("calm.sock"))
	s.controller()
	return s
}

// bareStage has the programs, and an agent on which nothing runs.
func bareStage(t *testing.T, o nomadagent.Options) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ppnomad-e2e-") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t: t, dir: dir}
	s.programs()
	s.agent = nomadagent.Start(t, o)
	s.nomad = s.agent.Client(t)
	return s
}

// calm hides what others do on this machine from those who ask at a socket.
func (s *stage) calm(exporter, socket string) {
	s.t.Helper()
	meter := exporterapi.NewClient(exporter)
	s.t.Cleanup(meter.Close)
	s.await("the exporter", func() error { _, err := meter.Node(s.t.Context()); return err })
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.spawn(exec.CommandContext(context.WithoutCancel(s.t.Context()), self, roleCalm, socket, exporter), "calm.log")
	s.await("what hides others", func() error { _, err := os.Stat(socket); return err })
}

func (s *stage) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// in is the same stage for a part of the test.
func (s *stage) in(t *testing.T) *stage {
	out := *s
	out.t = t
	return &out
}

func (s *stage) programs() {
	s.t.Helper()
	if err := sandbox.Build(s.t.Context(), s.dir, sandbox.Pitchpipe, sandbox.Exporter, sandbox.Workload, sandbox.FaultJob); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(s.path("jobspecs"), jobspecs.Files()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) controller() {
	s.t.Helper()
	s.site()
	s.spawn(s.command(context.WithoutCancel(s.t.Context()), "controller", "--config=", "--driver=nomad", "--nomad.address="+s.agent.Addr,
		"--state="+s.path("state"), "--exporter.socket="+s.path("calm.sock"), "--listen=", "--site="+s.path("site.yaml"), "--resync=2s"), "controller.log")
	s.listens()
}

func (s *stage) site() {
	s.t.Helper()
	if err := os.WriteFile(s.path("site.yaml"), []byte(policy), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// listens waits for the controller at its socket.
func (s *stage) listens() {
	s.t.Helper()
	s.client = api.NewClient(s.path("controller.sock"))
	s.t.Cleanup(s.client.Close)
	s.await("the controller", func() error { _, err := s.client.Jobs(s.t.Context()); return err })
}

// command is the pitchpipe program as a user of the cluster calls it.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.path("pitchpipe"), append([]string{args[0], "--socket=" + s.path("controller.sock")}, args[1:]...)...)
	cmd.Env = sandbox.Environ("NOMAD_ADDR="+s.agent.Addr, "NOMAD_TOKEN="+s.agent.Token, "HOME="+s.dir, "PITCHPIPE_DRIVER=nomad")
	return cmd
}

// spawn starts a process that ends with the test and writes to the file.
func (s *stage) spawn(cmd *exec.Cmd, log string) {
	s.t.Helper()
	sandbox.Start(s.t, log, s.path(log), cmd)
}

func (s *stage) await(what string, ask func() error) {
	s.t.Helper()
	sandbox.Await(s.t, patience, what, ask)
}

// run calls the pitchpipe program and returns what it printed.
func (s *stage) run(args ...string) string {
	s.t.Helper()
	cmd := s.command(s.t.Context(), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("pitchpipe %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// through waits until the controller is through with a job, and returns what it says. Of
// the run that was submitted before, under the same id, it is not about.
func (s *stage) through(id string, before time.Time) (j api.Job) {
	s.t.Helper()
	s.await("the end of "+id, func() (err error) {
		if j, err = s.client.Job(s.t.Context(), id); err == nil && (!j.Ended || j.Submitted.Equal(before)) {
			err = fmt.Errorf("it is %s, %s (%s), epoch %d of %d, attempt %d", j.State, j.Phase, j.Reason, j.Epoch, j.Total, j.Attempt)
		}
		return err
	})
	return j
}
