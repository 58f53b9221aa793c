package metrics

import (
	"maps"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/window"
)

const (
	perfInfo    = "pitchpipe_perf_event_info"
	perfOthers  = "pitchpipe_job_perf_other_events_total"
	perfEnabled = "pitchpipe_job_perf_group_enabled_seconds_total"
	perfRunning = "pitchpipe_job_perf_group_running_seconds_total"
	perfRatio   = "pitchpipe_job_perf_multiplex_ratio"
)

// perfTable lists the families of the perf events that an administrator may choose.
func perfTable() []Metric {
	var out []Metric
	for _, e := range perf.Catalogue() {
		if e.Metric != "" {
			out = append(out, Metric{"pitchpipe_job_perf_" + e.Metric + "_total", "counter", e.Help + " Perf event " + e.Name + ".", job(), e.Column})
		}
	}
	return append(out,
		Metric{perfOthers, "counter", "Perf events that only some machines name: those of a PMU and tracepoints.", job("event"), ""},
		Metric{perfEnabled, "counter", "Time for which a group of perf events was enabled, summed over CPUs.", job("group"), ""},
		Metric{perfRunning, "counter", "Time for which a group of perf events counted; what it counted is scaled up by enabled over running time.", job("group"), ""},
		Metric{perfRatio, "gauge", "Part of its enabled time for which a group of perf events counted: 1 = all of it, 0 = nothing is known of its events.", job("group"), ""},
		Metric{perfInfo, "gauge", "Which perf events this node counts, and in which group; always 1.", []string{"event", "group"}, ""},
	)
}

// addPerfNode tells the groups of the node's perf events.
func (c *Collector) addPerfNode(p points, about api.Node) {
	for _, s := range about.Sources {
		if name, ok := api.EventOf(s.Name); ok && s.Group != "" {
			c.add(p, perfInfo, 1, name, s.Group)
		}
	}
}

// addPerfJob tells what has no family of its own.
func (c *Collector) addPerfJob(add func(name string, v float64, more ...string), l window.Latest) {
	for _, column := range slices.Sorted(maps.Keys(l.Values)) {
		if !strings.Contains(column, "/") {
			continue
		}
		v := l.Values[column]
		if name, ok := api.EventOf(column); ok && !slices.ContainsFunc(c.table, func(m Metric) bool { return m.Column == column }) {
			add(perfOthers, v, "event", name)
		}
		if group, ok := api.GroupOf(column); ok {
			running := l.Values[api.PerfRunning(group)]
			add(perfEnabled, v, "group", group)
			add(perfRunning, running, "group", group)
			if v > 0 {
				add(perfRatio, running/v, "group", group)
			}
		}
	}
}
