package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
)

func TestASchemaSaysWhichEventsThereAre(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("event-%d", i))
	}
	for _, tc := range []struct {
		events []string
		want   string
	}{
		{nil, api.SchemaSoftware},
		{[]string{"instructions", "cycles", "cycles"}, "perf/1:cycles,instructions"},
		{many, "perf/1:40-events-"},
	} {
		if got := api.SchemaWith(tc.events); !strings.HasPrefix(got, tc.want) || len(got) > 100 {
			t.Errorf("%v: %q, want %q", tc.events, got, tc.want)
		}
	}
}

func TestSchemasAreEqualWhereTheEventsAre(t *testing.T) {
	t.Parallel()
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,12}(-misses)?`), 0, 30, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		a := names.Draw(t, "events")
		b := slices.Clone(a)
		slices.Reverse(b)
		if api.SchemaWith(a) != api.SchemaWith(b) {
			t.Fatalf("the order counts: %q, %q", api.SchemaWith(a), api.SchemaWith(b))
		}
		c := names.Draw(t, "others")
		slices.Sort(b)
		if equal := slices.Equal(b, slices.Sorted(slices.Values(c))); equal != (api.SchemaWith(a) == api.SchemaWith(c)) {
			t.Fatalf("%v and %v: %q, %q", a, c, api.SchemaWith(a), api.SchemaWith(c))
		}
	})
}

func TestColumnsOfEventsAndGroupsAreToldApart(t *testing.T) {
	t.Parallel()
	if name, ok := api.EventOf(api.PerfEvent("cpu/mem-loads/")); !ok || name != "cpu/mem-loads/" {
		t.Errorf("event %q, %v", name, ok)
	}
	if group, ok := api.GroupOf(api.PerfEnabled("cpu-2")); !ok || group != "cpu-2" {
		t.Errorf("group %q, %v", group, ok)
	}
	for _, column := range []string{api.ColPerfEnabled, api.ColPerfRunning, api.PerfRunning("cpu-1"), api.ColCPUSeconds} {
		if _, ok := api.EventOf(column); ok {
			t.Errorf("%s is taken for an event", column)
		}
		if _, ok := api.GroupOf(column); ok {
			t.Errorf("%s is taken for a group", column)
		}
	}
}
