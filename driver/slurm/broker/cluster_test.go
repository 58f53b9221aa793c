package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/test/slurmcluster"
)

// site is a real Slurm with limits, a broker under the account that is Operator
// there, and an ordinary account that asks it.
type site struct {
	*slurmcluster.Cluster
	program string // this test program, where every user can run it
	dir     string // of sockets and states, the Operator's
}

func newSite(t *testing.T) *site {
	t.Helper()
	began := time.Now()
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{
		CPUs: 16, Accounting: true,
		Lines: []string{
			"AccountingStorageEnforce=limits,qos", "RequeueExitHold=85",
			"SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0",
		},
	})
	s := &site{Cluster: slurmcluster.Need(t, c, err)}
	t.Logf("the cluster is up after %v", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Logs())
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.dir = s.Home(slurmcluster.Operator)
	s.program = filepath.Join(s.Dir(), "broker.test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(s.program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, from.Close(), to.Close(), os.Chmod(s.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) run(t *testing.T, user, program string, args ...string) string {
	t.Helper()
	out, err := s.Run(context.WithoutCancel(t.Context()), user, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return out
}

// submit submits a job of a user; marked as the site's plugin would.
func (s *site) submit(t *testing.T, user string, marked bool, args ...string) string {
	t.Helper()
	id := s.run(t, user, "sbatch", append([]string{"--parsable", "--open-mode=append"}, args...)...)
	if marked {
		s.run(t, "slurm", "scontrol", "update", "JobId="+id, "AdminComment="+accepted)
	}
	return id
}

// field is one of scontrol's record of a job.
func (s *site) field(t *testing.T, id, key string) string {
	t.Helper()
	_, rest, _ := strings.Cut(s.run(t, "root", "scontrol", "-o", "show", "job", id), " "+key+"=")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// until waits for a field to have a value.
func (s *site) until(t *testing.T, id, key, want string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); s.field(t, id, key) != want; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s of job %s is %q, want %q\n%s", key, id, s.field(t, id, key), want, s.run(t, "root", "scontrol", "-o", "show", "job", id))
		}
	}
}

// said waits until a job has said so often that it has its trap.
func (s *site) said(t *testing.T, output string, times int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if text, err := os.ReadFile(output); err == nil && bytes.Count(text, []byte("here")) >= times {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not say that the job began", output)
		}
	}
}

func uidOf(t *testing.T, name string) uint32 {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(uid)
}

// running is a broker process.
type running struct {
	s    *site
	role role
	cmd  *exec.Cmd
	log  bytes.Buffer
	stop func()
}

// broker starts one as the Operator and waits until it listens.
func (s *site) broker(t *testing.T, name string, change func(*role)) *running {
	t.Helper()
	r := &running{s: s, role: role{
		Socket: filepath.Join(s.dir, name+".sock"), Dir: filepath.Join(s.dir, name), Controllers: []uint32{uidOf(t, slurmcluster.Controller)},
	}}
	if change != nil {
		change(&r.role)
	}
	text, err := json.Marshal(r.role)
	if err != nil {
		t.Fatal(err)
	}
	// It outlives the test's context, so that its end is seen below.
	if r.cmd, err = s.Command(context.WithoutCancel(t.Context()), slurmcluster.Operator, s.program); err != nil {
		t.Fatal(err)
	}
	r.cmd.Env = append(r.cmd.Env, childEnv+"="+string(text))
	r.cmd.Stderr = &r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	r.stop = sync.OnceFunc(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		err := <-ended
		if err != nil && r.role.DieAt == "" {
			t.Errorf("the broker ended with %v", err)
		}
		t.Logf("broker %s said\n%s", name, r.log.String())
	})
	t.Cleanup(r.stop)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := raw(r.role.Socket, "/", ""); err == nil {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatal("the broker does not listen")
		}
	}
}

// ask makes an account ask the broker.
func (r *running) ask(t *testing.T, account string, ask role) error {
	t.Helper()
	ask.Socket = r.role.Socket
	text, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := r.s.Command(t.Context(), account, r.s.program)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, childEnv+"="+string(text))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("asking as %s: %v", account, err)
	}
	word, said, ok := strings.Cut(string(out), "|")
	switch {
	case !ok:
		t.Fatalf("asking as %s: %q", account, out)
	case word == "":
		return nil
	}
	return fmt.Errorf("%s: %w", said, words()[word])
}

// controller asks as the account of the controller.
func (r *running) controller(t *testing.T, ask role) error {
	t.Helper()
	return r.ask(t, slurmcluster.Controller, ask)
}

func (r *running) must(t *testing.T, ask role) {
	t.Helper()
	if err := r.controller(t, ask); err != nil {
		t.Fatalf("%s: %v", ask.Verb, err)
	}
}

func refused(t *testing.T, what string, err, want error, words string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v, want %v with the words %q", what, err, want, words)
	}
}

const patient = "#!/bin/bash\n#TUNE mode=apply\ntrap 'echo saved' USR1\nwhile true; do sleep 0.2; done\n"

// script writes a batch script where every user finds it.
func (s *site) script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(s.Dir(), fmt.Sprintf("%x.sh", len(text)))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnACluster(t *testing.T) {
	s := newSite(t)
	for _, story := range []struct {
		name string
		tell func(*testing.T, *site)
	}{
		{"a group limit that an Operator's update would pass over", aGroupLimit},
		{"what Slurm gives counts, and not what is asked for", whatIsGiven},
		{"jobs that the plugin did not accept, and who may ask", notAccepted},
		{"a whole move", aWholeMove},
		{"a finished job is never made to run again", aFinishedJob},
		{"a hold and a begin time of the owner stay", aHold},
		{"a job that left for our signal is let go", anExit},
		{"a driver without rights moves a job by the broker's hand", aDriver},
		{"a task of an array is moved while others run and wait", anArray},
		{"of an array's waiting tasks each counts", anArraysLimit},
		{"the broker is killed between its record and the effect", aKill},
		{"a job that is killed for less memory runs again with its owner's, and the broker is killed between", aKillForMemory},
		{"a job that met a lower time limit runs again with its owner's, and brokers are gone or killed before", anOverrun},
	} {
		t.Run(story.name, func(t *testing.T) { story.tell(t, s) })
	}
}
