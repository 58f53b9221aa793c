package models

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestFeaturesOfCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts map[string]float64
		want   map[string]float64
	}{
		"nothing counted":                    {nil, map[string]float64{}},
		"without instructions there is none": {map[string]float64{"cycles": 1, "branches": 2}, map[string]float64{}},
		"no instructions are none either":    {map[string]float64{"cycles": 1, "instructions": 0}, map[string]float64{}},
		"instructions alone say nothing":     {map[string]float64{"instructions": 7}, map[string]float64{}},
		"instructions per cycle":             {map[string]float64{"instructions": 6, "cycles": 3}, map[string]float64{"ipc": math.Log(2)}},
		"without cycles there is no ipc":     {map[string]float64{"instructions": 6, "cycles": 0}, map[string]float64{}},
		"a miss is 20 cycles":                {map[string]float64{"instructions": 1e6, "cache-misses": 1500}, map[string]float64{"cache-misses": math.Log(2000)}},
		"no misses are not missing":          {map[string]float64{"instructions": 1e6, "cache-misses": 0}, map[string]float64{"cache-misses": math.Log(500)}},
		"a fault is 1000 cycles":             {map[string]float64{"instructions": 1e6, "page-faults": 10}, map[string]float64{"page-faults": math.Log(20)}},
		"what cannot be a count is missing":  {map[string]float64{"instructions": 1, "a": -1, "b": math.NaN(), "c": math.Inf(1)}, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, countFeatures(c.counts), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("features (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALongerRunHasTheSameFeatures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		counts, longer := map[string]float64{}, map[string]float64{}
		times := float64(rapid.IntRange(1, 1000).Draw(t, "times"))
		for _, event := range []string{"instructions", "cycles", "branches", "dTLB-load-misses", "LLC-load-misses"} {
			counts[event] = rapid.Float64Range(1, 1e12).Draw(t, event)
			longer[event] = times * counts[event]
		}
		if diff := cmp.Diff(countFeatures(counts), countFeatures(longer), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("%v times as long:\n%s", times, diff)
		}
	})
}

func TestSchemasNameSetsOfEvents(t *testing.T) {
	t.Parallel()
	a := countSchema([]string{"cycles", "instructions"})
	if b := countSchema([]string{"instructions", "cycles", "cycles"}); a != b {
		t.Errorf("%s and %s: order and copies do not matter", a, b)
	}
	if b := countSchema([]string{"cycles", "instructions", "branches"}); a == b {
		t.Errorf("%s is the schema of two sets", a)
	}
}
