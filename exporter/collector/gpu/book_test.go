package gpu_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/collector/gpu/card"
)

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// counted is a reading of one GPU with a counter.
func counted(seconds, joules float64, pids ...int) card.Reading {
	ps := []card.Process{}
	for _, p := range pids {
		ps = append(ps, card.Process{Pid: p})
	}
	return card.Reading{At: at(seconds), Devices: []card.Device{{UUID: "GPU-a", Joules: &joules, Busy: new(0.5), Processes: &ps}}}
}

// unseen is one of whose processes nothing is known.
func unseen(r card.Reading) card.Reading {
	r.Devices[0].Processes = nil
	return r
}

// mute is one that does not show how busy the GPU is.
func mute(r card.Reading) card.Reading {
	r.Devices[0].Busy = nil
	return r
}

// powered is one without, and one that shows nothing where watts are below 0.
func powered(seconds, watts float64) card.Reading {
	d := card.Device{UUID: "GPU-a", Watts: &watts, Processes: &[]card.Process{{Pid: 1}}}
	if watts < 0 {
		d.Watts = nil
	}
	return card.Reading{At: at(seconds), Devices: []card.Device{d}}
}

func TestJoulesOfAGPU(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		readings      []card.Reading
		used, covered float64
		partial       bool // the joules of its process
		gapped        bool // and its busy seconds
	}{
		{"what the counter showed first is not of this time", []card.Reading{counted(0, 5e9)}, 0, 0, false, false},
		{"the counter's difference, however long it took", []card.Reading{counted(0, 100, 1), counted(1, 400, 1), counted(100, 1000, 1)}, 900, 100, false, true},
		{"a counter that begins anew shows what is known since", []card.Reading{counted(0, 1000), counted(1, 1300), counted(2, 50), counted(3, 80)}, 380, 3, false, false},
		{"without a counter the power is integrated", []card.Reading{powered(0, 100), powered(1, 200), powered(2, 200)}, 350, 2, false, false},
		{"a gap is not bridged, and not covered", []card.Reading{powered(0, 100), powered(1, 100), powered(60, 100), powered(61, 100)}, 200, 2, true, false},
		{"what one reading does not show the next does", []card.Reading{powered(0, 100), powered(2, -1), powered(4, 100)}, 400, 4, false, false},
		{"a process that left in a long gap lacks what it took", []card.Reading{counted(0, 100, 1), counted(100, 900)}, 800, 100, true, true},
		{"as the counter does, however long it took", []card.Reading{counted(0, 100, 1), powered(1, -1), powered(60, -1), counted(61, 400, 1)}, 300, 61, false, true},
		{"but power that was not shown for long is lost", []card.Reading{powered(0, 100), powered(3, -1), powered(6, 100)}, 0, 0, true, false},
		{"and what a GPU took before it showed anything", []card.Reading{powered(0, -1), powered(1, 100), powered(2, 100)}, 100, 1, true, false},
		{"a process that left in a gap lacks it too", []card.Reading{powered(0, 100), counted(1, 0)}, 0, 0, true, true},
		{"and one that is not seen any more", []card.Reading{counted(0, 0, 1), unseen(counted(1, 50)), counted(2, 100, 1)}, 100, 2, true, true},
		{"the seconds of a reading that does not show how busy it is are in the next", []card.Reading{counted(0, 0, 1), mute(counted(2, 50, 1)), counted(4, 100, 1)}, 100, 4, false, false},
		{"unless that comes late", []card.Reading{counted(0, 0, 1), mute(counted(3, 50, 1)), counted(6, 100, 1)}, 100, 6, false, true},
		{"an older reading is dropped", []card.Reading{counted(5, 100), counted(4, 50), counted(6, 130)}, 30, 1, false, false},
	} {
		b := gpu.NewBook()
		for _, r := range tc.readings {
			b.Add(r)
		}
		a, c := b.Accounts()[0], b.Charges()[1]
		if math.Abs(a.Used-tc.used) > 1e-9 || math.Abs(a.Covered-tc.covered) > 1e-9 || c.Partial != tc.partial || c.Gapped != tc.gapped {
			t.Errorf("%s: %v J in %v s, partial %v, gapped %v; want %v in %v, %v, %v", tc.name, a.Used, a.Covered, c.Partial, c.Gapped, tc.used, tc.covered, tc.partial, tc.gapped)
		}
	}
}

func TestAJobWhoseJoulesLackATimeHasNoneUntilItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{name: "nvidia-smi", do: func(ctx context.Context, _ int, emit func(card.Reading)) error {
			return each(ctx, 1000, func(i int) {
				d := card.Device{UUID: "GPU-a", Watts: new(100.0), Busy: new(0.5), Processes: &[]card.Process{{Pid: 8}}}
				if i < 20 {
					*d.Processes = append(*d.Processes, card.Process{Pid: 7})
				}
				if i < 4 || i >= 10 { // it says nothing for 7 s
					emit(card.Reading{At: time.Now(), Devices: []card.Device{d}})
				}
			})
		}}
		s := gpu.NewSource(nil, b)
		defer run(t, s)()
		time.Sleep(time.Millisecond)
		left, stays := open(t, s), open(t, s)
		for _, now := range []struct{ after, want float64 }{{3, 150}, {12, math.NaN()}, {100, math.NaN()}} {
			time.Sleep(time.Duration(now.after) * time.Second)
			for pid, r := range map[int]collector.Reader{7: left, 8: stays} {
				out := collector.Values{}
				if err := r.Read(t.Context(), collector.Moment{Time: time.Now(), Pids: []int{pid}}, out); err != nil {
					t.Fatal(err)
				}
				if got := out[api.ColGPUJoules]; got != now.want && !(math.IsNaN(got) && math.IsNaN(now.want)) {
					t.Errorf("%v s later process %d has %v J, want %v", now.after, pid, got, now.want)
				}
				if got := out[api.ColGPUBusy]; got != now.want/200 && !(math.IsNaN(got) && math.IsNaN(now.want)) {
					t.Errorf("%v s later process %d was busy for %v s, want %v", now.after, pid, got, now.want/200)
				}
			}
		}
	})
}

// Numbers of processes are used again.
func TestAJobIsNotChargedForALaterProcessWithTheNumberOfOneOfIts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := gpu.NewSource(nil, &scripted{name: "nvidia-smi", do: func(ctx context.Context, _ int, emit func(card.Reading)) error {
			return each(ctx, 1000, func(i int) {
				r := counted(0, float64(100*i))
				if r.At = time.Now(); i < 4 || i >= 90 {
					r.Devices[0].Processes = &[]card.Process{{Pid: 7}}
				}
				emit(r)
			})
		}})
		defer run(t, s)()
		time.Sleep(time.Millisecond)
		job := open(t, s)
		var got []float64
		for _, pids := range [][]int{{7}, {}, {}, {}} {
			time.Sleep(25 * time.Second)
			for range 2 {
				out := collector.Values{}
				if err := job.Read(t.Context(), collector.Moment{Time: time.Now(), Pids: pids}, out); err != nil {
					t.Fatal(err)
				}
				got = append(got, out[api.ColGPUJoules])
				time.Sleep(time.Second)
			}
		}
		if diff := cmp.Diff([]float64{300, 300, 300, 300, 300, 300, 300, 300}, got); diff != "" {
			t.Errorf("joules (-want +got):\n%s", diff)
		}
	})
}

func TestProcessesShareTheGPUThatTheyAreOn(t *testing.T) {
	t.Parallel()
	b := gpu.NewBook()
	b.Add(counted(0, 0, 1))
	b.Add(counted(1, 100, 1))
	b.Add(counted(2, 200, 1, 2))
	b.Add(counted(3, 300))
	b.Add(counted(4, 400, 2))
	c := b.Charges()
	if c[1].Joules != 150 || c[2].Joules != 150 || c[1].BusySeconds != 0.75 {
		t.Errorf("%+v; want 150 J each, and what passed on the empty GPU the system's", c)
	}
	if c[1].Devices != 0 || c[2].Devices != 1 {
		t.Errorf("%+v; want the first gone from the GPU and the second on it", c)
	}
}

// What passed in a long gap cannot be divided among the processes before and after it.
func TestAProcessIsNotChargedForALongGapInWhichAnotherWasOnTheGPU(t *testing.T) {
	t.Parallel()
	for name, readings := range map[string][]card.Reading{
		"no reading":                       {counted(0, 0, 2), counted(300, 9000, 1), counted(301, 9500, 1)},
		"readings that do not show joules": {counted(0, 0, 2), powered(100, -1), counted(300, 9000, 1), counted(301, 9500, 1)},
	} {
		b := gpu.NewBook()
		for _, r := range readings {
			b.Add(r)
		}
		if a, c := b.Accounts()[0], b.Charges(); a.Used != 9500 || c[1].Joules != 500 || !c[1].Partial || c[2].Joules != 0 {
			t.Errorf("%s: the GPU used %v J, charged are %+v; want 9500 J, and 500 J of process 1, which are partial", name, a.Used, c)
		}
	}
}

func TestInstancesShareByTheirMultiprocessors(t *testing.T) {
	t.Parallel()
	split := func(seconds, joules float64) card.Reading {
		return card.Reading{At: at(seconds), Devices: []card.Device{{UUID: "GPU-a", Joules: &joules, Instances: []card.Instance{
			{UUID: "m1", SMs: 20, Processes: &[]card.Process{{Pid: 1}}},
			{UUID: "m2", SMs: 60, Processes: &[]card.Process{{Pid: 2}, {Pid: 3}}},
			{UUID: "m3", SMs: 20, Processes: &[]card.Process{}},
		}}}}
	}
	b := gpu.NewBook()
	b.Add(split(0, 0))
	b.Add(split(1, 80))
	if c := b.Charges(); c[1].Joules != 20 || c[2].Joules != 30 || c[3].Joules != 30 {
		t.Errorf("%+v; want 20, 30 and 30: an instance without processes is the system's", c)
	}
}

func TestProcessesAreChargedNoMoreThanTheGPUsUsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := gpu.NewBook()
		now, joules, before := 0.0, 0.0, 0.0
		for range rapid.IntRange(2, 20).Draw(t, "readings") {
			now += rapid.Float64Range(0.1, 10).Draw(t, "seconds")
			joules += rapid.Float64Range(0, 1e4).Draw(t, "joules")
			if rapid.IntRange(0, 9).Draw(t, "driver") == 0 {
				joules = rapid.Float64Range(0, 10).Draw(t, "anew")
			}
			b.Add(counted(now, joules, rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 0, 5, rapid.ID[int]).Draw(t, "pids")...))
			a, charged := b.Accounts()[0], 0.0
			for _, c := range b.Charges() {
				charged += c.Joules
			}
			if a.Used < before || charged > a.Used*(1+1e-9)+1e-9 {
				t.Fatalf("used %v after %v, charged %v", a.Used, before, charged)
			}
			before = a.Used
		}
	})
}
