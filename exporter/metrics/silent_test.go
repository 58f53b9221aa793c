package metrics_test

import (
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
)

func TestASourceThatDoesNotAnswerIsDownAndHasNoTimeInItsLabels(t *testing.T) {
	t.Parallel()
	about := api.Node{Cores: 2, Sources: []api.Source{
		{Name: "perf/task-clock", Support: api.Supported, Silent: true, Reason: "does not answer since 2026-01-01T00:00:00Z"},
		{Name: "perf/cycles", Support: api.Unsupported, Reason: "no PMU"},
		{Name: "cgroup/cpu", Support: api.Supported, Reason: "unified"},
	}}
	c := page(func() api.Node { return about }, func() *sampler.Snapshot { return &sampler.Snapshot{} })
	page := scrape(t, metrics.Handler(c))
	for _, want := range []string{
		`pitchpipe_source_up{source="perf/task-clock",support="supported",reason="does not answer"} 0`,
		`pitchpipe_source_up{source="perf/cycles",support="unsupported",reason="no PMU"} 0`,
		`pitchpipe_source_up{source="cgroup/cpu",support="supported",reason="unified"} 1`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}

func TestThePageTellsTheNodeAsItIsNow(t *testing.T) {
	t.Parallel()
	now := api.Node{Cores: 2, Sources: []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "no driver yet"}}}
	snap := &sampler.Snapshot{}
	h := metrics.Handler(page(func() api.Node { return now }, func() *sampler.Snapshot { return snap }))
	if page := scrape(t, h); !strings.Contains(page, `reason="no driver yet"} 0`) || !strings.Contains(page, "pitchpipe_node_cores 2\n") {
		t.Error(page)
	}
	now.Sources = []api.Source{{Name: "gpu/nvidia", Support: api.Supported, Reason: "1 GPUs by helper"}}
	snap = &sampler.Snapshot{CPU: node.CPU{Cores: 1}} // one went offline
	if page := scrape(t, h); !strings.Contains(page, `support="supported",reason="1 GPUs by helper"} 1`) || !strings.Contains(page, "pitchpipe_node_cores 1\n") {
		t.Error(page)
	}
}
