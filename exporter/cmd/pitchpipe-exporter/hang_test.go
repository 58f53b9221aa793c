package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/doctor"
)

// hang makes every read of a file wait in the kernel, as that of a device that is gone
// does, until free is called; then the file has this text.
func hang(t *testing.T, path, text string) (free func()) {
	t.Helper()
	waits := path + ".hangs"
	if err := unix.Mkfifo(waits, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(waits, path); err != nil {
		t.Fatal(err)
	}
	free = sync.OnceFunc(func() {
		// A reader that waits for a writer has one now, and reads on until it is gone.
		writer, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Error(err)
			return
		}
		plantFile(t, waits, text)
		if err := errors.Join(os.Rename(waits, path), writer.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(free)
	return free
}

// up is what the page says about a source: its whole line.
func up(t *testing.T, socket, source string) string {
	t.Helper()
	for line := range strings.Lines(scrape(t, socket)) {
		if strings.HasPrefix(line, `pitchpipe_source_up{source="`+source+`"`) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func plantJob(t *testing.T, root string) (dir string) {
	t.Helper()
	plantFile(t, filepath.Join(root, "sys/fs/cgroup/cgroup.controllers"), "cpu memory\n")
	plantFile(t, filepath.Join(root, "sys/fs/cgroup/cgroup.procs"), "")
	plantFile(t, filepath.Join(root, "sys/devices/system/cpu/online"), "0\n")
	dir = filepath.Join(root, "sys/fs/cgroup/pitchpipe/job.1")
	plantFile(t, filepath.Join(dir, "cpu.stat"), "usage_usec 7000000\nuser_usec 4000000\nsystem_usec 3000000\n")
	plantFile(t, filepath.Join(dir, "memory.stat"), "anon 5\nfile 6\n")
	plantFile(t, filepath.Join(dir, "memory.peak"), "7\n")
	plantFile(t, filepath.Join(dir, "cgroup.procs"), "4000000\n")
	return dir
}

// Sources that hang while the exporter begins do not keep others away, and are reported
// as silent, not as denied or absent.
func TestSourcesThatHangWhenItBeginsStopNoSampling(t *testing.T) {
	t.Parallel()
	dir := plantNode(t)
	plantJob(t, dir)
	zone := hang(t, filepath.Join(dir, "sys/class/powercap/intel-rapl:0/energy_uj"), "9\n")
	listing := hang(t, filepath.Join(dir, "sys/fs/cgroup/cgroup.procs"), "")
	findings, err := consultDoctor(t, "--path.rootfs", dir)
	if v, ok := errors.AsType[doctor.Verdict](err); !ok || v != doctor.Mendable {
		t.Errorf("the doctor's verdict is %v", err)
	}
	for _, name := range []string{"energy/rapl", "cgroup"} {
		if i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == name }); i < 0 || findings[i].State != doctor.Silent || findings[i].Mend == "" {
			t.Errorf("the doctor says nothing of %s: %+v", name, findings)
		}
	}

	client, socket := exporter(t, "--path.rootfs", dir)
	for source, want := range map[string]string{
		"energy/rapl": "does not answer", "energy/modelled": "} 1", "cgroup": "does not answer", "node/cpu": "} 1", "attrib/cgroup": "} 1",
	} {
		if line := up(t, socket, source); !strings.Contains(line, want) || !strings.Contains(line, `support="supported"`) || strings.HasSuffix(line, " 1") != (want == "} 1") {
			t.Errorf("%s: %s", source, line)
		}
	}
	w, err := client.Window(t.Context(), "job", 1, 0)
	if err != nil || len(w.Samples) == 0 {
		t.Errorf("the job is not seen: %v", err)
	}
	listing()
	eventually(t, "the cgroups answer again", func() bool { return strings.HasSuffix(up(t, socket, "cgroup"), "} 1") })
	eventually(t, "the job's CPU seconds are read", func() bool {
		w, err := client.Window(t.Context(), "job", 1, 0)
		return err == nil && w.Samples[len(w.Samples)-1].Values[api.ColCPUSeconds] == 7
	})
	zone()
	if line := up(t, socket, "energy/rapl"); !strings.HasSuffix(line, "} 0") {
		t.Errorf("%s; want it silent until a restart, since another meter counts", line)
	}
}
