package sim

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	api "pitchpipe/exporter/api"
)

const (
	schema = "sim/1" // names the columns
	ring   = 4096    // samples of an attempt that are kept
)

// mark notes what the listener reads out of a line, where it listens at all.
func (r *run) mark(now time.Time, line string) {
	if r.job.progress == nil {
		return
	}
	found := r.job.progress.FindStringSubmatch(line)
	if found == nil {
		return
	}
	report := api.Report{Total: r.job.spec.Progress.Total, Time: now}
	for i, name := range r.job.progress.SubexpNames() {
		v, err := strconv.ParseFloat(found[i], 64)
		switch {
		case err != nil:
		case name == "epoch":
			report.Epoch = int(v)
		case name == "total":
			report.Total = int(v)
		case name == "loss":
			report.Loss = &v
		case name == "quality":
			report.Quality = &v
		}
	}
	if report.Epoch > 0 {
		r.marks = append(r.marks, report)
	}
}

// Window is what an exporter on the job's node would answer: samples
// since the attempt began, a snapshot at each progress mark, and one when the
// attempt is gone. Attempt 0 is the latest. Samples up to the sequence number
// after are left out. An attempt that never began is driver.ErrNotFound. A job is
// named by its id, or by scheduler and id as in sim/1.
func (c *Cluster) Window(ctx context.Context, name string, attempt int, after uint64) (api.Window, error) {
	id := driver.JobID(strings.TrimPrefix(name, c.Name()+"/"))
	return about(ctx, c, OpWindow, id, func(j *job) (api.Window, error) {
		n := attempt
		if n == 0 {
			n = len(j.runs)
		}
		if n < 1 || n > len(j.runs) {
			return api.Window{}, fmt.Errorf("%w: it has no attempt %d", driver.ErrNotFound, n)
		}
		return c.window(j.runs[n-1], after), nil
	})
}

// ReportFor takes no reports: its jobs report by themselves.
func (*Cluster) ReportFor(context.Context, string, int, api.Report) error { return api.ErrInvalid }

// SetBudget has no use for a budget.
func (*Cluster) SetBudget(context.Context, string, int, api.Budget) error { return nil }

func (c *Cluster) window(r *run, after uint64) api.Window {
	w := api.Window{
		Job: api.Job{
			Manager: c.Name(), ID: string(r.job.view.ID), Attempt: r.number,
			Started: r.started, Ended: r.ended, Heard: r.started,
		},
		Schema: schema,
		Source: c.cfg.EnergySource,
	}
	end := c.now
	if r.ended {
		end = r.course[len(r.course)-1].at
	}
	total := uint64(end.Sub(r.started)/c.cfg.Interval) + 1 + uint64(len(r.marks))
	if r.ended {
		total++
	}
	if total > ring {
		w.Dropped = total - ring
	}
	after = max(after, w.Dropped)
	var seq uint64
	add := func(at time.Time, m *api.Report, ended bool) {
		if seq++; seq > after {
			s := c.sample(r, at, ended)
			s.Seq, s.Mark, s.Ended = seq, m, ended
			w.Samples = append(w.Samples, s)
		}
	}
	marks := r.marks
	for tick := r.started; !tick.After(end); tick = tick.Add(c.cfg.Interval) {
		for len(marks) > 0 && marks[0].Time.Before(tick) {
			add(marks[0].Time, copyReport(marks[0]), false)
			marks = marks[1:]
		}
		add(tick, nil, false)
	}
	for _, m := range marks {
		add(m.Time, copyReport(m), false)
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

// sample is one reading. Gauges show what was until then, so that the mark of the last epoch
// still sees a process.
func (c *Cluster) sample(r *run, at time.Time, ended bool) api.Sample {
	until := at.Add(-1)
	if ended {
		until = at
	}
	p := r.course.phaseAt(until)
	values := make(map[string]float64, counters+8)
	sum := p.sumAt(at)
	for i, name := range counterColumns() {
		values[name] = sum[i]
	}
	before, load := r.node.loadAt(r.started), r.node.loadAt(at)
	values[api.ColNodeBusy], values[api.ColNodeSteal] = load[nodeBusy]-before[nodeBusy], load[nodeSteal]-before[nodeSteal]
	values[api.ColRSS], values[api.ColPeak] = p.rss, p.peak
	values[api.ColCache] = 16 << 20
	values[api.ColThreads] = float64(p.threads)
	values[api.ColProcesses] = 0
	if p.alive {
		values[api.ColProcesses] = 1
	}
	values[api.ColAllocatedCores] = float64(r.took.Cores)
	return api.Sample{Time: at, Values: values}
}

// Node is what the exporter of the first node says about its machine.
func (c *Cluster) Node(ctx context.Context) (api.Node, error) {
	return do(ctx, c, OpNode, "", func() (api.Node, error) {
		spec := c.nodes[0].spec
		node := api.Node{
			Hostname: spec.Name, CPUModel: "simulated", Cores: spec.Cores, MemoryBytes: spec.MemoryBytes,
			MachineKind: spec.Kind, Schema: schema, EnergySource: c.cfg.EnergySource, IntervalSecs: c.cfg.Interval.Seconds(),
		}
		for _, name := range []string{"cgroup/cpu", "cgroup/memory", "cgroup/pressure", "perf/software", "host/load", "energy/" + c.cfg.EnergySource} {
			node.Sources = append(node.Sources, api.Source{Name: name, Support: api.Supported, Reason: "simulated"})
		}
		return node, nil
	})
}
