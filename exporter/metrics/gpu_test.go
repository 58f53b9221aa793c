package metrics_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/collector/gpu/card"
	"pitchpipe/exporter/metrics"
)

// twoGPUs are one that tells everything and one that tells nearly nothing.
func twoGPUs() *gpu.Snapshot {
	full := gpu.Account{Used: 1234.5, Covered: 10, BusySeconds: 5, Device: card.Device{
		UUID: "GPU-a", Name: "A", Joules: new(7e9), Watts: new(250.5), LimitWatts: new(300.0), Busy: new(0.5), MemoryUsed: new(int64(4096)), MemoryTotal: new(int64(8192)),
	}}
	mute := gpu.Account{Device: card.Device{UUID: "GPU-b", Index: 1, Name: "B", MemoryUsed: new(int64(1))}}
	return &gpu.Snapshot{Backend: "helper", Driver: "555", At: time.Unix(100, 0), Accounts: []gpu.Account{full, mute}}
}

func TestJoulesThatAreNotKnownNowAreNotOnThePage(t *testing.T) {
	t.Parallel()
	c, store, _ := measured(t)
	missing := map[string]float64{api.ColJoules: math.NaN(), api.ColGPUJoules: math.NaN()}
	store.Append(attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 2}, time.Unix(102, 0), missing, nil)
	page := scrape(t, metrics.Handler(c))
	for what, want := range map[string]bool{
		"pitchpipe_job_energy_joules_total{": false, "pitchpipe_job_gpu_energy_joules_total{": false, `component="gpu"`: false,
		`component="package"`: true, "pitchpipe_job_cpu_user_seconds_total{": true,
	} {
		if strings.Contains(page, what) != want {
			t.Errorf("%s on the page, want %v", what, want)
		}
	}
}

func TestWhatAGPUDoesNotTellIsNotOnThePage(t *testing.T) {
	t.Parallel()
	page := scrape(t, metrics.Handler(full(t)))
	for _, want := range []string{
		`pitchpipe_gpu_info{uuid="GPU-a",index="0",name="A",driver="555",backend="helper"} 1`,
		`pitchpipe_gpu_energy_joules_total{uuid="GPU-a",source="counter"} 1234.5`,
		`pitchpipe_gpu_energy_covered_seconds_total{uuid="GPU-a"} 10`,
		`pitchpipe_gpu_power_watts{uuid="GPU-a"} 250.5`,
		`pitchpipe_gpu_power_limit_watts{uuid="GPU-a"} 300`,
		`pitchpipe_gpu_busy_seconds_total{uuid="GPU-a"} 5`,
		`pitchpipe_gpu_memory_size_bytes{uuid="GPU-a"} 8192`,
		`pitchpipe_gpu_memory_used_bytes{uuid="GPU-b"} 1`,
		`pitchpipe_gpu_reading_time_seconds 100`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the page lacks %s", want)
		}
	}
	for line := range strings.Lines(page) {
		if strings.Contains(line, "GPU-b") && !strings.Contains(line, "_info{") && !strings.Contains(line, "memory_used") {
			t.Errorf("nothing told this: %s", line)
		}
	}
}
