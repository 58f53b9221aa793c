package sampler

import (
	"context"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
)

// open opens the readers that the job's cgroups allow. Those that can follow a job
// stay open, since what they counted so far is in them alone.
func (s *Sampler) open(ctx context.Context, j *job) {
	target := s.target(j)
	old := j.readers
	j.readers, j.claims, j.absent = nil, map[string]string{}, nil
	for _, c := range s.collectors {
		if i := slices.IndexFunc(old, func(n named) bool { return n.name == c.Name() }); i >= 0 {
			if f, ok := old[i].reader.(collector.Follower); ok {
				s.followed(j, c.Name(), f.Follow(ctx, target))
				j.readers = append(j.readers, old[i])
				continue
			}
			_ = old[i].reader.Close() // it is replaced
		}
		r, err := c.Open(ctx, target)
		if err != nil {
			s.log.Info("source not available for job", "job", j.stored.String(), "collector", c.Name(), "answer", string(collector.Answer(err)), "err", err)
			j.absent = append(j.absent, collector.Source(c.Name(), "", err))
			continue
		}
		j.readers = append(j.readers, named{c.Name(), r})
	}
	s.describe(j)
}

// follow tells the readers that the job's CPUs changed.
func (s *Sampler) follow(ctx context.Context, j *job) {
	target := s.target(j)
	for _, n := range j.readers {
		if f, ok := n.reader.(collector.Follower); ok {
			s.followed(j, n.name, f.Follow(ctx, target))
		}
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
	j.cpus = cgroup.CPUs(j.found.Dirs)
	return collector.Target{Dirs: j.found.Dirs, CPUs: j.cpus, Leaf: j.leaf}
}

// read takes the readings of one job. A column belongs to the first collector that
// supplied it, so that it never changes its source, and with it its level.
func (s *Sampler) read(ctx context.Context, j *job) {
	j.pids = j.found.Processes()
	if j.uid == 0 && !j.found.HasUID {
		if uid, ok := s.finder.User(j.pids); ok && uid != 0 {
			j.uid = uid
			s.describe(j)
		}
	}
	moment := collector.Moment{Time: time.Now(), Pids: j.pids}
	if j.values == nil {
		j.values = collector.Values{}
	}
	fresh := map[string]bool{}
	for _, n := range j.readers {
		out := collector.Values{}
		if err := n.reader.Read(ctx, moment, out); err != nil && !j.gone {
			s.stats.ReadErrors++
			s.log.Debug("reading incomplete", "job", j.stored.String(), "collector", n.name, "err", err)
			s.describe(j) // it may measure less from now on
		}
		for column, v := range out {
			owner, claimed := j.claims[column]
			if !claimed {
				j.claims[column], owner = n.name, n.name
			}
			if owner != n.name || j.gone && n.name == "proc" {
				continue // the processes of a job that is gone say nothing about it
			}
			j.values[column] = v
			fresh[column] = true
		}
	}
	if fresh[api.ColCPUSeconds] {
		j.clockAtRead = j.values[api.ColTaskClock]
		return
	}
	// The cgroup is gone, but perf's events outlive it: the task clock knows what
	// the job did between the last reading and its end.
	if fresh[api.ColTaskClock] {
		j.values[api.ColCPUSeconds] += max(j.values[api.ColTaskClock]-j.clockAtRead, 0)
		j.clockAtRead = j.values[api.ColTaskClock]
	}
}
