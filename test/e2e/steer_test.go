package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/e2e/table"
	"pitchpipe/test/sandbox"
)

// TestAPauseStopsEveryEffect needs a job that is probed although the machine is
// busy with others, so its controller is the one that does not see those. Each thread makes
// its epochs longer, so that it is returned once it may be.
func TestAPauseStopsEveryEffect(t *testing.T) {
	t.Parallel()
	s := newStage(t, build(t))
	s.open()
	const epochs = 40000 // twenty minutes: a probe costs little against that, on a busy machine too; the job is stopped before
	file := s.ticking("probed", epochs)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	worse := strings.ReplaceAll(string(text), "0.4 / $THREADS ^ 2", "0.03 * $THREADS")
	id := strings.TrimSpace(s.ok("run", s.write("probed.sbatch", worse)))
	s.until(id, "to be probed", func(j api.Job) bool { return j.Phase == "changing" || j.Probes > 0 })

	s.ok("pause", "cluster", "--why", "a test")
	paused := s.job(id)
	quiet := time.Now().Add(5 * time.Second)
	s.quit()
	if a := s.pitchpipe("pause", "--list"); a.code != command.ExitUnavailable {
		t.Errorf("without a controller: exit %d, %q", a.code, a.errors)
	}
	s.start()
	s.ready()
	if p := told[[]api.Pause](s, "pause", "--list"); len(p) != 1 || p[0].Scope != "cluster" || p[0].Why != "a test" {
		t.Errorf("after a restart the pauses are %+v", p)
	}
	time.Sleep(time.Until(quiet))
	still := s.until(id, "to run, with what had begun finished", func(j api.Job) bool { return j.State == "running" && j.Phase != "changing" })
	if still.Attempt > paused.Attempt+1 {
		t.Errorf("under the pause the job went from attempt %d to %d", paused.Attempt, still.Attempt)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		j := s.job(id)
		if j.Attempt != still.Attempt || j.State != "running" || !j.Current.Equal(still.Current) {
			t.Fatalf("an effect under a pause: %s, attempt %d with %s; was attempt %d with %s", j.State, j.Attempt, j.Current, still.Attempt, still.Current)
		}
	}
	if now := s.job(id); now.Epoch <= still.Epoch {
		t.Errorf("the job did not go on under the pause: epoch %d, then %d", still.Epoch, now.Epoch)
	}
	s.ok("resume", "cluster")
	s.until(id, "to be moved again", func(j api.Job) bool { return j.Attempt > still.Attempt })
	s.ok("stop", id)
	s.until(id, "to end", ended)
	did := epochsOf(t, s.ok("logs", id), epochs)
	last, _ := strconv.Atoi(did[len(did)-1])
	if discards := table.Discards(told[api.Story](s, "explain", id)); !table.InOrder(did, last, discards) {
		t.Errorf("its output has the epochs %v, want each in order and once, or again after %d discards", did, discards)
	}
	if text := s.ok("explain", "-v", id); !strings.Contains(text, "tuning is paused") {
		t.Errorf("explain does not tell of the pause:\n%s", text)
	}
}

func TestTheOwnerSwitchesTuningOffAndStops(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	if err := os.Chmod(s.dir, 0o711); err != nil { // the other user has to reach the socket
		t.Fatal(err)
	}
	id := strings.TrimSpace(s.ok("run", s.ticking("mine", 600)))
	s.until(id, "to run", func(j api.Job) bool { return j.Epoch > 0 })

	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	for _, args := range [][]string{{"off", id}, {"stop", id}, {"explain", id}, {"logs", id}, {"pause", "job", id}, {"pause", "cluster"}} {
		if a := s.as(other, args...); a.code != command.ExitDenied || a.out != "" || strings.Contains(a.errors, "mine") {
			t.Errorf("another user's %v: exit %d, %q, %q", args, a.code, a.out, a.errors)
		}
	}
	if a := s.as(other, "status"); a.code != command.ExitOK || strings.Contains(a.out, id) {
		t.Errorf("another user sees %q", a.out)
	}

	if said := told[map[string]string](s, "off", id); said["off"] != id {
		t.Errorf("off: %v", said)
	}
	off := s.until(id, "to be left alone", func(j api.Job) bool { return j.Reason == "off" })
	if off.State != "running" {
		t.Errorf("a job that was switched off is %s", off.State)
	}
	s.until(id, "to go on", func(api.Job) bool { return len(s.journal("mine")) > off.Epoch+5 })
	if j := s.job(id); j.Attempt != off.Attempt {
		t.Errorf("attempt %d after it was switched off in attempt %d", j.Attempt, off.Attempt)
	}
	untuned := told[api.Job](s, "run", "--wait", "--off", s.ticking("untuned", 5))
	if untuned.State != "succeeded" || untuned.Reason != "off" || untuned.Attempt != 1 {
		t.Errorf("run --off: %+v", untuned)
	}

	s.ok("stop", id)
	if j := s.until(id, "to end", ended); j.State != "cancelled" {
		t.Errorf("after stop it is %s", j.State)
	}
	if a := s.pitchpipe("off", "nothing-1"); a.code != command.ExitNotFound {
		t.Errorf("off for no job: exit %d, %s", a.code, a.errors)
	}
}

func TestAnotherUsersJobRunsInAStateThatWasClosedAndUnderAnyUmask(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	if err := errors.Join(os.Chmod(s.dir, 0o711), os.Mkdir(filepath.Join(s.dir, "state"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s.argv = append([]string{"/bin/sh", "-c", `umask 077 && exec "$@"`, "controller"}, s.argv...)
	s.argv = append(s.argv, "--local.dir", filepath.Join(s.dir, "state", "local")) // where it is by default
	s.open()
	file := filepath.Join(s.dir, "theirs.sbatch")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nid -u\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	a := s.as(other, "run", "--wait", "--json", file)
	var job api.Job
	if err := json.Unmarshal([]byte(a.out), &job); err != nil || job.State != "succeeded" {
		t.Fatalf("run: exit %d, %s, %s (%v)", a.code, a.out, a.errors, err)
	}
	if a := s.as(other, "logs", job.ID); a.out != "65534\n" {
		t.Errorf("its output is %q, %s", a.out, a.errors)
	}
	if err := filepath.WalkDir(filepath.Join(s.dir, "state"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && (info.Mode()&0o066 != 0 || !e.IsDir() && info.Mode()&0o011 != 0) {
			t.Errorf("%s has mode %v, want that others pass through folders and read nothing", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestAUserWithoutCgroupsSeesEpochs has an exporter and a controller that can make no cgroups.
func TestAUserWithoutCgroupsSeesEpochs(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.dir = filepath.Join(s.dir, "theirs")
	const uid = 65534
	file, site := filepath.Join(s.dir, "job.sbatch"), filepath.Join(s.dir, "site.yaml")
	job := "#!/bin/sh\n#TUNE progress pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+)'\nfor i in 1 2 3; do sleep 0.3; echo epoch $i/3; done\n"
	err := errors.Join(os.Chmod(filepath.Dir(s.dir), 0o711), os.Mkdir(s.dir, 0o700),
		os.WriteFile(file, []byte(job), 0o644), os.WriteFile(site, []byte("{}\n"), 0o644), os.Chown(s.dir, uid, uid)) //nolint:gosec // another user reads them
	if err != nil {
		t.Fatal(err)
	}
	theirs := &syscall.Credential{Uid: uid, Gid: uid}
	socket := filepath.Join(s.dir, "exporter.sock")
	for _, argv := range [][]string{
		{"pitchpipe-exporter", "--socket", socket, "--state.file=", "--web.listen-address=" + sandbox.Address(t), "--log.level=error"},
		{
			"pitchpipe", "controller", "--site", site, "--socket", filepath.Join(s.dir, "controller.sock"), "--state", filepath.Join(s.dir, "state"),
			"--exporter.socket", socket, "--local.cluster", cluster(s.dir), "--listen=",
		},
	} {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.progs.path(argv[0]), argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stderr = s.dir, sandbox.Environ("HOME="+s.dir), t.Output()
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: theirs}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	}
	s.await("their controller", func() error {
		if a := s.as(theirs, "status"); a.code != command.ExitOK {
			return errors.New(a.errors)
		}
		return nil
	})
	a := s.as(theirs, "run", "--wait", "--json", file)
	var j api.Job
	if err := json.Unmarshal([]byte(a.out), &j); err != nil || j.State != "succeeded" || j.Epoch != 3 {
		t.Errorf("%v, %s, epoch %d; want success after 3 epochs; %s", err, j.State, j.Epoch, a.errors)
	}
}
