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

type reader struct {
	collector *Collector
	hierarchy hostfs.Hierarchy // perf's
	dir       string           // the job's cgroup there
	cpus      []int            // that it may use; nil = all that are online
	tallies   []*tally         // of the collector's plans; the software events are the first
	counters  []*counter
	complete  []int  // CPUs that all have their counters, until one is closed; nil = look
	now       Counts // used again at each reading
	places    map[int]*collector.Place
}

// counter is one group of events on one CPU.
type counter struct {
	*tally

	dir   string
	cpu   int
	place *collector.Place
	group Group
	last  Counts // that is in the tally
	seen  uint64 // time enabled at the last reading
}

var (
	_ collector.Follower  = (*reader)(nil)
	_ collector.Selective = (*reader)(nil)
	_ collector.Placed    = (*reader)(nil)
)

// Follow opens events on the CPUs and in the cgroup that are new to the job, and reads and
// closes the others. What the job does on a new CPU before that is lost; the sampler looks
// for it several times a second.
func (r *reader) Follow(_ context.Context, t collector.Target) error {
	refused, err := r.follow(t)
	return errors.Join(err, refused)
}

// follow makes the counters those of the target. An error is about the software events;
// refused says which others are not counted from now on.
func (r *reader) follow(t collector.Target) (refused, err error) {
	dir := t.Dirs[r.hierarchy.Name]
	if dir == "" && strings.HasPrefix(t.PerfDir, r.hierarchy.Dir+"/") {
		dir = t.PerfDir
	}
	if dir == "" {
		return nil, fmt.Errorf("%w: the job has no cgroup in %s, perf's hierarchy; see --perf.leaf", collector.ErrUnsupported, r.hierarchy.Name)
	}
	r.dir, r.cpus, r.complete = dir, slices.Clone(t.CPUs), nil
	return r.keepUp(time.Time{})
}

// keepUp closes counters of CPUs that went offline, and of cgroups that the job has left, and
// opens those of CPUs that came back; as for follow.
func (r *reader) keepUp(now time.Time) (refused, err error) {
	cpus, err := r.wanted(now)
	if err != nil || r.complete != nil && slices.Equal(cpus, r.complete) {
		return nil, err // to look at each counter for each CPU takes longer than to read them
	}
	closed := r.release(func(c *counter) bool { return c.dir != r.dir || !slices.Contains(cpus, c.cpu) })
	refused, err = r.fill(cpus)
	return refused, errors.Join(closed, err)
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

// release reads counters a last time and closes them.
func (r *reader) release(gone func(*counter) bool) error {
	var errs []error
	r.counters = slices.DeleteFunc(r.counters, func(c *counter) bool {
		if !gone(c) {
			return false
		}
		_, err := c.read(&r.now)
		errs = append(errs, err, c.close())
		r.complete = nil
		return true
	})
	return errors.Join(errs...)
}

// fill opens what is not open yet on the CPUs; as for follow.
func (r *reader) fill(cpus []int) (refused, err error) {
	f, err := os.Open(r.dir)
	if err != nil {
		return nil, fmt.Errorf("perf: %w", err)
	}
	defer func() { _ = f.Close() }() // the events keep the cgroup by themselves
	var errs, others []error
	r.complete = cpus
	for i, t := range r.tallies {
		for _, cpu := range cpus {
			counts := func(c *counter) bool { return c.tally == t && c.cpu == cpu && c.dir == r.dir }
			if t.off != nil || slices.ContainsFunc(r.counters, counts) {
				continue
			}
			err := r.open(f, t, cpu)
			if err == nil {
				continue
			}
			r.complete = nil
			if errors.Is(err, unix.ENODEV) { // it went offline just now
				continue
			}
			err = fmt.Errorf("CPU %d: %w", cpu, r.collector.explain(t.events[0], err))
			if i == 0 {
				errs = append(errs, fmt.Errorf("perf: %w", err))
				continue
			}
			t.off = err // part of the CPUs would be less than the truth
			others = append(others, fmt.Errorf("perf: group %s: %w", t.name, err), r.release(func(c *counter) bool { return c.tally == t }))
		}
	}
	return errors.Join(others...), errors.Join(errs...)
}

func (r *reader) open(cgroup *os.File, t *tally, cpu int) error {
	g, err := r.collector.opener.Open(t.attrs(), Where{Cgroup: cgroup, CPU: cpu})
	if err != nil {
		return err
	}
	socket := r.collector.root.Package(cpu)
	if r.places[socket] == nil {
		r.places[socket] = &collector.Place{}
	}
	c := &counter{tally: t, dir: r.dir, cpu: cpu, group: g, place: r.places[socket]}
	c.last.Values = make([]uint64, len(t.events))
	r.counters = append(r.counters, c)
	return nil
}

// Read adds what each CPU counted since the last reading, scaled up if the
// events were multiplexed; NaN if that cannot be done yet. Events still answer after
// the cgroup is gone, so the last reading of a job is complete.
func (r *reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	refused, err := r.keepUp(m.Time)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // the job has gone: nothing runs there
	}
	errs := []error{err, refused}
	for _, t := range r.tallies {
		t.waiting, t.good = 0, false
	}
	r.counters = slices.DeleteFunc(r.counters, func(c *counter) bool {
		gone, err := c.read(&r.now)
		if gone {
			r.complete = nil
			errs = append(errs, err, c.close()) // it is opened again when its CPU is back
		} else {
			c.waiting += c.unread()
		}
		return gone
	})
	r.show(out)
	return errors.Join(errs...)
}

// read adds one CPU's counts to the tally, and reports whether they are the last.
func (c *counter) read(now *Counts) (gone bool, err error) {
	if err := c.group.Read(now); err != nil {
		return true, err
	}
	c.good, c.seen = true, now.Enabled
	c.add(*now)
	return now.Detached, nil
}

// unread is the time without a reading so far (ns).
func (c *counter) unread() float64 {
	return float64(c.seen - min(c.seen, c.last.Enabled))
}

// close closes the group. What it waited for stays unknown.
func (c *counter) close() error {
	c.enabled += c.unread()
	return c.group.Close()
}

// tally adds up what one group of events counted on all CPUs of a job, scaled up for
// the time in which it did not run.
type tally struct {
	plan

	off              error     // why it is not counted any more; nil = it is
	good             bool      // a counter could be read in this reading
	totals           []float64 // in counts
	enabled, running float64   // ns, of what is in totals
	waiting          float64   // ns enabled on CPUs that did not run since, as of the last reading
	settled          float64   // enabled when the totals were last known
}

const (
	// Totals are known while at most this part of the time is missing in them,
	unsettled = 0.05
	// or at most this long (ns), once anything was counted.
	negligible = 1e6
)

// add takes what one CPU counted since the last reading. If the events were enabled but never
// running, nothing is known of that time yet: last stays, and the next reading scales over
// all of it. Counts that fall are never subtracted.
func (c *counter) add(now Counts) {
	if now.Enabled < c.last.Enabled || now.Running < c.last.Running {
		// The kernel never does that; what starts again counts from 0.
		c.last = Counts{Values: make([]uint64, len(now.Values))}
	}
	enabled, running := float64(now.Enabled-c.last.Enabled), float64(now.Running-c.last.Running)
	if running == 0 && enabled > 0 {
		return
	}
	scale := 1.0
	if running > 0 && running < enabled {
		scale = enabled / running
	}
	for i, v := range now.Values {
		if i >= len(c.last.Values) || v <= c.last.Values[i] {
			continue
		}
		grown := float64(v-c.last.Values[i]) * scale
		c.totals[i] += grown
		if e := c.events[i]; e.place != nil {
			*e.place(c.place) += grown / e.perUnit()
		}
	}
	c.enabled += enabled
	c.running += running
	c.last.Enabled, c.last.Running = now.Enabled, now.Running
	c.last.Values = append(c.last.Values[:0], now.Values...)
}

// known reports whether the totals are what the job did up to now. It is called once a reading.
func (t *tally) known() bool {
	all := t.enabled + t.waiting
	if t.waiting > unsettled*(all-t.settled) && (t.waiting > negligible || t.running == 0) {
		return false
	}
	t.settled = all
	return true
}

// show writes the totals. It leaves out a group that could not be read.
func (r *reader) show(out collector.Values) {
	if !slices.ContainsFunc(r.tallies, func(t *tally) bool { return t.good }) {
		return
	}
	enabled, running := 0.0, 0.0
	for i, t := range r.tallies {
		// Software events run whenever they are enabled.
		known := t.known() && t.off == nil || i == 0
		enabled, running = enabled+t.enabled+t.waiting, running+t.running
		if !t.good && t.off == nil {
			continue
		}
		for k, e := range t.events {
			out[e.Column] = t.totals[k] / e.perUnit()
			if !known {
				out[e.Column] = math.NaN()
			}
		}
		out[api.PerfEnabled(t.name)], out[api.PerfRunning(t.name)] = (t.enabled+t.waiting)/nanoseconds, t.running/nanoseconds
	}
	out[api.ColPerfEnabled], out[api.ColPerfRunning] = enabled/nanoseconds, running/nanoseconds
}

// Events are the chosen ones that it counts, and the sources that it was to count and
// cannot.
func (r *reader) Events() (counted []string, absent []api.Source) {
	for _, t := range r.tallies {
		for _, e := range t.events {
			switch {
			case t.off != nil:
				absent = append(absent, collector.Source("perf/"+e.Name, "", t.off))
			case e.further():
				counted = append(counted, e.Name)
			}
		}
	}
	return counted, absent
}

// Places reports what the job did on each package. It leaves out events whose group did not
// count all of the time up to now.
func (r *reader) Places() map[int]collector.Place {
	out := make(map[int]collector.Place, len(r.places))
	for socket, p := range r.places {
		place := *p
		for i, t := range r.tallies {
			if i == 0 || t.off == nil && t.settled > 0 && t.settled == t.enabled+t.waiting {
				continue
			}
			for _, e := range t.events {
				if e.place != nil {
					*e.place(&place) = 0
				}
			}
		}
		if place != (collector.Place{}) {
			out[socket] = place
		}
	}
	return out
}

// Close closes the events.
func (r *reader) Close() error {
	var errs []error
	for _, c := range r.counters {
		errs = append(errs, c.group.Close())
	}
	r.counters = nil
	return errors.Join(errs...)
}
