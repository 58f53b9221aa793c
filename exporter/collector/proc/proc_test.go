package proc_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// fake is a process on a generated tree.
type fake struct {
	parent, start            int
	minor, user, system, rss uint64 // rss in pages, all its own
	shared                   uint64 // KiB
	children                 uint64 // user ticks of those that it waited for
	read, written            uint64
	threads                  map[int][2]uint64 // voluntary, involuntary
}

func (f fake) write(t testing.TB, root hostfs.Root, pid int) {
	t.Helper()
	files := map[string]string{
		"stat": fmt.Sprintf("%d (a ) b) S %d 1 1 0 -1 4194304 %d 0 2 0 %d %d %d 0 20 0 %d 0 %d 1000 %d 18446744073709551615 1 1 1",
			pid, f.parent, f.minor, f.user, f.system, f.children, len(f.threads), f.start, f.rss),
		"io":     fmt.Sprintf("rchar: %d\nwchar: %d\nsyscr: 1\nsyscw: 1\nread_bytes: %d\nwrite_bytes: 0\ncancelled_write_bytes: 0\n", f.read, f.written, f.read/2),
		"status": "Name:\ta\nCpus_allowed_list:\t0-1\n",
	}
	for tid, s := range f.threads {
		files[fmt.Sprintf("task/%d/status", tid)] = fmt.Sprintf("Name:\ta\nRssAnon:\t%8d kB\nRssFile:\t  50 kB\nRssShmem:\t%8d kB\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
			f.rss*uint64(unix.Getpagesize())>>10, f.shared, s[0], s[1])
	}
	dir := root.Pid(pid)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	sandbox.Plant(t, dir, files)
}

func open(t testing.TB, root hostfs.Root) collector.Reader {
	t.Helper()
	r, err := proc.New(root).Open(t.Context(), collector.Target{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t testing.TB, r collector.Reader, pids ...int) collector.Values {
	t.Helper()
	out := collector.Values{}
	if err := r.Read(t.Context(), collector.Moment{Pids: pids}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func newRoot(t testing.TB) hostfs.Root {
	t.Helper()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{"sys/devices/system/cpu/online": "0-3\n"})
	return hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
}

func TestAddsUpTheProcessesOfAJob(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	fake{parent: 1, start: 5, minor: 10, user: 100, system: 50, rss: 3, shared: 400, read: 1000, written: 10, threads: map[int][2]uint64{10: {5, 1}, 11: {7, 2}}}.write(t, root, 10)
	fake{parent: 10, start: 6, minor: 1, user: 20, system: 5, rss: 2, shared: 300, read: 100, written: 1, threads: map[int][2]uint64{20: {3, 0}}}.write(t, root, 20)
	got := read(t, open(t, root), 10, 20, 99) // 99 has ended
	page := float64(unix.Getpagesize())
	want := collector.Values{
		api.ColUserSeconds: 1.2, api.ColSystemSeconds: 0.55, api.ColCPUSeconds: 1.75, api.ColMinorFaults: 11, api.ColMajorFaults: 4,
		api.ColRSS: 5*page + 400<<10, api.ColPeak: 5*page + 400<<10, api.ColThreads: 3, api.ColProcesses: 2,
		api.ColVoluntary: 15, api.ColInvoluntary: 3, api.ColReadChars: 1100, api.ColWriteChars: 11, api.ColReadBytes: 550, api.ColWriteBytes: 0,
		api.ColAllocatedCores: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestThreadsAreThoseOfTheProcessesThatWork(t *testing.T) {
	t.Parallel()
	threads := func(n int) map[int][2]uint64 {
		out := map[int][2]uint64{}
		for i := range n {
			out[i+1] = [2]uint64{}
		}
		return out
	}
	for _, tc := range []struct {
		name  string
		users []uint64 // ticks of each process, which has a thread more than the one before
		want  float64
	}{
		{"all while none has done anything", []uint64{0, 0, 0}, 6},
		{"not those of a listener", []uint64{1000, 3}, 1},
		{"not those of a scheduler's daemon", []uint64{0, 1000, 1000}, 5},
		{"those of a main process that leads its workers", []uint64{200, 1000, 1000, 1000}, 10},
		{"all of many that share the work", slices.Repeat([]uint64{100}, 20), 210},
	} {
		root, pids := newRoot(t), []int{}
		for i, user := range tc.users {
			pids = append(pids, 10+i)
			fake{parent: 1, start: 5, user: user, threads: threads(i + 1)}.write(t, root, 10+i)
		}
		if got := read(t, open(t, root), pids...)[api.ColThreads]; got != tc.want {
			t.Errorf("%s: %v threads, want %v", tc.name, got, tc.want)
		}
	}
}

func TestWhatEndedStaysCounted(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	r := open(t, root)
	fake{parent: 1, start: 5, user: 100, read: 1000, threads: map[int][2]uint64{10: {5, 1}, 11: {7, 2}}}.write(t, root, 10)
	fake{parent: 1, start: 6, user: 20, read: 100, threads: map[int][2]uint64{20: {3, 0}}}.write(t, root, 20)
	read(t, r, 10, 20)
	fake{parent: 1, start: 5, user: 110, read: 1000, threads: map[int][2]uint64{10: {6, 1}}}.write(t, root, 10) // thread 11 ended
	fake{parent: 1, start: 99, user: 1, read: 5, threads: map[int][2]uint64{20: {1, 0}}}.write(t, root, 20)     // another process 20
	got := read(t, r, 10, 20)
	for column, want := range map[string]float64{
		api.ColUserSeconds: 1.31, api.ColReadChars: 1105, api.ColVoluntary: 6 + 7 + 3 + 1, api.ColInvoluntary: 3, api.ColProcesses: 2,
	} {
		if got[column] != want {
			t.Errorf("%s = %v, want %v", column, got[column], want)
		}
	}
	got = read(t, r)
	for column, want := range map[string]float64{
		api.ColUserSeconds: 1.31, api.ColReadChars: 1105, api.ColVoluntary: 17, api.ColProcesses: 0, api.ColRSS: 0,
	} {
		if got[column] != want {
			t.Errorf("after all ended: %s = %v, want %v", column, got[column], want)
		}
	}
}

func TestAWaitedForChildsIOIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	r := open(t, root)
	fake{parent: 1, start: 5, read: 1000, threads: map[int][2]uint64{10: {1, 1}}}.write(t, root, 10)
	fake{parent: 10, start: 6, read: 500, threads: map[int][2]uint64{20: {1, 1}}}.write(t, root, 20)
	if got := read(t, r, 10, 20)[api.ColReadChars]; got != 1500 {
		t.Fatalf("read_chars = %v, want 1500", got)
	}
	// The child read 100 more and was waited for: the kernel gave its 600 to the parent.
	fake{parent: 1, start: 5, read: 1600, threads: map[int][2]uint64{10: {1, 1}}}.write(t, root, 10)
	if got := read(t, r, 10)[api.ColReadChars]; got != 1600 {
		t.Errorf("read_chars = %v, want 1600", got)
	}
}

func TestCountersNeverDecrease(t *testing.T) {
	t.Parallel()
	gauges := map[string]bool{api.ColRSS: true, api.ColThreads: true, api.ColProcesses: true, api.ColAllocatedCores: true}
	root := newRoot(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := open(t, root)
		last := collector.Values{}
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			var pids []int
			for pid := 10; pid < 14; pid++ {
				if !rapid.Bool().Draw(rt, "lives") {
					continue
				}
				pids = append(pids, pid)
				n := rapid.Uint64Range(0, 1000)
				fake{
					parent: rapid.IntRange(9, 14).Draw(rt, "parent"), start: rapid.IntRange(1, 3).Draw(rt, "start"),
					user: n.Draw(rt, "user"), read: n.Draw(rt, "read"), minor: n.Draw(rt, "minor"),
					threads: map[int][2]uint64{pid: {n.Draw(rt, "v"), n.Draw(rt, "i")}, rapid.IntRange(1, 3).Draw(rt, "tid"): {n.Draw(rt, "v2"), 1}},
				}.write(t, root, pid)
			}
			got := read(t, r, pids...)
			for column, was := range last {
				if !gauges[column] && got[column] < was {
					rt.Fatalf("%s went from %v to %v", column, was, got[column])
				}
			}
			last = got
		}
	})
}

func TestIOThatMayNotBeReadIsMissingAndNotZero(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Log("root reads everything: a directory in the file's place stands for the refusal")
	}
	root := newRoot(t)
	fake{parent: 1, start: 5, user: 100, threads: map[int][2]uint64{10: {1, 1}}}.write(t, root, 10)
	if err := os.Remove(root.Pid(10, "io")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root.Pid(10, "io"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := collector.Values{}
	err := open(t, root).Read(t.Context(), collector.Moment{Pids: []int{10}}, out)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one about io", err)
	}
	if _, ok := out[api.ColReadChars]; ok {
		t.Error("read_chars is there")
	}
	if out[api.ColUserSeconds] != 1 {
		t.Errorf("user seconds = %v, want 1", out[api.ColUserSeconds])
	}
}

func TestReadsTheMachineItself(t *testing.T) {
	t.Parallel()
	got := read(t, open(t, hostfs.Root{}), os.Getpid())
	for _, column := range []string{api.ColCPUSeconds, api.ColRSS, api.ColThreads, api.ColReadChars, api.ColVoluntary, api.ColMinorFaults} {
		if _, ok := got[column]; !ok {
			t.Errorf("%s is missing: %v", column, got)
		}
	}
	if signals := uint64(got[api.ColFatalSignals]); signals&(1<<(unix.SIGKILL-1)) == 0 || signals&(1<<(unix.SIGINT-1)) != 0 {
		t.Errorf("signals that end a Go program: %b", signals)
	}
	if got[api.ColRSS] < 1<<20 {
		t.Errorf("resident %v bytes", got[api.ColRSS])
	}
}

func TestASignalThatNoProcessHandlesEndsTheJob(t *testing.T) {
	t.Parallel()
	const nothing, catches = "0000000000000000", "0000000000000200" // SIGUSR1 is 10
	for name, c := range map[string]struct {
		processes []signals
		want      bool
	}{
		"a program that handles it":                          {[]signals{{"python", 1, catches}}, false},
		"a program that does not":                            {[]signals{{"python", 1, nothing}}, true},
		"a shell above a program that handles it":            {[]signals{{"bash", 1, nothing}, {"python", 100, catches}}, true},
		"a shell with a trap above it":                       {[]signals{{"bash", 1, catches}, {"python", 100, catches}}, false},
		"a shell with a trap above a shell without":          {[]signals{{"bash", 1, catches}, {"sh", 100, nothing}, {"python", 101, catches}}, true},
		"a helper that the program started":                  {[]signals{{"python", 1, catches}, {"sleep", 100, nothing}}, false},
		"a process beside the program":                       {[]signals{{"sleep", 1, nothing}, {"python", 1, catches}}, false},
		"Slurm's daemon above the program":                   {[]signals{{"slurmstepd", 1, nothing}, {"python", 100, catches}}, false},
		"Slurm's daemon above a shell and a program":         {[]signals{{"slurmstepd", 1, nothing}, {"bash", 100, nothing}, {"python", 101, catches}}, true},
		"a program of which the kernel does not say so much": {[]signals{{"python", 1, ""}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRoot(t)
			var pids []int
			for i, p := range c.processes {
				pid := 100 + i
				fake{parent: p.parent, start: 5, threads: one(pid)}.write(t, root, pid)
				status := filepath.Join(root.Pid(pid), "task", strconv.Itoa(pid), "status")
				data, err := os.ReadFile(status)
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Replace(string(data), "Name:\ta\n", "Name:\t"+p.name+"\nState:\tS (sleeping)\n", 1)
				if p.caught != "" {
					text += "SigBlk:\t" + nothing + "\nSigIgn:\t0000000000001000\nSigCgt:\t" + p.caught + "\n"
				}
				if err := os.WriteFile(status, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			mask, said := read(t, open(t, root), pids...)[api.ColFatalSignals]
			if got := uint64(mask)>>(unix.SIGUSR1-1)&1 == 1; got != c.want {
				t.Errorf("SIGUSR1 ends the job: %v, want %v (%b)", got, c.want, uint64(mask))
			}
			if kill := uint64(mask)>>(unix.SIGKILL-1)&1 == 1; said && !kill {
				t.Errorf("SIGKILL would not end it: %b", uint64(mask))
			}
		})
	}
}

// signals is a process and the signals that it catches.
type signals struct {
	name   string
	parent int
	caught string // as /proc shows them
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("9532 (cat) R 9521 9521 5058 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 115536 3133440 407 1"))
	f.Add([]byte("rchar: 6976\nwchar: 0\n"))
	f.Add([]byte("voluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t2\nCpus_allowed_list:\t0-1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		proc.Parse(data)
		if n := proc.Allowed(data); n < 0 {
			t.Errorf("Allowed(%q) = %d", data, n)
		}
	})
}

func TestAProcessThatDidNotRunIsNotReadAgain(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	r := open(t, root)
	for i, step := range []struct {
		user, switches uint64
		idle           bool
		user2, want    float64 // seconds, and switches
	}{
		{100, 5, false, 1, 5},
		{100, 6, false, 1, 5}, // by its stat it did not run
		{200, 6, false, 2, 6},
		{300, 7, true, 2, 6}, // the cgroup says that nothing ran
		{300, 7, false, 3, 7},
		{300, 8, false, 3, 7},
		{300, 8, false, 3, 7},
		{300, 8, false, 3, 7},
		{300, 8, false, 3, 8}, // each eighth reading is whole
		{400, 9, true, 3, 8},
	} {
		fake{parent: 1, start: 5, user: step.user, threads: map[int][2]uint64{10: {step.switches, 0}}}.write(t, root, 10)
		out := collector.Values{}
		if err := r.Read(t.Context(), collector.Moment{Pids: []int{10}, Idle: step.idle}, out); err != nil {
			t.Fatal(err)
		}
		if out[api.ColUserSeconds] != step.user2 || out[api.ColVoluntary] != step.want {
			t.Errorf("reading %d: %v s, %v switches; want %v, %v", i, out[api.ColUserSeconds], out[api.ColVoluntary], step.user2, step.want)
		}
	}
	// Another process joins an idle job: it is read.
	fake{parent: 1, start: 6, user: 50, threads: map[int][2]uint64{20: {1, 0}}}.write(t, root, 20)
	out := collector.Values{}
	if err := r.Read(t.Context(), collector.Moment{Pids: []int{10, 20}, Idle: true}, out); err != nil || out[api.ColUserSeconds] != 4.5 {
		t.Errorf("%v s, %v; want 4.5", out[api.ColUserSeconds], err)
	}
}

// A process that sleeps reads the same with and without the short cut, on the machine itself.
func TestTheShortCutReadsWhatAWholeReadingReads(t *testing.T) {
	t.Parallel()
	quick, whole := open(t, hostfs.Root{}), open(t, hostfs.Root{})
	sleeper := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Skip(err)
	}
	defer func() {
		_ = sleeper.Process.Kill() // it may have ended with the test
		_ = sleeper.Wait()
	}()
	pid := sleeper.Process.Pid
	for range 12 {
		read(t, quick, pid)
	}
	differ := func() (what []string) {
		want, got := read(t, whole, pid), read(t, quick, pid)
		for column, v := range want {
			// Others may take its memory.
			if column != api.ColRSS && column != api.ColPeak && got[column] != v {
				what = append(what, fmt.Sprintf("%s is %v by the short cut and %v without", column, got[column], v))
			}
		}
		return what
	}
	// It may still be starting, and run between the two.
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		what := differ()
		if len(what) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}
