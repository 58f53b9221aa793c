package cgroup_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// A node of eight CPUs, and what is said about a job that may use them all.
func TestAJobHasTheCoresThatItWasGiven(t *testing.T) {
	t.Parallel()
	const (
		scope  = "nomad.slice/share.slice/job.scope/"
		beside = "nomad.slice/share.slice/other.scope/"
		ended  = "nomad.slice/share.slice/ended.scope/"
	)
	usual := map[string]string{scope + "cpuset.cpus": "\n", scope + "cpuset.cpus.effective": "0-7\n", scope + "cpu.weight": "100\n", scope + "cgroup.events": "populated 1\n"}
	v2 := map[string]string{hostfs.Unified: scope}
	with := func(more map[string]string) map[string]string {
		out := maps.Clone(usual)
		maps.Copy(out, more)
		return out
	}
	for _, tc := range []struct {
		name  string
		dirs  map[string]string
		files map[string]string
		pids  []int
		want  float64 // 0 = nothing is said
	}{
		{"some of the CPUs were written for it", v2, with(map[string]string{scope + "cpuset.cpus": "2-4\n", scope + "cpuset.cpus.effective": "2-4\n"}), nil, 3},
		{"all of them were: the node is its own", v2, with(map[string]string{scope + "cpuset.cpus": "0-7\n"}), nil, 8},
		{"none was written: it may use them all, and has none", v2, usual, nil, 0},
		{"its processes keep to some", v2, with(map[string]string{"proc/7/status": "Name:\tx\nCpus_allowed_list:\t4-5\n"}), []int{7}, 2},
		{"its processes may use all", v2, with(map[string]string{"proc/7/status": "Name:\tx\nCpus_allowed_list:\t0-7\n"}), []int{7}, 0},
		{"it shares six with another by weight, and with none that ended", v2, with(map[string]string{
			scope + "cpuset.cpus.effective": "0-5\n", scope + "cpu.weight": "20\n",
			beside + "cpu.weight": "40\n", beside + "cgroup.events": "populated 1\n",
			ended + "cpu.weight": "900\n", ended + "cgroup.events": "populated 0\n",
		}), nil, 2},
		{"it keeps the usual weight beside one that has another", v2, with(map[string]string{
			beside + "cpu.weight": "300\n", beside + "cgroup.events": "populated 1\n",
		}), nil, 2},
		{"both have the usual weight, which was not given to them", v2, with(map[string]string{
			beside + "cpu.weight": "100\n", beside + "cgroup.events": "populated 1\n",
		}), nil, 0},
		{"an affinity that is the shared pool's is not its own", v2, with(map[string]string{
			scope + "cpuset.cpus.effective": "0-5\n", scope + "cpu.weight": "20\n", "proc/7/status": "Cpus_allowed_list:\t0-5\n",
		}), []int{7}, 6},
		{"v1, shares beside another's", map[string]string{"cpu,cpuacct": "cpu/nomad/job"}, map[string]string{
			"cpu/nomad/job/cpu.shares": "500\n", "cpu/nomad/job/cgroup.procs": "7\n", "cpu/nomad/other/cpu.shares": "1500\n", "cpu/nomad/other/cgroup.procs": "8\n",
			"cpu/nomad/empty/cpu.shares": "5000\n", "cpu/nomad/empty/cgroup.procs": "",
		}, nil, 2},
		{"v1, the usual shares", map[string]string{"cpu,cpuacct": "cpu/nomad/job"}, map[string]string{
			"cpu/nomad/job/cpu.shares": "1024\n", "cpu/nomad/job/cgroup.procs": "7\n",
		}, nil, 0},
		{"v1, a cpuset of some", map[string]string{"cpuset": "cpuset/job"}, map[string]string{"cpuset/job/cpuset.effective_cpus": "0,7\n"}, nil, 2},
		{"v1, a cpuset of all, which somebody made", map[string]string{"cpuset": "cpuset/job"}, map[string]string{"cpuset/job/cpuset.cpus": "0-7\n"}, nil, 8},
		{"v1, a cpuset that has gone", map[string]string{"cpuset": "cpuset/job"}, nil, nil, 0},
		{"v1, a cpuset of all and shares of a container", map[string]string{"cpuset": "cpuset/docker/job", "cpu": "cpu/docker/job"}, map[string]string{
			"cpuset/docker/job/cpuset.cpus": "0-7\n", "cpu/docker/job/cpu.shares": "256\n", "cpu/docker/job/cgroup.procs": "7\n",
			"cpu/docker/other/cpu.shares": "768\n", "cpu/docker/other/cgroup.procs": "8\n",
		}, nil, 2},
		{"of its CPUs one is offline", v2, with(map[string]string{scope + "cpuset.cpus": "6-9\n", scope + "cpuset.cpus.effective": "6-9\n"}), nil, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sandbox.Plant(t, dir, map[string]string{"sys/devices/system/cpu/online": "0-7\n"})
			sandbox.Plant(t, dir, tc.files)
			target := collector.Target{Dirs: map[string]string{}}
			for tree, path := range tc.dirs {
				target.Dirs[tree] = filepath.Join(dir, path)
			}
			r, err := cgroup.New(hostfs.Root{SysFS: filepath.Join(dir, "sys"), ProcFS: filepath.Join(dir, "proc")}).Open(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 2 { // the second by what the first has learned
				out := collector.Values{}
				_ = r.Read(t.Context(), collector.Moment{Time: time.Unix(100, int64(round)), Pids: tc.pids}, out) // most files are not there
				got, said := out[api.ColAllocatedCores]
				if got != tc.want || said != (tc.want > 0) {
					t.Errorf("%v cores (said: %v), want %v", got, said, tc.want)
				}
			}
		})
	}
}

func TestTheCoresOfAJobFollowItsCpusetAndItsNeighbours(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{
		"sys/devices/system/cpu/online": "0-7\n",
		"s/job/cpuset.cpus":             "\n", "s/job/cpuset.cpus.effective": "0-7\n", "s/job/cpu.weight": "10\n", "s/job/cgroup.events": "populated 1\n",
	})
	r, err := cgroup.New(hostfs.Root{SysFS: filepath.Join(dir, "sys")}).Open(t.Context(), collector.Target{Dirs: map[string]string{hostfs.Unified: filepath.Join(dir, "s/job")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		files map[string]string
		want  float64
	}{
		{nil, 8}, // it is alone
		{map[string]string{"s/other/cpu.weight": "30\n", "s/other/cgroup.events": "populated 1\n"}, 2},
		{map[string]string{"s/job/cpuset.cpus": "0-2\n", "s/job/cpuset.cpus.effective": "0-2\n"}, 3},
		{map[string]string{"sys/devices/system/cpu/online": "0-1\n"}, 2},
	} {
		sandbox.Plant(t, dir, step.files)
		out := collector.Values{}
		_ = r.Read(t.Context(), collector.Moment{Time: time.Unix(int64(100+10*i), 0)}, out) // most files are not there
		if got := out[api.ColAllocatedCores]; got != step.want {
			t.Errorf("step %d: %v cores, want %v", i, got, step.want)
		}
	}
}
