package perf_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/collector/perf"
)

// machine is what an opener is held against: cgroups, and work that is done in them.
type machine struct {
	opener perf.Opener
	cgroup func(t *testing.T) string
	// fault makes at least so many minor faults on CPU 0 in the cgroup, and ends.
	fault func(t *testing.T, dir string, n int)
}

// conformance is what the reader relies on, for the real kernel and for the fake one.
func conformance() map[string]func(t *testing.T, m machine) {
	attr := func(name string) perf.Attr { return perf.Attrs()[name] }
	faults := []perf.Attr{perf.Attrs()["task-clock"], perf.Attrs()["minor-faults"], perf.Attrs()["major-faults"]}
	open := func(t *testing.T, m machine, events []perf.Attr, dir string, cpu int) (perf.Group, error) {
		t.Helper()
		where := perf.Where{CPU: cpu}
		if dir != "" {
			f, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }() // the events keep the cgroup
			where.Cgroup = f
		}
		g, err := m.opener.Open(events, where)
		if err == nil {
			t.Cleanup(func() { _ = g.Close() }) // those that closed theirs are told so
		}
		return g, err
	}
	must := func(t *testing.T, m machine, events []perf.Attr, dir string) perf.Group {
		t.Helper()
		g, err := open(t, m, events, dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	read := func(t *testing.T, g perf.Group) (c perf.Counts) {
		t.Helper()
		if err := g.Read(&c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	return map[string]func(t *testing.T, m machine){
		"counts begin at 0, in the order of the events": func(t *testing.T, m machine) {
			dir := m.cgroup(t)
			m.fault(t, dir, 500)
			g := must(t, m, faults, dir)
			if c := read(t, g); len(c.Values) != 3 || c.Values[1] != 0 || c.Detached {
				t.Fatalf("%+v before anything was done", c)
			}
			m.fault(t, dir, 2000)
			if c := read(t, g); c.Values[1] < 2000 || c.Values[1] > 4000 || c.Values[0] == 0 || c.Values[2] > 100 {
				t.Errorf("%+v after 2000 faults", c)
			}
		},
		"a cgroup counts what is done in it and below it, and nothing else": func(t *testing.T, m machine) {
			one, two := m.cgroup(t), m.cgroup(t)
			below := filepath.Join(one, "below")
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(below) })
			g := must(t, m, faults, one)
			m.fault(t, two, 1000)
			if c := read(t, g); c.Values[1] != 0 || c.Enabled != 0 {
				t.Errorf("%+v of another cgroup", c)
			}
			m.fault(t, below, 1000)
			if c := read(t, g); c.Values[1] < 1000 || c.Enabled == 0 || c.Running > c.Enabled {
				t.Errorf("%+v of 1000 faults below", c)
			}
		},
		"without a cgroup everything counts, and time passes": func(t *testing.T, m machine) {
			dir := m.cgroup(t)
			g := must(t, m, []perf.Attr{attr("minor-faults")}, "")
			m.fault(t, dir, 1000)
			before := read(t, g)
			if before.Values[0] < 1000 {
				t.Errorf("%+v, want at least 1000 faults", before)
			}
			time.Sleep(5 * time.Millisecond) // in which nothing need run
			if c := read(t, g); c.Enabled < before.Enabled+4e6 || c.Running != c.Enabled {
				t.Errorf("%+v five milliseconds after %+v", c, before)
			}
		},
		"values never fall, and are there when the cgroup is not": func(t *testing.T, m machine) {
			dir := m.cgroup(t)
			g := must(t, m, faults, dir)
			last := perf.Counts{Values: make([]uint64, 3)}
			for range 3 {
				m.fault(t, dir, 300)
				c := read(t, g)
				if c.Values[1] < last.Values[1]+300 || c.Enabled < last.Enabled || c.Running < last.Running {
					t.Errorf("%+v after %+v", c, last)
				}
				last = c
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			// A process that its parent has waited for is on its CPU for some microseconds more.
			if c := read(t, g); c.Values[1] != last.Values[1] || c.Enabled < last.Enabled || c.Running < last.Running {
				t.Errorf("%+v when the cgroup is gone, %+v before", c, last)
			}
		},
		"what is refused says why": func(t *testing.T, m machine) {
			dir := m.cgroup(t)
			for _, tc := range []struct {
				name   string
				events []perf.Attr
				dir    string
				cpu    int
				want   []error
			}{
				{"no events", nil, dir, 0, []error{unix.EINVAL}},
				{"no cgroup", faults, t.TempDir(), 0, []error{unix.EBADF}},
				{"no such CPU", faults, dir, 4000, []error{unix.ENODEV, unix.EINVAL}},
				{"no such event", []perf.Attr{{Type: unix.PERF_TYPE_SOFTWARE, Config: 4000}}, dir, 0, []error{unix.ENOENT, unix.EINVAL}},
				{"one of them is no such event", []perf.Attr{faults[0], {Type: unix.PERF_TYPE_SOFTWARE, Config: 4000}}, dir, 0, []error{unix.ENOENT, unix.EINVAL}},
			} {
				g, err := open(t, m, tc.events, tc.dir, tc.cpu)
				if err == nil {
					_ = g.Close()
				}
				if !anyIs(err, tc.want) {
					t.Errorf("%s: %v, want one of %v", tc.name, err, tc.want)
				}
			}
		},
		"what is closed does not answer": func(t *testing.T, m machine) {
			g := must(t, m, faults, m.cgroup(t))
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			if err := g.Read(&perf.Counts{}); err == nil {
				t.Error("a closed group is read")
			}
		},
		"two groups on one cgroup count the same": func(t *testing.T, m machine) {
			dir := m.cgroup(t)
			one, two := must(t, m, faults, dir), must(t, m, faults[1:], dir)
			m.fault(t, dir, 1000)
			a, b := read(t, one), read(t, two)
			if a.Values[1] != b.Values[0] || math.Abs(float64(a.Enabled)-float64(b.Enabled)) > 0.01*float64(a.Enabled)+1e5 {
				t.Errorf("%+v and %+v", a, b)
			}
		},
	}
}

func TestTheKernelConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	m := machine{opener: perf.Kernel{}, cgroup: func(t *testing.T) string { t.Helper(); return leaf(t) }, fault: func(t *testing.T, dir string, n int) {
		t.Helper()
		// Some faults are those of its start in the cgroup, so that it touches fewer.
		p := begin(t, "0 1 "+itoa(n)+" 1 1", workerCPU+"=0")
		p.join(t, dir)
		pinned(t, p.Process.Pid)
		p.finish(t, func() {})
	}}
	for name, check := range conformance() {
		t.Run(name, func(t *testing.T) { check(t, m) })
	}
}

func TestTheFakeKernelConforms(t *testing.T) {
	t.Parallel()
	for name, check := range conformance() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				k := newFake(t, 2)
				made := 0
				check(t, machine{
					opener: k,
					cgroup: func(t *testing.T) string {
						made++
						return k.cgroup(t, itoa(made))
					},
					fault: func(_ *testing.T, dir string, n int) {
						k.run(0, dir, map[string]float64{"task-clock": 1e9, "minor-faults": float64(n) * 101})
						time.Sleep(10 * time.Millisecond)
						k.run(0, "", nil)
					},
				})
			})
		})
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func anyIs(err error, want []error) bool {
	return slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) })
}

// pinned keeps all threads of a process on CPU 0.
func pinned(t *testing.T, pid int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	var set unix.CPUSet
	set.Set(0)
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			t.Fatal(err)
		}
	}
}
