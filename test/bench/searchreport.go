package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/test/measure"
)

// The bars of a search.
const (
	mostShare    = 5.0         // percent of a core
	mostMemory   = 150_000_000 // bytes
	longDecision = 0.01        // seconds
)

// searchReport is what was measured.
type searchReport struct {
	machine       measure.Machine
	took          time.Duration
	all, ours     float64 // seconds of CPU: of this process, and without the simulated cluster
	before        measure.Use
	use           measure.Use
	written       int64 // bytes
	database      int64
	reports, jobs int
	queued        int // jobs at most that waited at one time, as a user saw it
	quickest      float64
	state         trials.State
	seconds       map[string]took
	answer        int // bytes of the state
}

// took are the times of one kind of work, from a histogram.
type took struct {
	n, late uint64  // in all, and longer than longDecision
	mean    float64 // seconds
	most    float64 // none took longer; +Inf: longer than the last bucket
}

// times reads how long decisions and rounds took.
func (r *searchReport) times(ctx context.Context, h http.Handler) error {
	var text []byte
	if _, err := ask(ctx, h, http.MethodGet, api.PathMetrics, nil, &text); err != nil {
		return err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.seconds = map[string]took{}
	for _, m := range families["pitchpipe_search_seconds"].GetMetric() {
		x := m.GetHistogram()
		t := took{n: x.GetSampleCount(), mean: x.GetSampleSum() / max(float64(x.GetSampleCount()), 1), most: math.Inf(1)}
		for _, bucket := range x.GetBucket() {
			if bucket.GetUpperBound() == longDecision {
				t.late = t.n - bucket.GetCumulativeCount()
			}
			if bucket.GetCumulativeCount() == t.n {
				t.most = min(t.most, bucket.GetUpperBound())
			}
		}
		for _, label := range m.GetLabel() {
			r.seconds[label.GetValue()] = t
		}
	}
	return nil
}

// print writes the report.
func (r searchReport) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush has the error
	line("a simulated cluster, %s", r.machine.Heading())
	done := map[searcher.State]int{}
	for _, t := range r.state.Trials {
		done[t.State]++
	}
	line("%d trials with parallel=%d in %v: %d reports of epochs, %d jobs, %d waited at one time at most", len(r.state.Trials), r.state.Plan.Parallel, r.took.Round(time.Second), r.reports, r.jobs, r.queued)
	line("trials: %v; best %.4g", done, best(r.state))
	line("submissions\t%.2f a second\t%.2f in the quickest ten seconds", float64(r.jobs)/r.took.Seconds(), r.quickest)
	line("CPU\t%.2f %% of a core\t%.1f s; with the simulated cluster and the user %.1f s", 100*r.ours/r.took.Seconds(), r.ours, r.all)
	line("memory\t%d MiB at its peak\tthe simulated cluster and the user included; %d MiB before", r.use.Peak>>20, r.before.RSS>>20)
	line("written\t%.1f KiB/s\t%.1f MiB in all; the store has %.1f MiB", float64(r.written)/1024/r.took.Seconds(), float64(r.written)/(1<<20), float64(r.database)/(1<<20))
	line("the state as a user gets it\t%.1f KiB", float64(r.answer)/1024)
	for name, t := range r.seconds {
		line("%s\t%d\tmean %.2f ms, %d over %g ms, none over %g ms", name, t.n, 1000*t.mean, t.late, 1000*longDecision, 1000*t.most)
	}
	line("")
	share, d := 100*r.ours/r.took.Seconds(), r.seconds["decision"]
	for _, bar := range []struct {
		name string
		met  bool
	}{
		{fmt.Sprintf("under %g %% of a core: %.2f %%", mostShare, share), share < mostShare},
		{fmt.Sprintf("under %d MB: %.0f MB", mostMemory/1_000_000, float64(r.use.Peak)/1e6), r.use.Peak < mostMemory},
		{fmt.Sprintf("decisions under %g ms: %d of %d", 1000*longDecision, d.n-d.late, d.n), d.n > 0 && d.late == 0},
		{fmt.Sprintf("at most 2 submissions a second: %.2f", r.quickest), r.quickest <= 2.1},
	} {
		line("%s\t%s", map[bool]string{true: "met", false: "MISSED"}[bar.met], bar.name)
	}
	return w.Flush()
}

func best(x trials.State) float64 {
	s := x.Searcher()
	for _, t := range s.Ranking() {
		b := s.Best(t)
		return b.Value
	}
	return math.NaN()
}
