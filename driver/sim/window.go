package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	api "pitchpipe/exporter/api"
)

// schema names the columns of a simulated exporter.
const schema = "sim/1"

// mark is one progress mark of an attempt.
type mark struct {
	at     time.Duration // since the attempt began
	report api.Report
}

// mark notes what the listener reads out of a line, where it listens at all.
func (r *run) mark(now time.Time, line string) {
	j := r.job
	if j.progress == nil {
		return
	}
	found := j.progress.FindStringSubmatch(line)
	if found == nil {
		return
	}
	report := api.Report{Total: j.spec.Progress.Total, Time: now}
	for i, name := range j.progress.SubexpNames() {
		v, err := strconv.ParseFloat(found[i], 64)
		if err != nil {
			continue
		}
		switch name {
		case "epoch":
			report.Epoch = int(v)
		case "total":
			report.Total = int(v)
		case "loss":
			report.Loss = &v
		case "quality":
			report.Quality = &v
		}
	}
	if report.Epoch > 0 {
		r.marks = append(r.marks, mark{at: now.Sub(r.started), report: report})
	}
}

// Window is what an exporter on the job's node would answer: samples
// since the attempt began, a snapshot at each progress mark, and one when the
// attempt is gone. Attempt 0 is the latest. Samples up to the sequence number
// after are left out. An attempt that never began is driver.ErrNotFound. A job is
// named by its id, or by scheduler and id as in sim/1.
func (c *Cluster) Window(ctx context.Context, job string, attempt int, after uint64) (api.Window, error) {
	var out api.Window
	id := driver.JobID(strings.TrimPrefix(job, c.Name()+"/"))
	err := c.do(ctx, OpWindow, id, func() error {
		j, err := c.find(id)
		if err != nil {
			return err
		}
		if attempt == 0 {
			attempt = len(j.runs)
		}
		if attempt < 1 || attempt > len(j.runs) {
			return fmt.Errorf("%w: it has no attempt %d", driver.ErrNotFound, attempt)
		}
		out = c.window(j.runs[attempt-1], after)
		return nil
	})
	if err != nil {
		return api.Window{}, err
	}
	return out, nil
}

func (c *Cluster) window(r *run, after uint64) api.Window {
	w := api.Window{
		Job: api.Job{
			Manager: c.Name(), ID: string(r.job.view.ID), Attempt: r.number,
			Started: r.started, Ended: r.ended,
		},
		Schema: c.schema(),
		Source: c.cfg.EnergySource,
	}
	if s := r.job.act.EnergySource; s != "" {
		w.Source = s
	}
	interval := c.cfg.Interval
	end := c.now.Sub(r.started)
	if r.ended {
		end = r.course[len(r.course)-1].at
	}
	total := uint64(end/interval) + 1 + uint64(len(r.marks))
	if r.ended {
		total++
	}
	if ring := uint64(c.cfg.Ring); total > ring {
		w.Dropped = total - ring
	}
	after = max(after, w.Dropped)
	var seq uint64
	add := func(at time.Duration, m *api.Report, ended bool) {
		if seq++; seq > after {
			s := c.sample(r, at, ended)
			s.Seq, s.Mark, s.Ended = seq, m, ended
			w.Samples = append(w.Samples, s)
		}
	}
	marks := r.marks
	for tick := time.Duration(0); tick <= end; tick += interval {
		for len(marks) > 0 && marks[0].at < tick {
			add(marks[0].at, copyReport(marks[0].report), false)
			marks = marks[1:]
		}
		add(tick, nil, false)
	}
	for _, m := range marks {
		add(m.at, copyReport(m.report), false)
	}
	if r.ended {
		add(end, nil, true)
	}
	return w
}

// copyReport lets no caller write into the cluster's memory.
func copyReport(r api.Report) *api.Report {
	for _, p := range []**float64{&r.Loss, &r.Quality} {
		if *p != nil {
			v := **p
			*p = &v
		}
	}
	return &r
}

// sample is one reading at an instant since the attempt began. Gauges show what
// was until then, so that the mark of the last epoch still sees a process.
func (c *Cluster) sample(r *run, at time.Duration, ended bool) api.Sample {
	until := at - 1
	if ended {
		until = at
	}
	p := r.phaseAt(until)
	now := r.started.Add(at)
	values := make(map[string]float64, counters+8)
	sum := p.sumAt(at)
	for i, name := range counterColumns() {
		values[name] = sum[i]
	}
	busy0, steal0 := r.node.loadAt(r.started)
	busy, steal := r.node.loadAt(now)
	values[api.ColNodeBusy], values[api.ColNodeSteal] = busy-busy0, steal-steal0
	values[api.ColRSS], values[api.ColPeak] = p.rss, p.peak
	values[api.ColCache] = 16 << 20
	values[api.ColThreads] = float64(p.activity.threads)
	values[api.ColProcesses] = 0
	if p.activity.alive {
		values[api.ColProcesses] = 1
	}
	values[api.ColAllocatedCores] = float64(r.took.Cores)
	for _, name := range c.cfg.Denied {
		delete(values, name)
	}
	return api.Sample{Time: now, Values: values}
}

// schema is the name of the columns that are there.
func (c *Cluster) schema() string {
	if len(c.cfg.Denied) == 0 {
		return schema
	}
	return schema + " without " + strings.Join(slices.Sorted(slices.Values(c.cfg.Denied)), ",")
}

// Node is what the exporter of the first node says of its machine.
func (c *Cluster) Node(ctx context.Context) (api.Node, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return api.Node{}, err
	}
	return nodes[0], nil
}

// Nodes is what the exporters of all nodes say, in the order of Config.Nodes.
func (c *Cluster) Nodes(ctx context.Context) ([]api.Node, error) {
	var out []api.Node
	err := c.do(ctx, OpNode, "", func() error {
		for _, n := range c.nodes {
			out = append(out, c.describe(n.spec))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Cluster) describe(spec NodeSpec) api.Node {
	node := api.Node{
		Hostname: spec.Name, CPUModel: "simulated", Cores: spec.Cores, MemoryBytes: spec.MemoryBytes,
		MachineKind: spec.Kind, Schema: c.schema(), EnergySource: c.cfg.EnergySource, IntervalSecs: c.cfg.Interval.Seconds(),
	}
	for _, name := range []string{"cgroup/cpu", "cgroup/memory", "cgroup/pressure", "perf/software", "host/load", "energy/" + c.cfg.EnergySource} {
		node.Sources = append(node.Sources, api.Source{Name: name, Support: api.Supported, Reason: "simulated"})
	}
	for _, column := range c.cfg.Denied {
		node.Sources = append(node.Sources, api.Source{Name: "column/" + column, Support: api.Denied, Reason: "the simulation denies it"})
	}
	return node
}
