package cgroup_test

import (
	"fmt"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

func TestOfAJobThatSleepsOnlyEachEighthReadingIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(usage, memory int) {
		sandbox.Plant(t, dir, map[string]string{
			"cgroup.controllers": "", "j/cgroup.procs": "",
			"j/cpu.stat": fmt.Sprintf("usage_usec %d\nuser_usec 0\nsystem_usec 0\n", usage), "j/memory.stat": fmt.Sprintf("anon %d\nfile 0\n", memory),
		})
	}
	write(1, 100)
	r, err := cgroup.New(hostfs.Root{CgroupFS: dir}).Open(t.Context(), collector.Target{Dirs: map[string]string{hostfs.Unified: dir + "/j"}})
	if err != nil {
		t.Fatal(err)
	}
	read := func() float64 {
		out := collector.Values{}
		_ = r.Read(t.Context(), collector.Moment{}, out) // the tree lacks most files
		return out[api.ColRSS]
	}
	sandbox.Plant(t, dir, map[string]string{"j/memory.peak": "1\n"})
	if got := read(); got != 100 {
		t.Fatalf("at first %v bytes", got)
	}
	write(1, 200) // another job took its memory
	for n := range 7 {
		if got := read(); got != 100 {
			t.Errorf("reading %d of a job that sleeps: %v bytes, want those of before", n, got)
		}
	}
	if got := read(); got != 200 {
		t.Errorf("the eighth reading: %v bytes", got)
	}
	write(2, 300)
	if got := read(); got != 300 {
		t.Errorf("after it ran: %v bytes", got)
	}
}
