package metrics_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/metrics"
)

// columns are all that have a family, an event that has none, and those of a group.
func columns() (out []string) {
	for _, m := range metrics.Table() {
		if m.Column != "" {
			out = append(out, m.Column)
		}
	}
	return append(out, api.PerfEvent("msr/tsc/"), api.PerfEnabled("cpu-1"), api.PerfRunning("cpu-1"))
}

// value is what full has in a column.
func value(column string) string { return strconv.Itoa(slices.Index(columns(), column) + 1) }

func TestPerfEventsAreShownWithTheRatioOfTheirGroup(t *testing.T) {
	t.Parallel()
	h := metrics.Handler(full(t))
	page := scrape(t, h)
	of := `{manager="local",job_id="7",attempt="2"`
	for _, want := range []string{
		"pitchpipe_job_perf_instructions_total" + of + "} " + value(api.PerfEvent("instructions")),
		"pitchpipe_job_perf_cache_refs_total" + of + "} " + value(api.PerfEvent("cache-references")),
		"pitchpipe_job_perf_llc_load_misses_total" + of + "} " + value(api.PerfEvent("LLC-load-misses")),
		"pitchpipe_job_perf_other_events_total" + of + `,event="msr/tsc/"} ` + value(api.PerfEvent("msr/tsc/")),
		"pitchpipe_job_perf_group_enabled_seconds_total" + of + `,group="cpu-1"} ` + value(api.PerfEnabled("cpu-1")),
		"pitchpipe_job_perf_multiplex_ratio" + of + `,group="cpu-1"} 1.`,
		`pitchpipe_perf_event_info{event="task-clock",group="cpu-1"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if n := strings.Count(page, "\npitchpipe_job_perf_other_events_total{"); n != 1 {
		t.Errorf("%d events without a family of their own, want 1", n)
	}
}
