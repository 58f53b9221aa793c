package simulate

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// Rows sums a simulation up: a line for all jobs, and one for each partition where there are several. KEYS.md of
// controller/evaluate has the keys, under simulate.
func Rows(r Result) []evaluate.Line {
	out := []evaluate.Line{r.row("", r.Pools, r.Jobs)}
	if len(r.Pools) > 1 {
		out = append(out, tuning.Each(r.Pools, func(p *Pool) evaluate.Line { return r.row(p.Group, []*Pool{p}, p.jobs) })...)
	}
	return out
}

func (r Result) row(name string, pools []*Pool, jobs []*Job) evaluate.Line {
	var jct, wait, slowdown []float64
	killed := evaluate.Only(jobs, func(j *Job) bool { return j.Killed })
	requeued, units, used := 0, 0.0, 0.0
	first, last := math.Inf(1), math.Inf(-1)
	for _, j := range jobs {
		own := min(j.ran, j.duration) // the cost of stopping and sharing is not work of the job
		jct, wait, slowdown = append(jct, j.JCT()), append(wait, j.Wait), append(slowdown, Slowdown(j.JCT()-own, own))
		first, last, requeued = min(first, j.Submit), max(last, j.End), requeued+j.Preempted
	}
	for _, p := range pools {
		units, used = units+float64(p.Nodes*p.PerNode), used+p.used
	}
	quantile := func(q float64) evaluate.Figure {
		if len(wait) == 0 {
			return evaluate.Unknown()
		}
		return evaluate.Figure(tuning.Quantile(wait, q))
	}
	return evaluate.Line{
		"policy": r.Spec.Name, "partition": name, "jobs": len(jct), "mean_jct": evaluate.Mean(jct), "mean_wait": evaluate.Mean(wait),
		"p50_wait": quantile(0.5), "p95_wait": quantile(0.95), "p999_wait": quantile(0.999),
		"mean_bounded_slowdown": evaluate.Mean(slowdown), "utilisation": evaluate.Figure(used / (units * (last - first))),
		"killed": len(killed), "requeued": requeued, "cpu_seconds": evaluate.Unknown(),
	}
}

// Slowdown is the bounded slowdown of a job: its time in the system over its time of running alone and at one go, runs
// below 10 s taken as 10 s (Feitelson and Rudolph 1998).
func Slowdown(lost, ran float64) float64 { return max(1, (lost+ran)/max(ran, leastRun)) }

// WriteJobs writes a CSV with a line for each job, in the order of the log. Its columns are those that Lucid's simulator
// has: gpu_num are the units, GPUs or cores, and ckpt_times counts preemptions.
func WriteJobs(w io.Writer, r Result) error {
	lines := [][]string{append([]string{"job_id", "vc", "gpu_num", "submit_time", "duration", "start_time", "end_time", "queue", "jct", "ckpt_times"}, r.Spec.Columns...)}
	cell := func(v float64) string {
		if math.IsNaN(v) || math.IsInf(v, 0) { // no limit, too
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	for _, j := range r.Jobs {
		row := []string{
			j.ID, j.Group, strconv.Itoa(j.Units), cell(j.Submit), cell(j.duration), cell(j.First), cell(j.End), cell(j.Wait), cell(j.JCT()), strconv.Itoa(j.Preempted),
		}
		if r.Spec.Cells != nil {
			row = append(row, tuning.Each(r.Spec.Cells(j), cell)...)
		}
		lines = append(lines, row)
	}
	if err := csv.NewWriter(w).WriteAll(lines); err != nil {
		return fmt.Errorf("write the jobs: %w", err)
	}
	return nil
}
