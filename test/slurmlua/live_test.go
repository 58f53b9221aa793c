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

	"pitchpipe/test/sandbox"
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
	sandbox.Until(t, 2*time.Minute, what, holds)
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
	with := func(before, after string) string { return replace(t, good, before, after) }
	const (
		unset = "T<> B<> S<>\nstep T=\nmark=none\nthe end\n"
		set   = "T<2> B<0.5> S<>\nstep T=2\nmark=none\nthe end\n"
		not   = "pitchpipe: the settings chosen for this job are not applied: "
		two   = "OMP_NUM_THREADS=2\nBATCH=0.5\n"
	)
	jobs := []struct {
		what, script, settings string
		uid                    int // that wrote the settings
		want, id               string
	}{
		{what: "a job with settings", script: good, settings: two, uid: nobody, want: set},
		{
			what: "a job that wants nothing of its submitter's environment, PATH included", settings: two, uid: nobody, want: set,
			script: strings.NewReplacer("#!/bin/sh\n", "#!/bin/sh\n#SBATCH --export=NONE\n", printer, "export PATH=/usr/bin:/bin SLURM_EXPORT_ENV=ALL\n"+printer).Replace(good),
		},
		{what: "a job with a stanza and without settings", script: good, want: unset},
		{ // An attacker with the account of the controller writes what a shell runs.
			what: "a job whose file has what a shell runs", script: strings.NewReplacer("#!/bin/sh\n", "#!/bin/bash\n", printer, "[[ $OMP_NUM_THREADS -gt 4 ]]\n"+printer).Replace(good),
			settings: "OMP_NUM_THREADS=a[$(id >pwned; echo 0)]\n", uid: nobody, want: not + "the value of OMP_NUM_THREADS has a character that no value has\n" + unset,
		},
		{what: "a job that wants advice only", script: with("mode=apply", "mode=recommend"), settings: two, uid: nobody, want: not + "OMP_NUM_THREADS is not declared by the stanza\n" + unset},
		{
			what: "a job that its owner switched off", script: with("#TUNE mode", "#SBATCH --comment=pitchpipe:off\n#TUNE mode"), settings: two, uid: nobody,
			want: not + "OMP_NUM_THREADS is not declared by the stanza\n" + unset,
		},
		{what: "a job whose file another user wrote", script: good, settings: two, uid: stranger, want: not + "the file is not a plain file that only the controller may write\n" + unset},
		{what: "a job without a stanza that has a file", script: "#!/bin/sh\n" + printer, settings: two, uid: nobody, want: unset},
	}
	l.install(t, "reject", nil)
	for i, j := range jobs {
		id, seen := l.hold(t, j.script)
		if marked := l.comment(t, id) == "pitchpipe:1:-"; id == "" || seen != "" || marked != strings.Contains(j.script, "#TUNE") {
			t.Fatalf("%s: id %q, marked %v, the user saw %q", j.what, id, marked, seen)
		}
		if jobs[i].id = id; j.settings != "" {
			l.site.write(t, filepath.Join(l.site.dir, id), j.settings, j.uid, 0o644)
		}
	}
	for _, j := range jobs {
		if got := l.output(t, j.id); got != j.want {
			t.Errorf("%s wrote\n%s\nwant\n%s", j.what, got, j.want)
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
