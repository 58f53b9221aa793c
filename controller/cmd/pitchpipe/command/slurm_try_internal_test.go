package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/check"
	slurmcommand "pitchpipe/driver/slurm/command"
)

// fake is a cluster with one node. Its jobs run as soon as they are released and end
// at the second
type fake struct {
	mu       sync.Mutex
	plugin   bool
	full     bool   // nothing starts
	refuses  string // every job, with these words
	settings string // the folder that its task prolog reads; empty = there is none
	calls    []string
	jobs     int
	looks    int
	released bool
}

func (f *fake) Run(_ context.Context, c slurmcommand.Call) (slurmcommand.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c.String())
	switch {
	case c.Name == "sbatch":
		return f.sbatch(c)
	case c.Name == "scancel":
		return slurmcommand.Output{}, nil
	case strings.HasPrefix(c.String(), "scontrol release"):
		f.released = true
		return slurmcommand.Output{}, nil
	case strings.HasPrefix(c.String(), "scontrol -o show job"):
		return slurmcommand.Output{Stdout: []byte(f.record() + "\n")}, nil
	}
	return slurmcommand.Output{}, errors.New("unknown call " + c.String())
}

func (f *fake) sbatch(c slurmcommand.Call) (slurmcommand.Output, error) {
	fails := func(text string) (slurmcommand.Output, error) {
		return slurmcommand.Output{Stderr: []byte(text)}, &slurmcommand.Failed{Call: c, Status: 1, Stderr: text, Cause: driver.ErrInvalid}
	}
	switch bad := strings.Contains(string(c.Stdin), "mod=apply"); {
	case f.refuses != "":
		return fails("sbatch: error: Batch job submission failed: " + f.refuses + "\n")
	case bad && f.plugin:
		return fails("sbatch: error: pitchpipe: line 2, column 7: unknown key \"mod\"\nsbatch: error: Batch job submission failed: Unspecified error\n")
	}
	f.jobs++
	return slurmcommand.Output{Stdout: []byte("7;cluster\n")}, nil
}

func (f *fake) record() string {
	comment := ""
	if f.plugin {
		comment = " AdminComment=pitchpipe:1:{\"mode\":\"observe\"}"
	}
	state, exit := "PENDING", "0:0"
	if f.released && !f.full {
		if f.looks++; f.looks < 2 {
			state = "RUNNING"
		} else {
			state = "COMPLETED"
			if _, err := os.Stat(filepath.Join(f.settings, "7")); f.settings == "" || err != nil {
				state, exit = "FAILED", "3:0"
			}
		}
	}
	return "JobId=7 JobName=x JobState=" + state + " Reason=Resources ExitCode=" + exit + " BatchHost=n1" + comment + " Power="
}

func (f *fake) has(begin string) bool {
	return slices.ContainsFunc(f.calls, func(c string) bool { return strings.HasPrefix(c, begin) })
}

func trialOf(t *testing.T, f *fake) trial {
	t.Helper()
	return trial{
		Account: "ada", Runner: f, Wait: 200 * time.Millisecond, // of a full queue
		Settings: &trialFolder{Dir: f.settings, UID: os.Geteuid(), GID: os.Getegid(), Account: "ada", Make: true},
		Measured: func(_ context.Context, node, job string) (check.Seen, string) {
			return map[bool]check.Seen{true: check.Present, false: check.Absent}[node == "n1" && job == "7"], ""
		},
	}
}

func TestAClusterWithAllShowsAll(t *testing.T) {
	t.Parallel()
	f := &fake{plugin: true, settings: filepath.Join(t.TempDir(), "made")}
	cfg := trialOf(t, f)
	cfg.Wait = time.Minute
	p, err := cfg.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Accepted || p.Bad != `pitchpipe: line 2, column 7: unknown key "mod"` || !strings.HasPrefix(p.Comment, "pitchpipe:1:{") ||
		p.Variable != check.Present || p.Measured != check.Present || p.Unstarted != "" || p.Failed != "" {
		t.Errorf("%+v", p)
	}
	if left, err := os.ReadDir(f.settings); err != nil || len(left) > 0 {
		t.Errorf("left in the folder of settings: %v (%v)", left, err)
	}
	if !f.has("scancel --quiet --user=ada --name=pitchpipe-check-") {
		t.Errorf("nothing was cancelled: %v", f.calls)
	}
}

func TestABareClusterShowsThatItIsBare(t *testing.T) {
	t.Parallel()
	f := &fake{}
	cfg := trialOf(t, f)
	cfg.Settings, cfg.Wait = nil, time.Minute
	p, err := cfg.run(t.Context())
	if err != nil || !p.Accepted || p.Comment != "" || p.Variable != check.NotLooked || !strings.Contains(p.Unstarted, "no folder") {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestATaskPrologThatReadsElsewhereIsSeen(t *testing.T) {
	t.Parallel()
	f := &fake{plugin: true}
	cfg := trialOf(t, f)
	cfg.Settings.Dir, cfg.Wait = t.TempDir(), time.Minute
	p, err := cfg.run(t.Context())
	if err != nil || p.Variable != check.Absent {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestAFullQueueProvesNothing(t *testing.T) {
	t.Parallel()
	f := &fake{plugin: true, full: true, settings: t.TempDir()}
	p, err := trialOf(t, f).run(t.Context())
	if err != nil || p.Variable != check.NotLooked || p.Measured != check.NotLooked || !strings.Contains(p.Unstarted, "PENDING (Resources)") {
		t.Errorf("%v, %+v", err, p)
	}
	if !f.has("scancel") {
		t.Error("the job that waits was not cancelled")
	}
}

func TestTheReasonOfSbatchIsKeptWhereNothingCanBeSubmitted(t *testing.T) {
	t.Parallel()
	f := &fake{refuses: "Invalid account"}
	p, err := trialOf(t, f).run(t.Context())
	if err != nil || p.Accepted || !strings.Contains(p.Failed, "Invalid account") || !f.has("scancel") {
		t.Errorf("%v, %+v, %v", err, p, f.calls)
	}
}

func TestAnInterruptCancelsTheJobs(t *testing.T) {
	t.Parallel()
	f := &fake{plugin: true, full: true, settings: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	cfg := trialOf(t, f)
	cfg.Wait = time.Minute
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := cfg.run(ctx); !errors.Is(err, context.Canceled) || !f.has("scancel") {
		t.Errorf("%v, %v", err, f.calls)
	}
	if left, err := os.ReadDir(f.settings); err != nil || len(left) > 0 {
		t.Errorf("left in the folder of settings: %v (%v)", left, err)
	}
}
