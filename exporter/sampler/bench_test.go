package sampler

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/window"
)

// tree is a node with jobs of 16 processes each, on disk.
func tree(tb testing.TB, jobs int) hostfs.Root {
	tb.Helper()
	dir := tb.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	write(root.Proc("stat"), "cpu  1000 0 1000 1000 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n")
	write(root.Proc("loadavg"), "1 1 1 1/1 1\n")
	write(root.Sys("devices", "system", "cpu", "online"), "0-63\n")
	write(root.Cgroup("unified", "cgroup.controllers"), "")
	const pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
	for j := range jobs {
		leaf := root.Cgroup("unified", "pitchpipe", fmt.Sprintf("%d.1", j))
		procs := ""
		for p := range 16 {
			pid := 1000 + 100*j + p
			procs += fmt.Sprintln(pid)
			write(root.Pid(pid, "stat"), fmt.Sprintf("%d (a) S 1 1 1 0 -1 4194304 5 0 1 0 7 3 0 0 20 0 1 0 5 1000 9 1 1", pid))
			write(root.Pid(pid, "io"), "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4\n")
			status := "Name:\ta\nCpus_allowed_list:\t0-3\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t2\n"
			write(root.Pid(pid, "status"), status)
			write(root.Pid(pid, "task", fmt.Sprint(pid), "status"), status)
			write(root.Pid(pid, "cgroup"), fmt.Sprintf("0::/pitchpipe/%d.1\n", j))
		}
		write(filepath.Join(leaf, "cgroup.procs"), procs)
		write(filepath.Join(leaf, "cpu.stat"), "usage_usec 5\nuser_usec 3\nsystem_usec 2\n")
		write(filepath.Join(leaf, "memory.stat"), "anon 5\nfile 6\n")
		write(filepath.Join(leaf, "memory.peak"), "7\n")
		write(filepath.Join(leaf, "io.stat"), "8:0 rbytes=1 wbytes=2\n")
		for _, f := range []string{"cpu.pressure", "memory.pressure", "io.pressure"} {
			write(filepath.Join(leaf, f), pressure)
		}
	}
	return root
}

// counts are of jobs: what they cost is to grow as they do.
func counts() []int { return []int{10, 50, 100, 200} }

// BenchmarkTick is one sample of jobs of sixteen processes, without perf.
func BenchmarkTick(b *testing.B) {
	for _, jobs := range counts() {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			root := tree(b, jobs)
			s := New(Config{Cores: 64}, attrib.NewScanner(root, attrib.TrustOwn), []collector.Collector{cgroup.New(root), proc.New(root)},
				node.New(root), energy.NewModeller(energy.DefaultModel(64)), window.New(window.Config{}))
			s.discover(b.Context())
			if len(s.jobs) != jobs {
				b.Fatalf("%d jobs, want %d", len(s.jobs), jobs)
			}
			for b.Loop() {
				s.tick(b.Context())
			}
			if s.stats.ReadErrors > 0 {
				b.Errorf("%d read errors", s.stats.ReadErrors)
			}
			s.closeAll()
		})
	}
}

// BenchmarkDiscover is one look for jobs, of which all are known.
func BenchmarkDiscover(b *testing.B) {
	for _, jobs := range counts() {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			scanner := attrib.NewScanner(tree(b, jobs), attrib.TrustOwn)
			for b.Loop() {
				if got := scanner.Scan(b.Context()); len(got) != jobs {
					b.Fatalf("%d jobs, want %d", len(got), jobs)
				}
			}
		})
	}
}
