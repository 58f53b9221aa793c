package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/exporter/api"
	"pitchpipe/test/sim"
)

func (b *bench) window(id driver.JobID, attempt int, after uint64) api.Window {
	b.Helper()
	w, err := b.c.Window(b.Context(), string(id), attempt, after)
	if err != nil {
		b.Fatalf("Window(%s, %d, %d): %v", id, attempt, after, err)
	}
	return w
}

// between is the growth of a column from one mark to another; epoch 0 is the
// first sample.
func (b *bench) between(w api.Window, column string, from, to int) float64 {
	b.Helper()
	at := map[int]float64{0: w.Samples[0].Values[column]}
	for _, s := range w.Samples {
		if s.Mark != nil {
			at[s.Mark.Epoch] = s.Values[column]
		}
	}
	return at[to] - at[from]
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }

func TestWindowHoldsTicksMarksAndTheEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=2 seconds=1.5 start=1s")
		b.ended(job.ID)
		w := b.window(job.ID, 0, 0)
		var got []string
		for i, s := range w.Samples {
			if s.Seq != uint64(i+1) {
				b.Errorf("sample %d has sequence number %d", i, s.Seq)
			}
			text := s.Time.Sub(b.start).String()
			if s.Mark != nil {
				text += " mark " + string(rune('0'+s.Mark.Epoch)) + "/" + string(rune('0'+s.Mark.Total))
				if s.Mark.Loss == nil || s.Mark.Quality == nil || !s.Mark.Time.Equal(s.Time) {
					b.Errorf("mark %+v lacks loss, quality or its time", s.Mark)
				}
			}
			if s.Ended {
				text += " ended"
			}
			got = append(got, text)
		}
		want := []string{"0s", "1s", "2s", "2.5s mark 1/2", "3s", "4s", "4s mark 2/2", "4s ended"}
		if diff := cmp.Diff(want, got); diff != "" {
			b.Errorf("samples (-want +got):\n%s", diff)
		}
		if !w.Job.Ended || w.Job.Attempt != 1 || w.Source != "modelled" || w.Dropped != 0 {
			b.Errorf("window of %+v, source %q, %d dropped", w.Job, w.Source, w.Dropped)
		}
		if rest := b.window(job.ID, 1, 5); len(rest.Samples) != 3 || rest.Samples[0].Seq != 6 {
			b.Errorf("after 5: %d samples from %d on, want 3 from 6 on", len(rest.Samples), rest.Samples[0].Seq)
		}
	})
}

// The counters of an epoch, against what the table of keys promises.
func TestWindowCountersFollowTheBehaviour(t *testing.T) {
	t.Parallel()
	const behaviour = "epochs=6 seconds=10 parallel=0.8 contended=5 watts_idle=32 watts_core=10 memory=100MiB"
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("cpus-per-task=4", behaviour)
		b.submit("cpus-per-task=8", "epochs=60 seconds=1 seed=1") // a neighbour that keeps one core busy
		b.ended(job.ID)
		w := b.window(job.ID, 1, 0)
		// An epoch takes 4 s of the clock and 10 s of CPU, a contended one 5 s.
		for column, want := range map[string]float64{
			api.ColCPUSeconds:    10,
			api.ColTaskClock:     10,
			api.ColUserSeconds:   9.95,
			api.ColSystemSeconds: 0.05,
			api.ColMinorFaults:   2000,
			api.ColContextSwitch: 300,
			api.ColInvoluntary:   240,
			api.ColVoluntary:     60,
			api.ColReadBytes:     0,
			api.ColJoules:        32*4/16*4 + 10*10,
			api.ColNodeBusy:      14,
			api.ColNodeSteal:     0,
			api.ColPerfEnabled:   16,
			api.ColPerfRunning:   16,
			api.ColCPUPressure:   0,
		} {
			if got := b.between(w, column, 1, 2); !near(got, want) {
				b.Errorf("%s of epoch 2: %v, want %v", column, got, want)
			}
		}
		for column, want := range map[string]float64{
			api.ColCPUSeconds:  10,
			api.ColNodeBusy:    15,
			api.ColNodeSteal:   0.2 * 16 * 5,
			api.ColCPUPressure: 1,
		} {
			if got := b.between(w, column, 4, 5); !near(got, want) {
				b.Errorf("%s of contended epoch 5: %v, want %v", column, got, want)
			}
		}
		if got := b.between(w, api.ColNodeSteal, 5, 6); got != 0 {
			b.Errorf("steal of epoch 6, after the contended one: %v", got)
		}
		first := w.Samples[1].Values
		if first[api.ColRSS] != 100<<20 || first[api.ColPeak] != 100<<20 || first[api.ColAllocatedCores] != 4 {
			b.Errorf("gauges: rss %v, peak %v, cores %v", first[api.ColRSS], first[api.ColPeak], first[api.ColAllocatedCores])
		}
	})
}

// Cores that wait for memory or for each other's caches look busy, so that utilisation
// does not show what they bring.
func TestCoresThatBringNothingLookBusy(t *testing.T) {
	t.Parallel()
	for behaviour, want := range map[string][2]float64{ // seconds and CPU seconds of an epoch
		"saturate=2":     {5, 40},
		"coherence=0.05": {1.25 + 3.5, 10 + 0.35*80},
	} {
		inBubble(t, sim.Config{Interval: 10 * time.Second}, func(b *bench) {
			job := b.submit("cpus-per-task=8", "epochs=3 seconds=10 parallel=1 "+behaviour)
			took := b.ended(job.ID).Ended.Sub(job.Submitted).Seconds() / 3
			w := b.window(job.ID, 1, 0)
			if cpu := b.between(w, api.ColCPUSeconds, 1, 2); !near(took, want[0]) || !near(cpu, want[1]) {
				b.Errorf("%s: an epoch takes %v s and %v CPU seconds, want %v", behaviour, took, cpu, want)
			}
			if ticks := len(w.Samples) - 3 - 1; ticks != 2 {
				b.Errorf("%s: %d samples in %v s, want one every 10 s", behaviour, ticks, 3*took)
			}
		})
	}
}

func TestWindowOfEachAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=6 seconds=10 checkpoint=1s parallel=1")
		b.until(15 * time.Second)
		b.drive(b.intent(job.ID, "in", driver.Change{Cores: 2}))
		b.ended(job.ID)
		for attempt, want := range map[int][2]float64{1: {1, 2}, 2: {2, 4}} { // cores, epochs
			w := b.window(job.ID, attempt, 0)
			marks := 0
			for _, s := range w.Samples {
				if s.Mark != nil {
					marks++
				}
			}
			if cores := w.Samples[0].Values[api.ColAllocatedCores]; cores != want[0] || marks != int(want[1]) {
				b.Errorf("attempt %d: %v cores, %d marks; want %v", attempt, cores, marks, want)
			}
			if last := w.Samples[len(w.Samples)-1]; !last.Ended || last.Values[api.ColProcesses] != 0 {
				b.Errorf("attempt %d ends with %+v", attempt, last)
			}
			if before := w.Samples[len(w.Samples)-2].Values; before[api.ColRSS] == 0 || before[api.ColProcesses] != 1 {
				b.Errorf("attempt %d is gone before its end: %v", attempt, before)
			}
			if cpu := w.Samples[0].Values[api.ColCPUSeconds]; cpu != 0 {
				b.Errorf("attempt %d begins with %v CPU seconds", attempt, cpu)
			}
		}
		for _, attempt := range []int{-1, 3} {
			_, err := b.c.Window(b.Context(), string(job.ID), attempt, 0)
			wantError(b.T, err, driver.ErrNotFound)
		}
	})
}

func TestWindowForgetsWhatTheRingCannotHold(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		job := b.submit("", "epochs=1 seconds=10000")
		b.until(4136 * time.Second)
		w := b.window(job.ID, 0, 0)
		if len(w.Samples) != 4096 || w.Dropped != 41 || w.Samples[0].Seq != 42 {
			b.Errorf("%d samples from %d on, %d dropped; want 4096 from 42 on, 41 dropped", len(w.Samples), w.Samples[0].Seq, w.Dropped)
		}
	})
}

func TestWithoutAListenerThereAreNoMarks(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{}, func(b *bench) {
		s := spec("", "epochs=3 seconds=10")
		s.Progress = driver.Progress{}
		job := b.submitSpec(s)
		b.ended(job.ID)
		for _, s := range b.window(job.ID, 0, 0).Samples {
			if s.Mark != nil {
				b.Fatalf("mark %+v", s.Mark)
			}
		}
	})
}

func TestNodeDescribesTheFirstMachine(t *testing.T) {
	t.Parallel()
	inBubble(t, sim.Config{EnergySource: "rapl"}, func(b *bench) {
		node, err := b.c.Node(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if node.Hostname != "node-1" || node.Cores != 16 || node.MemoryBytes != 64<<30 || node.MachineKind != "sim-16c" ||
			node.EnergySource != "rapl" || node.IntervalSecs != 1 {
			b.Errorf("node %+v", node)
		}
	})
}

// The same story twice gives the same jobs, outputs and windows, to the byte.
func TestTwoRunsOfOneStoryAreEqual(t *testing.T) {
	t.Parallel()
	story := func() (all string) {
		inBubble(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 1 << 30}}}, func(b *bench) {
			var ids []driver.JobID
			for _, profile := range []string{"compute", "stream", "barrier", "alloc", "io"} {
				ids = append(ids, b.submit("cpus-per-task=2 job-name="+profile,
					"epochs=8 seconds=3 parallel=0.9 noise=0.05 run_noise=0.1 rate_noise=0.1 checkpoint=1s profile="+profile).ID)
			}
			b.until(5 * time.Second)
			b.drive(b.intent(ids[0], "one", driver.Change{Cores: 1}))
			b.drive(b.intent(ids[3], "two", driver.Change{Cores: 1}))
			for _, id := range ids {
				all += b.json(b.ended(id), b.logs(id), b.window(id, 1, 0), b.window(id, 0, 0)) + "\n"
			}
		})
		return all
	}
	first, second := story(), story()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
	if len(first) < 10_000 {
		t.Errorf("the story is only %d bytes long", len(first))
	}
}

// A profile differs from another by its rates: explicit ones win over it wherever they
// are.
func TestProfilesDiffer(t *testing.T) {
	t.Parallel()
	faults := func(behaviour string) (v float64) {
		inBubble(t, sim.Config{}, func(b *bench) {
			job := b.submit("", "epochs=3 seconds=10 "+behaviour)
			b.ended(job.ID)
			w := b.window(job.ID, 0, 0)
			v = b.between(w, api.ColMinorFaults, 1, 2) / b.between(w, api.ColCPUSeconds, 1, 2)
		})
		return v
	}
	for behaviour, want := range map[string]float64{
		"": 200, "profile=alloc": 6e4, "spin=0.5 profile=alloc": 6e4,
	} {
		if got := faults(behaviour); !near(got, want) {
			t.Errorf("%q: %v faults per CPU second, want %v", behaviour, got, want)
		}
	}
	for _, order := range []string{"spin=0.7 profile=barrier", "profile=barrier spin=0.7"} {
		if b, err := sim.ParseBehaviour("f", []byte("#SIM epochs=1 seconds=1 "+order)); err != nil || b.Spin != 0.7 {
			t.Errorf("%s: spin %v, %v", order, b.Spin, err)
		}
	}
}
