package metrics

import (
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/perf"
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

// addPerfNode writes the groups of the node's perf events.
func (s *pages) addPerfNode(about api.Node) {
	for _, source := range about.Sources {
		if name, ok := api.EventOf(source.Name); ok && source.Group != "" {
			s.addPlain(perfInfo, 1, name, source.Group)
		}
	}
}
