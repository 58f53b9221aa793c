package sampler

import (
	"context"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// reading is one of a job by one source.
type reading struct {
	at     int // of the job among those that are read
	reader collector.Reader
	moment collector.Moment
	out    collector.Values
	err    error
}

// read takes the readings of jobs, one source after the other. A column belongs to the
// first collector that supplied it, so that it never changes its source, and with it its
// level.
func (s *Sampler) read(ctx context.Context, jobs ...*job) {
	rolls, unlisted := s.rolls(jobs)
	moments := make([]collector.Moment, len(jobs))
	for i, j := range jobs {
		moments[i] = collector.Moment{Time: time.Now(), Unlisted: unlisted != nil}
		if unlisted == nil {
			s.populate(j, &moments[i], rolls[i])
		}
		j.begin()
	}
	for _, c := range s.collectors {
		name := c.Name()
		batch := make([]reading, 0, len(jobs)) // a call that hangs keeps its own
		for i, j := range jobs {
			if r := j.reader(name); r != nil {
				batch = append(batch, reading{at: i, reader: r, moment: moments[i], out: collector.Values{}})
			}
		}
		silent := s.lane(name).each(len(batch), func(k int) {
			r := &batch[k]
			r.err = r.reader.Read(ctx, r.moment, r.out)
		})
		for k := range batch {
			i := batch[k].at
			if silent != nil {
				s.failed(jobs[i], name, silent)
				continue
			}
			if err := batch[k].err; err != nil {
				s.failed(jobs[i], name, err)
			}
			jobs[i].enter(name, batch[k].out, &moments[i])
		}
	}
	for _, j := range jobs {
		s.finish(j)
	}
}

// populate enters who is in the job.
func (s *Sampler) populate(j *job, m *collector.Moment, r roll) {
	m.Pids = r.pids
	if len(r.pids) > 0 {
		j.peopled = m.Time
	}
	if r.told {
		s.belongs(j, r.uid)
	}
}

// belongs enters whose a job is that seemed to be root's.
func (s *Sampler) belongs(j *job, uid uint32) {
	if uid != 0 && j.uid == 0 {
		j.uid = uid
		s.describe(j)
	}
}

// begin is the begin of a reading of all sources.
func (j *job) begin() {
	if j.values == nil {
		j.values = collector.Values{}
	}
	if j.fresh == nil {
		j.fresh = map[string]bool{}
	}
	clear(j.fresh)
	j.failing = false
}

// reader is the one of a source; nil = the source does not measure the job.
func (j *job) reader(name string) collector.Reader {
	for _, n := range j.readers {
		if n.name == name {
			return n.reader
		}
	}
	return nil
}

// failed is that a reading lacks something.
func (s *Sampler) failed(j *job, name string, err error) {
	if j.gone {
		return
	}
	j.failing = true
	s.stats.ReadErrors++
	s.log.Debug("reading incomplete", "job", j.stored.String(), "collector", name, "err", err)
	s.describe(j) // it may measure less from now on
}

// enter takes over what a source told.
func (j *job) enter(name string, out collector.Values, m *collector.Moment) {
	for column, v := range out {
		owner, claimed := j.claims[column]
		if !claimed {
			j.claims[column], owner = name, name
		}
		if owner != name || j.gone && name == "proc" {
			continue // the processes of a job that is gone say nothing about it
		}
		if column == api.ColCPUSeconds && name != "proc" { // the kernel's account of all that ran
			m.Idle = j.values[column] == v
		}
		j.values[column] = v
		j.fresh[column] = true
	}
}

// finish is the end of a reading of all sources.
func (s *Sampler) finish(j *job) {
	if j.failed && !j.failing {
		s.describe(j) // it measures again what it did not
	}
	j.failed = j.failing
	if j.fresh[api.ColCPUSeconds] {
		j.clockAtRead = j.values[api.ColTaskClock]
		return
	}
	// The cgroup is gone, but perf's events outlive it: the task clock knows what
	// the job did between the last reading and its end.
	if j.fresh[api.ColTaskClock] {
		j.values[api.ColCPUSeconds] += max(j.values[api.ColTaskClock]-j.clockAtRead, 0)
		j.clockAtRead = j.values[api.ColTaskClock]
		j.fresh[api.ColCPUSeconds] = true
	}
}
