package metrics_test

import (
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

func TestASourceThatDoesNotAnswerIsDownSince(t *testing.T) {
	t.Parallel()
	node := api.Node{Cores: 2, Sources: []api.Source{
		{Name: "perf/task-clock", Support: api.Supported, Reason: "cgroup mode"},
		{Name: "perf/cycles", Support: api.Unsupported, Reason: "no PMU"},
		{Name: "cgroup/cpu", Support: api.Supported, Reason: "unified"},
	}}
	silent := []api.Source{{Name: "perf", Support: api.Supported, Reason: "does not answer since 2026-01-01T00:00:00Z"}}
	c := metrics.New("test", node, window.New(window.Config{}), func() *sampler.Snapshot { return &sampler.Snapshot{Silent: silent} })
	page := scrape(t, handler(t, c), nil)
	for _, want := range []string{
		`pitchpipe_source_up{source="perf/task-clock",support="supported",reason="does not answer since 2026-01-01T00:00:00Z"} 0`,
		`pitchpipe_source_up{source="perf/cycles",support="unsupported",reason="no PMU"} 0`,
		`pitchpipe_source_up{source="cgroup/cpu",support="supported",reason="unified"} 1`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}
