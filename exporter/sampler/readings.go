package sampler

import (
	"context"
	"errors"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
)

// named is a reader of a job, and the way to its source.
type named struct {
	name   string
	reader collector.Reader
	lane   *lane
}

// read takes a reading; where the source does not answer that is the error.
func (n named) read(ctx context.Context, m collector.Moment) (collector.Values, error) {
	out := collector.Values{}
	var failed error
	if err := n.lane.do(func() { failed = n.reader.Read(ctx, m, out) }); err != nil {
		return nil, err
	}
	return out, failed
}

// follow goes on with the target as it is now, where the reader can.
func (n named) follow(ctx context.Context, t collector.Target) error {
	f, ok := n.reader.(collector.Follower)
	if !ok {
		return nil
	}
	var failed error
	if err := n.lane.do(func() { failed = f.Follow(ctx, t) }); err != nil {
		return err
	}
	return failed
}

// close releases the reader, once its source answers.
func (n named) close() {
	n.lane.then(func() { _ = n.reader.Close() }) // descriptors of a job that is gone: nothing to be done
}

// openReader begins to measure a job by one source. A reader that comes too late is
// closed again.
func (s *Sampler) openReader(ctx context.Context, c collector.Collector, t collector.Target) (named, error) {
	l := s.lane(c.Name())
	var r collector.Reader
	var failed error
	if err := l.do(func() { r, failed = c.Open(ctx, t) }); err != nil {
		l.then(func() {
			if failed == nil && r != nil {
				_ = r.Close() // nobody reads it
			}
		})
		return named{}, err
	}
	return named{c.Name(), r, l}, failed
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
			s.log.Info("source not available for job", "job", j.stored.String(), "collector", c.Name(), "answer", string(collector.Answer(err)), "err", err)
			j.absent = append(j.absent, collector.Source(c.Name(), "", err))
			if errors.Is(err, errSilent) {
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
	answers := func(name string) bool { return s.lanes[name].stuck() == nil }
	if slices.ContainsFunc(j.unopened, answers) {
		s.open(ctx, j)
	}
}

// follow tells the readers that the job's CPUs changed.
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
	j.cpus = cgroup.CPUs(j.found.Dirs)
	return collector.Target{Dirs: j.found.Dirs, CPUs: j.cpus, Leaf: j.leaf}
}

// rooted tells whether to ask whose a job is that seems to be root's: it stays so, most
// often, and to ask looks at all of its processes.
func (j *job) rooted(processes int) bool {
	const soon, rarely = 16, 16
	j.asked++
	return j.asked <= soon || j.asked%rarely == 0 || processes == 1
}

// read takes the readings of one job. A column belongs to the first collector that
// supplied it, so that it never changes its source, and with it its level.
func (s *Sampler) read(ctx context.Context, j *job) {
	pids := j.found.Processes()
	if j.uid == 0 && !j.found.HasUID && j.rooted(len(pids)) {
		if uid, ok := s.finder.User(pids); ok && uid != 0 {
			j.uid = uid
			s.describe(j)
		}
	}
	moment := collector.Moment{Time: time.Now(), Pids: pids}
	if len(pids) > 0 {
		j.peopled = moment.Time
	}
	if j.values == nil {
		j.values = collector.Values{}
	}
	if j.fresh == nil {
		j.fresh = map[string]bool{}
	}
	fresh := j.fresh
	clear(fresh)
	failed := false
	for _, n := range j.readers {
		out, err := n.read(ctx, moment)
		if err != nil && !j.gone {
			failed = true
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
			if column == api.ColCPUSeconds && n.name != "proc" { // the kernel's account of all that ran
				moment.Idle = j.values[column] == v
			}
			j.values[column] = v
			fresh[column] = true
		}
	}
	if j.failed && !failed {
		s.describe(j) // it measures again what it did not
	}
	j.failed = failed
	if fresh[api.ColCPUSeconds] {
		j.clockAtRead = j.values[api.ColTaskClock]
		return
	}
	// The cgroup is gone, but perf's events outlive it: the task clock knows what
	// the job did between the last reading and its end.
	if fresh[api.ColTaskClock] {
		j.values[api.ColCPUSeconds] += max(j.values[api.ColTaskClock]-j.clockAtRead, 0)
		j.clockAtRead = j.values[api.ColTaskClock]
		fresh[api.ColCPUSeconds] = true
	}
}
