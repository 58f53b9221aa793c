package hostfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

func TestTheZeroRootIsTheMachine(t *testing.T) {
	t.Parallel()
	var r hostfs.Root
	got := []string{r.Proc("stat"), r.Sys("class"), r.Cgroup("memory"), r.Pid(7, "io")}
	want := []string{"/proc/stat", "/sys/class", "/sys/fs/cgroup/memory", "/proc/7/io"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestHierarchiesAreFoundByTheirShape(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		links map[string]string
		want  map[string]string // name → controllers
	}{
		{"nothing mounted", nil, nil, map[string]string{}},
		{
			"v2 at the root hides what else there is",
			map[string]string{"cgroup.controllers": "cpu memory\n", "memory/cgroup.procs": ""},
			nil,
			map[string]string{"unified": "cpu memory"},
		},
		{
			"a hybrid has v1 trees and a unified one",
			map[string]string{"unified/cgroup.controllers": "", "memory/cgroup.procs": "", "systemd/cgroup.procs": "", "other/file": ""},
			nil,
			map[string]string{"unified": "", "memory": "memory", "systemd": "systemd"},
		},
		{
			"linked controllers are one tree",
			map[string]string{"cpu,cpuacct/cgroup.procs": ""},
			map[string]string{"cpu": "cpu,cpuacct", "cpuacct": "cpu,cpuacct"},
			map[string]string{"cpu,cpuacct": "cpu cpuacct"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sandbox.Plant(t, dir, tc.files)
			for from, to := range tc.links {
				if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]string{}
			for _, h := range (hostfs.Root{CgroupFS: dir}).Hierarchies() {
				got[h.Name] = strings.Join(h.Controllers, " ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCPUList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want []int
		err  error
	}{
		{"0-3,8,10-11\n", []int{0, 1, 2, 3, 8, 10, 11}, nil},
		{"1,0,1", []int{0, 1}, nil},
		{"\n", nil, nil},
		{"3-1", nil, hostfs.ErrFormat},
		{"0-99999999", nil, hostfs.ErrFormat},
		{"a", nil, hostfs.ErrFormat},
		{"-1", nil, hostfs.ErrFormat},
	} {
		got, err := hostfs.CPUList(tc.text)
		if !errors.Is(err, tc.err) || !cmp.Equal(got, tc.want) {
			t.Errorf("CPUList(%q) = %v, %v; want %v, %v", tc.text, got, err, tc.want, tc.err)
		}
	}
}

func TestPressureTotal(t *testing.T) {
	t.Parallel()
	const text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"
	if got, err := hostfs.PressureTotal([]byte(text)); err != nil || got != 1234 {
		t.Errorf("got %d, %v; want 1234", got, err)
	}
	for _, bad := range []string{"", "full total=3", "some total=x", "some avg10=0"} {
		if _, err := hostfs.PressureTotal([]byte(bad)); !errors.Is(err, hostfs.ErrFormat) {
			t.Errorf("PressureTotal(%q): got %v, want %v", bad, err, hostfs.ErrFormat)
		}
	}
}

func TestOneCountIsFoundInAFileOfCounts(t *testing.T) { // not parallel: it counts allocations
	const text = "usage_usec 12\nempty\nrchar: 5\nneg -3\nanon_thp 4\nanon 7\nbig 18446744073709551615\nover 18446744073709551616\n"
	all := map[string]uint64{"usage_usec": 12, "rchar": 5, "anon": 7, "anon_thp": 4, "big": 1<<64 - 1}
	for _, name := range []string{"usage_usec", "empty", "rchar", "neg", "anon", "anon_thp", "big", "over", "none", ""} {
		want, there := all[name]
		if got, ok := hostfs.Count([]byte(text), name); got != want || ok != there {
			t.Errorf("%s: got %d, %v; want %d, %v", name, got, ok, want, there)
		}
	}
	data := []byte(text)
	if n := testing.AllocsPerRun(10, func() { hostfs.Count(data, "anon") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheFieldsOfAProcessHaveTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		last int
	}{
		{"7 (a) b) S 1 2 3 0 -1 6", 9},
		{"7 (a) S 1 2 x 4", 5},
		{"7 (a)", 2},
		{"", 2},
	} {
		f, last := hostfs.ParseProcStat([]byte(tc.text))
		if last != tc.last || last >= 5 && (f[4] != 1 || f[5] != 2) || f[8] != 0 {
			t.Errorf("%q: %d fields, %v; want %d", tc.text, last, f[:10], tc.last)
		}
	}
}

func TestAFileIsReadIntoTheRoomThatThereIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	room := make([]byte, 3, 8192)
	for _, size := range []int{0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 300_000} {
		want := strings.Repeat("x", size)
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		b := hostfs.Buffer(room)
		got, err := b.Read(path)
		if err != nil || string(got) != want {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if size < cap(room) && &room[:1][0] != &got[:1][0] {
			t.Errorf("%d bytes are not in the room", size)
		}
		if got, err := hostfs.Read(path); err != nil || string(got) != want {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
	if _, err := hostfs.Read(filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("below a file: %v", err)
	}
	if _, err := hostfs.Read(path + "-none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := hostfs.Read(filepath.Dir(path)); err == nil {
		t.Error("a directory was read")
	}
}

// The kernel hands out files of many lines in pieces. The first may be shorter than
// what it was asked for.
func TestFilesOfTheKernelAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/proc/cpuinfo", "/proc/crypto", "/proc/devices", "/proc/filesystems", "/proc/modules", "/proc/self/cmdline", "/proc/self/environ", "/proc/self/limits"} {
		want, err := os.ReadFile(path)
		if err != nil {
			continue // not on this machine
		}
		got, err := hostfs.Read(path)
		again, _ := os.ReadFile(path) // a clock of a CPU may change meanwhile
		if err != nil || !bytes.Equal(got, want) && bytes.Equal(want, again) {
			t.Errorf("%s: %d bytes of %d, %v", path, len(got), len(want), err)
		}
	}
}

func TestReadRefusesEndlessFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hostfs.Read(path); err == nil {
		t.Error("read 5 MiB without an error")
	}
}

func FuzzFormats(f *testing.F) {
	f.Add([]byte("some avg10=0.00 total=1234\n"))
	f.Add([]byte("0-3,8"))
	f.Add([]byte("usage_usec 12\nuser_usec 3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = hostfs.PressureTotal(data)
		_, _ = hostfs.Number(data)
		_, _ = hostfs.Count(data, "usage_usec")
		_, _ = hostfs.ParseProcStat(data)
		for name, value := range hostfs.Env(data, "A") {
			if name != "A" || strings.Contains(value, "\x00") {
				t.Errorf("Env(%q) has %q=%q", data, name, value)
			}
		}
		cpus, err := hostfs.CPUList(string(data))
		for i, c := range cpus {
			if err != nil || c < 0 || i > 0 && cpus[i-1] >= c {
				t.Errorf("CPUList(%q) = %v, %v", data, cpus, err)
			}
		}
	})
}
