package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/collector/gpu/card"
)

// fake compiles a library for the test.
func fake(t *testing.T, defines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libfake.so")
	args := []string{"-shared", "-fPIC", "-o", path, filepath.Join("testdata", "fake.c")}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not on PATH, and the fake library is C")
	}
	if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func loaded(t *testing.T, defines ...string) *library {
	t.Helper()
	l, err := load(fake(t, defines...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Shutdown() })
	return l
}

func read(t *testing.T, l *library) card.Reading {
	t.Helper()
	r, err := l.read(time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFiguresOfTheLibraryAreReadInBaseUnits(t *testing.T) {
	t.Parallel()
	l := loaded(t)
	r := read(t, l)
	if r.Driver != "555.42" || len(r.Devices) != 2 {
		t.Fatalf("driver %q, %d GPUs", r.Driver, len(r.Devices))
	}
	first, second := r.Devices[0], r.Devices[1]
	processes := *first.Processes
	first.Processes = nil
	want := card.Device{
		UUID: "GPU-aaaa", Name: "NVIDIA Test", Joules: new(5e9 + 0.25), Watts: new(100.5), LimitWatts: new(300.0), Busy: new(0.35),
		MemoryUsed: new(int64(10) << 30), MemoryTotal: new(int64(80) << 30), Missing: map[string]string{},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if len(processes) != 100 || processes[0].Pid != 1000 || processes[0].Memory != nil || *processes[1].Memory != 1<<20 {
		t.Errorf("%d processes, the first %+v; want the 100 that compute, each once, and no memory where it is not known", len(processes), processes[0])
	}
	if second.Joules != nil || second.Missing["joules"] != "not supported" || second.Processes == nil || len(*second.Processes) != 0 {
		t.Errorf("second GPU %+v; want no counter, and no processes, which is known", second)
	}
	if again := read(t, l); *again.Devices[0].Joules != 5e9+0.5 {
		t.Errorf("the counter is at %v, want it to have gone on", *again.Devices[0].Joules)
	}
}

func TestWhatALibraryLacksIsMissingWithTheReasonAndNothingElse(t *testing.T) {
	t.Parallel()
	d := read(t, loaded(t, "OLD")).Devices[0]
	if d.Joules != nil || !strings.Contains(d.Missing["joules"], "the library has no such function") {
		t.Errorf("joules %v, %q", d.Joules, d.Missing["joules"])
	}
	if d.MemoryUsed == nil || *d.MemoryUsed != 11<<30 {
		t.Errorf("%v bytes are used; want what the first version counts, what the driver reserves included", d.MemoryUsed)
	}
	if d.Watts == nil || d.Busy == nil || d.Processes == nil {
		t.Errorf("%+v: what the library has is missing too", d)
	}
}

func TestAGPUThatIsLostTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	r := read(t, loaded(t, "LOST=1"))
	if len(r.Devices) != 1 || r.Devices[0].UUID != "GPU-bbbb" || r.Devices[0].Index != 1 || r.Devices[0].Watts == nil {
		t.Errorf("GPUs %+v; want the second with its figures", r.Devices)
	}
	if diff := cmp.Diff([]string{"GPU 0: the driver answers 15 (the GPU is lost)"}, r.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if _, err := loaded(t, "LOST=3").read(time.Unix(1, 0)); err == nil || !strings.Contains(err.Error(), "GPU 1: the driver answers 15") {
		t.Errorf("all are lost: %v", err)
	}
}

func TestInstancesOfASplitGPUHaveTheirOwnProcesses(t *testing.T) {
	t.Parallel()
	r := read(t, loaded(t, "MIG"))
	want := []card.Instance{
		{UUID: "MIG-cccc", GPU: 7, SMs: 16, MemoryTotal: new(int64(9856) << 20), Processes: &[]card.Process{{Pid: 1200}}},
		{UUID: "MIG-dddd", GPU: 8, SMs: 60, MemoryTotal: new(int64(40192) << 20), Processes: &[]card.Process{{Pid: 1300}, {Pid: 1301, Memory: new(int64(1) << 20)}}},
	}
	if diff := cmp.Diff(want, r.Devices[0].Instances); diff != "" {
		t.Error(diff)
	}
	if r.Devices[0].Processes != nil || r.Devices[1].Instances != nil {
		t.Errorf("the GPU that is split has processes of its own, or the other has instances: %+v", r.Devices)
	}
}

func TestALibraryThatCannotBeUsedSaysWhy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		path func(*testing.T) string
		want error
		text string
	}{
		{"there is none", func(t *testing.T) string { return filepath.Join(t.TempDir(), "libnvidia-ml.so.1") }, errAbsent, "cannot open shared object file"},
		{"it is another", func(*testing.T) string { return "libm.so.6" }, errAbsent, "lacks the functions"},
		{"the driver refuses", func(t *testing.T) string { return fake(t, "DENIED") }, errDenied, "permission denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := load(tc.path(t))
			if l != nil || !errors.Is(err, tc.want) || !strings.Contains(fmt.Sprint(err), tc.text) {
				t.Errorf("%v; want %v with %q", err, tc.want, tc.text)
			}
		})
	}
}
