package slurm_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// policy has no control group, a random draw; jobs ask for one core and are given more.
const policy = `default:
  max_mode: apply
  above_request: true
  control: 0
`

// stage is a cluster with an exporter on its machine, as one test uses it.
type stage struct {
	t      *testing.T
	w      *world
	c      *slurmcluster.Cluster
	socket string // the exporter's
}

// newStage starts the exporter, as root, for the cluster's nodes.
func newStage(t *testing.T) *stage {
	t.Helper()
	c := shared.get(t)
	s := &stage{t: t, w: shared, c: c, socket: shared.path("exporter.sock")}
	exporter := exec.CommandContext(context.WithoutCancel(t.Context()), s.w.path("pitchpipe-exporter"), "--socket", s.socket,
		"--web.listen-address=", "--api.readers="+slurmcluster.Controller, "--sampling.interval=250ms", "--log.level=error")
	s.spawn(exporter, "exporter.log")
	meter := exporterapi.NewClient(s.socket)
	t.Cleanup(meter.Close)
	s.await("the exporter", func() error { _, err := meter.Node(t.Context()); return err })
	return s
}

// in is the same stage for a part of the test.
func (s *stage) in(t *testing.T) *stage {
	out := *s
	out.t = t
	return &out
}

// node is the name of a node, counted from 1.
func (s *stage) node(n int) string { return s.c.Nodes()[n-1] }

// spawn starts a process that writes to the file and ends with the test, or when it is killed.
func (s *stage) spawn(cmd *exec.Cmd, log string) (kill func()) {
	s.t.Helper()
	return sandbox.Start(s.t, log, s.w.path(log), cmd).Kill
}

// patience is how long anything may take on a machine that is busy with others.
const patience = 6 * time.Minute

func (s *stage) await(what string, ask func() error) {
	s.t.Helper()
	sandbox.Await(s.t, patience, what, ask)
}

func (s *stage) as(user, program string, args ...string) string {
	s.t.Helper()
	out, err := s.c.Run(s.t.Context(), user, program, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// record is what scontrol shows of a job.
func (s *stage) record(id string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for word := range strings.FieldsSeq(s.as("slurm", "scontrol", "show", "job", id)) {
		if key, value, ok := strings.Cut(word, "="); ok {
			out[key] = value
		}
	}
	return out
}

// read is a file in the home of a user; empty if there is none yet.
func (s *stage) read(user, name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.c.Home(user), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

// submission is an sbatch, which with --wait goes on in the background.
type submission struct {
	user, name, id string
	ended          chan error
}

// sbatch submits a script as its user, with more of an environment, and returns when
// the job has an id.
func (s *stage) sbatch(user, name, script string, env []string, args ...string) submission {
	s.t.Helper()
	cmd, err := s.c.Command(s.t.Context(), user, "sbatch", append([]string{"--parsable"}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(script)
	cmd.Stderr = s.t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatalf("sbatch: %v", errors.Join(err, cmd.Wait()))
	}
	id, _, _ := strings.Cut(strings.TrimSpace(line), ";")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return submission{user: user, name: name, id: id, ended: ended}
}

// status is what sbatch --wait ended with.
func (s *stage) status(sub submission) int {
	s.t.Helper()
	select {
	case err := <-sub.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			s.t.Fatal(err)
		}
		if exit != nil {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(patience):
		s.t.Fatalf("sbatch --wait of job %s does not end: %v", sub.id, s.record(sub.id))
		return -1
	}
}

// succeeded waits until a job, or each task of an array, has ended, and fails the test
// where one did not succeed. sbatch --wait would look for its end every few seconds only.
func (s *stage) succeeded(sub submission) {
	s.t.Helper()
	s.await("the end of "+sub.name, func() error {
		if states := s.as("slurm", "squeue", "-h", "-j", sub.id, "-o", "%i %T %r"); states != "" {
			return errors.New(states)
		}
		return nil
	})
	for record := range strings.SplitSeq(s.as("slurm", "scontrol", "-o", "show", "job", sub.id), "\n") {
		if !strings.Contains(record, " JobState=COMPLETED ") || !strings.Contains(record, " ExitCode=0:0 ") {
			s.t.Errorf("%s did not succeed: %s", sub.name, record)
		}
	}
}

// seenEnded waits until a job has succeeded and the controller knows of it.
func (s *stage) seenEnded(h deployment, sub submission) {
	s.t.Helper()
	s.succeeded(sub)
	s.await("the controller knows of the end", func() error {
		job, err := h.client.Job(s.t.Context(), sub.id)
		if err == nil && !job.Ended {
			err = errors.New(job.Phase)
		}
		return err
	})
}

// tell logs what the controller says about a job and what the job said, where the
// test failed.
func (s *stage) tell(client *api.Client, sub submission) {
	s.t.Helper()
	if !s.t.Failed() {
		return
	}
	s.t.Logf("%s, job %s:\n%s%s", sub.name, sub.id, s.read(sub.user, sub.id+".attempts"), s.read(sub.user, sub.id+".out"))
	story, err := client.Explain(context.WithoutCancel(s.t.Context()), sub.id)
	if err != nil {
		s.t.Logf("explain %s: %v", sub.id, err)
	}
	for _, l := range story.Lines {
		s.t.Logf("%s %s %v", l.At.Format("05.000"), l.Text, l.Why)
	}
}
