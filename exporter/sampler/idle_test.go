package sampler_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// accountant is a collector of cgroups whose job runs when the test says so.
type accountant struct{ seconds *atomic.Int64 }

func (accountant) Name() string                       { return "cgroup" }
func (accountant) Probe(context.Context) []api.Source { return nil }
func (accountant) Close() error                       { return nil }

func (a accountant) Open(context.Context, collector.Target) (collector.Reader, error) { return a, nil }

func (a accountant) Read(_ context.Context, _ collector.Moment, out collector.Values) error {
	out[api.ColCPUSeconds] = float64(a.seconds.Load())
	return nil
}

// lister is a collector that counts the processes that it is given.
type lister struct{ accountant }

func (lister) Name() string { return "proc" }

func (l lister) Open(context.Context, collector.Target) (collector.Reader, error) { return l, nil }

func (lister) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	out[api.ColProcesses] = float64(len(m.Pids))
	return nil
}

func TestTheProcessesOfAJobThatSleepsAreListedWithEachEighthSample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	enter := func(pids string) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pids), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	enter("10\n")
	synctest.Test(t, func(t *testing.T) {
		w, seconds := newWorld(), new(atomic.Int64)
		w.jobs[local("a")] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": dir}}
		store := window.New(window.Config{})
		s := sampler.New(sampler.Config{Cores: 4}, w, []collector.Collector{accountant{seconds}, lister{}}, w, modeller(), store)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		processes := func() float64 {
			samples := see(t, store, "a").Samples
			return samples[len(samples)-1].Values[api.ColProcesses]
		}
		wait(2 * time.Second)
		enter("10\n11\n") // another process was moved into the cgroup, and sleeps
		wait(3 * time.Second)
		if got := processes(); got != 1 {
			t.Errorf("%v processes soon after, want those of before", got)
		}
		wait(6 * time.Second)
		if got := processes(); got != 2 {
			t.Errorf("%v processes within eight samples, want 2", got)
		}
		enter("10\n11\n12\n")
		seconds.Add(1)
		wait(time.Second)
		if got := processes(); got != 3 {
			t.Errorf("%v processes after the job ran, want 3", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
