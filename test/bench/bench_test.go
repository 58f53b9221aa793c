package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/slurmcluster"
)

// How much and how soon is for the bench to print, and not asserted here: this machine may
// be busy.
func TestASmallQueueIsMeasuredFromItsFirstJobToTheReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options options
		watch   func(context.Context, options) (report, error)
		check   func(t *testing.T, r report)
		says    []string
	}{
		"slurm": {
			options: options{jobs: 200, stanzas: 5, over: 4 * time.Second}, watch: watchSlurm,
			check: func(t *testing.T, r report) {
				t.Helper()
				for name, c := range map[string]cost{"arrived": r.arrived, "busy": r.ours[1]} {
					if c.cpu <= 0 || c.children <= 0 || c.children > c.cpu || c.over <= 0 || c.share(c.cpu) <= 0 {
						t.Errorf("%s: %+v, want CPU", name, c)
					}
				}
				if len(r.memory) != 3 || r.memory[2].RSS <= 0 || r.largest < r.memory[0].Peak/2 {
					t.Errorf("memory: %+v, %d", r.memory, r.largest)
				}
			},
			says: []string{"200 jobs, 5 with a stanza", "slurm", "no controller", "broker"},
		},
		"nomad": {
			options: options{jobs: 60, stanzas: 5, over: 3 * time.Second, nomad: nomadagent.InProcess}, watch: watchNomad,
			check: func(t *testing.T, r report) {
				t.Helper()
				if a := r.arrived; a.cpu <= 0 || a.requests < 1 || a.bytes < 100 || a.over <= 0 {
					t.Errorf("its start cost %+v", a)
				}
				// While nothing happens a list is waited for, and no job is asked after: fewer
				// requests in seconds than there are jobs, however slow the machine is.
				if q := r.ours[0]; q.requests >= int64(r.jobs) {
					t.Errorf("while nothing happens: %d requests in %v, of %d jobs", q.requests, q.over, r.jobs)
				}
				if b := r.ours[1]; b.over < 3*time.Second || b.requests < 1 {
					t.Errorf("while others register: %+v", b)
				}
			},
			says: []string{"60 jobs, 5 with a stanza", "in-process server", "requests a minute"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.options
			o.seen, o.root, o.trace = 2, "../..", t.Output()
			r, err := c.watch(t.Context(), o)
			if errors.Is(err, slurmcluster.ErrUnavailable) {
				slurmcluster.Need(t, nil, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, r)
			for _, times := range r.seen {
				if len(times) != 2 || !slices.IsSorted(times) || times[0] <= 0 {
					t.Errorf("times to be seen: %v, want 2 sorted ones", times)
				}
			}
			if r.memory[0].RSS <= 0 {
				t.Errorf("memory: %+v", r.memory)
			}
			var printed bytes.Buffer
			if err := r.print(&printed); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.says, "load average", "nothing happens", "% of a core", "MiB", "longest", "asked for:") {
				if !strings.Contains(printed.String(), want) {
					t.Errorf("the report does not say %q", want)
				}
			}
			t.Log("\n" + printed.String())
		})
	}
}

func TestASmallSearchIsMeasured(t *testing.T) {
	t.Parallel()
	b := &searchBench{trials: 6, parallel: 3, pace: 0.02, look: 100 * time.Millisecond, trace: t.Output(), epochs: map[string]int{}}
	r, err := b.run(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.state.Trials) != 6 || r.reports == 0 || r.jobs < 6 || r.seconds["decision"].n == 0 || r.seconds["round"].n == 0 || r.written == 0 || r.ours > r.all {
		t.Errorf("%d trials, %d reports, %d jobs, %+v, %d bytes, %g of %g s", len(r.state.Trials), r.reports, r.jobs, r.seconds, r.written, r.ours, r.all)
	}
	var printed bytes.Buffer
	if err := r.print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"6 trials with parallel=3", "% of a core", "MiB at its peak", "decisions under 10 ms", "load average", "submissions"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Log("\n" + printed.String())
}

func TestABenchThatDoesNotExistAndNumbersThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "queue", "slurm --jobs 0", "nomad --stanzas 9 --jobs 3", "nomad now", "slurm --minutes 0", "exporter --scrapes 0", "mind now", "search now", "search --trials 0", "slurm --unknown",
	} {
		var said bytes.Buffer
		if err := run(t.Context(), strings.Fields(line), &said, &said); err == nil {
			t.Errorf("bench %s: no error", line)
		}
	}
}
