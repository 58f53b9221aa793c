package cgroup_test

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

func pressure(usec string) string {
	return "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + usec + "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
}

func TestReadsWhatEachLayoutHas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		dirs  []string
		files map[string]string
		want  collector.Values
		fails bool
	}{
		{
			name: "v2",
			dirs: []string{"unified"},
			files: map[string]string{
				"unified/cpu.stat":              "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n",
				"unified/memory.stat":           "anon 1000\nfile 2000\npgfault 4\n",
				"unified/memory.peak":           "5000\n",
				"unified/io.stat":               "8:0 rbytes=100 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2\n",
				"unified/cpu.pressure":          pressure("250000"),
				"unified/memory.pressure":       pressure("0"),
				"unified/io.pressure":           pressure("1500000"),
				"unified/cpuset.cpus.effective": "0-3\n",
			},
			want: collector.Values{
				api.ColCPUSeconds: 3, api.ColUserSeconds: 2, api.ColSystemSeconds: 1, api.ColRSS: 1000, api.ColCache: 2000,
				api.ColPeak: 5000, api.ColReadBytes: 101, api.ColWriteBytes: 22, api.ColCPUPressure: 0.25,
				api.ColMemoryPressure: 0, api.ColIOPressure: 1.5, api.ColAllocatedCores: 4,
			},
		},
		{
			name: "v1, ticks only",
			dirs: []string{"cpu,cpuacct", "memory", "blkio", "cpuset"},
			files: map[string]string{
				"cpu,cpuacct/cpuacct.usage":                       "3000000000\n",
				"cpu,cpuacct/cpuacct.stat":                        "user 200\nsystem 100\n",
				"memory/memory.stat":                              "rss 1\ncache 2\ntotal_rss 1000\ntotal_cache 2000\n",
				"memory/memory.max_usage_in_bytes":                "5000\n",
				"blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 100\n8:0 Write 20\n8:0 Total 120\nTotal 120\n",
				"cpuset/cpuset.effective_cpus":                    "1\n",
			},
			want: collector.Values{
				api.ColCPUSeconds: 3, api.ColUserSeconds: 2, api.ColSystemSeconds: 1, api.ColRSS: 1000, api.ColCache: 2000,
				api.ColPeak: 5000, api.ColReadBytes: 100, api.ColAllocatedCores: 1,
			},
		},
		{
			name: "a hybrid takes the finer CPU time and the memory that only v1 has",
			dirs: []string{"unified", "cpuacct", "memory"},
			files: map[string]string{
				"unified/cpu.stat":                 "usage_usec 3000001\nuser_usec 2000000\nsystem_usec 1000001\n",
				"unified/cpu.pressure":             pressure("1000000"),
				"unified/memory.pressure":          pressure("0"),
				"unified/io.pressure":              pressure("0"),
				"cpuacct/cpuacct.usage":            "9\n",
				"memory/memory.stat":               "total_rss 10\ntotal_cache 20\n",
				"memory/memory.max_usage_in_bytes": "50\n",
			},
			want: collector.Values{
				api.ColCPUSeconds: 3.000001, api.ColUserSeconds: 2, api.ColSystemSeconds: 1.000001, api.ColRSS: 10,
				api.ColCache: 20, api.ColPeak: 50, api.ColCPUPressure: 1, api.ColMemoryPressure: 0, api.ColIOPressure: 0,
			},
		},
		{
			name: "a file of another form takes no other with it",
			dirs: []string{"unified", "memory"},
			files: map[string]string{
				"unified/cpu.stat":                 "nonsense\n",
				"memory/memory.stat":               "total_rss 10\ntotal_cache 20\n",
				"memory/memory.max_usage_in_bytes": "50\n",
			},
			want:  collector.Values{api.ColRSS: 10, api.ColCache: 20, api.ColPeak: 50},
			fails: true,
		},
		{
			name:  "nothing there is nothing read, and no error",
			dirs:  []string{"unified"},
			files: nil,
			want:  collector.Values{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sandbox.Plant(t, dir, tc.files)
			dirs := map[string]string{}
			for _, d := range tc.dirs {
				dirs[d] = filepath.Join(dir, d)
			}
			sandbox.Plant(t, dir, map[string]string{"sys/devices/system/cpu/online": "0-7\n"})
			r, err := cgroup.New(hostfs.Root{SysFS: filepath.Join(dir, "sys")}).Open(t.Context(), collector.Target{Dirs: dirs})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Values{}
			err = r.Read(t.Context(), collector.Moment{}, got)
			if (err != nil) != tc.fails {
				t.Errorf("error %v, want one: %v", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPeakIsKeptWhereTheKernelKeepsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := cgroup.New(hostfs.Root{}).Open(t.Context(), collector.Target{Dirs: map[string]string{"unified": dir}})
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range []string{"10", "700", "30"} {
		sandbox.Plant(t, dir, map[string]string{"memory.stat": "anon 1\nfile 1\n", "memory.current": use})
		got := collector.Values{}
		if err := r.Read(t.Context(), collector.Moment{}, got); err != nil {
			t.Fatal(err)
		}
		if want := map[string]float64{"10": 10, "700": 700, "30": 700}[use]; got[api.ColPeak] != want {
			t.Errorf("peak at %s = %v, want %v", use, got[api.ColPeak], want)
		}
	}
}

func TestAJobWithoutACgroupIsUnsupported(t *testing.T) {
	t.Parallel()
	if _, err := cgroup.New(hostfs.Root{}).Open(t.Context(), collector.Target{}); !errors.Is(err, collector.ErrUnsupported) {
		t.Errorf("got %v, want %v", err, collector.ErrUnsupported)
	}
}

func TestProbeAnswersForEachController(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{
		"unified/cgroup.controllers": "", "unified/cgroup.procs": "", "unified/cpu.pressure": pressure("1"),
		"memory/cgroup.procs": "",
	})
	got := map[string]api.Support{}
	for _, s := range cgroup.New(hostfs.Root{CgroupFS: dir}).Probe(t.Context()) {
		got[s.Name] = s.Support
		if s.Reason == "" {
			t.Errorf("%s has no reason", s.Name)
		}
	}
	want := map[string]api.Support{
		"cgroup/cpu": api.Supported, "cgroup/memory": api.Supported, "cgroup/pressure": api.Supported,
		"cgroup/io": api.Unsupported, "cgroup/cpuset": api.Unsupported,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("usage_usec 1\nuser_usec 1\n", "8:0 rbytes=1 wbytes=2\n", "8:0 Read 3\n", "0-3")
	f.Fuzz(func(t *testing.T, cpu, io, blkio, cpuset string) {
		dir := t.TempDir()
		sandbox.Plant(t, dir, map[string]string{
			"u/cpu.stat": cpu, "u/io.stat": io, "u/cpuset.cpus.effective": cpuset, "u/memory.stat": cpu,
			"b/blkio.throttle.io_service_bytes": blkio,
		})
		for _, dirs := range []map[string]string{{"unified": filepath.Join(dir, "u")}, {"blkio": filepath.Join(dir, "b")}} {
			r, err := cgroup.New(hostfs.Root{}).Open(t.Context(), collector.Target{Dirs: dirs})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Values{}
			_ = r.Read(t.Context(), collector.Moment{}, got)
			for column, v := range got {
				if v < 0 || math.IsNaN(v) {
					t.Errorf("%s = %v", column, v)
				}
			}
		}
	})
}
