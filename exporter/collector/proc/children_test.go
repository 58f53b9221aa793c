package proc_test

import (
	"math"
	"os/exec"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

func one(pid int) map[int][2]uint64 { return map[int][2]uint64{pid: {1, 1}} }

// What a child took is in its parent's books once that has waited for it, and only
// there what a child took that no reading has seen.
func TestChildrenCountOnceWhetherTheyWereSeenOrNot(t *testing.T) {
	t.Parallel()
	type state struct {
		parent, waited uint64 // ticks of the parent, and of those it waited for
		child          int    // ticks; -1 = it is gone
		want           float64
	}
	for _, tc := range []struct {
		name   string
		states []state
	}{
		{"one that no reading saw", []state{{100, 0, -1, 1}, {100, 50, -1, 1.5}}},
		{"one that was waited for when it was missed", []state{{100, 0, 40, 1.4}, {100, 55, -1, 1.55}}},
		{"one that is waited for later", []state{{100, 0, 40, 1.4}, {100, 0, -1, 1.4}, {100, 55, -1, 1.55}, {101, 55, -1, 1.56}}},
		{"one that is never waited for", []state{{100, 0, 40, 1.4}, {110, 0, -1, 1.5}, {120, 0, -1, 1.6}}},
		{"one that took nothing", []state{{100, 0, 0, 1}, {100, 0, -1, 1}, {100, 30, -1, 1.3}}},
		{"others that were waited for beside it", []state{{100, 0, 40, 1.4}, {100, 60, 45, 2.05}, {100, 110, -1, 2.1}}},
		{"rounding", []state{{100, 10, 40, 1.5}, {100, 49, -1, 1.5}, {100, 52, -1, 1.52}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := newRoot(t)
			r := open(t, root)
			for i, s := range tc.states {
				fake{parent: 1, start: 5, user: s.parent, children: s.waited, threads: one(10)}.write(t, root, 10)
				pids := []int{10}
				if s.child >= 0 {
					fake{parent: 10, start: 6, user: uint64(s.child), threads: one(20)}.write(t, root, 20)
					pids = append(pids, 20)
				}
				if got := read(t, r, pids...)[api.ColUserSeconds]; math.Abs(got-s.want) > 1e-9 {
					t.Errorf("reading %d: %v CPU seconds, want %v", i+1, got, s.want)
				}
			}
			if got, want := read(t, r)[api.ColUserSeconds], tc.states[len(tc.states)-1].want; math.Abs(got-want) > 1e-9 {
				t.Errorf("when all are gone: %v CPU seconds, want %v", got, want)
			}
		})
	}
}

// A tree of processes that come, work, end and are waited for, read now and then: what
// is measured never decreases, is never more than what was done, and in the end misses
// only what was done after a reading by those that no process of the job waited for.
func TestTheSumOverATreeIsWhatItsProcessesDid(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := open(t, root)
		type member struct {
			own, children uint64
			ended         bool
		}
		tree := []*member{{}} // the first is the parent of all others
		done, last := uint64(0), 0.0
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			parent := tree[0]
			switch rapid.SampledFrom([]string{"work", "fork", "end", "wait", "read", "read"}).Draw(rt, "what") {
			case "work":
				m := tree[rapid.IntRange(0, len(tree)-1).Draw(rt, "who")]
				if !m.ended {
					n := rapid.Uint64Range(3, 50).Draw(rt, "ticks")
					m.own += n
					done += n
				}
			case "fork":
				tree = append(tree, &member{})
			case "end":
				if i := rapid.IntRange(0, len(tree)-1).Draw(rt, "who"); i > 0 {
					tree[i].ended = true
				}
			case "wait":
				for i, m := range tree {
					if i > 0 && m.ended && m.own != math.MaxUint64 {
						parent.children += m.own
						m.own = math.MaxUint64 // waited for
					}
				}
			case "read":
				var pids []int
				for i, m := range tree {
					if m.ended { // one that was not waited for is in no cgroup's list
						continue
					}
					fake{parent: 100, start: 5, user: m.own, children: m.children, threads: one(100 + i)}.write(t, root, 100+i)
					pids = append(pids, 100+i)
				}
				got := read(t, r, pids...)[api.ColUserSeconds] * 100
				if got < last-1e-6 || got > float64(done)+1e-6 {
					rt.Fatalf("%v ticks after %v, and %d were done", got, last, done)
				}
				last = got
			}
		}
		// All end, and the parent waits.
		for i, m := range tree {
			if i > 0 && m.own != math.MaxUint64 {
				tree[0].children += m.own
			}
		}
		fake{parent: 1, start: 5, user: tree[0].own, children: tree[0].children, threads: one(100)}.write(t, root, 100)
		got := read(t, r, 100)[api.ColUserSeconds] * 100
		if math.Abs(got-float64(done)) > 1e-6 {
			rt.Fatalf("%v ticks in the end, and %d were done", got, done)
		}
	})
}

func TestAShellsShortCommandsAreCounted(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes")
	}
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "i=0; while [ $i -lt 60 ]; do ls -lR /etc >/dev/null 2>&1; i=$((i+1)); done; echo; read x")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// All its commands are over, and no reading has seen one.
	r := open(t, hostfs.Root{})
	got := collector.Values{}
	if err := r.Read(t.Context(), collector.Moment{Pids: []int{c.Process.Pid}}, got); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	u, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the kernel does not tell what was used")
	}
	truth := float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	if cpu := got[api.ColCPUSeconds]; math.Abs(cpu-truth) > 0.05+0.02*truth || truth == 0 {
		t.Errorf("%v CPU seconds, the kernel told the parent %v", cpu, truth)
	}
}
