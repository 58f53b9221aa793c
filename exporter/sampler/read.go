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
// level. The processes of a job are listed after its cgroup was read, which says whether
// anything of it ran.
func (s *Sampler) read(ctx context.Context, jobs ...*job) {
	moments := make([]collector.Moment, len(jobs))
	for i, j := range jobs {
		moments[i] = collector.Moment{Time: time.Now(), Pids: j.pids}
		j.begin()
	}
	listed := false
	for _, c := range s.collectors {
		if !listed && c.Name() != accounts {
			s.list(jobs, moments)
			listed = true
		}
		s.readSource(ctx, c.Name(), jobs, moments)
	}
	if !listed {
		s.list(jobs, moments)
	}
	for _, j := range jobs {
		s.finish(j)
	}
}

// accounts is the name of the collector of cgroups.
const accounts = "cgroup"

// readSource reads all jobs by one source.
func (s *Sampler) readSource(ctx context.Context, name string, jobs []*job, moments []collector.Moment) {
	batch := make([]reading, 0, len(jobs)) // a call that hangs keeps its own
	for i, j := range jobs {
		if r := j.reader(name); r != nil {
			batch = append(batch, reading{at: i, reader: r, moment: moments[i], out: collector.Values{}})
		}
	}
	silent := s.worker(name).Each(len(batch), func(k int) {
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

// idleListings is how many readings in a row the processes of a job of which nothing ran
// are taken to be those of before: they can only change by who is moved into its cgroup.
const idleListings = 7

// list finds out who is in the jobs.
func (s *Sampler) list(jobs []*job, moments []collector.Moment) {
	var asked []*job
	var at []int
	for i, j := range jobs {
		if moments[i].Idle && len(j.pids) > 0 && j.unlisted < idleListings {
			j.unlisted++
			j.peopled = moments[i].Time
			continue
		}
		asked, at = append(asked, j), append(at, i)
	}
	members, err := s.members(asked)
	for k, j := range asked {
		m := &moments[at[k]]
		if err != nil {
			m.Pids, m.Unlisted = nil, true
			j.pids = nil
			continue
		}
		m.Pids, j.pids, j.unlisted = members[k].pids, members[k].pids, 0
		if len(m.Pids) > 0 {
			j.peopled = m.Time
		}
		if members[k].known {
			s.belongs(j, members[k].uid)
		}
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

// enter takes over what a source read.
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
