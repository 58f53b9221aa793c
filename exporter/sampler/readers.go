package sampler

import (
	"context"
	"errors"
	"slices"

	"pitchpipe/exporter/collector"
)

// named is a reader of a job, and the worker of its source.
type named struct {
	name   string
	reader collector.Reader
	worker *collector.Worker
}

// follow goes on with the target as it is now, where the reader can.
func (n named) follow(ctx context.Context, t collector.Target) error {
	f, ok := n.reader.(collector.Follower)
	if !ok {
		return nil
	}
	_, err := collector.Get(n.worker, func() (any, error) { return nil, f.Follow(ctx, t) })
	return err
}

// close releases the reader, once its source answers.
func (n named) close() {
	n.worker.Then(func() { _ = n.reader.Close() }) // descriptors of a job that is gone: nothing to be done
}

// openReader begins to measure a job by one source. A reader that comes too late is
// closed again.
func (s *Sampler) openReader(ctx context.Context, c collector.Collector, t collector.Target) (named, error) {
	w := s.worker(c.Name())
	var r collector.Reader
	var failed error
	if err := w.Do(func() { r, failed = c.Open(ctx, t) }); err != nil {
		w.Then(func() {
			if failed == nil && r != nil {
				_ = r.Close() // no job reads it
			}
		})
		return named{}, err
	}
	return named{c.Name(), r, w}, failed
}

// open opens the readers that the job's cgroups allow. Those that can follow a job
// stay open, since what they counted so far is in them alone.
func (s *Sampler) open(ctx context.Context, j *job) {
	target := s.target(j)
	old := j.readers
	j.readers, j.claims, j.absent, j.unopened = nil, map[string]string{}, nil, nil
	for _, c := range s.collectors {
		if i := slices.IndexFunc(old, func(n named) bool { return n.name == c.Name() }); i >= 0 {
			if _, ok := old[i].reader.(collector.Follower); ok {
				s.followed(j, c.Name(), old[i].follow(ctx, target))
				j.readers = append(j.readers, old[i])
				continue
			}
			old[i].close() // it is replaced
		}
		n, err := s.openReader(ctx, c, target)
		if err != nil {
			s.log.Info("source not available for job", "job", j.stored.String(), "collector", c.Name(), "answer", string(collector.Source(c.Name(), "", err).Support), "err", err)
			j.absent = append(j.absent, collector.Source(c.Name(), "", err))
			if errors.Is(err, collector.ErrSilent) {
				j.unopened = append(j.unopened, c.Name())
			}
			continue
		}
		j.readers = append(j.readers, n)
	}
	s.describe(j)
}

// reopen tries the sources again that did not answer when the job was opened.
func (s *Sampler) reopen(ctx context.Context, j *job) {
	answers := func(name string) bool { return s.workers[name].Stuck() == nil }
	if slices.ContainsFunc(j.unopened, answers) {
		s.open(ctx, j)
	}
}

// follow lets the readers know that the job's CPUs changed.
func (s *Sampler) follow(ctx context.Context, j *job) {
	target := s.target(j)
	for _, n := range j.readers {
		s.followed(j, n.name, n.follow(ctx, target))
	}
	s.describe(j)
}

func (s *Sampler) followed(j *job, name string, err error) {
	if err != nil {
		s.stats.ReadErrors++
		s.log.Warn("source does not follow the job", "job", j.stored.String(), "collector", name, "err", err)
	}
}

func (s *Sampler) target(j *job) collector.Target {
	return collector.Target{Dirs: j.found.Dirs, CPUs: j.cpus, PerfDir: j.perfDir}
}
