package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/exporter/api"
)

// aSlurm answers what scontrol would about one job.
type aSlurm struct {
	id      string // the job's number
	has     string // the number under which it has a script, of an array the array's
	script  string
	comment string
	dir     string
	stdout  string
	away    int // calls that are not answered
}

func (s *aSlurm) Run(_ context.Context, c command.Call) (command.Output, error) {
	if s.away > 0 {
		s.away--
		return command.Output{}, fmt.Errorf("slurmctld: %w", driver.ErrTransient)
	}
	switch c.String() {
	case "scontrol -o show job " + s.id:
		return command.Output{Stdout: []byte("JobId=" + s.id + " JobName=train UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A Priority=1 Nice=0 Account=proj QOS=normal " +
			"JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:03 TimeLimit=UNLIMITED TimeMin=N/A " +
			"SubmitTime=2026-11-21T05:46:34 EligibleTime=2026-11-21T05:46:34 AccrueTime=2026-11-21T05:46:34 StartTime=2026-11-21T05:46:34 EndTime=Unknown Deadline=N/A " +
			"SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-21T05:46:34 Scheduler=Backfill Partition=main AllocNode:Sid=localhost:5137 ReqNodeList=(null) " +
			"ExcNodeList=(null) NodeList=n2 BatchHost=n2 NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=1,mem=2000M,node=1,billing=1 " +
			"Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 OverSubscribe=OK " +
			"Contiguous=0 Licenses=(null) Network=(null) Command=(null) WorkDir=" + s.dir + " Comment=" + s.comment + " StdErr=" + s.stdout + " StdIn=/dev/null StdOut=" + s.stdout + " Power= \n")}, nil
	case "scontrol write batch_script " + s.has + " -":
		return command.Output{Stdout: []byte(s.script)}, nil
	}
	return command.Output{}, fmt.Errorf("%s: %w", c, driver.ErrNotFound)
}

// heard is what the exporter was told.
type heard struct {
	mu  sync.Mutex
	got []string
}

func (h *heard) report(_ context.Context, r api.Report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Begins:
	case r.Saved:
		h.got = append(h.got, "saved")
	default:
		h.got = append(h.got, fmt.Sprintf("%d/%d", r.Epoch, r.Total))
	}
	return nil
}

func (h *heard) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

const (
	tuneLines    = "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob cores values=1,2\n"
	progressLine = "#TUNE progress pattern='^epoch (?P<epoch>\\d+)$'"
	doneLine     = "#TUNE checkpoint signal=USR1 done='^saved'\n"
)

// The batch script's process is a shell of this test; Slurm is aSlurm above.
func TestListeningInsideAJobFollowsWhatItsStanzaNames(t *testing.T) {
	t.Parallel()
	const writes = "echo epoch 1; echo epoch 2 >> log; echo saved; echo saved >> log; echo epoch 3 >> /proc/self/fd/1"
	for _, tc := range []struct {
		name  string
		slurm aSlurm
		array string
		want  []string
	}{
		{name: "epochs of the output", slurm: aSlurm{script: tuneLines + progressLine + "\n"}, want: []string{"1/0", "3/0"}},
		{name: "epochs and checkpoints of the output", slurm: aSlurm{script: tuneLines + progressLine + " total=9\n" + doneLine}, want: []string{"1/9", "saved", "3/9"}},
		{name: "epochs of a file beside it, and checkpoints of the output", slurm: aSlurm{script: tuneLines + progressLine + " file=log\n" + doneLine}, want: []string{"2/0", "saved"}},
		{name: "a stanza in the comment", slurm: aSlurm{script: "#!/bin/sh\n", comment: "#TUNE mode=apply #TUNE knob cores values=1,2 " + progressLine}, want: []string{"1/0", "3/0"}},
		{name: "a script that Slurm keeps under the array's number", slurm: aSlurm{script: tuneLines + progressLine + "\n", has: "40"}, array: "40", want: []string{"1/0", "3/0"}},
		{name: "a Slurm that is away at first", slurm: aSlurm{script: tuneLines + progressLine + "\n", away: 1}, want: []string{"1/0", "3/0"}},
		{name: "checkpoints alone, where the job reports its epochs itself", slurm: aSlurm{script: tuneLines + "#TUNE progress report=true\n" + doneLine}, want: []string{"saved"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newInJob(t, &tc.slurm, tc.array)
			r.start(t, writes+"; until [ -e end ]; do sleep 0.02; done")
			deadline := time.Now().Add(time.Minute)
			for len(r.heard.list()) < len(tc.want) {
				if time.Now().After(deadline) {
					t.Fatalf("heard %q, want %q", r.heard.list(), tc.want)
				}
				time.Sleep(5 * time.Millisecond)
			}
			if err := os.WriteFile(filepath.Join(r.dir, "end"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := <-r.done; err != nil {
				t.Error(err)
			}
			got := r.heard.list()
			if strings.Contains(tc.slurm.script, "file=") { // two files have no common order
				slices.Sort(got)
				slices.Sort(tc.want)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestListeningEndsAtOnceForAJobThatNamesNoLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, script string
	}{
		{"without a stanza", "#!/bin/sh\n"},
		{"without progress", tuneLines},
		{"that reports its epochs itself", tuneLines + "#TUNE progress report=true\n"},
		{"with a faulty stanza", tuneLines + "#TUNE mood=high\n" + progressLine + "\n"},
		{"whose script is none", "train\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newInJob(t, &aSlurm{script: tc.script}, "")
			r.start(t, "echo epoch 1; exec sleep 600")
			select {
			case err := <-r.done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("still listening")
			}
			if got := r.heard.list(); len(got) > 0 {
				t.Errorf("heard %q", got)
			}
		})
	}
}

func TestListeningSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := newInJob(t, &aSlurm{script: tuneLines + progressLine + "\n", has: "none"}, "")
	r.start(t, "exec sleep 600")
	if err := <-r.done; !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("a job without a script: %v, want %v", err, driver.ErrNotFound)
	}
	r = newInJob(t, &aSlurm{script: tuneLines + progressLine + "\n", away: 1 << 30}, "")
	stop := r.start(t, "exec sleep 600")
	stop()
	if err := <-r.done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
}

// inside is a listener in a job of this test.
type inside struct {
	dir   string
	slurm *aSlurm
	array string
	heard *heard
	done  chan error
}

func newInJob(t *testing.T, s *aSlurm, array string) *inside {
	t.Helper()
	r := &inside{dir: t.TempDir(), slurm: s, array: array, heard: &heard{}, done: make(chan error, 1)}
	s.id, s.dir, s.stdout = "42", r.dir, filepath.Join(r.dir, "out")
	if s.has == "" {
		s.has = s.id
	}
	return r
}

// start runs the batch script and listens to it; stop tells the listener to end.
func (r *inside) start(t *testing.T, script string) (stop func()) {
	t.Helper()
	out, err := os.OpenFile(r.slurm.stdout, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir, cmd.Stdout = r.dir, out
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	l := inJob{id: "42", array: r.array, pid: cmd.Process.Pid, slurm: r.slurm, report: r.heard.report, log: slog.New(slog.DiscardHandler)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.done <- l.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-over
	})
	return stop
}
