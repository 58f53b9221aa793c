package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred/peercredtest"
	"pitchpipe/test/sandbox"
)

// eventually waits for what the exporter will say.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// A user who reports as if he were in another's job is refused, whatever his environment
// says: where his process runs, the kernel knows.
func TestAnotherUserCannotTellOfAJob(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to be another user needs root")
	}
	const owner, forger = 61001, 61002
	dir := peercredtest.Dir(t)
	socket := filepath.Join(dir, "s")
	// By any: the job without a cgroup is named by what its owner wrote, and so would the
	// forger's be.
	client := exporterOn(t, socket, "--attrib.environ=any")
	caged, loose := fmt.Sprintf("forge-caged-%d", os.Getpid()), fmt.Sprintf("forge-loose-%d", os.Getpid())
	leaf := leaves(t, caged+".1")
	as := func(uid uint32, program, arg string, env ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), program, arg)
		c.Env = append(os.Environ(), env...)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return c
	}
	for _, id := range []string{caged, loose} {
		c := as(owner, "sleep", "600", "PITCHPIPE_JOB_ID="+id)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill() // it may have ended with the test
			_ = c.Wait()
		})
		if id == caged {
			enter(t, c.Process.Pid, leaf)
		}
		eventually(t, id+" is seen as its owner's", func() bool {
			w, err := client.Window(t.Context(), id, 1, 0)
			return err == nil && w.Job.UID == owner
		})
	}
	for _, id := range []string{caged, loose} {
		out, err := as(forger, "/proc/self/exe", "", reporter+"="+socket, "PITCHPIPE_JOB_ID="+id, "PITCHPIPE_ATTEMPT=1").CombinedOutput()
		if err == nil || !strings.Contains(string(out), api.ErrDenied.Error()) {
			t.Errorf("%s: got %v, %s; want it denied", id, err, out)
		}
		w, err := client.Window(t.Context(), id, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Samples {
			if s.Mark != nil {
				t.Errorf("%s has the forger's mark %+v", id, s.Mark)
			}
		}
		if w.Job.UID != owner {
			t.Errorf("%s is user %d's, want %d's", id, w.Job.UID, owner)
		}
	}
	eventually(t, "the page says that two reports were refused", func() bool {
		return figure(t, socket, `pitchpipe_exporter_marks_total{result="refused"}`) == 2
	})
}

// A counter that can no longer be read takes only its own figures with it.
func TestAFileThatTurnsUnreadableIsMissingAndTheRestGoesOn(t *testing.T) {
	dir := plantNode(t)
	client, socket := exporter(t, "--path.rootfs", dir)
	zone := filepath.Join(dir, "sys/class/powercap/intel-rapl:0/energy_uj")
	if err := os.WriteFile(zone, []byte("2000005\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	covered := func() float64 { return figure(t, socket, "pitchpipe_node_energy_covered_seconds_total") }
	eventually(t, "the zone is counted", func() bool { return covered() > 0 })
	if err := os.Remove(zone); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(zone, 0o755); err != nil { // root reads everything: a directory stands for the refusal
		t.Fatal(err)
	}
	errors := figure(t, socket, "pitchpipe_exporter_read_errors_total")
	eventually(t, "the error is counted", func() bool { return figure(t, socket, "pitchpipe_exporter_read_errors_total") > errors })
	at, stands := figure(t, socket, "pitchpipe_exporter_ticks_total"), covered()
	eventually(t, "it goes on", func() bool { return figure(t, socket, "pitchpipe_exporter_ticks_total") > at+5 })
	if now := covered(); now > stands {
		t.Errorf("%v s of energy are covered after %v, and nothing could be read", now, stands)
	}
	if _, err := client.Jobs(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Remove(zone); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(zone, []byte("5000005\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was used meanwhile is shown", func() bool { return covered() > stands })
	if joules := figure(t, socket, `pitchpipe_node_zone_energy_joules_total{zone="package-0"`); joules != 5 {
		t.Errorf("%v J of the zone, want the 5 since the beginning", joules)
	}
}

// figure is a value on the page, of the first series that begins so; 0 = it is not there.
func figure(t *testing.T, socket, series string) float64 {
	t.Helper()
	for line := range strings.Lines(scrape(t, socket)) {
		if strings.HasPrefix(line, series) {
			words := strings.Fields(line)
			v, err := strconv.ParseFloat(words[len(words)-1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// A job's cgroup may go at any moment of a reading: what is known of it stays, and others
// lose nothing.
func TestACgroupThatVanishesTakesNothingWithIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"proc/stat": "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n", "proc/loadavg": "0 0 0 1/1 1\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu memory\n", "sys/devices/system/cpu/online": "0\n",
	} {
		plantFile(t, filepath.Join(dir, name), text)
	}
	job := func(id string) string { return filepath.Join(dir, "sys/fs/cgroup/pitchpipe", id+".1") }
	begin := func(id string) {
		t.Helper()
		plantFile(t, filepath.Join(job(id), "cpu.stat"), "usage_usec 7000000\nuser_usec 4000000\nsystem_usec 3000000\n")
		plantFile(t, filepath.Join(job(id), "memory.stat"), "anon 5\nfile 6\n")
		plantFile(t, filepath.Join(job(id), "memory.peak"), "7\n")
		plantFile(t, filepath.Join(job(id), "cgroup.procs"), "4000000\n")
	}
	begin("stays")
	begin("goes")
	client, socket := exporter(t, "--path.rootfs", dir, "--sampling.interval=50ms", "--sampling.discover=10ms")
	window := func(id string) (api.Window, bool) {
		w, err := client.Window(t.Context(), id, 1, 0)
		return w, err == nil && len(w.Samples) > 2
	}
	for _, id := range []string{"stays", "goes"} {
		eventually(t, id+" is seen", func() bool { _, ok := window(id); return ok })
	}
	// Its files go one after the other, as they may between two that are read.
	for _, file := range []string{"memory.stat", "cpu.stat", "cgroup.procs", "memory.peak"} {
		if err := os.Remove(filepath.Join(job("goes"), file)); err != nil {
			t.Fatal(err)
		}
		at := figure(t, socket, "pitchpipe_exporter_ticks_total")
		eventually(t, "it goes on", func() bool { return figure(t, socket, "pitchpipe_exporter_ticks_total") > at+1 })
	}
	if err := os.Remove(job("goes")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it ends", func() bool { w, _ := window("goes"); return w.Job.Ended })
	w, _ := window("goes")
	if last := w.Samples[len(w.Samples)-1].Values; last[api.ColCPUSeconds] != 7 {
		t.Errorf("its last values are %v, want the 7 CPU seconds that were read", last)
	}
	for i, s := range w.Samples {
		for column, v := range s.Values {
			if v < 0 {
				t.Errorf("sample %d: %s is %v", i, column, v)
			}
		}
	}
	if w, ok := window("stays"); !ok || w.Job.Ended || w.Samples[len(w.Samples)-1].Values[api.ColCPUSeconds] != 7 {
		t.Errorf("the other job: %+v", w.Job)
	}
}

func plantFile(t *testing.T, path, text string) {
	t.Helper()
	sandbox.Plant(t, "", map[string]string{path: text})
}

// What a state that was cut short knew begins at 0, and nothing on the page is negative.
func TestAfterAStateThatWasCutShortNothingIsNegative(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	plantFile(t, path, `{"version":1,"boot":"b","jobs":[{"job":{"manager":"local","id":"7","attempt":1},"joules":{"Active":-5e9,"Idle":1`)
	_, socket := exporter(t, "--state.file", path)
	for line := range strings.Lines(scrape(t, socket)) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(words) < 2 {
			continue
		}
		if v, err := strconv.ParseFloat(words[len(words)-1], 64); err != nil || v < 0 {
			t.Errorf("%s", line)
		}
	}
}

// A helper that dies takes the figures of the cards with it, and no others.
func TestAGPUHelperThatDiesTakesNothingElseWithIt(t *testing.T) {
	dir := t.TempDir()
	helper := filepath.Join(dir, "helper")
	const line = `{"at":"%s","devices":[{"uuid":"GPU-a","joules":5}]}`
	script := "#!/bin/sh\necho '" + fmt.Sprintf(line, time.Now().UTC().Format(time.RFC3339)) + "'\nif [ -e " + dir + "/die ]; then exit 3; fi\nwhile [ ! -e " + dir + "/die ]; do sleep 0.05; done\nexit 3\n"
	if err := os.WriteFile(helper, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	_, socket := exporter(t, "--gpu.helper", helper, "--gpu.nvidia-smi", filepath.Join(dir, "none"))
	if !strings.Contains(scrape(t, socket), `pitchpipe_gpu_info{uuid="GPU-a"`) {
		t.Fatal("no card on the page")
	}
	plantFile(t, filepath.Join(dir, "die"), "")
	at := figure(t, socket, "pitchpipe_exporter_ticks_total")
	eventually(t, "sampling goes on", func() bool { return figure(t, socket, "pitchpipe_exporter_ticks_total") > at+10 })
	// How old the reading is, the page tells.
	if read := figure(t, socket, "pitchpipe_gpu_reading_time_seconds"); read <= 0 || read > float64(time.Now().Unix()) {
		t.Errorf("the cards were read at %v", read)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := api.NewClient(socket)
	defer client.Close()
	if _, err := client.Node(ctx); err != nil {
		t.Error(err)
	}
}
