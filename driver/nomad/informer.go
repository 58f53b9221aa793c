package nomad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/nomad/api"
	"golang.org/x/sync/errgroup"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// informer notices which jobs change, for all who watch and for the driver's own steps.
// The list of jobs is the truth: a blocking query that returns when any job of the
// namespace changes, the state of its allocations included.
type informer struct {
	d *Driver

	acted atomic.Int64 // how often something was done here, that lists of before may not show

	mu    sync.Mutex
	lists map[string]*listing  // by namespace: what was last seen
	told  map[string]time.Time // by namespace that cannot be listed: when that was last logged

	watchers driver.Watchers
	own      *driver.Watcher // of the jobs on record that are to be looked at
}

// listing is what was seen of a namespace.
type listing struct {
	jobs  map[driver.JobID]listed
	at    time.Time
	acted int64 // of before the list was asked for

	index uint64
	all   int // how many jobs there are, those without a stanza included
}

type listed struct {
	id           driver.JobID
	created      uint64
	mark         string // changes whenever the job or its allocations do
	name, status string
	submitted    int64 // nanoseconds
}

const (
	readers  = 8                      // that read jobs at a time
	pausing  = time.Millisecond       // for each job of a list, between two lists
	minPause = 50 * time.Millisecond  // between two lists
	maxPause = 5 * time.Second        // between two lists
	urgent   = 250 * time.Millisecond // where a change is being verified
)

// list lists the jobs that are seen, after the index has moved on where it is not 0.
func (e *informer) list(ctx context.Context, namespace string, index uint64) (*listing, error) {
	out := &listing{jobs: map[driver.JobID]listed{}, acted: e.acted.Load()}
	q := query(ctx, namespace)
	if q.WaitIndex = index; index > 0 {
		q.WaitTime = e.d.cfg.Resync
	}
	stubs, qm, err := e.d.c.api.Jobs().ListOptions(&api.JobListOptions{Fields: &api.JobListFields{Meta: true}}, q)
	if err != nil {
		return nil, asked("jobs of "+namespace, listJobs, namespace, err)
	}
	if err := e.learn(ctx, namespace, stubs); err != nil {
		return nil, fmt.Errorf("jobs of %s: %w", namespace, err)
	}
	out.index, out.all, out.at = qm.LastIndex, len(stubs), time.Now()
	for _, s := range stubs {
		id := where{s.Namespace, s.ID}.jobID()
		if c := e.d.peek(id); c.record == nil && !c.seen.stanza {
			continue
		}
		l := listed{id: id, created: s.CreateIndex, mark: fmt.Sprint(s.CreateIndex, s.ModifyIndex), name: s.Name, status: s.Status, submitted: s.SubmitTime}
		if s.JobSummary != nil {
			l.mark += fmt.Sprint(" ", s.JobSummary.ModifyIndex, s.JobSummary.Summary)
		}
		out.jobs[id] = l
	}
	return out, nil
}

// learn reads each registration once, to know whether it carries a stanza. One that cannot
// be read hides no other: it is asked for again after a while, and what was known of the
// registration before counts until then.
func (e *informer) learn(ctx context.Context, namespace string, stubs []*api.JobListStub) error {
	var g errgroup.Group
	g.SetLimit(readers)
	there := make(map[driver.JobID]struct{}, len(stubs))
	for _, s := range stubs {
		w := where{s.Namespace, s.ID}
		id := w.jobID()
		there[id] = struct{}{}
		known := e.d.peek(id).seen
		if known.of(s) && (known.again.IsZero() || time.Now().Before(known.again)) {
			continue
		}
		if s.Meta["tuning"] != "" {
			e.d.learned(id, seen{index: s.JobModifyIndex, submitted: s.SubmitTime, stanza: true})
			continue
		}
		g.Go(func() error {
			once, done := context.WithTimeout(ctx, answersWithin)
			defer done()
			job, err := e.d.c.job(once, w)
			switch {
			case errors.Is(err, driver.ErrNotFound) || err != nil && ctx.Err() != nil:
			case err != nil:
				e.d.cfg.Logger.Warn("a job cannot be read; the others are", "job", string(id), "error", err)
				e.d.learned(id, seen{s.JobModifyIndex, s.SubmitTime, known.stanza, time.Now().Add(e.d.cfg.Resync)})
			default:
				e.d.learned(id, seen{index: spec.Deref(job.JobModifyIndex), submitted: spec.Deref(job.SubmitTime), stanza: spec.Stanza(job)})
			}
			return nil
		})
	}
	_ = g.Wait() // they return no errors
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.d.unlearn(namespace, there)
	return nil
}

// look follows the jobs of a namespace until ctx ends.
func (e *informer) look(ctx context.Context, namespace string) {
	index, pause := uint64(0), time.Duration(0)
	for driver.Pause(ctx, pause) == nil {
		l, err := e.list(ctx, namespace, index)
		if err != nil {
			if ctx.Err() == nil {
				e.warn(namespace, err)
			}
			// Whatever happens until the next list is in it.
			index, pause = 0, min(max(2*pause, urgent), maxPause)
			continue
		}
		e.compare(namespace, l)
		pause = min(max(time.Duration(l.all)*pausing, minPause), maxPause)
		if len(e.d.which(verifying)) > 0 {
			pause = min(pause, urgent)
		}
		if l.index < index || l.acted != e.acted.Load() {
			l.index = 0 // a server that was set up again, or something done here that may not be in it
		}
		index = l.index
	}
}

// compare notifies all of the jobs that have changed since the last list.
func (e *informer) compare(namespace string, now *listing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := cmp.Or(e.lists[namespace], &listing{})
	for id, l := range now.jobs {
		if before.jobs[id].mark != l.mark {
			e.watchers.Changed(id)
		}
	}
	for id := range before.jobs {
		if _, ok := now.jobs[id]; !ok {
			e.watchers.Changed(id)
		}
	}
	e.lists[namespace] = now
	delete(e.told, namespace)
}

// warn logs, once a minute, that a namespace cannot be listed.
func (e *informer) warn(namespace string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.told[namespace]) >= time.Minute {
		e.told[namespace] = time.Now()
		e.d.cfg.Logger.Warn("jobs cannot be listed", "namespace", namespace, "error", err)
	}
}

// down reports whether a job's namespace cannot be listed, which was logged for all its jobs.
func (e *informer) down(id driver.JobID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.told[place(id).namespace].IsZero() || !e.told[api.AllNamespacesNamespace].IsZero()
}

// now are the jobs of a namespace by the last list; false where that is too old.
func (e *informer) now(namespace string) (*listing, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lists[namespace]
	return l, l != nil && l.acted == e.acted.Load() && time.Since(l.at) <= 2*e.d.cfg.Resync
}

// mark is what the last list says about a job; empty where there is none that counts.
func (e *informer) mark(id driver.JobID) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ns := range []string{place(id).namespace, api.AllNamespacesNamespace} {
		if l := e.lists[ns]; l != nil && time.Since(l.at) <= 2*e.d.cfg.Resync {
			return l.jobs[id].mark
		}
	}
	return ""
}

// keep takes the driver's own steps for jobs on record that have changed, and for all
// of them now and then, until ctx ends.
func (e *informer) keep(ctx context.Context) {
	tick := time.NewTicker(e.d.cfg.Resync)
	defer tick.Stop()
	soon := time.NewTicker(time.Second)
	defer soon.Stop()
	for {
		var ids []driver.JobID
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.d.prune(ctx)
			ids = e.d.which(unfinished)
		case <-soon.C:
			ids = e.d.which(verifying)
		case <-e.own.Wake:
			ids = slices.DeleteFunc(e.own.Take(), func(id driver.JobID) bool { return e.d.peek(id).record == nil })
		}
		var g errgroup.Group
		g.SetLimit(readers)
		for _, id := range ids {
			g.Go(func() error {
				once, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				release := e.d.hold(id)
				_, _, err := e.d.get(once, id)
				release()
				if errors.Is(err, driver.ErrNotFound) {
					err = e.d.missing(once, id)
				}
				if err != nil && ctx.Err() == nil && !e.down(id) {
					e.d.cfg.Logger.Warn("a job on record cannot be looked after", "job", string(id), "error", err)
				}
				return nil
			})
		}
		_ = g.Wait() // they return no errors
	}
}

// Watch sends an event for each job that is seen and then whenever one may have
// changed. Where Nomad does not answer for a while nothing is missed: the list that it
// gives next is compared with the last.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	w := d.informer.watchers.Subscribe()
	jobs, err := d.all(ctx, true)
	if err != nil {
		w.Leave()
		return nil, fmt.Errorf("watch: %w", err)
	}
	for _, l := range jobs {
		w.Add([]driver.JobID{l.id})
	}
	ctx, stop := context.WithCancel(ctx)
	closed := context.AfterFunc(d.life, stop)
	context.AfterFunc(ctx, func() { closed() })
	return w.Stream(ctx), nil
}
