package slurm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/slurmcluster"
)

const exporterSocket = "E2E_EXPORTER"

// site lets the tuner do all it can.
const site = `default:
  max_mode: apply
  above_request: true
  control: 0
  probe_share: 1
  user_restarts: 0
  total_restarts: 0
  pause_after: 0
  margin: 1
`

// stage is a cluster with an exporter on its node and a controller of Alpha's.
type stage struct {
	t        *testing.T
	c        *slurmcluster.Cluster
	programs string
	dir      string // the controller's
	socket   string // the exporter's
	client   *api.Client
	log      string // the controller's, a file
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c := shared.cluster.Get(t)
	s := &stage{t: t, c: c, programs: shared.programs(t)}
	own, err := os.MkdirTemp(shared.dir, "x") //nolint:usetesting // every user has to reach it
	if err != nil {
		t.Fatal(err)
	}
	s.socket = filepath.Join(own, "exporter.sock")
	if err := os.Chmod(own, 0o755); err != nil { //nolint:gosec // jobs of every user report to the socket in it
		t.Fatal(err)
	}
	exporter := exec.CommandContext(context.WithoutCancel(t.Context()), s.program("pitchpipe-exporter"), "--socket", s.socket,
		"--web.listen-address=", "--sampling.interval=250ms", "--sampling.discover=50ms", "--log.level=error")
	s.spawn(exporter, filepath.Join(own, "exporter.log"))
	meter := exporterapi.NewClient(s.socket)
	defer meter.Close()
	s.await("the exporter", func() error { _, err := meter.Node(t.Context()); return err })

	s.dir = filepath.Join(c.Home(slurmcluster.Alpha), "ctl")
	s.as(slurmcluster.Alpha, "mkdir", "-m", "700", s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "site.yaml"), []byte(site), 0o644); err != nil { //nolint:gosec // Alpha's controller reads it
		t.Fatal(err)
	}
	ctl, err := c.Command(context.WithoutCancel(t.Context()), slurmcluster.Alpha, s.program("controller"), roleController, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctl.Env = append(ctl.Env, exporterSocket+"="+s.socket)
	s.log = filepath.Join(own, "controller.log")
	s.spawn(ctl, s.log)
	t.Cleanup(func() {
		if t.Failed() {
			text, err := os.ReadFile(s.log)
			lines := strings.Split(string(text), "\n")
			t.Logf("controller: %v\n%s%s", err, strings.Join(lines[max(0, len(lines)-80):], "\n"), c.Logs())
		}
	})
	s.client = api.NewClient(filepath.Join(s.dir, "controller.sock"))
	t.Cleanup(s.client.Close)
	s.await("the controller", func() error { _, err := s.client.Jobs(t.Context()); return err })
	return s
}

func (s *stage) program(name string) string { return filepath.Join(s.programs, name) }

// spawn starts a process that ends with the test and writes to the file.
func (s *stage) spawn(cmd *exec.Cmd, to string) {
	s.t.Helper()
	out, err := os.Create(to)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(30*time.Second, func() {
			s.t.Errorf("%s does not end when it is told to", cmd.Path)
			_ = cmd.Process.Kill()
		})
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			s.t.Logf("%s: %v", cmd.Path, err)
		}
	})
}

func (s *stage) await(what string, ask func() error) {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
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

// read is a file in the home of a user; empty where there is none yet.
func (s *stage) read(user, name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.c.Home(user), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

// job is a batch script whose epochs wait and are noted in a journal. Its knob
// changes nothing about them, so that settings are tried one after another: each is a
// real move.
type job struct {
	user, name string
	epochs     int
	status     int  // that it ends with
	untuned    bool // without a stanza
}

const pattern = `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

func (s *stage) script(j job) string {
	stanza := "#TUNE mode=apply objective=time\n#TUNE knob cores values=1,2,3\n#TUNE progress pattern='" + pattern + "'\n" +
		"#TUNE checkpoint signal=USR1 grace=30s exit=85\n#TUNE profile warmup_epochs=0 epochs=2\n#TUNE budget restarts=2 probes=2\n"
	if j.untuned {
		stanza = ""
	}
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%[1]s.out --open-mode=append --requeue
#SBATCH --cpus-per-task=1 --mem=256M --time=00:20:00
%[2]s
trap : USR1
echo "attempt ${SLURM_RESTART_COUNT:-0} on $SLURM_CPUS_ON_NODE" >>%[1]s.attempts
%[3]s tick --epochs %[4]d --epoch-seconds 0.2 --journal %[1]s.journal --state %[1]s.state
status=$?
[ $status -ne 0 ] || status=%[5]d
exit $status
`, j.name, stanza, s.program("workload"), j.epochs, j.status)
}

// submission is an sbatch --wait that goes on in the background.
type submission struct {
	job
	id    string
	ended chan error
}

// submit calls sbatch --wait as the job's user and returns when the job has an id.
func (s *stage) submit(j job, args ...string) submission {
	s.t.Helper()
	cmd, err := s.c.Command(s.t.Context(), j.user, "sbatch", append([]string{"--wait", "--parsable"}, args...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(s.script(j))
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
	return submission{job: j, id: id, ended: ended}
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
	case <-time.After(4 * time.Minute):
		s.t.Fatalf("sbatch --wait of job %s does not end: %v", sub.id, s.record(sub.id))
		return -1
	}
}

// whole fails the test unless every epoch was done once and in order.
func (s *stage) whole(j job) {
	s.t.Helper()
	var want strings.Builder
	for e := 1; e <= j.epochs; e++ {
		want.WriteString(strconv.Itoa(e) + "\n")
	}
	if got := s.read(j.user, j.name+".journal"); got != want.String() {
		s.t.Errorf("%s: epochs done: %q, want each of 1 to %d once and in order", j.name, strings.Fields(got), j.epochs)
	}
}

// tell logs what the controller says about a job and what the job said, where the
// test failed.
func (s *stage) tell(sub submission) {
	s.t.Helper()
	if !s.t.Failed() {
		return
	}
	id := sub.id
	s.t.Logf("%s, job %s:\n%s%s", sub.name, id, s.read(sub.user, sub.name+".attempts"), s.read(sub.user, sub.name+".out"))
	story, err := s.client.Explain(context.WithoutCancel(s.t.Context()), id)
	if err != nil {
		s.t.Logf("explain %s: %v", id, err)
	}
	for _, l := range story.Lines {
		s.t.Logf("%s %s %v", l.At.Format("05.000"), l.Text, l.Why)
	}
}
