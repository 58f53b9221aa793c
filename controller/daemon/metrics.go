package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// collector turns what is counted of the records into metrics when it is scraped;
// it decodes none.
type collector struct {
	d         *Daemon
	jobs      *prometheus.Desc
	attention *prometheus.Desc
	restarts  *prometheus.Desc
	probes    *prometheus.Desc
	outcomes  *prometheus.Desc
	saved     *prometheus.Desc
	lost      *prometheus.Desc
	paused    *prometheus.Desc
	observed  *prometheus.Desc
	up        *prometheus.Desc
	exporters *prometheus.Desc
	leader    *prometheus.Desc
}

func newCollector(d *Daemon) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pitchpipe_controller_"+name, help, labels, nil)
	}
	return &collector{
		d:         d,
		jobs:      desc("jobs", "Jobs by the phase they are in, ended ones as long as their story is kept.", "phase"),
		attention: desc("jobs_attention", "Jobs whose handling failed, or whose scheduler cannot be reached."),
		restarts:  desc("restarts_total", "Moves and roll-backs carried out."),
		probes:    desc("probes_total", "Probes carried out."),
		outcomes:  desc("outcomes_total", "Outcomes of tuned jobs by verdict.", "verdict"),
		saved:     desc("saved_seconds_total", "Seconds that tuning saved, restarts and probes included, over the jobs that it made faster."),
		lost:      desc("lost_seconds_total", "Seconds that tuning cost, restarts and probes included, over the jobs that it made slower."),
		paused:    desc("pauses", "Pauses in force."),
		observed:  desc("observations", "Observations in the knowledge."),
		up:        desc("records_readable", "1 when the durable state can be read."),
		exporters: desc("exporters", "Exporters of nodes that were asked lately, by how they took it.", "state"),
		leader:    prometheus.NewDesc("pitchpipe_leader", "1 where this controller leads, 0 where it stands by for another.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	leads := 0.0
	if c.d.candidate.leads() == nil {
		leads = 1
	}
	gauge(c.leader, leads)
	gauge(c.paused, float64(len(c.d.pauses.list())))
	for state, n := range c.d.services.nodes.Count() {
		gauge(c.exporters, float64(n), state)
	}
	if err := c.d.records.readable(); err != nil {
		gauge(c.up, 0)
		return
	}
	gauge(c.up, 1)
	phases, attention, sum := c.d.records.totals()
	for _, p := range reconcile.Phases() {
		gauge(c.jobs, float64(phases[p]), string(p))
	}
	for _, v := range []tuning.Verdict{tuning.Improved, tuning.Neutral, tuning.Regressed, tuning.Inconclusive} {
		counter(c.outcomes, float64(sum.Outcomes[v]), string(v))
	}
	counter(c.saved, sum.Saved)
	counter(c.lost, sum.Lost)
	gauge(c.attention, float64(attention))
	counter(c.restarts, float64(sum.Restarts))
	counter(c.probes, float64(sum.Probes))
	if all, err := c.d.store.All(); err == nil {
		gauge(c.observed, float64(len(all)))
	}
}
