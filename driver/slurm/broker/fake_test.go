package broker_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/test/sandbox"
)

// fake is a Slurm with one job, number 7, and where second is set another, number 8;
// either may be a task of an array. It prints as 22.05.8 was seen to.
type fake struct {
	mu     sync.Mutex
	job    fakeJob
	second *fakeJob
	config string
	assoc  string // empty: assoc_mgr does not answer
	nodes  string // cores of a socket and threads of a core; empty: one thread

	partition  string // more fields of its record
	dependants string // of all jobs, as squeue prints them
	unread     error  // of scripts
	broken     bool   // nothing answers
	actions    []string
	fail       error          // of the next action
	lose       string         // an action that is not done, and whose outcome is unknown
	pause      func()         // before a signal
	begin      func(*fakeJob) // once, before scontrol shows a job that squeue has shown
}

type fakeJob struct {
	number, array, task                                        string // of a task, and of its array; number is empty for 7 and 8
	leader                                                     string // of a heterogeneous job
	state, reason, admin, comment, folder, account, qos, extra string
	name                                                       string
	uid, cores, mib, minutes, restarts, exit, nodes, tasks     int
	perCPU, noRequeue, noBatch, gone                           bool
	least, nice                                                int
	ran                                                        time.Duration
	submitted, eligible, started                               time.Time
	shares, threads, deadline                                  string // empty: OK, any number, none
	script                                                     string
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

func (j fakeJob) limit() string {
	if j.minutes == 0 {
		return "UNLIMITED"
	}
	return fmt.Sprintf("%02d:%02d:00", j.minutes/60, j.minutes%60)
}

func (j fakeJob) record(id string) string {
	memory, requeue, batch := "MinMemoryNode", 1, 1
	if j.perCPU {
		memory = "MinMemoryCPU"
	}
	if j.noRequeue {
		requeue = 0
	}
	if j.noBatch {
		batch = 0
	}
	admin, comment := "", ""
	if j.admin != "" {
		admin = "AdminComment=" + j.admin + " "
	}
	if j.comment != "" {
		comment = "Comment=" + j.comment + " "
	}
	return fmt.Sprintf("JobId=%s %sJobName=%s UserId=alice(%d) GroupId=g(1) Priority=1 Account=%s QOS=%s JobState=%s Reason=%s "+
		"Dependency=(null) Requeue=%d Restarts=%d BatchFlag=%d Reboot=0 ExitCode=%d:0 TimeLimit=%s SubmitTime=%s EligibleTime=%s "+
		"StartTime=%s EndTime=Unknown Deadline=%s Partition=main NodeList=n1 NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:0:*:%s MinCPUsNode=%d %s=%dM OverSubscribe=%s "+
		"Command=(null) WorkDir=%s %s%sStdErr=/o StdIn=/dev/null StdOut=/o Power= \n",
		id, j.arrayFields()+j.extra, cmp.Or(j.name, "train"), j.uid, j.account, j.qos, j.state, j.reason, requeue, j.restarts, batch, j.exit, j.limit(), stamp(j.submitted), stamp(j.eligible),
		stamp(j.started), cmp.Or(j.deadline, "N/A"), max(j.nodes, 1), j.cores, max(j.tasks, 1), j.cores, cmp.Or(j.threads, "*"), max(j.least, 1), memory, j.mib,
		cmp.Or(j.shares, "OK"), j.folder, admin, comment)
}

func (f *fake) Run(_ context.Context, c command.Call) (command.Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := c.Name + " " + strings.Join(c.Args, " ")
	id := "7"
	if i := slices.Index(c.Args, "-j"); i >= 0 {
		id = c.Args[i+1]
	} else if strings.Contains(line, " show job ") {
		id = c.Args[len(c.Args)-1]
	}
	j := *f.at(id)
	if f.broken {
		return command.Output{}, fmt.Errorf("slurmctld is away: %w", driver.ErrTransient)
	}
	switch {
	case strings.HasPrefix(line, "squeue -h -a -r -t all -j"):
		lines := f.queue(func(j fakeJob, ids string) string {
			if j.gone || id != j.called(ids) && id != j.array && !strings.HasPrefix(ids, id+"|") {
				return ""
			}
			return j.row(ids) + j.folder + "\n"
		})
		if lines == "" && !strings.Contains(id, "_") { // of a task that there is not it says nothing
			return command.Output{}, fmt.Errorf("Invalid job id: %w", driver.ErrNotFound)
		}
		return text(lines)
	case strings.HasPrefix(line, "squeue -h -a -r -t all -O JobID:|,ArrayJobID:|,ArrayTaskID:|,UserID:|"):
		return text(f.queue(func(j fakeJob, ids string) string {
			if j.gone {
				return ""
			}
			return j.row(ids) + "\n"
		}))
	case strings.HasPrefix(line, "scontrol -o show job"):
		if f.begin != nil { // between the two readings
			f.begin(&f.job)
			f.begin, j = nil, *f.at(id)
		}
		return text(j.record(cmp.Or(j.number, id)))
	case line == "scontrol show config":
		return text(f.config)
	case line == "scontrol -a -o show partition":
		return text("PartitionName=main QoS=N/A MaxTime=UNLIMITED" + f.partition + "\n")
	case line == "squeue -h -a -r -t PD -o %i %U %E %j":
		return text(f.dependants)
	case line == "sinfo -h -a -e -o %Y|%Z":
		return text(cmp.Or(f.nodes, "8|1\n"))
	case strings.HasPrefix(line, "scontrol -o show assoc_mgr"):
		if f.assoc == "" {
			return command.Output{}, fmt.Errorf("away: %w", driver.ErrTransient)
		}
		return text(f.assoc)
	}
	return command.Output{}, errors.New("what is " + line)
}

// at is a job by its name.
func (f *fake) at(id string) *fakeJob {
	if s := f.second; s != nil && id == s.called(s.ids("8")) {
		return s
	}
	return &f.job
}

func text(s string) (command.Output, error) { return command.Output{Stdout: []byte(s)}, nil }

func (f *fake) with(change func(*fakeJob)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.job)
}

func (f *fake) done(action string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail; err != nil {
		f.fail = nil
		return err
	}
	if f.lose == action {
		f.lose = ""
		return driver.ErrUnknown
	}
	f.actions = append(f.actions, action)
	return nil
}

func (f *fake) did() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.actions)
}

func (f *fake) Script(context.Context, string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.job.script), f.unread
}

func (f *fake) Signal(_ context.Context, job, signal string) error {
	f.mu.Lock()
	pause := f.pause
	f.mu.Unlock()
	if pause != nil {
		pause()
	}
	return f.done("signal " + job + " " + signal)
}

func (f *fake) Do(_ context.Context, v slurmctl.Verb, job string) error {
	if err := f.done(string(v) + " " + job); err != nil || v == slurmctl.Release || v == slurmctl.Cancel {
		return err
	}
	f.with(func(j *fakeJob) {
		j.state, j.restarts = "PENDING", j.restarts+1
		j.submitted = j.submitted.Add(time.Minute)
	})
	return nil
}

func (f *fake) Update(_ context.Context, job string, u slurmctl.Update) error {
	if err := f.done("update " + job + " " + strings.Join(u.Args(), " ")); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.at(job)
	if u.Cores != nil {
		j.cores = *u.Cores
	}
	if u.Memory != nil {
		j.mib, j.perCPU = int(u.Memory.Bytes>>20), u.Memory.PerCPU
	}
	if u.TimeLimit != nil {
		j.minutes = int(u.TimeLimit.Minutes())
	}
	if u.Nice != nil {
		j.nice = *u.Nice
	}
	return nil
}

// rig is a broker that serves, on a fake of a Slurm, and a client of it.
type rig struct {
	f      *fake
	cfg    broker.Config
	client *broker.Client
	stop   func()
}

const accepted = "pitchpipe:1:-"

func newRig(t *testing.T, change func(*broker.Config)) *rig {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	r := &rig{f: &fake{
		config: "AccountingStorageEnforce = none\nMinJobAge = 300 sec\n",
		job: fakeJob{
			state: "RUNNING", reason: "None", admin: accepted, folder: "/home/alice", account: "physics", qos: "normal",
			uid: 7, cores: 4, mib: 100, minutes: 60, submitted: now.Add(-time.Minute), eligible: now, script: "#!/bin/sh\n#TUNE mode=apply\n",
		},
	}}
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "pp-broker-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	r.cfg = broker.Config{
		Socket: filepath.Join(dir, "s"), Dir: filepath.Join(dir, "state"), Actor: r.f, Runner: r.f, Controllers: []uint32{uint32(os.Geteuid())},
		Script: func(_ string, script []byte) (broker.Stanza, error) { return judged(script) },
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&r.cfg)
	}
	r.stop = r.serve(t)
	r.client = broker.NewClient(r.cfg.Socket)
	return r
}

// judged is a stanza whose mode counts, and which saves at SIGUSR1 unless it says
// otherwise.
func judged(text []byte) (broker.Stanza, error) {
	s := string(text)
	cores, memory := broker.Knob{Min: 1, Max: 64}, broker.Knob{Values: []int64{60 << 20, 900 << 20}}
	switch {
	case strings.Contains(s, "observe"):
		return broker.Stanza{Signal: "SIGUSR1", Exit: 85}, nil
	case strings.Contains(s, "apply") && strings.Contains(s, "nosave"):
		return broker.Stanza{Apply: true}, nil
	case strings.Contains(s, "apply") && strings.Contains(s, "noknob"):
		return broker.Stanza{Apply: true, Signal: "SIGUSR1", Exit: 85}, nil
	case strings.Contains(s, "apply") && strings.Contains(s, "few"):
		return broker.Stanza{Apply: true, Signal: "SIGUSR1", Done: true, Cores: broker.Knob{Values: []int64{2}}}, nil
	case strings.Contains(s, "apply"):
		return broker.Stanza{Apply: true, Signal: "SIGUSR1", Exit: 85, Done: true, Cores: cores, Memory: memory}, nil
	}
	return broker.Stanza{}, errors.New("no tuning stanza")
}

// serve runs the broker until the test ends, and returns what ends it before.
func (r *rig) serve(t *testing.T) (stop func()) {
	t.Helper()
	s, err := broker.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop = sandbox.Beside(t, "the broker", s.Run)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		info, err := os.Stat(r.cfg.Socket) // it listens before everybody may connect
		if err == nil && info.Mode().Perm() == 0o666 {
			conn, err := new(net.Dialer).DialContext(t.Context(), "unix", r.cfg.Socket)
			if err == nil {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				return stop
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the broker does not listen")
		}
	}
}

// entries is the audit file.
func (r *rig) entries(t *testing.T) []broker.Entry {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.cfg.Dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []broker.Entry
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var e broker.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// waits makes the job one that we put back into the queue.
func (r *rig) waits(t *testing.T) {
	t.Helper()
	if err := errors.Join(r.client.Signal(t.Context(), "7", "SIGUSR1"), r.client.Do(t.Context(), slurmctl.Requeue, "7")); err != nil {
		t.Fatal(err)
	}
}

func size(cores, mib, minutes int) slurmctl.Update {
	var u slurmctl.Update
	if cores > 0 {
		u.Cores = &cores
	}
	if mib > 0 {
		u.Memory = &slurmctl.Memory{Bytes: int64(mib) << 20}
	}
	if minutes > 0 {
		limit := time.Duration(minutes) * time.Minute
		u.TimeLimit = &limit
	}
	return u
}

func start(in time.Duration) slurmctl.Update { return slurmctl.Update{Start: &in} }
