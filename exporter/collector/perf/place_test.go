package perf_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
)

func TestAReaderKnowsOnWhichSocketItsJobWorked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 4)
		for cpu, socket := range []string{"0", "0", "1", "1"} {
			k.plant(t, "sys/devices/system/cpu/cpu"+string(rune('0'+cpu))+"/topology/physical_package_id", socket+"\n")
		}
		c := perf.New(k.root, k, chosen(t, "cycles", "cache-misses")...)
		c.Probe(t.Context())
		dir := k.cgroup(t, "job")
		r := opened(t, c, collector.Target{Dirs: unified(dir)})
		where, ok := r.(collector.Placed)
		if !ok {
			t.Fatal("the reader does not say where its job worked")
		}
		if got := where.Places(); len(got) != 0 {
			t.Errorf("%+v before anything was read", got)
		}
		const rate = 3e9
		k.run(1, dir, map[string]float64{"task-clock": 1e9, "cycles": rate, "cache-misses": 1e6})
		time.Sleep(2 * time.Second)
		k.run(1, "", nil)
		k.run(2, dir, map[string]float64{"task-clock": 1e9, "cycles": rate, "cache-misses": 5e6})
		time.Sleep(time.Second)
		values(t, r)
		for socket, want := range map[int]collector.Place{
			0: {CPUSeconds: 2, Cycles: 2 * rate, Misses: 2e6}, 1: {CPUSeconds: 1, Cycles: rate, Misses: 5e6},
		} {
			got := where.Places()[socket]
			for _, pair := range [][2]float64{{got.CPUSeconds, want.CPUSeconds}, {got.Cycles, want.Cycles}, {got.Misses, want.Misses}} {
				if math.Abs(pair[0]-pair[1]) > 0.01*pair[1] {
					t.Errorf("socket %d: %+v, want %+v", socket, got, want)
				}
			}
		}
		// Events that do not count now are not known; where the job worked is.
		k.advance()
		k.held, k.fixed = k.general, nil
		time.Sleep(2 * time.Second)
		values(t, r)
		if got := where.Places()[1]; got.Cycles != 0 || got.Misses != 0 || math.Abs(got.CPUSeconds-3) > 0.05 {
			t.Errorf("%+v, want 3 CPU seconds and no events", got)
		}
	})
}
