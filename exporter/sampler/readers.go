package sampler

import (
	"context"
	"errors"
	"slices"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
)

// named is a reader of a job, and the worker of its source.
type named struct {
	name   string
	reader collector.Reader
	worker *collector.Worker
}

// close releases the reader, once its source answers.
func (n named) close() {
	n.worker.Then(func() { _ = n.reader.Close() }) // descriptors of a job that is gone: nothing to be done
}

// openReader begins to measure a job by one source. A reader that comes too late is
// closed again.
func (s *Sampler) openReader(ctx context.Context, c collector.Collector, t collector.Target) (named, error) {
	n := named{c.Name(), nil, s.worker(c.Name())}
	var failed error
	if err := n.worker.Each(1, func(int) { n.reader, failed = c.Open(ctx, t) }); err != nil {
		n.worker.Then(func() {
			if failed == nil && n.reader != nil {
				_ = n.reader.Close() // no job reads it
			}
		})
		return named{}, err
	}
	return n, failed
}

// open opens the readers that the job's cgroups allow. Those that can follow a job
// stay open, since what they counted so far is in them alone.
func (s *Sampler) open(ctx context.Context, j *job) {
	target := s.target(j)
	old := j.readers
	j.readers, j.claims, j.absent = nil, map[string]string{}, nil
	for _, c := range s.collectors {
		if i := slices.IndexFunc(old, func(n named) bool { return n.name == c.Name() }); i >= 0 {
			if _, ok := old[i].reader.(collector.Follower); ok {
				s.follow(ctx, j, old[i])
				j.readers = append(j.readers, old[i])
				continue
			}
			old[i].close() // it is replaced
		}
		n, err := s.openReader(ctx, c, target)
		if err != nil {
			s.log.Info("source not available for job", "job", j.stored.String(), "collector", c.Name(), "answer", string(collector.Source(c.Name(), "", err).Support), "err", err)
			j.absent = append(j.absent, collector.Source(c.Name(), "", err))
			continue
		}
		j.readers = append(j.readers, n)
	}
	s.describe(j)
}

// follow lets readers that can do it go on with the job's cgroups and CPUs as they are now.
func (s *Sampler) follow(ctx context.Context, j *job, readers ...named) {
	target := s.target(j)
	for _, n := range readers {
		f, ok := n.reader.(collector.Follower)
		if !ok {
			continue
		}
		if _, err := collector.Get(n.worker, func() (any, error) { return nil, f.Follow(ctx, target) }); err != nil {
			s.stats.ReadErrors++
			s.log.Warn("source does not follow the job", "job", j.stored.String(), "collector", n.name, "err", err)
		}
	}
}

func (s *Sampler) target(j *job) collector.Target {
	return collector.Target{Dirs: j.found.Dirs, CPUs: j.cpus, PerfDir: j.perfDir}
}

// placeForPerf moves the processes of a scheduler's job to a cgroup where perf looks, where
// that is wanted, and reports whether the job got one just now. The local scheduler makes
// its own.
func (s *Sampler) placeForPerf(j *job) bool {
	if s.cfg.PerfCgroups == nil || !j.found.Confirmed || j.found.Key.Manager == attrib.Local {
		return false
	}
	if j.found.Dirs[s.cfg.PerfCgroups.Hierarchy()] != "" { // some make it after the others
		had := j.perfDir != ""
		s.removePerfCgroup(j)
		return had
	}
	found, had, name := j.found, j.perfDir != "", perfCgroupName(j)
	dir, err := collector.Get(s.worker(finding), func() (string, error) {
		if pids := found.Processes(); len(pids) > 0 || had { // else it is being made
			return s.cfg.PerfCgroups.Put(name, pids)
		}
		return "", nil
	})
	if errors.Is(err, collector.ErrSilent) {
		return false
	}
	if err != nil {
		s.stats.ReadErrors++
	}
	j.perfDirFault.set(s.log, err, "the perf cgroup of", j.stored)
	if dir == "" || dir == j.perfDir {
		return false
	}
	j.perfDir = dir
	return true
}

func (s *Sampler) removePerfCgroup(j *job) {
	if j.perfDir == "" {
		return
	}
	name, remove := j.stored.String(), perfCgroupName(j)
	s.worker(finding).Then(func() {
		if err := s.cfg.PerfCgroups.Remove(remove); err != nil {
			s.log.Debug("perf cgroup stays", "job", name, "err", err)
		}
	})
	j.perfDir = ""
}

// perfCgroupName does not hold the attempt, whose number may become known later: of one
// job one attempt runs.
func perfCgroupName(j *job) string { return j.found.Key.Manager + "-" + j.found.Key.ID }
