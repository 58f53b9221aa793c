package perf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// reader counts one job. Its groups are those of the collector's plans, by index; the
// software events are the first.
type reader struct {
	collector *Collector
	hierarchy hostfs.Hierarchy // perf's
	dir       string           // the job's cgroup there
	cpus      []int            // that it may use; nil = all that are online
	tallies   []*tally         // by plan
	off       []error          // by plan, why it is not counted any more; nil = it is
	counted   []*counter
	leaving   []*counter // of CPUs or a cgroup that are not the job's any more, read once more
	complete  []int      // CPUs that are all counted on, until a counter is let go; nil = look
	now       Counts     // used again at each reading
	places    map[int]*collector.Place
	sockets   map[int]int // by CPU
}

// counter is one group of events on one CPU.
type counter struct {
	plan  int
	dir   string
	cpu   int
	group Group
	last  Counts // that is in the tally
	seen  uint64 // time enabled at the last reading
}

var (
	_ collector.Follower  = (*reader)(nil)
	_ collector.Selective = (*reader)(nil)
	_ collector.Placed    = (*reader)(nil)
)

// Follow opens events on the CPUs and in the cgroup that are the job's now and were not,
// and lets go of the others after one more reading: the kernel moves what runs there at once,
// and what it counted meanwhile is not lost. What the job does on a new CPU before
// that is; the sampler looks for it several times a second.
func (r *reader) Follow(_ context.Context, t collector.Target) error {
	refused, err := r.place(t)
	return errors.Join(err, refused)
}

// place makes the counters those of the target. An error is about the software events;
// refused says which others are not counted from now on.
func (r *reader) place(t collector.Target) (refused, err error) {
	dir := t.Dirs[r.hierarchy.Name]
	if dir == "" && strings.HasPrefix(t.PerfDir, r.hierarchy.Dir+"/") {
		dir = t.PerfDir
	}
	if dir == "" {
		return nil, fmt.Errorf("%w: the job has no cgroup in %s, perf's hierarchy; see --perf.leaf", collector.ErrUnsupported, r.hierarchy.Name)
	}
	r.dir, r.cpus = dir, slices.Clone(t.CPUs)
	cpus, err := r.wanted(time.Time{})
	if err != nil {
		return nil, err
	}
	r.release(func(c *counter) bool { return c.dir != dir || !slices.Contains(cpus, c.cpu) })
	return r.fill(cpus)
}

// wanted are the CPUs to count on.
func (r *reader) wanted(now time.Time) ([]int, error) {
	online, err := r.collector.cpus(now)
	switch {
	case len(r.cpus) == 0:
		return online, err
	case err != nil:
		return r.cpus, nil
	}
	// A cpuset may hold CPUs that are offline.
	return slices.DeleteFunc(online, func(cpu int) bool { return !slices.Contains(r.cpus, cpu) }), nil
}

// release lets go of counters after one more reading.
func (r *reader) release(gone func(*counter) bool) {
	r.complete = nil
	r.counted = slices.DeleteFunc(r.counted, func(c *counter) bool {
		if gone(c) {
			r.leaving = append(r.leaving, c)
			return true
		}
		return false
	})
}

// fill opens what is not open yet on the CPUs; as for place.
func (r *reader) fill(cpus []int) (refused, err error) {
	f, err := os.Open(r.dir)
	if err != nil {
		return nil, fmt.Errorf("perf: %w", err)
	}
	defer func() { _ = f.Close() }() // the events keep the cgroup by themselves
	var errs, others []error
	for i, p := range r.collector.plans {
		if r.off[i] != nil {
			continue
		}
		for _, cpu := range cpus {
			err := r.add(f, i, cpu)
			switch {
			case err == nil, errors.Is(err, unix.ENODEV): // it went offline just now
				continue
			case i == 0:
				errs = append(errs, fmt.Errorf("perf: CPU %d: %w", cpu, r.collector.explain(p.events[0], err)))
				continue
			}
			// Part of the CPUs would be less than the truth.
			r.off[i] = fmt.Errorf("CPU %d: %w", cpu, r.collector.explain(p.events[0], err))
			others = append(others, fmt.Errorf("perf: group %s: %w", p.name, r.off[i]))
			r.release(func(c *counter) bool { return c.plan == i })
			break
		}
	}
	return errors.Join(others...), errors.Join(errs...)
}

func (r *reader) add(cgroup *os.File, i, cpu int) error {
	same := func(c *counter) bool { return c.plan == i && c.cpu == cpu && c.dir == r.dir }
	if slices.ContainsFunc(r.counted, same) {
		return nil
	}
	// A CPU may come back before its last reading.
	if at := slices.IndexFunc(r.leaving, same); at >= 0 {
		r.counted = append(r.counted, r.leaving[at])
		r.leaving = slices.Delete(r.leaving, at, at+1)
		return nil
	}
	g, err := r.collector.opener.Open(r.collector.plans[i].attrs(), Where{Cgroup: cgroup, CPU: cpu})
	if err != nil {
		return err
	}
	c := &counter{plan: i, dir: r.dir, cpu: cpu, group: g}
	c.last.Values = make([]uint64, len(r.collector.plans[i].events))
	r.counted = append(r.counted, c)
	return nil
}

// Read adds what each CPU counted since the last reading, scaled up where the
// events were multiplexed; NaN where that cannot be done yet. Events still answer after
// the cgroup is gone, so that the last reading of a job is complete.
func (r *reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	errs := []error{r.keepUp(m.Time)}
	good := make([]bool, len(r.tallies))
	for _, t := range r.tallies {
		t.waiting = 0
	}
	r.counted = slices.DeleteFunc(r.counted, func(c *counter) bool {
		gone, err := r.take(c, good)
		if gone {
			r.complete = nil
			errs = append(errs, err, r.drop(c)) // it is opened anew when its CPU is back
		}
		return gone
	})
	for _, c := range r.leaving {
		_, err := r.take(c, good)
		errs = append(errs, err, r.drop(c))
	}
	r.leaving = nil
	for _, c := range r.counted {
		r.tallies[c.plan].waiting += c.waiting()
	}
	r.show(good, out)
	return errors.Join(errs...)
}

// keepUp lets go of CPUs that went offline and opens events on those that came back.
func (r *reader) keepUp(now time.Time) error {
	cpus, err := r.wanted(now)
	if err != nil {
		return err
	}
	if r.complete != nil && slices.Equal(cpus, r.complete) {
		return nil // to look at each counter for each CPU takes longer than to read them
	}
	r.release(func(c *counter) bool { return !slices.Contains(cpus, c.cpu) })
	missing := slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool {
		for i, why := range r.off {
			if why == nil && !slices.ContainsFunc(r.counted, func(c *counter) bool { return c.cpu == cpu && c.plan == i }) {
				return false
			}
		}
		return true
	})
	if len(missing) == 0 {
		r.complete = cpus
		return nil
	}
	refused, err := r.fill(missing)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the job has gone: nothing runs there
	}
	return errors.Join(err, refused)
}

// take adds one CPU's counts to its tally, and reports whether they are the last.
func (r *reader) take(c *counter, good []bool) (gone bool, err error) {
	if err := c.group.Read(&r.now); err != nil {
		return true, err
	}
	good[c.plan] = true
	c.seen = r.now.Enabled
	before := r.share(c.plan)
	r.tallies[c.plan].add(&c.last, r.now)
	r.put(c.cpu, before, r.share(c.plan))
	return r.now.Detached, nil
}

// waiting is the time for which it is not known yet what happened (ns).
func (c *counter) waiting() float64 {
	if c.seen <= c.last.Enabled {
		return 0
	}
	return float64(c.seen - c.last.Enabled)
}

// drop closes a counter. What it waited for will not be known.
func (r *reader) drop(c *counter) error {
	r.tallies[c.plan].enabled += c.waiting()
	return c.group.Close()
}

// show writes the totals down. Of a group of which nothing could be read nothing is said.
func (r *reader) show(good []bool, out collector.Values) {
	if !slices.Contains(good, true) {
		return
	}
	enabled, running := 0.0, 0.0
	for i, p := range r.collector.plans {
		t := r.tallies[i]
		// Software events run whenever they are enabled.
		known := t.known() && r.off[i] == nil || i == 0
		enabled, running = enabled+t.enabled+t.waiting, running+t.running
		if !good[i] && r.off[i] == nil {
			continue
		}
		for k, e := range p.events {
			out[e.Column] = t.totals[k] / e.perUnit()
			if !known {
				out[e.Column] = math.NaN()
			}
		}
		out[api.PerfEnabled(p.name)], out[api.PerfRunning(p.name)] = (t.enabled+t.waiting)/nanoseconds, t.running/nanoseconds
	}
	out[api.ColPerfEnabled], out[api.ColPerfRunning] = enabled/nanoseconds, running/nanoseconds
}

// Events are the chosen ones that it counts, and the sources that it was to count and
// cannot.
func (r *reader) Events() (counted []string, absent []api.Source) {
	for i, p := range r.collector.plans {
		for _, e := range p.events {
			switch {
			case r.off[i] != nil:
				absent = append(absent, collector.Source("perf/"+e.Name, "", r.off[i]))
			case e.further():
				counted = append(counted, e.Name)
			}
		}
	}
	return counted, absent
}

// Close closes the events.
func (r *reader) Close() error {
	var errs []error
	for _, c := range append(r.counted, r.leaving...) {
		errs = append(errs, c.group.Close())
	}
	r.counted, r.leaving = nil, nil
	return errors.Join(errs...)
}
