package gpu_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/collector/gpu/card"
)

// TestMain fails where a goroutine is left behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a backend that does at its nth start what the test says.
type scripted struct {
	name   string
	starts int
	do     func(ctx context.Context, start int, emit func(card.Reading)) error
}

func (s *scripted) Name() string { return s.name }
func (s *scripted) Run(ctx context.Context, emit func(card.Reading)) error {
	s.starts++
	return s.do(ctx, s.starts, emit)
}

var errGone = errors.New("gone")

func gives(ctx context.Context, n int, emit func(card.Reading)) error {
	return each(ctx, n, func(i int) {
		emit(card.Reading{At: time.Now(), Devices: []card.Device{{UUID: "GPU-a", Joules: new(float64(i * 100)), Processes: &[]card.Process{{Pid: 7}}}}})
	})
}

// each does something n times, a second apart.
func each(ctx context.Context, n int, do func(i int)) error {
	for i := range n {
		do(i)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return errGone
}

// run begins to read and returns how that is ended.
func run(t *testing.T, s *gpu.Source) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestABackendThatGivesNothingMakesRoomForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := &scripted{name: "helper", do: func(context.Context, int, func(card.Reading)) error { return errGone }}
		works := &scripted{name: "nvidia-smi", do: func(ctx context.Context, _ int, emit func(card.Reading)) error { return gives(ctx, 1000, emit) }}
		s := gpu.NewSource(nil, never, works)
		end := run(t, s)
		time.Sleep(10 * time.Second)
		if got := s.Snapshot(); got.Backend != "nvidia-smi" || never.starts != 3 || works.starts != 1 {
			t.Errorf("%+v after %d and %d starts; want readings of the second after three tries of the first", got, never.starts, works.starts)
		}
		end()
	})
}

func TestWhatThereIsIsKnownAfterOneReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := &scripted{name: "helper", do: func(context.Context, int, func(card.Reading)) error { return errGone }}
		hangs := &scripted{name: "nvidia-smi", do: func(ctx context.Context, _ int, _ func(card.Reading)) error { <-ctx.Done(); return ctx.Err() }}
		works := &scripted{name: "another", do: func(ctx context.Context, _ int, emit func(card.Reading)) error { return gives(ctx, 1000, emit) }}
		s := gpu.NewSource(nil, never, hangs, works)
		if err := s.Try(t.Context(), 5*time.Second); err != nil || s.Snapshot().Backend != "another" || works.starts != 1 {
			t.Errorf("%v, %+v", err, s.Snapshot())
		}
		s = gpu.NewSource(nil, never, hangs)
		if err := s.Try(t.Context(), 5*time.Second); !errors.Is(err, errGone) || s.Snapshot().Why != "helper: gone; nvidia-smi: context deadline exceeded" {
			t.Errorf("%v, %q", err, s.Snapshot().Why)
		}
	})
}

func TestABackendThatDiesIsStartedAgainAndNothingIsCountedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{name: "helper", do: func(ctx context.Context, _ int, emit func(card.Reading)) error { return gives(ctx, 3, emit) }}
		s := gpu.NewSource(nil, b)
		end := run(t, s)
		time.Sleep(6 * time.Second)
		// 0, 100, 200, gone; again at 0 as after a new driver, 100, 200.
		if got := s.Snapshot(); b.starts < 2 || got.Accounts[0].Used != 300 && got.Accounts[0].Used != 400 {
			t.Errorf("%v J after %d starts; want the differences within each, and no more", got.Accounts[0].Used, b.starts)
		}
		end()
	})
}

func TestAJobIsChargedWithWhatItsProcessesUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{name: "helper", do: func(ctx context.Context, _ int, emit func(card.Reading)) error { return gives(ctx, 5, emit) }}
		s := gpu.NewSource(nil, b)
		early := open(t, s) // before the first reading, as where the driver is loaded later
		if out := (collector.Values{}); early.Read(t.Context(), collector.Moment{Time: time.Now(), Pids: []int{7}}, out) != nil || len(out) != 0 {
			t.Errorf("before the first reading: %v", out)
		}
		end := run(t, s)
		time.Sleep(100 * time.Millisecond)
		read := func(r collector.Reader, pids ...int) collector.Values {
			out := collector.Values{}
			if err := r.Read(t.Context(), collector.Moment{Time: time.Now(), Pids: pids}, out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		mine, other := open(t, s), open(t, s)
		read(mine, 7)
		read(early, 7)
		time.Sleep(2 * time.Second)
		if got := read(early, 7); got[api.ColGPUJoules] != 200 {
			t.Errorf("%v; want the 200 J of the reader that was opened early", got)
		}
		if got := read(mine, 7); got[api.ColGPUJoules] != 200 || got[api.ColGPUs] != 1 || !math.IsNaN(got[api.ColGPUBusy]) || !math.IsNaN(got[api.ColGPUMemory]) {
			t.Errorf("%v; want 200 J of one GPU, which shows neither use nor memory", got)
		}
		// The job's cgroups or CPUs changed: what it used so far is still known.
		follower, ok := mine.(collector.Follower)
		if !ok || follower.Follow(t.Context(), collector.Target{CPUs: []int{3}}) != nil {
			t.Fatal("the reader begins its count anew where the job is looked at again")
		}
		if got := read(mine, 7); got[api.ColGPUJoules] != 200 {
			t.Errorf("%v after it followed the job; want 200 J", got)
		}
		if got := read(other, 8); len(got) != 0 {
			t.Errorf("a job that is on no GPU has %v", got)
		}
		time.Sleep(time.Second)
		if got := read(mine); got[api.ColGPUJoules] != 300 {
			t.Errorf("%v; want what its process used after it was last seen alive", got)
		}
		for _, src := range s.Probe(t.Context()) {
			if src.Support != api.Supported {
				t.Errorf("%+v", src)
			}
		}
		end()
		time.Sleep(time.Minute)
		if err := mine.Read(t.Context(), collector.Moment{Time: time.Now()}, collector.Values{}); err == nil || !strings.Contains(err.Error(), "no reading for 1m") {
			t.Errorf("a stale reading: %v", err)
		}
	})
}

// What counts is when a reading is heard of: the clock of who took it may be set.
func TestTheClockOfTheHelperIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watts := 100.0
		b := &scripted{name: "helper", do: func(ctx context.Context, _ int, emit func(card.Reading)) error {
			return each(ctx, 1000, func(i int) {
				at := time.Now()
				if i > 3 {
					at = at.Add(-time.Hour) // it was set back
				}
				emit(card.Reading{At: at, Devices: []card.Device{{UUID: "GPU-a", Watts: &watts, Processes: &[]card.Process{{Pid: 7}}}}})
			})
		}}
		s := gpu.NewSource(nil, b)
		end := run(t, s)
		time.Sleep(10*time.Second + time.Millisecond)
		joules, at, known := s.Joules()
		if joules != 1000 || !known || time.Since(at) > time.Second {
			t.Errorf("%v J, read at %v, known %v; want 1000 J, just now", joules, at, known)
		}
		end()
	})
}

// One card falls off the bus for a while.
func TestACardThatIsLostTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{name: "helper", do: func(ctx context.Context, _ int, emit func(card.Reading)) error {
			return each(ctx, 1000, func(i int) {
				joules := float64(100 * i)
				a := card.Device{UUID: "GPU-a", Joules: &joules, Processes: &[]card.Process{{Pid: 7}}}
				b := card.Device{UUID: "GPU-b", Joules: &joules, Processes: &[]card.Process{{Pid: 8}}}
				r := card.Reading{At: time.Now(), Devices: []card.Device{a, b}}
				if i >= 5 && i < 10 {
					r.Devices, r.Missing = r.Devices[:1], []string{"GPU 1: the GPU is lost"}
				}
				emit(r)
			})
		}}
		s := gpu.NewSource(nil, b)
		end := run(t, s)
		time.Sleep(time.Millisecond)
		whole, half := open(t, s), open(t, s)
		look := func(want, wantHalf, all float64, sure bool, says string) {
			t.Helper()
			for pid, r := range map[int]collector.Reader{7: whole, 8: half} {
				out, want := collector.Values{}, map[int]float64{7: want, 8: wantHalf}[pid]
				if err := r.Read(t.Context(), collector.Moment{Time: time.Now(), Pids: []int{pid}}, out); err != nil {
					t.Fatal(err)
				}
				if got := out[api.ColGPUJoules]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("after %v: process %d has %v J, want %v", time.Now(), pid, got, want)
				}
			}
			if joules, _, known := s.Joules(); joules != all || known != sure {
				t.Errorf("%v J of all, known %v; want %v, %v", joules, known, all, sure)
			}
			lost := ""
			for _, src := range s.Probe(t.Context()) {
				if src.Silent != (src.Name == "gpu/lost") || src.Support != api.Supported {
					t.Errorf("%+v", src)
				}
				if src.Silent {
					lost = src.Reason
				}
			}
			if lost != says {
				t.Errorf("lost is %q, want %q", lost, says)
			}
		}
		look(0, 0, 0, true, "")
		time.Sleep(7 * time.Second)
		look(700, math.NaN(), 1100, false, "GPU 1: the GPU is lost")
		time.Sleep(4 * time.Second)
		look(1100, 1100, 2200, true, "")
		end()
	})
}

func TestALineOfALostCardTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	path := program(t, `case "$1" in
*compute-apps*) ;;
*) for i in 1 2 3; do
	echo "Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost."
	echo "1, GPU-2, A, 200.00, 300.00, 20, 5, 100"
done ;;
esac
`)
	var got []card.Reading
	if err := (gpu.SMI{Path: path}).Run(t.Context(), func(r card.Reading) { got = append(got, r) }); err == nil {
		t.Error("it ended without a word")
	}
	if len(got) != 2 || len(got[0].Devices) != 1 || len(got[0].Missing) != 1 || !strings.Contains(got[0].Missing[0], "GPU is lost") {
		t.Fatalf("readings %+v; want two rounds of the second GPU, and the first one named", got)
	}
	path = program(t, "yes 'GPU is lost'")
	if err := (gpu.SMI{Path: path}).Run(t.Context(), func(card.Reading) {}); !errors.Is(err, card.ErrInvalid) {
		t.Errorf("all are lost: %v", err)
	}
}

func open(t *testing.T, s *gpu.Source) collector.Reader {
	t.Helper()
	r, err := s.Open(t.Context(), collector.Target{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// program writes an executable script.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	syscall.ForkLock.RLock() // a process that another test starts meanwhile would keep it open for writing
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	return path
}

const line = `{"at":"2026-01-01T00:00:00Z","devices":[{"uuid":"GPU-a","joules":5}]}`

func TestAHelperIsReadUntilItEndsAndSaysWhy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, script, want string }{
		{"it ends", "echo '" + line + "'\necho no driver any more >&2\nexit 3", "exit status 3: no driver any more"},
		{"it writes nonsense", "echo '" + line + "'\necho nonsense\nsleep 1000", "invalid reading"},
		{"there is none", "", "no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := program(t, tc.script)
			if tc.script == "" {
				path = filepath.Join(t.TempDir(), "none")
			}
			var got []card.Reading
			err := gpu.Helper{Path: path}.Run(t.Context(), func(r card.Reading) { got = append(got, r) })
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.script != "" && len(got) != 1 {
				t.Errorf("%d readings, %v; want one, and %q", len(got), err, tc.want)
			}
		})
	}
}

func TestGPUsAreReadOftenHoweverSeldomSamplesAreTaken(t *testing.T) {
	t.Parallel()
	for interval, want := range map[time.Duration]string{0: "1s", 50 * time.Millisecond: "100ms", 250 * time.Millisecond: "250ms", 30 * time.Second: "2s"} {
		path := program(t, "echo \"$2\" >&2\nexit 1")
		err := gpu.Helper{Path: path, Interval: interval}.Run(t.Context(), func(card.Reading) {})
		if err == nil || !strings.Contains(err.Error(), ": "+want) {
			t.Errorf("%v: %v, want the helper to be asked each %s", interval, err, want)
		}
	}
}

// A driver that hangs lets no helper go: its reader goes on all the same.
func TestAHelperThatHangsIsEndedWithItsChildren(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "child")
	path := program(t, "sleep 1000 & echo $! > "+mark+"\necho '"+line+"'\nwait")
	readings := 0
	err := gpu.Helper{Path: path, Interval: 20 * time.Millisecond, Silence: 300 * time.Millisecond}.Run(t.Context(), func(card.Reading) { readings++ })
	if !errors.Is(err, gpu.ErrSilent) || readings != 1 {
		t.Fatalf("%d readings, %v; want one and %v", readings, err, gpu.ErrSilent)
	}
	pid, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("its child is still there")
}

// The kernel ends a helper with the thread that started it, and a socket is made by a thread
// that ends (peercred.Listen).
func TestAHelperOutlivesThreadsThatEnd(t *testing.T) { // not parallel: it ends all that are idle
	resume := filepath.Join(t.TempDir(), "resume")
	if err := syscall.Mkfifo(resume, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(resume, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	path := program(t, "echo '"+line+"'\nread x <"+resume+"\necho '"+line+"'\n")
	readings, ended := make(chan card.Reading), make(chan error)
	go func() { ended <- gpu.Helper{Path: path}.Run(t.Context(), func(r card.Reading) { readings <- r }) }()
	<-readings
	var all, gone sync.WaitGroup
	all.Add(64)
	for range 64 {
		gone.Go(func() {
			runtime.LockOSThread()
			all.Done()
			all.Wait()
		})
	}
	gone.Wait()
	if _, err := pipe.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-readings:
		t.Log("its end:", <-ended) // it says no more
	case err := <-ended:
		t.Error(err)
	}
}

func TestOneNvidiaSMIIsReadRoundByRound(t *testing.T) {
	t.Parallel()
	path := program(t, `case "$1" in
*compute-apps*) echo "GPU-2, 4711, 100" ;;
*) for i in 1 2 3; do
	echo "0, GPU-1, A, 100.00, 300.00, 10, 5, 100"
	echo "1, GPU-2, A, 200.00, 300.00, 20, 5, 100"
done ;;
esac
`)
	var got []card.Reading
	if err := (gpu.SMI{Path: path}).Run(t.Context(), func(r card.Reading) { got = append(got, r) }); err == nil {
		t.Error("it ended without a word")
	}
	if len(got) != 2 || len(got[0].Devices) != 2 {
		t.Fatalf("readings %+v; want two whole rounds, and the third when the fourth begins", got)
	}
	if ps := got[0].Devices[1].Processes; ps == nil || len(*ps) != 1 || (*ps)[0].Pid != 4711 {
		t.Errorf("processes %+v", ps)
	}
	if ps := got[0].Devices[0].Processes; ps == nil || len(*ps) != 0 {
		t.Errorf("processes of the other %+v; want none, which is known", ps)
	}
}

func TestProcessesAreAskedForAgainSoonWhereTheListDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, busy, listed string
		want               int
	}{
		{"a GPU that works for none", "10", "", 2},
		{"one that rests", "0", "", 1},
		{"one that works for a process", "10", "GPU-1, 1, 5", 1},
		{"one whose process has ended", "0", "GPU-1, 4194305, 5", 2}, // above the highest number
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			asked := filepath.Join(t.TempDir(), "asked")
			path := program(t, `case "$1" in
*compute-apps*) echo x >>`+asked+"; echo '"+tc.listed+`' ;;
*) for i in 1 2; do echo "0, GPU-1, A, 100.00, 300.00, `+tc.busy+`, 5, 100"; sleep 2.1; done ;;
esac
`)
			_ = (gpu.SMI{Path: path}).Run(t.Context(), func(card.Reading) {}) // it ends
			if text, err := os.ReadFile(asked); err != nil || strings.Count(string(text), "x") != tc.want {
				t.Errorf("asked %q, %v; want %d times", text, err, tc.want)
			}
		})
	}
}
