package gpu_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/collector/gpu/card"
)

func TestALineOfNvidiaSMIIsReadInBaseUnits(t *testing.T) {
	t.Parallel()
	const why = "nvidia-smi has no energy counter"
	for _, tc := range []struct {
		name, line string
		want       card.Device
	}{
		{
			"every figure is there", "0, GPU-1f0c, NVIDIA H100 80GB HBM3, 112.50, 700.00, 35, 5, 81559",
			card.Device{
				UUID: "GPU-1f0c", Name: "NVIDIA H100 80GB HBM3", Watts: new(112.5), LimitWatts: new(700.0), Busy: new(0.35),
				MemoryUsed: new(int64(5) << 20), MemoryTotal: new(int64(81559) << 20), Missing: map[string]string{"joules": why},
			},
		},
		{
			"what is not available is missing", "3, GPU-2, NVIDIA A2, [N/A], [Not Supported], [N/A], 5, 15356",
			card.Device{
				UUID: "GPU-2", Index: 3, Name: "NVIDIA A2", MemoryUsed: new(int64(5) << 20), MemoryTotal: new(int64(15356) << 20),
				Missing: map[string]string{"joules": why, "watts": "N/A", "limit_watts": "Not Supported", "busy": "N/A"},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := gpu.ParseSMI(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatNvidiaSMIWritesInsteadOfFiguresIsAnError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "0, GPU-1, x, 1, 2, 3, 4",
		"x, GPU-1, name, 1, 2, 3, 4, 5", "0, 1, name, 1, 2, 3, 4, 5", "0, GPU-1, name, -1, 2, 3, 4, 5", "0, GPU-1, name, 1, 2, 300, 4, 5",
		"0, GPU-1, name, 1, 2, 3, NaN, 5",
	} {
		if d, err := gpu.ParseSMI(line); err == nil {
			t.Errorf("%q is %+v", line, d)
		}
	}
}

func TestProcessesAreReadByGPU(t *testing.T) {
	t.Parallel()
	got, err := gpu.ParseApps("GPU-1, 4711, 5012\nGPU-2, 4712, [N/A]\n\nGPU-1, 4713, 1\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]card.Process{
		"GPU-1": {{Pid: 4711, Memory: new(int64(5012) << 20)}, {Pid: 4713, Memory: new(int64(1) << 20)}}, "GPU-2": {{Pid: 4712}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := gpu.ParseApps("GPU-1, none, 1\n"); !errors.Is(err, card.ErrInvalid) {
		t.Errorf("no process id: %v", err)
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, GPU-1f0c, NVIDIA H100 80GB HBM3, 112.50, 700.00, 35, 5, 81559")
	f.Add("0, GPU-1, \"a, b\", [N/A], 1e308, 3, 4, 5")
	f.Fuzz(func(t *testing.T, line string) {
		d, err := gpu.ParseSMI(line)
		if err == nil && (d.Check() != nil || d.UUID == "") {
			t.Errorf("%q is %+v", line, d)
		}
	})
}

func TestAQuestionAboutProcessesWithoutAnAnswerLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits 17 s for a second look at the processes: make check runs it")
	}
	path := program(t, `case "$1" in
*compute-apps*)
	if [ -e "$0.asked" ]; then sleep 30; fi
	touch "$0.asked"
	echo "GPU-1, 4711, 100" ;;
*) for i in $(seq 32); do
	echo "0, GPU-1, A, 100.00, 300.00, 10, 5, 100"
	sleep 0.5
done ;;
esac
`)
	var last time.Time
	readings := 0
	_ = (gpu.SMI{Path: path}).Run(t.Context(), func(r card.Reading) { // until the script ends
		if gap := time.Since(last); readings > 0 && gap > 4*time.Second {
			t.Errorf("%v without a reading: power is not integrated over as much", gap)
		}
		if ps := r.Devices[0].Processes; ps == nil || len(*ps) != 1 {
			t.Errorf("reading %d has the processes %v, want the one that was known", readings, ps)
		}
		last, readings = time.Now(), readings+1
	})
	if readings != 31 {
		t.Errorf("%d readings", readings)
	}
}
