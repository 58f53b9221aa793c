package metrics_test

import (
	"cmp"
	"fmt"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/metrics"
)

// other is what a metric is called by other exporters.
type other struct {
	Name         string
	Zone         string // of powercap, as a regular expression; empty = the metric has none
	NodeExporter string // empty = it has no such metric
	CEEMS        string
	Note         string
}

// elsewhere maps our names to those of node_exporter 1.x and of CEEMS 0.10.
func elsewhere() []other {
	const zone = "pitchpipe_node_zone_energy_joules_total"
	out := []other{
		{zone, "package-.*", "node_rapl_package_joules_total", "ceems_rapl_package_joules_total", "ours is repaired across wraps"},
		{zone, "dram", "node_rapl_dram_joules_total", "ceems_rapl_dram_joules_total", ""},
		{zone, "core", "node_rapl_core_joules_total", "ceems_rapl_core_joules_total", ""},
		{zone, "uncore", "node_rapl_uncore_joules_total", "ceems_rapl_uncore_joules_total", ""},
		{zone, "psys", "node_rapl_psys_joules_total", "ceems_rapl_psys_joules_total", ""},
		{"pitchpipe_node_load1", "", "node_load1", "", ""},
		{"pitchpipe_node_memory_bytes", "", "node_memory_MemTotal_bytes", "ceems_meminfo_MemTotal_bytes", ""},
		{"pitchpipe_jobs_running", "", "", "ceems_compute_units", ""},
	}
	ceems := map[string]string{
		api.ColUserSeconds: "ceems_compute_unit_cpu_user_seconds_total", api.ColSystemSeconds: "ceems_compute_unit_cpu_system_seconds_total",
		api.ColAllocatedCores: "ceems_compute_unit_cpus", api.ColRSS: "ceems_compute_unit_memory_rss_bytes",
		api.ColCache: "ceems_compute_unit_memory_cache_bytes", api.ColCPUPressure: "ceems_compute_unit_cpu_psi_seconds",
		api.ColMemoryPressure: "ceems_compute_unit_memory_psi_seconds", api.ColContextSwitch: "ceems_perf_context_switches_total",
		api.ColMigrations: "ceems_perf_cpu_migrations_total", api.ColMinorFaults: "ceems_perf_minor_faults_total",
		api.ColMajorFaults: "ceems_perf_major_faults_total",
	}
	for _, m := range metrics.Table() {
		if name := ceems[m.Column]; name != "" && m.Column != "" {
			out = append(out, other{Name: m.Name, CEEMS: name})
		}
	}
	return out
}

func elsewherePage() string {
	var b strings.Builder
	b.WriteString("\n## Names elsewhere\n\nDashboards made for node_exporter and CEEMS work on a second scrape with other names: " +
		"`exporter/rules/compat.scrape.yml` has both scrape jobs, with these names. " +
		"What is not there has no counterpart: CEEMS has no counter of a job's joules, only rules for its watts, " +
		"whose like is `sum by (manager, job_id) (rate(pitchpipe_job_energy_joules_total[5m]))`.\n\n" +
		"| metric | node_exporter | CEEMS | note |\n|---|---|---|---|\n")
	for _, o := range elsewhere() {
		name := "`" + o.Name + "`"
		if o.Zone != "" {
			name = "`" + o.Name + "{zone=~\"" + o.Zone + "\"}`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, quoted(o.NodeExporter), quoted(o.CEEMS), o.Note)
	}
	return b.String()
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}

// relabelling prints a configuration of Prometheus that scrapes an exporter under the
// names that others use.
func relabelling() string {
	var b strings.Builder
	b.WriteString(`# For dashboards made for node_exporter or CEEMS: the same exporter once more, what they
# know alone, under their names. Add the job that you need to scrape_configs, with your
# targets. Generated from exporter/metrics/pages_test.go by
# go test ./exporter/metrics -update.
scrape_configs:
`)
	scrapeJob(&b, "pitchpipe-as-node-exporter", func(o other) string { return o.NodeExporter }, `      - {source_labels: [path], regex: '(?:intel-rapl(?:-mmio)?|power):(\d+).*', target_label: index, replacement: '$1'}
      - {source_labels: [path], regex: '(intel-rapl.*)', target_label: path, replacement: '/sys/class/powercap/$1'}
      - {regex: 'zone|counted', action: labeldrop}
`)
	scrapeJob(&b, "pitchpipe-as-ceems", func(o other) string { return o.CEEMS }, `      - {source_labels: [path], regex: '(?:intel-rapl(?:-mmio)?|power):(\d+).*', target_label: index, replacement: '$1'}
      - {source_labels: [job_id], regex: '(.+)', target_label: uuid, replacement: '$1'}
      - {source_labels: [instance], regex: '([^:]+)(?::\d+)?', target_label: hostname, replacement: '$1'}
      - {regex: 'zone|counted|job_id', action: labeldrop}
`)
	return b.String()
}

func scrapeJob(b *strings.Builder, name string, of func(other) string, labels string) {
	fmt.Fprintf(b, "  - job_name: %s\n    static_configs: [{targets: [\"127.0.0.1:9820\"]}]\n    metric_relabel_configs:\n", name)
	var keep []string
	var rules strings.Builder
	for _, o := range elsewhere() {
		name := of(o)
		if name == "" {
			continue
		}
		keep = append(keep, name)
		fmt.Fprintf(&rules, "      - {source_labels: [__name__, zone], regex: '%s;%s', target_label: __name__, replacement: %s}\n", o.Name, cmp.Or(o.Zone, ".*"), name)
	}
	b.WriteString(rules.String())
	fmt.Fprintf(b, "      - {source_labels: [__name__], regex: '%s', action: keep}\n", strings.Join(keep, "|"))
	b.WriteString(labels)
}

// reference prints the tables as the reference page.
func reference() string {
	var b strings.Builder
	b.WriteString("# Metrics of pitchpipe-exporter\n\nGenerated from `exporter/metrics` by `go test ./exporter/metrics -update`. " +
		"Base units only; counters of a job begin at 0 with its attempt. No label is called `job`. " +
		"Of jobs each user of the machine sees their own; root, the accounts of `--api.readers` and callers over TLS see all, and with `--web.jobs=all` everybody does. " +
		"The page is made once per sample (`--sampling.interval`) and served from memory: to ask more often shows nothing more and costs next to nothing.\n\n" +
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics.Table() {
		labels := make([]string, 0, len(m.Labels))
		for _, l := range m.Labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(labels, " "), m.Help)
	}
	b.WriteString(elsewherePage())
	return b.String()
}
