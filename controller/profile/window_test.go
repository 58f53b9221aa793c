package profile_test

import (
	"maps"
	"testing"
	"time"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

var epoch0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a time so many seconds after the attempt began.
func at(seconds float64) time.Time {
	return epoch0.Add(time.Duration(seconds * float64(time.Second)))
}

// job is a job whose counters grow evenly.
type job struct {
	slopes map[string]float64 // counters, per second
	gauges map[string]float64
}

// steady uses both of its two cores of a four-core node, with every column.
func steady() job {
	return job{
		slopes: map[string]float64{
			api.ColUserSeconds: 1.6, api.ColSystemSeconds: 0.4, api.ColCPUSeconds: 2, api.ColTaskClock: 2,
			api.ColContextSwitch: 200, api.ColMigrations: 4, api.ColMinorFaults: 2000, api.ColMajorFaults: 2,
			api.ColVoluntary: 150, api.ColInvoluntary: 50,
			api.ColReadChars: 4e6, api.ColWriteChars: 2e4, api.ColReadBytes: 2e6, api.ColWriteBytes: 1e4,
			api.ColCPUPressure: 0.1, api.ColMemoryPressure: 0.05, api.ColIOPressure: 0.2,
			api.ColJoules: 30, api.ColNodeBusy: 2.5, api.ColNodeSteal: 0.01,
			api.ColPerfRunning: 1, api.ColPerfEnabled: 1,
		},
		gauges: map[string]float64{
			api.ColRSS: 64 << 20, api.ColCache: 16 << 20, api.ColPeak: 128 << 20, api.ColThreads: 4, api.ColAllocatedCores: 2,
		},
	}
}

// onGPU keeps a GPU busy besides, most of the time.
func onGPU() job {
	j := steady().with(api.ColGPUBusy, 0.8).with(api.ColGPUJoules, 300)
	j.gauges = maps.Clone(j.gauges)
	j.gauges[api.ColGPUMemory] = 2 << 30
	return j
}

func (j job) with(column string, slope float64) job {
	j.slopes = maps.Clone(j.slopes)
	j.slopes[column] = slope
	return j
}

func (j job) without(columns ...string) job {
	j.slopes, j.gauges = maps.Clone(j.slopes), maps.Clone(j.gauges)
	for _, c := range columns {
		delete(j.slopes, c)
		delete(j.gauges, c)
	}
	return j
}

func (j job) values(seconds float64) map[string]float64 {
	out := maps.Clone(j.gauges)
	for c, slope := range j.slopes {
		out[c] = slope * seconds
	}
	return out
}

// window samples the job once a second until the given time, starting half a
// second in, with a snapshot at each mark.
func (j job) window(until float64, marks ...api.Sample) api.Window {
	w := api.Window{
		Job:    api.Job{Manager: "local", ID: "7", Attempt: 1, Started: epoch0},
		Source: "rapl",
	}
	next := 0
	add := func(s api.Sample) {
		s.Seq = uint64(len(w.Samples) + 1)
		w.Samples = append(w.Samples, s)
	}
	for t := 0.5; ; t++ {
		for next < len(marks) && marks[next].Time.Before(at(t)) {
			m := marks[next]
			if m.Values == nil {
				m.Values = j.values(m.Time.Sub(epoch0).Seconds())
			}
			add(m)
			next++
		}
		if t > until {
			return w
		}
		add(api.Sample{Time: at(t), Values: j.values(t)})
	}
}

// ended is the snapshot at the mark of an epoch.
func ended(epoch int, seconds float64) api.Sample {
	return api.Sample{Time: at(seconds), Mark: &api.Report{Epoch: epoch, Time: at(seconds)}}
}

// unsampled is a mark that the exporter took no snapshot for.
func unsampled(epoch int, seconds float64) api.Sample {
	s := ended(epoch, seconds)
	s.Values = map[string]float64{}
	return s
}

// delivered is the snapshot at a mark whose line was read earlier.
func delivered(epoch int, told, seconds float64) api.Sample {
	s := ended(epoch, seconds)
	s.Mark.Time = at(told)
	return s
}

func every(seconds float64, epochs int) []api.Sample {
	var out []api.Sample
	for n := range epochs {
		out = append(out, ended(n+1, seconds*float64(n+1)))
	}
	return out
}

func twoCores() tuning.Settings {
	return tuning.Settings{tuning.Cores: tuning.Number(2), tuning.Threads: tuning.Number(2)}
}

func TestTheCPUTimeOfAWindow(t *testing.T) {
	t.Parallel()
	w := steady().window(60)
	w.Samples = append(w.Samples[:1:1], w.Samples[40:]...) // the older ones were dropped
	w.Dropped = 1
	if cpu, over := profile.CPU(w); over != 59 || cpu != 118 {
		t.Errorf("%g s of CPU time over %g s, want 118 over 59", cpu, over)
	}
	if cpu, over := profile.CPU(api.Window{}); cpu != 0 || over != 0 {
		t.Errorf("%g, %g of nothing", cpu, over)
	}
}
