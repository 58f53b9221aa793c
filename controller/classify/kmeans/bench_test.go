package kmeans_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/classify/kmeans"
)

const (
	benchKinds    = 16
	benchFeatures = 60
)

// profiles draws points like averaged profiles: kinds that are separate in some
// features and overlap in others, and noise of one unit.
func profiles(n int) [][]float64 {
	rng := source(42)
	centers := make([][]float64, benchKinds)
	for c := range centers {
		for range benchFeatures {
			centers[c] = append(centers[c], 1.5*rng.NormFloat64())
		}
	}
	out := make([][]float64, n)
	for i := range out {
		for _, v := range centers[rng.IntN(benchKinds)] {
			out[i] = append(out[i], v+rng.NormFloat64())
		}
	}
	return out
}

func benchSizes() []int { return []int{1000, 10_000, 100_000} }

func BenchmarkCluster(b *testing.B) {
	for _, n := range benchSizes() {
		points := profiles(n)
		b.Run(fmt.Sprintf("%d profiles of %d features", n, benchFeatures), func(b *testing.B) {
			for b.Loop() {
				kmeans.Cluster(points, points[:benchKinds], 300)
			}
		})
	}
}

// TestForComparison writes what scripts/bench-kmeans compares with another program:
// the points as rows of little-endian floats, and what Cluster took and reached.
func TestForComparison(t *testing.T) {
	dir := os.Getenv("PITCHPIPE_KMEANS_BENCH")
	if dir == "" {
		t.Skip("PITCHPIPE_KMEANS_BENCH names no folder: scripts/bench-kmeans runs this")
	}
	type row struct {
		N        int     `json:"n"`
		Features int     `json:"features"`
		K        int     `json:"k"`
		Seconds  float64 `json:"seconds"`
		Inertia  float64 `json:"inertia"`
	}
	var rows []row
	for _, n := range benchSizes() {
		points := profiles(n)
		var raw bytes.Buffer
		for _, p := range points {
			if err := binary.Write(&raw, binary.LittleEndian, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.f64", n)), raw.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		best := row{N: n, Features: benchFeatures, K: benchKinds}
		for try := range 3 {
			start := time.Now()
			r := kmeans.Cluster(points, points[:benchKinds], 300)
			if took := time.Since(start).Seconds(); try == 0 || took < best.Seconds {
				best.Seconds, best.Inertia = took, r.Inertia
			}
		}
		rows = append(rows, best)
	}
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ours.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
