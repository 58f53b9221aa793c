package classify_test

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

// TestRecordedCountersAreRecognised asks whether repeats of a program are found
// again by its hardware counters, in recorded data in the common "samples"
// format. Set PITCHPIPE_SAMPLES to such a file, with the events cycles,
// instructions, branch-misses, dTLB-load-misses and L1-icache-load-misses.
func TestRecordedCountersAreRecognised(t *testing.T) {
	t.Parallel()
	path := os.Getenv("PITCHPIPE_SAMPLES")
	if path == "" {
		t.Skip("PITCHPIPE_SAMPLES names no file of recorded samples")
	}
	runs := readRuns(t, path)
	var cfg classify.Config
	for _, f := range []string{"ipc", "branch_misses", "dtlb_misses", "icache_misses"} {
		cfg.Priors = append(cfg.Priors, classify.Prior{Feature: f, Noise: 0.15, Weight: 1})
	}
	var train, ask []classify.Sample
	for _, r := range runs {
		if strings.HasSuffix(r.Run, "-r0") || strings.HasSuffix(r.Run, "-r1") {
			train = append(train, r)
		} else {
			ask = append(ask, r)
		}
	}
	m, err := classify.Fit(train, cfg)
	if err != nil {
		t.Fatal(err)
	}
	kindsOf, classes := map[string][]string{}, 0
	for _, s := range m.Strata {
		classes += len(s.Groups)
		for _, g := range s.Groups {
			kindsOf[g.ID] = g.Kinds
		}
	}
	own, unknown := 0, 0
	for _, q := range ask {
		got := m.Classify(q.Profile)
		if !got.Known() {
			unknown++
		}
		for _, k := range kindsOf[got.ID] {
			if k == q.Kind {
				own++
			}
		}
	}
	t.Logf("%d training runs in %d strata and %d classes; of %d other runs %d in their own class, %d unknown", len(train), len(m.Strata), classes, len(ask), own, unknown)
	if len(ask) == 0 || own < len(ask)*8/10 {
		t.Errorf("%d of %d repeats are recognised", own, len(ask))
	}
}

func readRuns(t *testing.T, path string) []classify.Sample {
	t.Helper()
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	sums := map[string]map[string]float64{}
	meta := map[string]classify.Sample{}
	var order []string
	for _, row := range rows[1:] {
		id := row[at["run"]]
		if sums[id] == nil {
			sums[id] = map[string]float64{}
			order = append(order, id)
			cores, _ := strconv.ParseFloat(row[at["knob_cores"]], 64)
			meta[id] = classify.Sample{Run: id, Kind: row[at["workload"]], Profile: tuning.Profile{
				Schema: "hw/test", Machine: row[at["machine"]] + "@" + row[at["knob_frequency_mhz"]],
				Settings: tuning.Settings{tuning.Cores: tuning.Number(cores)}, Features: map[string]float64{},
			}}
		}
		for _, event := range []string{"cycles", "instructions", "branch-misses", "dTLB-load-misses", "L1-icache-load-misses"} {
			if v, err := strconv.ParseFloat(row[at[event]], 64); err == nil {
				sums[id][event] += v
			}
		}
	}
	out := make([]classify.Sample, 0, len(order))
	for _, id := range order {
		s, n := meta[id], sums[id]
		s.Profile.Features["ipc"] = math.Log(n["instructions"] / n["cycles"])
		for name, event := range map[string]string{"branch_misses": "branch-misses", "dtlb_misses": "dTLB-load-misses", "icache_misses": "L1-icache-load-misses"} {
			s.Profile.Features[name] = math.Log1p(1e6 * n[event] / n["instructions"])
		}
		out = append(out, s)
	}
	return out
}
