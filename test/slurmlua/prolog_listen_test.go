package slurmlua_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A listener that writes down how it was started, and stays.
const stub = `#!/bin/sh
given=$PATH
PATH=/usr/bin:/bin
files=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)
{
	echo "args $*"
	echo "path $given"
	echo "uid $(id -u)"
	read -r _ _ _ _ group session _ </proc/$$/stat
	echo "alone $((group == $$ && session == $$))"
	echo files $files
} >ROOT/told/new 2>&1
mv ROOT/told/new ROOT/told/$$
exec sleep 600
`

// listening is a site whose prolog starts the stub.
type listening struct {
	site
	told string // where the stub writes
}

func newListening(t *testing.T) listening {
	t.Helper()
	l := listening{site: newSite(t, false)}
	l.told = filepath.Join(l.root, "told")
	if err := os.Mkdir(l.told, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(l.told, owner, owner); err != nil {
		t.Fatal(err)
	}
	l.write(t, l.listener(), strings.ReplaceAll(stub, "ROOT", l.root), 0, 0o755)
	l.configure(t, "exporter=/run/e.sock\nlistener="+l.listener()+"\n")
	t.Cleanup(func() {
		for _, pid := range l.started(t) {
			p, err := os.FindProcess(pid)
			if err == nil {
				_ = p.Kill()
			}
		}
	})
	return l
}

func (l listening) listener() string { return filepath.Join(l.root, "listener") }

// configure sets the lines about the listener.
func (l listening) configure(t *testing.T, lines string) {
	t.Helper()
	l.write(t, l.conf, "site_dir="+l.dir+"\nsite_user=nobody\n"+lines, 0, 0o644)
}

// started are the processes of the stubs that have written.
func (l listening) started(t *testing.T) []int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(l.told, "[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

// says waits for the stub's words; "" after some time where none is wanted.
func (l listening) says(t *testing.T, wanted bool) string {
	t.Helper()
	patience := time.Minute
	if !wanted {
		patience = 300 * time.Millisecond
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if pids := l.started(t); len(pids) > 0 {
			text, err := os.ReadFile(filepath.Join(l.told, strconv.Itoa(pids[0])))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if time.Now().After(deadline) {
			return ""
		}
	}
}

func TestTheProlog_startsTheListenerBesideTheBatchScript(t *testing.T) {
	t.Parallel()
	const (
		exported = "export PITCHPIPE_EXPORTER=/run/e.sock\n"
		refused  = exported + "print pitchpipe: the progress of this job is not followed: the listener is not a program that only root may write\n"
		badFile  = "print pitchpipe: the settings chosen for this job are not applied: the file is not a plain file that only the controller may write\n"
	)
	chown := func(name string, uid int) func(*testing.T, listening) {
		return func(t *testing.T, l listening) {
			t.Helper()
			if err := os.Chown(filepath.Join(l.root, name), uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	chmod := func(name string, mode os.FileMode) func(*testing.T, listening) {
		return func(t *testing.T, l listening) {
			t.Helper()
			if err := os.Chmod(filepath.Join(l.root, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	conf := func(lines string) func(*testing.T, listening) {
		return func(t *testing.T, l listening) {
			t.Helper()
			l.configure(t, strings.ReplaceAll(lines, "LISTENER", l.listener()))
		}
	}
	settings := func(uid int) func(*testing.T, listening) {
		return func(t *testing.T, l listening) {
			t.Helper()
			l.write(t, filepath.Join(l.dir, "42"), "BATCH=1\n", uid, 0o644)
		}
	}
	for _, tt := range []struct {
		name    string
		env     []string
		prepare func(*testing.T, listening)
		title   string // of the task's process
		want    string
		starts  bool
	}{
		{name: "where there are no settings", want: exported, starts: true},
		{name: "where there are settings", prepare: settings(nobody), want: exported + "export BATCH=1\n", starts: true},
		{name: "where the settings are refused", prepare: settings(stranger), want: exported + badFile, starts: true},
		{name: "in every attempt", env: []string{"SLURM_RESTART_COUNT=3"}, want: exported, starts: true},
		{name: "where the batch step's daemon says so, though a step's number was inherited", title: "slurmstepd: [42.batch]", env: []string{"SLURM_STEP_ID=7", "SLURM_STEPID=7"}, want: exported, starts: true},
		{name: "where another program runs the prolog", title: "a site's own", want: exported, starts: true},
		{name: "not for a step", env: []string{"SLURM_STEP_ID=0", "SLURM_STEPID=0"}, want: exported},
		{name: "not for a step by its older name", env: []string{"SLURM_STEPID=0"}, want: exported},
		{name: "not for a step whose daemon says so", title: "slurmstepd: [42.0]", want: exported},
		{name: "not for a step whose name ends like that of the batch step", title: "slurmstepd: [42.batch2]", want: exported},
		{name: "not for another task", env: []string{"SLURM_PROCID=1"}, want: exported},
		{name: "not for a job without the mark", env: []string{"PITCHPIPE_JOB="}},
		{name: "not where none is named", prepare: conf("exporter=/run/e.sock\n"), want: exported},
		{name: "not where there is no exporter", prepare: conf("listener=LISTENER\n")},
		{name: "not where the exporter is no path", prepare: conf("exporter=e.sock\nlistener=LISTENER\n")},
		{name: "not where the listener is no path", prepare: conf("exporter=/run/e.sock\nlistener=listener\n"), want: exported},
		{name: "not one that is not there", prepare: conf("exporter=/run/e.sock\nlistener=/nowhere/pitchpipe\n"), want: refused},
		{name: "not one of the controller's account", prepare: chown("listener", nobody), want: refused},
		{name: "not one of the job's user", prepare: chown("listener", owner), want: refused},
		{name: "not one that its group may write", prepare: chmod("listener", 0o775), want: refused},
		{name: "not one that anyone may write", prepare: chmod("listener", 0o757), want: refused},
		{name: "not one that the job's user may not run", prepare: chmod("listener", 0o644), want: refused},
		{name: "not one in a folder of another user", prepare: chown(".", stranger), want: refused},
		{name: "not one in a folder that anyone may write", prepare: chmod(".", 0o777), want: refused},
		{
			name: "not one behind a symbolic link", want: refused,
			prepare: func(t *testing.T, l listening) {
				t.Helper()
				if err := os.Rename(l.listener(), l.listener()+".real"); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(l.listener()+".real", l.listener()); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newListening(t)
			if tt.prepare != nil {
				tt.prepare(t, l)
			}
			env := tt.env
			if tt.title != "" {
				env = append(env, "SLURM_TASK_PID="+strconv.Itoa(titled(t, tt.title)))
			}
			if diff := cmp.Diff(tt.want, l.run(t, env...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := ""
			if tt.starts {
				// And run returned: nobody who waits for the prolog's output waits for it.
				want = fmt.Sprintf("args listen --slurm --socket /run/e.sock\npath /nowhere\nuid %d\nalone 1\nfiles /dev/null /dev/null /dev/null\n", owner)
			}
			if diff := cmp.Diff(want, l.says(t, tt.starts)); diff != "" {
				t.Errorf("the listener (-want +got):\n%s", diff)
			}
		})
	}
}

// titled is a process that calls itself so.
func titled(t *testing.T, title string) int {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sleep)
	cmd.Args = []string{title, "600"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestTheProlog_asItIsShipped names neither exporter nor listener, so that an
// administrator's choice starts them.
func TestTheProlog_asItIsShippedStartsNothing(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(plugin, "task_prolog.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?m)^(exporter|listener)=`).Find(text); found != nil {
		t.Errorf("the shipped settings have the line %s", found)
	}
	for _, name := range []string{"exporter", "listener"} {
		if !bytes.Contains(text, []byte("\n#"+name+"=/")) {
			t.Errorf("the shipped settings do not show %s", name)
		}
	}
}
