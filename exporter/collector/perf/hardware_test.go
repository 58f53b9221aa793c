package perf_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// busy is what a load does a second.
func busy() map[string]float64 {
	out := map[string]float64{
		"task-clock": 1e9, "context-switches": 200, "cpu-migrations": 3, "minor-faults": 5000, "major-faults": 2, "page-faults": 5002, "cpu-clock": 1e9,
	}
	for i, e := range perf.Catalogue() {
		if _, ok := out[e.Name]; !ok {
			out[e.Name] = 1e6 * float64(i+1)
		}
	}
	out["cycles"], out["instructions"] = 3e9, 4.5e9
	return out
}

func chosen(t testing.TB, names ...string) []perf.Event {
	t.Helper()
	events, err := perf.Select(names)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// groups lists the events of each group, as the sources say it.
func groups(sources []api.Source) map[string][]string {
	out := map[string][]string{}
	for _, s := range sources {
		if s.Group != "" {
			out[s.Group] = append(out[s.Group], strings.TrimPrefix(s.Name, "perf/"))
		}
	}
	return out
}

func opened(t testing.TB, c *perf.Collector, target collector.Target) collector.Reader {
	t.Helper()
	r, err := c.Open(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func values(t testing.TB, r collector.Reader) collector.Values {
	t.Helper()
	out := collector.Values{}
	if err := r.Read(t.Context(), collector.Moment{}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func unified(dir string) map[string]string { return map[string]string{hostfs.Unified: dir} }

func TestGroupsAreAsWideAsThePMU(t *testing.T) {
	t.Parallel()
	always := []string{"task-clock", "context-switches", "cpu-migrations", "minor-faults", "major-faults"}
	for _, tc := range []struct {
		name   string
		change func(*fakeKernel)
		chosen []string
		want   map[string][]string
	}{
		{"four counters beside the fixed ones", nil, []string{"basic"}, map[string][]string{
			"cpu-1": {"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"},
		}},
		{"a watchdog has one, which only shows when a group does not run", func(k *fakeKernel) { k.held = 1 }, []string{"basic"}, map[string][]string{
			"cpu-1": {"cycles", "instructions", "cache-references", "cache-misses", "branches"}, "cpu-2": {"branch-misses"},
		}},
		{"two counters and none fixed", func(k *fakeKernel) { k.general, k.fixed = 2, nil }, []string{"basic"}, map[string][]string{
			"cpu-1": {"cycles", "instructions"}, "cpu-2": {"cache-references", "cache-misses"}, "cpu-3": {"branches", "branch-misses"},
		}},
		{"one counter", func(k *fakeKernel) { k.general, k.fixed = 1, nil }, []string{"cycles", "instructions"}, map[string][]string{
			"cpu-1": {"cycles"}, "cpu-2": {"instructions"},
		}},
		{"an event that the CPU lacks leaves its place to the next", func(k *fakeKernel) { k.lacks = []string{"cache-misses"} }, []string{"basic"}, map[string][]string{
			"cpu-1": {"cycles", "instructions", "cache-references", "branches", "branch-misses"},
		}},
		{"further software events stand with the software events", nil, []string{"page-faults", "cycles"}, map[string][]string{
			"software": append(slices.Clone(always), "page-faults"), "cpu-1": {"cycles"},
		}},
		{"no PMU", func(k *fakeKernel) { k.noPMU = true }, []string{"basic"}, map[string][]string{}},
		{"all counters are held", func(k *fakeKernel) { k.held, k.fixed = 4, nil }, []string{"cycles"}, map[string][]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newFake(t, 2)
				if tc.change != nil {
					tc.change(k)
				}
				c := perf.New(k.root, k, chosen(t, tc.chosen...)...)
				got := groups(c.Probe(t.Context()))
				want := maps.Clone(tc.want)
				if want["software"] == nil {
					want["software"] = always
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
				if k.open() != 0 {
					t.Errorf("%d groups are still open", k.open())
				}
				before := k.opened
				if c.Probe(t.Context()); k.opened != before {
					t.Error("a second probe learns anew")
				}
				for _, e := range slices.Concat(slices.Collect(maps.Values(want))...) {
					if slices.Contains(always, e) == slices.Contains(c.Events(), e) {
						t.Errorf("%s in %v", e, c.Events())
					}
				}
			})
		})
	}
}

func TestGroupsThatTakeTurnsAreScaledToTheTruth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 2)
		k.general, k.fixed = 4, nil
		c := perf.New(k.root, k, chosen(t, "memory")...)
		if n := len(groups(c.Probe(t.Context()))); n != 4 {
			t.Fatalf("%d groups, want the software events and three", n)
		}
		dir, other := k.cgroup(t, "job"), k.cgroup(t, "other")
		r := opened(t, c, collector.Target{Dirs: unified(dir), CPUs: []int{0, 1}})
		const seconds = 40
		last, truth := collector.Values{}, 0.0
		for i := range seconds * 2 {
			// On one CPU all the time, on the other now and then.
			k.run(0, dir, busy())
			k.run(1, []string{dir, other, ""}[i%3], busy())
			time.Sleep(500 * time.Millisecond)
			truth += 0.5
			if i%3 == 0 {
				truth += 0.5
			}
			now := values(t, r)
			for column, was := range last {
				if now[column] < was {
					t.Fatalf("reading %d: %s went from %v to %v", i, column, was, now[column])
				}
				if math.IsNaN(now[column]) {
					t.Fatalf("reading %d: %s is not known", i, column)
				}
			}
			last = now
		}
		for _, e := range chosen(t, "memory") {
			want := busy()[e.Name] * truth
			if got := last[e.Column]; math.Abs(got-want) > 0.005*want {
				t.Errorf("%s: %v, want %v", e.Name, got, want)
			}
		}
		if got := last[api.ColTaskClock]; math.Abs(got-truth) > 1e-3*truth {
			t.Errorf("task clock %v s, want %v", got, truth)
		}
		if got, want := last[api.PerfEvent("instructions")]/last[api.PerfEvent("cycles")], 1.5; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v instructions a cycle from one group, want %v", got, want)
		}
		for group, want := range map[string]float64{"software": 1, "cpu-1": 1. / 3, "cpu-2": 1. / 3, "cpu-3": 1. / 3} {
			enabled, running := last[api.PerfEnabled(group)], last[api.PerfRunning(group)]
			if math.Abs(enabled-truth) > 1e-3*truth || math.Abs(running/enabled-want) > 0.02 {
				t.Errorf("%s: ran %v s of %v s, want %v of %v s", group, running, enabled, want, truth)
			}
		}
	})
}

func TestAGroupThatNeverRunsIsMissingAndNotZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 1)
		c := perf.New(k.root, k, chosen(t, "basic")...)
		dir := k.cgroup(t, "job")
		r := opened(t, c, collector.Target{Dirs: unified(dir)})
		misses := api.PerfEvent("cache-misses")
		if v := values(t, r); v[misses] != 0 {
			t.Errorf("%v misses before anything ran", v[misses])
		}
		k.run(0, dir, busy())
		time.Sleep(time.Second)
		before := values(t, r)[misses]
		// Somebody takes the counters for three seconds, which are known later.
		k.held = 4
		for range 3 {
			time.Sleep(time.Second)
			v := values(t, r)
			if got, ok := v[misses]; !ok || !math.IsNaN(got) {
				t.Errorf("%v misses while nothing counts, want NaN", got)
			}
			if v[api.ColMinorFaults] <= 0 || v[api.ColTaskClock] <= 0 {
				t.Errorf("software events stand still: %v", v)
			}
			if v[api.PerfEnabled("cpu-1")] <= v[api.PerfRunning("cpu-1")] {
				t.Error("the times do not tell that the group did not run")
			}
		}
		k.held = 0
		time.Sleep(time.Second)
		after := values(t, r)[misses]
		if want := busy()["cache-misses"] * 5; math.Abs(after-want) > 0.01*want || after < before {
			t.Errorf("%v misses after five seconds, want %v", after, want)
		}
	})
}

func TestCountersNeverFallWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			k := newFake(t, 3)
			k.general, k.fixed = rapid.IntRange(1, 5).Draw(rt, "counters"), nil
			c := perf.New(k.root, k, chosen(t, "basic", "page-faults")...)
			dirs := []string{k.cgroup(t, "a"), k.cgroup(t, "b"), ""}
			target := collector.Target{Dirs: unified(dirs[0])}
			r := opened(t, c, target)
			last := collector.Values{}
			online := 3
			for range rapid.IntRange(1, 15).Draw(rt, "steps") {
				switch rapid.IntRange(0, 5).Draw(rt, "what") {
				case 0, 1:
					k.run(rapid.IntRange(0, online-1).Draw(rt, "cpu"), rapid.SampledFrom(dirs).Draw(rt, "cgroup"), busy())
				case 2:
					online = rapid.IntRange(1, 3).Draw(rt, "online")
					k.setOnline(t, online)
				case 3:
					target.CPUs = rapid.SampledFrom([][]int{nil, {0}, {1}, {0, 2}, {0, 1, 2}}).Draw(rt, "cpus")
					target.Dirs = unified(rapid.SampledFrom(dirs[:2]).Draw(rt, "home"))
					if err := r.(collector.Follower).Follow(t.Context(), target); err != nil {
						rt.Fatal(err)
					}
				case 4:
					k.advance()
					k.held = rapid.IntRange(0, k.general).Draw(rt, "held")
				default:
				}
				time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(rt, "ms")) * time.Millisecond)
				now := collector.Values{}
				var moment collector.Moment
				if rapid.Bool().Draw(rt, "lately") { // what CPUs are online may be half a second old
					moment.Time = time.Now()
				}
				if err := r.Read(t.Context(), moment, now); err != nil {
					rt.Fatal(err)
				}
				for column, v := range now {
					if v < last[column] {
						rt.Fatalf("%s went from %v to %v", column, last[column], v)
					}
					if !math.IsNaN(v) {
						last[column] = v
					}
				}
				if e, r := now[api.ColPerfEnabled], now[api.ColPerfRunning]; r > e+1e-9 {
					rt.Fatalf("ran %v s of %v s", r, e)
				}
			}
			// The software events are the truth except for what a CPU did before events were
			// on it; scaled events agree where they are known.
			faults, pages := last[api.ColMinorFaults], last[api.PerfEvent("page-faults")]
			if math.Abs(pages-faults*5002/5000) > 40 {
				rt.Fatalf("%v page faults, %v of them minor", pages, faults)
			}
		})
	})
}

func TestACPUThatGoesAndComesBackLosesNothingButItsAbsence(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		cpus   []int
		chosen string
	}{
		{"of a job on all CPUs", nil, "basic"},
		{"of a job whose cpuset still has it", []int{0, 1}, "basic"},
		{"of a group of one event, which the kernel does not take apart", nil, "cycles"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newFake(t, 2)
				c := perf.New(k.root, k, chosen(t, tc.chosen)...)
				dir := k.cgroup(t, "job")
				r := opened(t, c, collector.Target{Dirs: unified(dir), CPUs: tc.cpus})
				k.run(0, dir, busy())
				k.run(1, dir, busy())
				time.Sleep(time.Second)
				_ = values(t, r)
				time.Sleep(500 * time.Millisecond)
				k.setOnline(t, 1) // half a second of CPU 1 is unread
				if k.detached == 0 {
					t.Fatal("nothing was open on CPU 1")
				}
				time.Sleep(500 * time.Millisecond)
				v := values(t, r)
				if got := v[api.ColTaskClock]; math.Abs(got-3.5) > 0.01 {
					t.Errorf("task clock %v s, want 2 s of one CPU and 1.5 s of the other", got)
				}
				time.Sleep(time.Second)
				_ = values(t, r)
				k.setOnline(t, 2)
				_ = values(t, r) // which opens it again
				k.run(1, dir, busy())
				time.Sleep(time.Second)
				v = values(t, r)
				if got := v[api.ColTaskClock]; math.Abs(got-6.5) > 0.01 {
					t.Errorf("task clock %v s, want 4 s and 2.5 s", got)
				}
				if got, want := v[api.PerfEvent("cycles")], 3e9*6.5; math.Abs(got-want) > 0.01*want {
					t.Errorf("%v cycles, want %v", got, want)
				}
			})
		})
	}
}

func TestARefusalOfTheKernelHasAReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		change  func(testing.TB, *fakeKernel)
		source  string
		support api.Support
		reason  string
	}{
		{"no right", func(_ testing.TB, k *fakeKernel) { k.refuse = unix.EACCES }, "perf/cycles", api.Denied, "needs CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is 2"},
		{"nor for software events", func(_ testing.TB, k *fakeKernel) { k.refuse = unix.EPERM }, "perf/task-clock", api.Denied, "CAP_PERFMON"},
		{"the right, and a filter", func(t testing.TB, k *fakeKernel) {
			k.refuse = unix.EPERM
			k.plant(t, "proc/self/status", "Name:\tx\nCapEff:\t0000004000000000\n")
		}, "perf/cycles", api.Denied, "although the exporter has CAP_PERFMON"},
		{"no such event", func(_ testing.TB, k *fakeKernel) { k.lacks = []string{"cycles"} }, "perf/cycles", api.Unsupported, "this CPU or kernel has no such event"},
		{"a virtual machine", func(t testing.TB, k *fakeKernel) {
			k.noPMU = true
			if err := os.RemoveAll(k.root.Sys("bus")); err != nil {
				t.Fatal(err)
			}
			k.plant(t, "proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor sse\n")
		}, "perf/cycles", api.Unsupported, "this is a virtual machine"},
		{"no PMU", func(t testing.TB, k *fakeKernel) {
			k.noPMU = true
			if err := os.RemoveAll(k.root.Sys("bus")); err != nil {
				t.Fatal(err)
			}
		}, "perf/cycles", api.Unsupported, "no PMU on this machine"},
		{"its counters are held", func(_ testing.TB, k *fakeKernel) { k.held, k.fixed = 4, nil }, "perf/cycles", api.Unsupported, "watchdog"},
		{"no descriptors", func(_ testing.TB, k *fakeKernel) { k.files = 0 }, "perf/cycles", api.Unsupported, "LimitNOFILE"},
		{"a PMU that is not there", nil, "perf/msr/tsc/", api.Unsupported, "no PMU msr"},
		{"an event that its PMU lacks", nil, "perf/cpu/tx-start/", api.Unsupported, "has no such event"},
		{"an event of the package", func(t testing.TB, k *fakeKernel) {
			k.uncore = 21
			k.plant(t, "sys/bus/event_source/devices/msr/type", "21\n")
			k.plant(t, "sys/bus/event_source/devices/msr/events/tsc", "event=0x00\n")
			k.plant(t, "sys/bus/event_source/devices/msr/format/event", "config:0-63\n")
		}, "perf/msr/tsc/", api.Unsupported, "does not count it for a cgroup"},
		{"all is well", nil, "perf/cycles", api.Supported, "cgroup mode on unified, group cpu-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newFake(t, 1)
				if tc.change != nil {
					tc.change(t, k)
				}
				sources := perf.New(k.root, k, chosen(t, "cycles", "msr/tsc/", "cpu/tx-start/")...).Probe(t.Context())
				i := slices.IndexFunc(sources, func(s api.Source) bool { return s.Name == tc.source })
				if i < 0 {
					t.Fatalf("no %s in %+v", tc.source, sources)
				}
				if s := sources[i]; s.Support != tc.support || !strings.Contains(s.Reason, tc.reason) {
					t.Errorf("%s: %s, %q; want %s, %q", s.Name, s.Support, s.Reason, tc.support, tc.reason)
				}
			})
		})
	}
}

// The kernels of Debian and Ubuntu ask for CAP_SYS_ADMIN above level 2, and those older than
// 5.8 always, since they have no CAP_PERFMON.
func TestTheReasonOfADenialDependsOnLevelRightsAndKernel(t *testing.T) {
	t.Parallel()
	const perfmon, admin, other = "0000004000000000", "0000000000200000", "0000000000080000"
	const (
		needs   = "needs CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is "
		old     = "needs CAP_SYS_ADMIN, since this kernel has no CAP_PERFMON, or kernel.perf_event_paranoid below 1; it is "
		patched = ": this distribution asks for CAP_SYS_ADMIN above 2"
		filter  = "a container's filter of system calls or a security module refuses"
	)
	for _, tc := range []struct {
		level, held, last string
		refused           unix.Errno
		want              string
	}{
		{"2", other, "40", unix.EACCES, needs + "2"},
		{"4", other, "40", unix.EACCES, needs + "4"},
		{"2", perfmon, "40", unix.EACCES, "although the exporter has CAP_PERFMON (kernel.perf_event_paranoid is 2): " + filter},
		{"3", perfmon, "40", unix.EACCES, "kernel.perf_event_paranoid is 3" + patched},
		{"4", perfmon, "40", unix.EACCES, "kernel.perf_event_paranoid is 4" + patched},
		{"4", perfmon, "40", unix.EPERM, "although the exporter has CAP_PERFMON (kernel.perf_event_paranoid is 4): " + filter},
		{"4", admin, "40", unix.EACCES, "although the exporter has CAP_SYS_ADMIN (kernel.perf_event_paranoid is 4): " + filter},
		{"2", other, "37", unix.EACCES, old + "2"},
		{"2", perfmon, "37", unix.EACCES, old + "2"},
		{"2", admin, "37", unix.EACCES, "although the exporter has CAP_SYS_ADMIN (kernel.perf_event_paranoid is 2): " + filter},
	} {
		t.Run(fmt.Sprintf("level %s, rights %s of %s, %v", tc.level, tc.held, tc.last, tc.refused), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newFake(t, 1)
				k.refuse = tc.refused
				k.plant(t, "proc/sys/kernel/perf_event_paranoid", tc.level+"\n")
				k.plant(t, "proc/sys/kernel/cap_last_cap", tc.last+"\n")
				k.plant(t, "proc/self/status", "Name:\tx\nCapEff:\t"+tc.held+"\n")
				for _, s := range perf.New(k.root, k).Probe(t.Context()) {
					if _, why, _ := strings.Cut(s.Reason, tc.refused.Error()+": "); s.Support != api.Denied || why != tc.want {
						t.Errorf("%s: %s, %q; want %s, %q", s.Name, s.Support, why, api.Denied, tc.want)
					}
				}
			})
		})
	}
}

func TestAJobForWhichDescriptorsEndKeepsItsSoftwareEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 2)
		c := perf.New(k.root, k, chosen(t, "basic")...)
		c.Probe(t.Context())
		dir := k.cgroup(t, "job")
		k.files = 2*5 + 6 + 3 // the software events, and the others on one of two CPUs
		r := opened(t, c, collector.Target{Dirs: unified(dir)})
		counted, absent := r.(collector.Selective).Events()
		if len(counted) != 0 || len(absent) != 6 {
			t.Errorf("counts %v, lacks %+v", counted, absent)
		}
		for _, s := range absent {
			if !strings.Contains(s.Reason, "LimitNOFILE") {
				t.Errorf("%+v does not say what is short", s)
			}
		}
		k.run(0, dir, busy())
		time.Sleep(time.Second)
		v := values(t, r)
		if got := v[api.PerfEvent("cycles")]; !math.IsNaN(got) {
			t.Errorf("%v cycles of part of the CPUs, want NaN", got)
		}
		if got := v[api.ColMinorFaults]; math.Abs(got-5000) > 5 {
			t.Errorf("%v faults, want 5000", got)
		}
		if k.files != 9 {
			t.Errorf("%d descriptors are left, want what the software events do not take", k.files)
		}
		// With none at all there is no reader, and nothing stays open.
		k.files = 3
		if _, err := c.Open(t.Context(), collector.Target{Dirs: unified(dir)}); !errors.Is(err, unix.EMFILE) || k.files != 3 {
			t.Errorf("%v, %d descriptors left; want %v and 3", err, k.files, unix.EMFILE)
		}
	})
}

func TestACgroupThatVanishesIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 1)
		c := perf.New(k.root, k, chosen(t, "basic")...)
		dir := k.cgroup(t, "job")
		r := opened(t, c, collector.Target{Dirs: unified(dir)})
		k.run(0, dir, busy())
		time.Sleep(300 * time.Millisecond)
		k.run(0, "", nil)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		k.setOnline(t, 2) // a CPU on which it cannot be opened any more
		v := values(t, r)
		if got := v[api.ColMinorFaults]; math.Abs(got-1500) > 2 {
			t.Errorf("%v faults, want 1500", got)
		}
		if got, want := v[api.PerfEvent("instructions")], 4.5e9*0.3; math.Abs(got-want) > 1e-3*want {
			t.Errorf("%v instructions, want %v", got, want)
		}
		if err := r.(collector.Follower).Follow(t.Context(), collector.Target{Dirs: unified(dir)}); err == nil {
			t.Error("follows into a cgroup that is gone")
		}
	})
}

func TestRAPLIsReadThroughThePowerPMU(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t, 4)
		k.uncore = 20
		if _, err := energy.NewPerfPower(k.root, k, energy.Model{}); !errors.Is(err, collector.ErrUnsupported) {
			t.Errorf("%v, want %v", err, collector.ErrUnsupported)
		}
		const base = "sys/bus/event_source/devices/power/"
		k.plant(t, base+"type", "20\n")
		k.plant(t, base+"cpumask", "0,2\n")
		k.plant(t, base+"format/event", "config:0-7\n")
		for i, name := range []string{"cores", "pkg", "ram", "psys"} {
			k.plant(t, base+"events/energy-"+name, fmt.Sprintf("event=0x%02x\n", i+1))
			k.plant(t, base+"events/energy-"+name+".scale", "2.3283064365386962890625e-10\n")
			k.plant(t, base+"events/energy-"+name+".unit", "Joules\n")
		}
		k.plant(t, "sys/devices/system/cpu/cpu2/topology/physical_package_id", "1\n")
		k.refuse = unix.EACCES
		if _, err := energy.NewPerfPower(k.root, k, energy.Model{}); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%v, want a refusal", err)
		}
		k.refuse = nil
		p, err := energy.NewPerfPower(k.root, k, energy.Model{})
		if err != nil {
			t.Fatal(err)
		}
		read := func(elapsed time.Duration) []energy.Zone {
			if err := p.Read(t.Context(), elapsed); err != nil {
				t.Fatal(err)
			}
			return p.Zones()
		}
		read(0)
		k.run(0, k.tree, map[string]float64{"20/2": 150 * (1 << 32), "20/1": 90 * (1 << 32), "20/4": 400 * (1 << 32)})
		k.run(2, k.tree, map[string]float64{"20/2": 50 * (1 << 32)})
		last := 0.0
		for range 100 { // far beyond the one joule that 32 bits of this unit hold
			time.Sleep(time.Second)
			zones := read(time.Second)
			if zones[2].Joules < last {
				t.Errorf("%v J after %v J", zones[2].Joules, last)
			}
			last = zones[2].Joules
		}
		got := map[string]float64{}
		for _, z := range p.Zones() {
			got[z.ID] = math.Round(z.Joules)
		}
		want := map[string]float64{"power:0:package": 15000, "power:1:package": 5000, "power:0:core": 9000, "power:1:core": 0, "power:0:dram": 0, "power:1:dram": 0, "power:psys": 40000}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("joules (-want +got):\n%s", diff)
		}
		if err := p.Close(); err != nil || k.open() != 0 {
			t.Errorf("%v, %d groups open", err, k.open())
		}
		// One event that is refused leaves nothing open.
		k.plant(t, base+"events/energy-ram.unit", "Ergs\n")
		if _, err := energy.NewPerfPower(k.root, k, energy.Model{}); !errors.Is(err, collector.ErrUnsupported) || k.open() != 0 {
			t.Errorf("%v, %d groups open", err, k.open())
		}
	})
}
