package metrics_test

import (
	"strconv"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/window"
)

// perfColumns are those of every event that has a name on any machine, of one that has
// not, and of a group.
func perfColumns() []window.Column {
	var out []window.Column
	for _, e := range perf.Catalogue() {
		if _, ok := api.EventOf(e.Column); ok {
			out = append(out, window.Column{Name: e.Column})
		}
	}
	return append(out, window.Column{Name: api.PerfEvent("msr/tsc/")},
		window.Column{Name: api.PerfEnabled("cpu-1")}, window.Column{Name: api.PerfRunning("cpu-1")})
}

func TestPerfEventsAreShownWithTheRatioOfTheirGroup(t *testing.T) {
	t.Parallel()
	h, err := metrics.Handler(full(t))
	if err != nil {
		t.Fatal(err)
	}
	page := scrape(t, h, nil)
	columns := append(window.Columns(), perfColumns()...)
	value := func(name string) string {
		for i, c := range columns {
			if c.Name == name {
				return strconv.Itoa(i + 1)
			}
		}
		return "?"
	}
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
