package daemon

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
)

// collector turns the counts of the records into metrics at each scrape; it decodes no record.
type collector struct{ d *Daemon }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	family := func(kind prometheus.ValueType, name, help string, labels ...string) func(v float64, values ...string) {
		desc := prometheus.NewDesc("pitchpipe_"+name, help, labels, nil)
		return func(v float64, values ...string) {
			for i, text := range values {
				values[i] = strings.ToValidUTF8(text, "\uFFFD") // users choose names, and a label of other bytes panics
			}
			ch <- prometheus.MustNewConstMetric(desc, kind, v, values...)
		}
	}
	gauge := func(name, help string, v float64) { family(prometheus.GaugeValue, name, help)(v) }
	counter := func(name, help string, v float64) { family(prometheus.CounterValue, name, help)(v) }

	gauge("leader", "1 where this controller leads, 0 where it stands by for another.", truth(c.d.candidate.leads() == nil))
	gauge("controller_pauses", "Pauses in force.", float64(len(c.d.pauses.list())))
	exporters := family(prometheus.GaugeValue, "controller_exporters", "Node exporters asked recently, by their answer.", "state")
	for state, n := range c.d.nodes.Count() {
		exporters(float64(n), state)
	}
	c.info(family)
	c.searches(family)
	if c.d.advisor != nil {
		count := map[[2]string]int{}
		for _, r := range c.d.advisor.Rows() {
			count[[2]string{string(r.What), string(r.State)}]++
		}
		advice := family(prometheus.GaugeValue, "controller_advice", "Pieces of advice to the scheduler about jobs that have not ended, by what they set and their outcome.", "what", "state")
		for k, n := range count {
			advice(float64(n), k[0], k[1])
		}
	}
	_, err := c.d.records.loadPruned()
	gauge("controller_records_readable", "1 when the durable state can be read.", truth(err == nil))
	if err != nil {
		return
	}
	sum := c.d.records.totals()
	jobs := family(prometheus.GaugeValue, "controller_jobs", "Jobs by the phase they are in, ended ones as long as their story is kept.", "phase")
	for _, p := range reconcile.Phases() {
		jobs(float64(sum.phases[p]), string(p))
	}
	holds := family(prometheus.GaugeValue, "controller_holds", "Jobs that have not ended and that the tuner leaves as they are, by its reason.", "reason")
	for reason, n := range sum.holds {
		holds(float64(n), string(reason))
	}
	outcomes := family(prometheus.CounterValue, "controller_outcomes_total", "Outcomes of tuned jobs by verdict.", "verdict")
	for _, v := range []tuning.Verdict{tuning.Improved, tuning.Neutral, tuning.Regressed, tuning.Inconclusive} {
		outcomes(float64(sum.Outcomes[v]), string(v))
	}
	counter("controller_saved_seconds_total", "Seconds that tuning saved, restarts and probes included, over the jobs that it made faster.", sum.Saved)
	counter("controller_lost_seconds_total", "Seconds that tuning cost, restarts and probes included, over the jobs that it made slower.", sum.Lost)
	counter("controller_restarts_total", "Moves and roll-backs carried out.", float64(sum.Restarts))
	counter("controller_probes_total", "Probes carried out.", float64(sum.Probes))
	gauge("controller_jobs_attention", "Jobs whose handling failed, or whose scheduler cannot be reached.", float64(sum.attention))
	if all, err := c.d.store.All(); err == nil {
		gauge("controller_observations", "Observations in the knowledge.", float64(len(all)))
	}
}

// searches are counted; each is named where the site allows it.
func (c collector) searches(family func(kind prometheus.ValueType, name, help string, labels ...string) func(v float64, values ...string)) {
	best := family(prometheus.GaugeValue, "search_best", "Best value that a search has found so far.", "search", "name", "user")
	count, joules, all := map[searcher.State]int{}, map[string]float64{}, c.d.searches.List(func(string) bool { return true })
	open := tuning.Count(all, func(x trials.State) bool { return !x.Over })
	for _, x := range all {
		s := shown(x).Searcher()
		for _, t := range s.Trials {
			count[t.State]++
			if used := t.Used(); used.Source != "" {
				joules[used.Source] += used.Measured()
			}
		}
		if r := s.Ranking(); len(r) > 0 && c.d.cfg.JobLabels {
			best(s.Best(r[0]).Value, x.ID, x.Name, x.Owner)
		}
	}
	searches := family(prometheus.GaugeValue, "searches", "Searches, ended ones as long as they are kept.", "state")
	searches(float64(open), "running")
	searches(float64(len(all)-open), "over")
	states := family(prometheus.GaugeValue, "search_trials", "Trials of these searches by state.", "state")
	for _, state := range searcher.States() {
		states(float64(count[state]), string(state))
	}
	energy := family(prometheus.GaugeValue, "search_joules", "Joules of the epochs of these trials that have some, by their source.", "source")
	for source, sum := range joules {
		energy(sum, source)
	}
}

// info names the jobs that have not ended, where the site allows it: every user of the machine
// may read /metrics. The labels manager and job_id are those of the exporter's metrics.
func (c collector) info(family func(kind prometheus.ValueType, name, help string, labels ...string) func(v float64, values ...string)) {
	if !c.d.cfg.JobLabels {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	jobs, err := c.d.driver.List(ctx)
	if err != nil {
		c.d.log.Debug("no names of jobs in /metrics", "error", err)
	}
	info := family(prometheus.GaugeValue, "controller_job_info", "Name, user and account of a job that has not ended, to join with the exporter's metrics; always 1.", "manager", "job_id", "name", "user", "account")
	for _, j := range jobs {
		if !j.State.Ended() {
			info(1, c.d.driver.Name(), cmp.Or(tuning.Last(j.Attempts).Unit, j.Alias, string(j.ID)), j.Name, j.Owner, j.Account)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
