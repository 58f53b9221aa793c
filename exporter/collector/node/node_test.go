package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

const stat = "cpu  1000 100 500 9000 400 30 20 50 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\n"

func TestDescribesAMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{
		"stat":                stat,
		"loadavg":             "1.25 0.5 0.1 1/100 99\n",
		"cpuinfo":             "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\n",
		"meminfo":             "MemTotal:       16318412 kB\nMemFree: 1 kB\n",
		"sys/kernel/hostname": "n17\n",
	})
	n := node.New(hostfs.Root{ProcFS: dir})
	got, err := n.Machine()
	if err != nil {
		t.Fatal(err)
	}
	want := api.Node{Hostname: "n17", CPUModel: "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", Cores: 2, MemoryBytes: 16318412 << 10, MachineKind: "intel-xeon-gold-6248×2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	cpu, err := n.CPU()
	if diff := cmp.Diff(node.CPU{Busy: 16.5, Steal: 0.5, Cores: 2, PerCPU: map[int]float64{0: 0.05, 1: 0.05}}, cpu); err != nil || diff != "" {
		t.Errorf("cpu %v (-want +got):\n%s", err, diff)
	}
	if load, err := n.Load(); err != nil || load != 1.25 {
		t.Errorf("load %v, %v", load, err)
	}
	for _, s := range n.Probe(t.Context()) {
		if s.Support != api.Supported {
			t.Errorf("%+v", s)
		}
	}
}

func TestACoreThatGoesOfflineIsNotCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		stat: 2,
		"cpu  1000 100 500 9000 400 30 20 50 7 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\ncpu9\n": 1,
		"cpu  1000 100 500 9000 400 30 20 50 7 0\n":                                         0, // unknown
		"intr 5\n": -1,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cpu, err := node.New(hostfs.Root{ProcFS: dir}).CPU()
		if (err != nil) != (want < 0) || err == nil && cpu.Cores != want {
			t.Errorf("%q: %d cores, %v; want %d", text, cpu.Cores, err, want)
		}
	}
}

func TestAMachineWithoutStatCannotBeDescribed(t *testing.T) {
	t.Parallel()
	n := node.New(hostfs.Root{ProcFS: t.TempDir()})
	if _, err := n.Machine(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, s := range n.Probe(t.Context()) {
		if s.Support != api.Unsupported || s.Reason == "" {
			t.Errorf("%+v, want unsupported with a reason", s)
		}
	}
}

func TestOneCPUHasOneName(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"AMD EPYC 7763 64-Core Processor":           "amd-epyc-7763-64",
		"AMD EPYC":                                  "amd-epyc",
		"Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz": "intel-xeon-e5-2680-v4",
		"13th Gen Intel(R) Core(TM) i7-1365U":       "13th-gen-intel-i7-1365u",
		"":                                          "unknown",
		" @ 3 GHz":                                  "unknown",
		"AMD Ryzen 7 PRO 5850U with Radeon Graphics    ": "amd-ryzen-7-pro-5850u-radeon-graphics",
	} {
		if got := node.NormaliseModel(model); got != want {
			t.Errorf("NormaliseModel(%q) = %q, want %q", model, got, want)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte("model name : x\nCPU part : 5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind := node.NormaliseModel(node.Model(data)); kind == "" || strings.ContainsAny(kind, " @\n") {
			t.Errorf("kind %q of %q", kind, data)
		}
	})
}
