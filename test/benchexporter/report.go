package benchexporter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"pitchpipe/test/measure"
)

// Scrapes are requests of one kind.
type Scrapes struct {
	Times []time.Duration // sorted
	Bytes int             // of one, compressed
	CPU   float64         // seconds per 1000, what sampling took left out
}

// Cost is what one program took.
type Cost struct {
	Series      int
	Sampling    float64 // of a core
	Fast        Scrapes // one after the other
	Spaced      Scrapes // more than a second apart
	RSS, Peak   int64
	Descriptors int
	Binary      int64
}

// Report is what was measured.
type Report struct {
	Machine      measure.Machine
	Workload     Workload
	Seen         int // jobs that the exporter saw, those of others on this machine included
	Exporter     Cost
	NodeExporter *Cost // nil = it was not measured
}

// Workload is what runs on the node while the exporter is measured, and the bars that the
// exporter has to meet under it.
type Workload struct {
	Jobs, Processes int // processes of each job
	Bars            Bars
}

// Bars are upper limits; 0 = none.
type Bars struct {
	Scrape, NewSample float64 // ms, median
	CPU               float64 // seconds per 1000 scrapes
	Sampling          float64 // % of a core
	RSS, Binary       float64 // MB
}

// Workloads are those that the exporter is measured under.
func Workloads() []Workload {
	return []Workload{
		{10, 16, Bars{Scrape: 1, CPU: 0.6, Sampling: 1, RSS: 25, Binary: 15}},
		{400, 2, Bars{NewSample: 12, Sampling: 4, RSS: 50, Binary: 15}},
	}
}

// Print writes the report as a table.
func (r Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush tells
	line("%s", r.Machine.Heading())
	line("%d jobs of %d processes, perf on, two simulated packages with DRAM", r.Workload.Jobs, r.Workload.Processes)
	if r.Seen != r.Workload.Jobs {
		line("the exporter saw %d jobs, those of others on this machine included", r.Seen)
	}
	line("")
	line("\tpitchpipe-exporter\tnode_exporter\tratio\tasked for")
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	bars := r.Workload.Bars
	for _, row := range []struct {
		name, form string
		bar        float64
		of         func(Cost) float64
	}{
		{"scrape p50, ms", "%.2f", bars.Scrape, func(c Cost) float64 { return ms(measure.Quantile(c.Fast.Times, 0.5)) }},
		{"scrape p99, ms", "%.2f", 0, func(c Cost) float64 { return ms(measure.Quantile(c.Fast.Times, 0.99)) }},
		{"CPU per 1000 scrapes, s", "%.3f", bars.CPU, func(c Cost) float64 { return c.Fast.CPU }},
		{"scrape of a new sample p50, ms", "%.2f", bars.NewSample, func(c Cost) float64 { return ms(measure.Quantile(c.Spaced.Times, 0.5)) }},
		{"CPU per 1000 of new samples, s", "%.3f", 0, func(c Cost) float64 { return c.Spaced.CPU }},
		{"sampling at 1 Hz, % of a core", "%.2f", bars.Sampling, func(c Cost) float64 { return 100 * c.Sampling }},
		{"memory (RSS), MB", "%.1f", bars.RSS, func(c Cost) float64 { return float64(c.RSS) / 1e6 }},
		{"peak memory, MB", "%.1f", 0, func(c Cost) float64 { return float64(c.Peak) / 1e6 }},
		{"file descriptors", "%.0f", 0, func(c Cost) float64 { return float64(c.Descriptors) }},
		{"program, MB", "%.1f", bars.Binary, func(c Cost) float64 { return float64(c.Binary) / 1e6 }},
		{"series", "%.0f", 0, func(c Cost) float64 { return float64(c.Series) }},
		{"bytes of a page, compressed", "%.0f", 0, func(c Cost) float64 { return float64(c.Fast.Bytes) }},
	} {
		value := row.of(r.Exporter)
		other, ratio, asked := "-", "-", ""
		if r.NodeExporter != nil {
			v := row.of(*r.NodeExporter)
			other = fmt.Sprintf(row.form, v)
			if v > 0 {
				ratio = fmt.Sprintf("%.2f", value/v)
			}
		}
		switch {
		case row.bar > 0 && value > row.bar:
			asked = fmt.Sprintf("%v, missed", row.bar)
		case row.bar > 0:
			asked = fmt.Sprintf("%v", row.bar)
		}
		line("%s\t"+row.form+"\t%s\t%s\t%s", row.name, value, other, ratio, asked)
	}
	if r.NodeExporter == nil {
		line("node_exporter was not measured; scripts/setup-node-exporter fetches it")
	}
	return w.Flush()
}

// cpuOf is the CPU time of a process in the scheduler's nanoseconds; of its threads those
// that live.
func cpuOf(pid int) (sum time.Duration, err error) {
	threads, err := procfs.AllThreads(pid)
	for _, t := range threads {
		stat, err := t.Schedstat()
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may just have ended
			return 0, err
		}
		sum += time.Duration(stat.RunningNanoseconds) //nolint:gosec // less than a century
	}
	if sum == 0 && err == nil { // a kernel without schedstat
		used, err := measure.Used(pid)
		return used.CPU, err
	}
	return sum, err
}
