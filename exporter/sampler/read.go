package sampler

import (
	"context"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
)

// reading is one of a job by one source. A call that hangs keeps its own.
type reading struct {
	job    *job
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
	for _, j := range jobs {
		j.moment, j.failing = collector.Moment{Time: time.Now(), Pids: j.pids}, false
		clear(j.fresh)
	}
	listed := false
	for _, c := range s.collectors {
		if !listed && c.Name() != accounts {
			s.list(jobs)
			listed = true
		}
		s.readSource(ctx, c.Name(), jobs)
	}
	if !listed {
		s.list(jobs)
	}
	for _, j := range jobs {
		s.finish(j)
	}
}

const accounts = "cgroup" // the collector of cgroups

func (s *Sampler) readSource(ctx context.Context, name string, jobs []*job) {
	batch := make([]reading, 0, len(jobs))
	for _, j := range jobs {
		if i := slices.IndexFunc(j.readers, func(n named) bool { return n.name == name }); i >= 0 {
			batch = append(batch, reading{job: j, reader: j.readers[i].reader, moment: j.moment, out: collector.Values{}})
		}
	}
	silent := s.worker(name).Each(len(batch), func(k int) {
		batch[k].err = batch[k].reader.Read(ctx, batch[k].moment, batch[k].out)
	})
	for k := range batch {
		if silent != nil {
			s.failed(batch[k].job, name, silent)
			continue
		}
		if batch[k].err != nil {
			s.failed(batch[k].job, name, batch[k].err)
		}
		batch[k].job.enter(name, batch[k].out)
	}
}

// idleListings is how many readings in a row the processes of an idle job are taken to be
// those of before: they can only change by what is moved into its cgroup.
const idleListings = 7

// listing is who is in a job. A call that hangs keeps its own.
type listing struct {
	found    attrib.Found
	whose    bool // the job seems to be root's
	whenever bool // and is asked for its user no matter who is in it
	pids     []int
	uid      uint32
	known    bool
}

// list finds out who is in the jobs.
func (s *Sampler) list(jobs []*job) {
	asked, all := make([]*job, 0, len(jobs)), make([]listing, 0, len(jobs))
	for _, j := range jobs {
		if j.moment.Idle && len(j.pids) > 0 && j.unlisted < idleListings {
			j.unlisted++
			j.peopled = j.moment.Time
			continue
		}
		l := listing{found: j.found, whose: j.uid == 0 && !j.found.HasUID}
		l.whenever = l.whose && j.rooted()
		asked, all = append(asked, j), append(all, l)
	}
	err := s.worker(finding).Each(len(all), func(i int) {
		l := &all[i]
		l.pids = l.found.Processes()
		if l.whose && (l.whenever || len(l.pids) == 1) {
			l.uid, l.known = s.finder.User(l.pids)
		}
	})
	for i, j := range asked {
		if err != nil {
			j.pids, j.moment.Pids, j.moment.Unlisted = nil, nil, true
			continue
		}
		j.pids, j.moment.Pids, j.unlisted = all[i].pids, all[i].pids, 0
		if len(j.pids) > 0 {
			j.peopled = j.moment.Time
		}
		if all[i].known {
			s.belongs(j, all[i].uid)
		}
	}
}

// rooted reports whether to ask whose a job is that seems to be root's: it stays so, most
// often, and to ask looks at all of its processes.
func (j *job) rooted() bool {
	const soon, rarely = 16, 16
	j.asked++
	return j.asked <= soon || j.asked%rarely == 0
}

// belongs sets the user of a job that seemed to be root's.
func (s *Sampler) belongs(j *job, uid uint32) {
	if uid != 0 && j.uid == 0 {
		j.uid = uid
		s.describe(j)
	}
}

func (s *Sampler) failed(j *job, name string, err error) {
	if j.gone {
		return
	}
	j.failing = true
	s.stats.ReadErrors++
	s.log.Debug("reading incomplete", "job", j.stored.String(), "collector", name, "err", err)
	s.describe(j) // it may measure less from now on
}

func (j *job) enter(name string, out collector.Values) {
	for column, v := range out {
		owner, claimed := j.claims[column]
		if !claimed {
			j.claims[column], owner = name, name
		}
		if owner != name || j.gone && name == "proc" {
			continue // the processes of a job that is gone say nothing about it
		}
		if column == api.ColCPUSeconds && name != "proc" { // the kernel's account of all that ran
			j.moment.Idle = j.values[column] == v
		}
		j.values[column] = v
		j.fresh[column] = true
	}
}

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
