package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/driver/slurm/check"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/scripts"
	"pitchpipe/test/slurmcluster"
)

func TestWithoutSlurmACheckIsOneClearError(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--json"}} {
		r := pitchpipe(t, append([]string{"slurm", "check", "--slurm.bin", filepath.Join(t.TempDir(), "bin")}, more...)...)
		if r.code != command.ExitFailed || r.out != "" || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, "there is no Slurm on this machine") {
			t.Errorf("exit %d, output %q, errors %q", r.code, r.out, r.errors)
		}
	}
}

func TestACheckThatIsAskedForWronglyIsRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "--mode", "both"}, {"check", "--as", "another"}, {"check", "twice"}, {"chek"}} {
		r := pitchpipe(t, append([]string{"slurm"}, args...)...)
		if r.code != command.ExitInvalid || r.out != "" || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, args[len(args)-1]) {
			t.Errorf("%v: exit %d, output %q, errors %q", args, r.code, r.out, r.errors)
		}
	}
}

// installed is a folder below /tmp, which every user can reach, with the programs and
// what a site installs.
type installed struct{ dir, settings, socket, broker string }

func install(t *testing.T) installed {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ppslurm-check-") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	i := installed{
		dir: dir, settings: filepath.Join(dir, "settings"), socket: filepath.Join(dir, "exporter.sock"),
		broker: filepath.Join(dir, "broker", "broker.sock"),
	}
	if err := programs.install(dir); err != nil {
		t.Fatal(err)
	}
	files, err := scripts.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(files, ".")
	err = errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "lua"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "lua", e.Name())
		if !strings.HasPrefix(e.Name(), "pitchpipe") {
			to = filepath.Join(dir, e.Name())
		}
		s := strings.ReplaceAll(string(text), check.PluginFolder+`"`, dir+`/lua"`)
		s = strings.Replace(s, "conf="+check.PrologConfPlace, "conf="+filepath.Join(dir, "task_prolog.conf"), 1)
		if err := os.WriteFile(to, []byte(s), 0o755); err != nil { //nolint:gosec // others run and read it
			t.Fatal(err)
		}
	}
	conf := fmt.Sprintf("site_dir=%s\nsite_user=%s\nowner_dir=.local/state/pitchpipe/slurm-env\nexporter=%s\nlistener=%s/pitchpipe\n",
		i.settings, slurmcluster.Controller, i.socket, dir)
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "task_prolog.conf"), []byte(conf), 0o644), //nolint:gosec // the jobs' users read it
		folderOf(i.settings, slurmcluster.Controller), folderOf(filepath.Dir(i.broker), slurmcluster.Operator),
	)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func folderOf(path, owner string) error {
	u, err := user.Lookup(owner)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	return errors.Join(os.Mkdir(path, 0o755), os.Chown(path, uid, -1))
}

// service runs a program of the folder until the test ends.
func (i installed) service(t *testing.T, c *slurmcluster.Cluster, as, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd, err := c.Command(ctx, as, filepath.Join(i.dir, program), args...)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Logf("%s:\n%s", program, out.String())
		}
	})
}

// waitFor waits for a socket of a service.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not there", path)
		}
	}
}

// check runs pitchpipe slurm check as a user of the cluster and reads its findings.
func (i installed) check(t *testing.T, c *slurmcluster.Cluster, as string, args ...string) (check.Report, map[string]check.Finding) {
	t.Helper()
	var report check.Report
	args = append([]string{"slurm", "check", "--json", "--driver=slurm", "--exporter.socket=" + i.socket, "--slurm.broker=" + i.broker}, args...)
	cmd, err := c.Command(t.Context(), as, filepath.Join(i.dir, "pitchpipe"), args...)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if failed := json.Unmarshal(out, &report); failed != nil || report.Passed != (err == nil) || errs.Len() > 0 {
		t.Fatalf("as %s: %v, %v, passed %v, errors %q, output %q", as, err, failed, report.Passed, errs.String(), out)
	}
	by := map[string]check.Finding{}
	for _, f := range report.Findings {
		by[f.Name] = f
	}
	return report, by
}

// expect compares verdicts; a finding that is to be absent is wanted with none.
func expect(t *testing.T, got map[string]check.Finding, want map[string]check.Verdict) {
	t.Helper()
	for name, verdict := range want {
		if got[name].Verdict != verdict {
			t.Errorf("%s: %+v, want %q", name, got[name], verdict)
		}
	}
}

func TestABareClusterIsToldAsBareByAnybody(t *testing.T) {
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{})
	c = slurmcluster.Need(t, c, err)
	stopAtEnd(t, c)
	i := install(t)
	for _, as := range []string{"root", slurmcluster.Alpha} {
		_, got := i.check(t, c, as)
		expect(t, got, map[string]check.Verdict{
			"slurm.version": check.OK, "slurm.min_job_age": check.OK, "slurm.job_submit_plugins": check.Missing, "slurm.task_prolog": check.Missing,
			"slurm.accounting": check.Missing, "slurm.requeue_exit": check.Missing, "plugin.job_submit": check.Missing, "exporter.answers": check.Missing,
			"controller.driver": check.OK, "controller.plugin": check.OK, "slurm.clock": check.OK, "broker.socket": "", "accounts.association": "",
		})
	}
	report, got := i.check(t, c, slurmcluster.Alpha, "--try")
	expect(t, got, map[string]check.Verdict{"try.refused": check.Missing, "try.marked": check.Missing, "try.variable": check.Unknown})
	if report.Passed || report.Mode != check.Owner {
		t.Errorf("mode %s passed %v", report.Mode, report.Passed)
	}
	nothingLeft(t, c)
	_, got = i.check(t, c, "root", "--mode=site", "--user=root", "--slurm.plugin=true")
	expect(t, got, map[string]check.Verdict{"controller.plugin": check.Wrong, "accounts.ordinary": check.Wrong, "broker.socket": check.Missing})
}

func TestASiteWithAllInstalledIsToldAsReady(t *testing.T) {
	i := install(t)
	c, err := slurmcluster.Start(t.Context(), slurmcluster.Options{
		Accounting: true, JobSubmitLua: filepath.Join(i.dir, "job_submit.lua"), TaskProlog: filepath.Join(i.dir, "task_prolog"),
		Lines: []string{"RequeueExitHold=85"},
	})
	c = slurmcluster.Need(t, c, err)
	stopAtEnd(t, c)
	i.service(t, c, "root", "pitchpipe-exporter", "--socket="+i.socket, "--state.file="+filepath.Join(i.dir, "exporter.json"), "--web.listen-address=",
		"--api.readers="+slurmcluster.Controller)
	i.service(t, c, slurmcluster.Operator, "pitchpipe", "broker", "--broker.socket="+i.broker, "--broker.dir="+filepath.Join(i.dir, "broker", "state"),
		"--broker.controller="+slurmcluster.Controller)
	waitFor(t, i.socket)
	waitFor(t, i.broker)
	settled(t, i.socket)
	flags := []string{"--slurm.mode=site", "--user=" + slurmcluster.Controller, "--slurm.plugin=true", "--slurm.task_prolog=true", "--slurm.settings=" + i.settings}

	ready := map[string]check.Verdict{
		"slurm.job_submit_plugins": check.OK, "slurm.task_prolog": check.OK, "slurm.accounting": check.OK, "slurm.requeue_exit": check.OK,
		"plugin.job_submit": check.OK, "plugin.modules": check.OK, "prolog.script": check.OK, "prolog.permissions": check.OK, "prolog.conf": check.OK,
		"prolog.listener": check.OK, "settings.folder": check.OK, "controller.settings": check.OK, "controller.plugin": check.OK, "controller.task_prolog": check.OK,
		"accounts.ordinary": check.OK, "accounts.controller": check.OK, "accounts.broker": check.OK, "broker.socket": check.OK, "exporter.answers": check.OK,
	}
	for _, as := range []string{"root", slurmcluster.Controller, slurmcluster.Beta} {
		report, got := i.check(t, c, as, flags...)
		expect(t, got, ready)
		if !report.Passed {
			t.Errorf("as %s: not passed", as)
		}
	}
	report, got := i.check(t, c, "root", append(flags, "--try", "--as="+slurmcluster.Alpha)...)
	expect(t, got, map[string]check.Verdict{"try.refused": check.OK, "try.marked": check.OK, "try.variable": check.OK, "try.measured": check.OK})
	if !report.Passed || !strings.Contains(got["try.refused"].Looked, "line 2, column 7") {
		t.Errorf("passed %v: %+v", report.Passed, got["try.refused"])
	}
	nothingLeft(t, c)

	// A user who only looks is not taken for the controller, and so not told to name himself.
	_, got = i.check(t, c, slurmcluster.Beta, append(slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return strings.HasPrefix(f, "--user=") }),
		"--broker.controller="+slurmcluster.Controller)...)
	expect(t, got, map[string]check.Verdict{"broker.socket": check.OK, "accounts.controller": check.OK})

	// A user of the same cluster with their own controller.
	own := filepath.Join(c.Home(slurmcluster.Alpha), ".local", "state", "pitchpipe", "slurm-env")
	report, got = i.check(t, c, slurmcluster.Alpha, "--slurm.task_prolog=true", "--slurm.settings="+own, "--try")
	expect(t, got, map[string]check.Verdict{
		"prolog.conf": check.OK, "settings.folder": check.OK, "try.refused": check.OK, "try.variable": check.OK, "try.measured": check.OK, "broker.socket": "",
	})
	if !report.Passed {
		t.Error("an owner's check is not passed")
	}
	nothingLeft(t, c)

	// One thing is broken at a time.
	for _, b := range []struct {
		finding string
		verdict check.Verdict
		flags   []string
		do      func() error
	}{
		{"accounts.broker", check.Wrong, []string{"--broker-user=" + slurmcluster.Beta}, nil},
		{"accounts.controller", check.Wrong, []string{"--user=" + slurmcluster.Operator}, nil},
		{"controller.settings", check.Wrong, []string{"--slurm.settings=/elsewhere"}, nil},
		{"settings.folder", check.Wrong, nil, func() error { return os.Chmod(i.settings, 0o777) }},
		{"plugin.modules", check.Missing, nil, func() error { return os.Remove(filepath.Join(i.dir, "lua", "pitchpipe_keys.lua")) }},
		{"prolog.permissions", check.Wrong, nil, func() error { return os.Chmod(filepath.Join(filepath.Dir(c.Conf()), "task_prolog"), 0o777) }},
	} {
		if b.do != nil {
			if err := b.do(); err != nil {
				t.Fatal(err)
			}
		}
		report, got := i.check(t, c, "root", append(append([]string(nil), flags...), b.flags...)...)
		expect(t, got, map[string]check.Verdict{b.finding: b.verdict})
		if report.Passed {
			t.Errorf("passed although %s is %s", b.finding, b.verdict)
		}
	}
}

// settled waits until the exporter answers.
func settled(t *testing.T, socket string) {
	t.Helper()
	client := exporterapi.NewClient(socket)
	defer client.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := client.Node(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func nothingLeft(t *testing.T, c *slurmcluster.Cluster) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.Run(t.Context(), "root", "squeue", "-h", "-a", "-o", "%i %j %T")
		if err == nil && out == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("jobs are left: %s (%v)", out, err)
		}
	}
}

func stopAtEnd(t *testing.T, c *slurmcluster.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
