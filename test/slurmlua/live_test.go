package slurmlua_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/slurmcluster"
)

// live is a running Slurm whose jobs pass our prolog.
type live struct {
	*slurmcluster.Cluster

	site  site
	clock time.Time // of the last job_submit.lua: Slurm loads it again when it is newer
}

func newLive(t *testing.T, o slurmcluster.Options, s site) *live {
	t.Helper()
	if err := slurmcluster.Available(slurmcluster.Options{}); err != nil {
		slurmcluster.Need(t, nil, err)
	}
	o.TaskProlog = s.prolog
	c, err := slurmcluster.Start(t.Context(), o)
	l := &live{Cluster: slurmcluster.Need(t, c, err), site: s, clock: time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(l.Logs())
		}
		if err := l.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

// install makes the plugin the cluster's. slurmctld runs as another user, to whom a test's own
// folders are closed.
func (l *live) install(t *testing.T, choice string, edit func(name, text string) string) {
	t.Helper()
	file := install(t, choice, edit)
	openTo(t, filepath.Dir(file))
	l.clock = l.clock.Add(10 * time.Second)
	l.site.sh(t, fmt.Sprintf("cd %s; chmod 644 *.lua; touch -d @%d job_submit.lua; mv job_submit.lua %s", filepath.Dir(file), l.clock.Unix(), filepath.Dir(l.Conf())))
}

// sbatch submits a job of Alpha's and returns its id, "" where it was refused, and what the
// user saw.
func (l *live) sbatch(t *testing.T, script string, env []string, args ...string) (id, seen string) {
	t.Helper()
	cmd, err := l.Command(t.Context(), slurmcluster.Alpha, "sbatch", append([]string{"--parsable", "--output=%j.out"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, refused := errors.AsType[*exec.ExitError](err); err != nil && !refused {
		t.Fatal(err)
	}
	return strings.TrimSpace(stdout.String()), stderr.String()
}

// hold submits a held job.
func (l *live) hold(t *testing.T, script string) (id, seen string) {
	t.Helper()
	return l.sbatch(t, script, nil, "--hold")
}

func (l *live) as(t *testing.T, user, program string, args ...string) string {
	t.Helper()
	out, err := l.Run(t.Context(), user, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// await waits until a thing holds.
func (l *live) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in two minutes: %s", what)
		}
	}
}

func (l *live) home(name string) string { return filepath.Join(l.Home(slurmcluster.Alpha), name) }

// comment is the admin comment of a job.
func (l *live) comment(t *testing.T, id string) string {
	t.Helper()
	for word := range strings.FieldsSeq(l.as(t, "root", "scontrol", "-o", "show", "job", id)) {
		if text, ok := strings.CutPrefix(word, "AdminComment="); ok {
			return text
		}
	}
	return ""
}

// output releases a job and returns what it wrote.
func (l *live) output(t *testing.T, id string) string {
	t.Helper()
	l.as(t, slurmcluster.Alpha, "scontrol", "release", id)
	var text []byte
	l.await(t, "job "+id+" has ended", func() bool {
		text, _ = os.ReadFile(l.home(id + ".out"))
		return strings.Contains(string(text), "the end\n")
	})
	return string(text)
}

func (l *live) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Dir(), "log", "slurmctld.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const printer = "printf 'T<%s> B<%s> S<%s>\\n' \"$OMP_NUM_THREADS\" \"$BATCH\" \"$PITCHPIPE_SETTINGS\"\n" +
	"srun sh -c 'echo step T=$OMP_NUM_THREADS'\necho mark=${PITCHPIPE_JOB-none}\necho the end\n"

// TestOnARunningSlurm does what an administrator and a user do, one after the other.
func TestOnARunningSlurm(t *testing.T) {
	t.Parallel()
	l := newLive(t, slurmcluster.Options{JobSubmitLua: filepath.Join(plugin, "job_submit.lua")}, newSite(t))
	good := strings.ReplaceAll(goodScript, "./train\n", printer)

	l.install(t, "reject", nil)
	plain, seen := l.hold(t, "#!/bin/sh\n"+printer)
	if plain == "" || seen != "" || l.comment(t, plain) != "" {
		t.Errorf("a job without a stanza: id %q, comment %q, seen %q", plain, l.comment(t, plain), seen)
	}
	tuned, seen := l.hold(t, good)
	if tuned == "" || seen != "" || !strings.HasPrefix(l.comment(t, tuned), "pitchpipe:1:-") {
		t.Fatalf("a good stanza: id %q, comment %q, seen %q", tuned, l.comment(t, tuned), seen)
	}
	untuned, _ := l.hold(t, good)
	spoiled, _ := l.hold(t, good)
	// Such a job has no PATH; what the plugin sets of its environment it has.
	bare, _ := l.hold(t, strings.NewReplacer("#!/bin/sh\n", "#!/bin/sh\n#SBATCH --export=NONE\n", printer, "export PATH=/usr/bin:/bin SLURM_EXPORT_ENV=ALL\n"+printer).Replace(good))
	for _, id := range []string{plain, tuned, bare} {
		l.site.write(t, filepath.Join(l.site.dir, id), "OMP_NUM_THREADS=2\nBATCH=0.5\n", nobody, 0o644)
	}
	l.site.write(t, filepath.Join(l.site.dir, spoiled), "BATCH=8\n", stranger, 0o644)
	// Whoever took over the account of the controller writes what a shell runs.
	attacked, _ := l.hold(t, strings.NewReplacer("#!/bin/sh\n", "#!/bin/bash\n", printer, "[[ $OMP_NUM_THREADS -gt 4 ]]\n"+printer).Replace(good))
	recommended, _ := l.hold(t, strings.ReplaceAll(good, "mode=apply", "mode=recommend"))
	switchedOff, _ := l.hold(t, strings.ReplaceAll(good, "#TUNE mode", "#SBATCH --comment=pitchpipe:off\n#TUNE mode"))
	l.site.write(t, filepath.Join(l.site.dir, attacked), "OMP_NUM_THREADS=a[$(id >pwned; echo 0)]\n", nobody, 0o644)
	for _, id := range []string{recommended, switchedOff} {
		l.site.write(t, filepath.Join(l.site.dir, id), "OMP_NUM_THREADS=2\n", nobody, 0o644)
	}
	const (
		unset  = "T<> B<> S<>\nstep T=\nmark=none\nthe end\n"
		not    = "pitchpipe: the settings chosen for this job are not applied: "
		notice = not + "the file is not a plain file that only the controller may write\n"
	)
	for _, tt := range []struct{ what, id, want string }{
		{"a job with settings", tuned, "T<2> B<0.5> S<>\nstep T=2\nmark=none\nthe end\n"},
		{"a job that wants nothing of its submitter's environment", bare, "T<2> B<0.5> S<>\nstep T=2\nmark=none\nthe end\n"},
		{"a job with a stanza and without settings", untuned, "T<> B<> S<>\nstep T=\nmark=none\nthe end\n"},
		{"a job whose file has what a shell runs", attacked, not + "the value of OMP_NUM_THREADS has a character that no value has\n" + unset},
		{"a job that wants advice only", recommended, not + "OMP_NUM_THREADS is not declared by the stanza\n" + unset},
		{"a job that its owner switched off", switchedOff, not + "OMP_NUM_THREADS is not declared by the stanza\n" + unset},
		{"a job whose file another user wrote", spoiled, notice + "T<> B<> S<>\nstep T=\nmark=none\nthe end\n"},
		{"a job without a stanza, though a file stands there", plain, "T<> B<> S<>\nstep T=\nmark=none\nthe end\n"},
	} {
		if got := l.output(t, tt.id); got != tt.want {
			t.Errorf("%s wrote\n%s\nwant\n%s", tt.what, got, tt.want)
		}
	}

	if _, err := os.Stat(l.home("pwned")); err == nil {
		t.Error("what the settings file said was run as the job's user")
	}

	for _, script := range []string{badScript, "#!/bin/sh\n#TUNE mode='apply\ntrue\n", "#!/bin/sh\n#TUNE bugdet restarts=1\ntrue\n"} {
		if id, seen := l.hold(t, script); id != "" || !strings.Contains(seen, "pitchpipe: line ") || !strings.Contains(seen, "; want ") {
			t.Errorf("id %q, the user saw %q\n%s", id, seen, script)
		}
	}
	if id, seen := l.hold(t, "#!/bin/sh\n# TUNE mode=apply\ntrue\n"); id == "" || l.comment(t, id) != "" || !strings.Contains(seen, "looks like a tuning line") {
		t.Errorf("a comment that looks like a tuning line: id %q, the user saw %q", id, seen)
	}

	l.install(t, "warn", nil)
	id, seen := l.hold(t, badScript)
	if id == "" || l.comment(t, id) != "" || !strings.Contains(seen, "runs untuned") || !strings.Contains(seen, "line 3, column 7: unknown key \"mod\"") {
		t.Errorf("a faulty stanza that is warned of: id %q, comment %q, seen %q", id, l.comment(t, id), seen)
	}

	for what, code := range map[string]string{
		"jobs are accepted untuned":     "this is no Lua",
		"attempt to perform arithmetic": "local function read(text) text = nil + 1",
		"too much work for one job":     "local function read(text) while true do end",
	} {
		edit := func(name, text string) string {
			if name == "pitchpipe.lua" {
				return replace(t, text, "local function read(text)", code)
			}
			return text
		}
		l.install(t, "reject", edit)
		id, seen := l.hold(t, good)
		if id == "" || l.comment(t, id) != "" || seen != "" {
			t.Errorf("%s: id %q, comment %q, seen %q", what, id, l.comment(t, id), seen)
		}
		if !strings.Contains(l.log(t), what) {
			t.Errorf("%q is not in the log of slurmctld", what)
		}
	}
}
