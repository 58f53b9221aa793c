package sampler

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/window"
)

const (
	// A job without a cgroup is gone when it was missed this many scans in a row:
	// its last process may be between two states.
	missedScans = 2
	// A cgroup whose last process left this long ago is a leftover.
	leftoverAfter = 5 * time.Second
)

type job struct {
	found  attrib.Found
	stored attrib.Key // with the attempt's true number
	first  time.Time

	counted      bool   // that number is the scheduler's own
	cpus         []int  // that its cpuset gave it when it was last looked at
	looks        int    // how often jobs were looked for since
	perfDir      string // the perf cgroup that it was given, empty = none
	perfDirFault fault
	absent       []api.Source // that cannot measure it
	base         node.CPU     // when it was first seen

	uid     uint32
	asked   int // how often it was asked whose it is
	readers []named
	claims  map[string]string // column → the collector that supplies it
	values  collector.Values  // newest of each column
	fresh   map[string]bool   // those that the last reading had

	moment  collector.Moment // of the last reading
	failed  bool             // the last reading was incomplete
	failing bool             // the one that is being taken is

	pids     []int // of the last listing
	unlisted int   // readings since, in which nothing of it ran
	hadPids  bool
	peopled  time.Time // when it was last read with a process
	emptyAt  time.Time // since when it has no process
	missed   int
	gone     bool // to be ended at the next tick
	goneAt   time.Time
	vanished bool // the scanner does not find it any more

	inode       inode // of what stands for it
	eldest      int   // the process that does, where there is no cgroup
	joules      energy.Joules
	charged     charged
	clockAtRead float64       // task clock when CPU seconds were last read
	limiter     *rate.Limiter // of marks with a sample
	reports     *reportLog
	was         window.Attempt // of an earlier exporter, or of an earlier start in the same attempt
	budgetFault fault          // of the administrator's
}

func (s *Sampler) discover(ctx context.Context) {
	now := time.Now()
	s.discovered = now
	found, err := s.look(ctx)
	if err != nil || ctx.Err() != nil {
		return // nothing is known of any, or not all: the scan was cut short
	}
	seen, room := map[attrib.Key]bool{}, s.room
	s.room = false
	for _, f := range found {
		j := s.jobs[f.Key]
		if j != nil && j.claimed(f.Found) {
			continue // the job itself is not there
		}
		seen[f.Key] = true
		switch {
		case j == nil && (s.isLeftover(f) || s.refused[f.Key] && !room):
		case j == nil:
			if s.replacesEnded(f.Found) {
				s.log.Debug("job not taken for one that ended", "job", f.Key.String(), "uid", f.UID)
				continue
			}
			s.take(ctx, f, now)
		case j.restarted(f):
			s.replace(ctx, j, f, now)
		case j.usurped(f):
			// What ran under the job's name before was not the job.
			s.log.Info("job begins again in its cgroup", "job", j.stored.String(), "uid", j.uid)
			s.replace(ctx, j, f, now)
		default:
			j.missed, j.vanished = 0, false
			if j.gone && len(f.Dirs) == 0 {
				j.gone = false
			}
			s.number(j, f.Found)
			changed, cpus := !maps.Equal(j.found.Dirs, f.Dirs), j.cpus
			j.found = f.Found
			if changed {
				j.inode = cmp.Or(s.inodeOf(firstDir(f.Found)), j.inode)
			}
			aged := len(f.Dirs) == 0 && j.inode.dir == "" && !slices.Contains(f.Pids, j.eldest)
			if aged {
				var now inode
				j.eldest, now = s.eldest(f.Found)
				j.inode = cmp.Or(now, j.inode)
			}
			if f.looked {
				j.cpus = f.cpus
			}
			if f.Confirmed && f.HasUID {
				s.belongs(j, f.UID) // the first process that was seen was root's
			}
			changed = s.placeForPerf(j) || changed
			switch {
			case changed:
				s.open(ctx, j)
			case !slices.Equal(j.cpus, cpus):
				s.follow(ctx, j, j.readers...)
				s.describe(j)
			case aged:
				s.describe(j)
			}
			s.checkEmpty(j, now, f.anyone)
		}
	}
	maps.DeleteFunc(s.refused, func(key attrib.Key, _ bool) bool { return !seen[key] })
	maps.DeleteFunc(s.leftovers, func(key attrib.Key, _ leftover) bool { return !seen[key] })
	for key, j := range s.jobs {
		if seen[key] {
			continue
		}
		j.vanished = true
		j.missed++
		if !j.gone && (len(j.found.Dirs) > 0 || j.missed >= missedScans) {
			j.gone, j.goneAt = true, now
		}
	}
}

// replace ends what was sampled under a name and begins with what is there now. The
// old one is not read again: its cgroup's path leads to the new one's.
func (s *Sampler) replace(ctx context.Context, j *job, f scanned, now time.Time) {
	j.gone, j.goneAt = true, now
	s.end(j, now)
	delete(s.leftovers, f.Key)
	s.take(ctx, f, now)
}

// sawSomebody reports whether the last reading did, so that the next will look again.
func (s *Sampler) sawSomebody(j *job) bool {
	return j.hadPids && j.emptyAt.IsZero() && !j.gone && time.Since(j.peopled) < s.cfg.Interval
}

func (s *Sampler) checkEmpty(j *job, now time.Time, anyone bool) {
	switch {
	case s.sawSomebody(j):
	case anyone:
		j.hadPids, j.emptyAt, j.gone = true, time.Time{}, false
	case !j.hadPids || j.gone:
	case j.emptyAt.IsZero():
		j.emptyAt = now
	case now.Sub(j.emptyAt) >= leftoverAfter:
		j.gone, j.goneAt = true, j.emptyAt
	}
}

func (s *Sampler) take(ctx context.Context, f scanned, now time.Time) {
	j := &job{found: f.Found, cpus: f.cpus, stored: f.Key, first: now, uid: f.UID, limiter: rate.NewLimiter(rate.Limit(s.cfg.MarkRate), s.cfg.MarkRate), reports: &reportLog{}, values: collector.Values{}, fresh: map[string]bool{}}
	switch {
	case f.Attempt > 0:
		j.stored.Attempt, j.counted = f.Attempt, true
	case f.Key.Manager == attrib.Slurm:
		j.stored.Attempt = s.store.NextAttempt(f.Key.Manager, f.Key.ID)
	}
	if was, ok := s.store.Attempt(j.stored); ok && f.Key.Manager != attrib.Local {
		s.goOn(j, was)
	}
	s.readNode() // its first sample is of now, and not of the last tick
	j.base = s.cpu
	goesOn := s.resume(j)
	was := j.was.Job
	first := cmp.Or(was.First, was.Started, now) // an older exporter kept the second only
	if now.Before(first) {
		first = now
	}
	wire := api.Job{
		Manager: j.stored.Manager, ID: j.stored.ID, Attempt: j.stored.Attempt, UID: j.uid, Cgroup: cmp.Or(j.inode.dir, firstDir(f.Found)), Started: now,
		First: first, Saves: was.Saves, Saved: was.Saved, Heard: was.Heard,
	}
	if err := s.store.Begin(window.Attempt{
		Job: wire, Schema: api.SchemaAccounting, Source: s.source(j), Inode: j.inode.number, Joules: j.joules, Budgets: j.was.Budgets,
	}); err != nil {
		if !s.refused[f.Key] {
			s.stats.JobsRefused++
			s.log.Warn("job not sampled", "job", j.stored.String(), "err", err)
		}
		s.refused[f.Key] = true
		return
	}
	s.jobs[f.Key] = j
	s.budget(j)
	if goesOn {
		delete(s.earlier, j.inode) // not before: one that is refused is tried again
		s.log.Info("job goes on with what was counted before", "job", j.stored.String(), "joules", j.joules.Total())
	}
	s.placeForPerf(j)
	s.open(ctx, j)
	if goesOn && f.empty {
		j.hadPids = true // an earlier exporter saw a process
	}
	s.checkEmpty(j, now, f.anyone)
	s.read(ctx, j)
	if !s.started || goesOn || s.refused[f.Key] {
		// What it did before the exporter began, or had room for it, belongs to no interval, and
		// what an earlier exporter counted is charged already.
		j.settled()
	}
	delete(s.refused, f.Key)
	s.store.Append(j.stored, now, s.complete(j, now, j.joules.Total()), nil)
	s.log.Info("job seen", "job", j.stored.String(), "uid", j.uid, "cgroup", wire.Cgroup)
}

func (s *Sampler) describe(j *job) {
	schema, absent := api.SchemaAccounting, slices.Clone(j.absent)
	if i := slices.IndexFunc(j.readers, func(n named) bool { return n.name == "perf" }); i >= 0 {
		schema = api.SchemaSoftware
		if r, ok := j.readers[i].reader.(collector.Selective); ok && j.readers[i].worker.Stuck() == nil {
			events, missing := r.Events()
			schema, absent = api.SchemaWith(events), append(absent, missing...)
		}
	}
	for _, n := range j.readers {
		if err := n.worker.Stuck(); err != nil {
			absent = append(absent, collector.Source(n.name, "", err))
		}
	}
	s.store.Describe(j.stored, j.uid, cmp.Or(j.inode.dir, firstDir(j.found)), j.inode.number, schema, absent)
}

func (j *job) close() {
	for _, n := range j.readers {
		n.close()
	}
	j.readers = nil
}

// firstDir is the cgroup that stands for the job: v2's where it has one.
func firstDir(f attrib.Found) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(f.Dirs))) {
		return f.Dirs[name] // "unified" sorts last
	}
	return ""
}
