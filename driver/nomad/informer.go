package nomad

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"
	"golang.org/x/sync/errgroup"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// informer see which jobs change, for everybody who watches and for the driver's own steps.
// The list of jobs is the truth: a blocking query that returns when any job of the
// namespace changes, the state of its allocations included.
type informer struct {
	d *Driver

	mu    sync.Mutex
	known map[string]*sight // by namespace: what was last seen
	acted int               // how often something was done here
	subs  map[*sub]struct{}
	due   map[driver.JobID]struct{} // jobs on record that are to be looked at
	wake  chan struct{}
}

func newEyes(d *Driver) *informer {
	return &informer{
		d: d, known: map[string]*sight{}, subs: map[*sub]struct{}{},
		due: map[driver.JobID]struct{}{}, wake: make(chan struct{}, 1),
	}
}

// sight is what was seen of a namespace.
type sight struct {
	jobs  []listed
	marks map[driver.JobID]string
	at    time.Time
	acted int // of before the list was asked for
}

// listed is a job of a list.
type listed struct {
	id      driver.JobID
	created uint64
	mark    string // changes whenever the job or its allocations do
	line    line
}

// seen is whether a registration carries a stanza.
type seen struct {
	index     uint64 // of the registration
	submitted int64  // time of the registration in nanoseconds: indexes of a cluster that is set up anew come again
	stanza    bool
	again     time.Time // it could not be read: when to ask again; zero: it was read
	failed    int       // how often it could not
}

// of reports whether it is about the registration that a list shows.
func (s seen) of(stub *api.JobListStub) bool {
	return s.index == stub.JobModifyIndex && s.submitted == stub.SubmitTime
}

// unread is what is known of a registration that could not be read: it is asked for again,
// later each time, and where another one of the job was read before, what that was counts
// until then.
func (s seen) unread(stub *api.JobListStub, err error) seen {
	out := seen{index: stub.JobModifyIndex, submitted: stub.SubmitTime, stanza: s.stanza, failed: 1}
	if s.of(stub) {
		out.failed = s.failed + 1
	}
	wait := granted
	if errors.Is(err, driver.ErrTransient) {
		wait = min(time.Second<<min(out.failed-1, 20), granted)
	}
	out.again = time.Now().Add(wait)
	return out
}

const (
	readers  = 8                      // that read jobs at a time
	pausing  = time.Millisecond       // for each job of a list, between two lists
	minPause = 50 * time.Millisecond  // between two lists
	maxPause = 5 * time.Second        // between two lists
	urgent   = 250 * time.Millisecond // where a change is being verified
)

// list lists the jobs that are seen, after the index has moved on where it is not 0,
// and how many jobs there are in all.
func (e *informer) list(ctx context.Context, namespace string, index uint64) ([]listed, meta, error) {
	q := query(ctx, namespace)
	q.WaitIndex, q.WaitTime = index, e.d.cfg.Resync
	if index == 0 {
		q.WaitTime = 0
	}
	stubs, qm, err := e.d.c.api.Jobs().ListOptions(&api.JobListOptions{Fields: &api.JobListFields{Meta: true}}, q)
	if err != nil {
		return nil, meta{}, asked("jobs of "+namespace, listJobs.in(namespace), err)
	}
	soon, err := e.learn(ctx, namespace, stubs)
	if err != nil {
		return nil, meta{}, fmt.Errorf("jobs of %s: %w", namespace, err)
	}
	var out []listed
	for _, s := range stubs {
		w := where{s.Namespace, s.ID}
		l := listed{id: w.jobID(), created: s.CreateIndex, mark: fmt.Sprint(s.CreateIndex, s.ModifyIndex), line: line{s.Name, s.Status, s.SubmitTime}}
		if s.JobSummary != nil {
			l.mark += fmt.Sprint(" ", s.JobSummary.ModifyIndex, s.JobSummary.Summary)
		}
		if e.d.carries(l.id) {
			out = append(out, l)
		}
	}
	return out, meta{index: qm.LastIndex, jobs: len(stubs), soon: soon}, nil
}

// meta is what came with a list.
type meta struct {
	index uint64
	jobs  int
	soon  time.Time // one of them is to be asked for again then; zero: none
}

// learn reads each registration once, to know whether it carries a stanza. One that cannot
// be read hides no other. Soon is when one is to be asked for again; zero: none is soon.
func (e *informer) learn(ctx context.Context, namespace string, stubs []*api.JobListStub) (soon time.Time, err error) {
	var g errgroup.Group
	g.SetLimit(readers)
	there := make(map[driver.JobID]struct{}, len(stubs))
	for _, s := range stubs {
		w := where{s.Namespace, s.ID}
		id := w.jobID()
		there[id] = struct{}{}
		known, ok := e.d.stanza(id)
		if ok && known.of(s) && (known.again.IsZero() || time.Now().Before(known.again)) {
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
			case errors.Is(err, driver.ErrNotFound) || err != nil && canceled(ctx):
				return nil
			case err != nil:
				now := known.unread(s, err)
				if e.d.learned(id, now); now.failed == 1 {
					e.d.cfg.Logger.Warn("a job cannot be read; the others are", "job", string(id), "error", err)
				}
				return nil
			}
			e.d.learned(id, seen{index: deref(job.JobModifyIndex), submitted: deref(job.SubmitTime), stanza: spec.Stanza(job)})
			return nil
		})
	}
	_ = g.Wait() // none of them returns an error
	if canceled(ctx) {
		return time.Time{}, ctx.Err()
	}
	return e.d.unlearn(namespace, there), nil
}

// look follows the jobs of a namespace until ctx ends.
func (e *informer) look(ctx context.Context, namespace string) {
	var last meta
	pause := minPause
	for ctx.Err() == nil {
		acted := e.actions()
		jobs, m, err := e.list(ctx, namespace, last.index)
		if err != nil {
			if ctx.Err() == nil {
				e.d.cfg.Logger.Warn("jobs cannot be listed", "namespace", namespace, "error", err)
			}
			// Whatever happens until the next list is in it.
			last.index, pause = 0, min(max(2*pause, urgent), maxPause)
			sleep(ctx, pause)
			continue
		}
		if m.index < last.index || acted != e.actions() {
			m.index = 0 // a server that was set up anew, or something done here that may not be in it
		}
		last = m
		e.compare(namespace, &sight{jobs: jobs, at: time.Now(), acted: acted})
		pause = min(max(time.Duration(m.jobs)*pausing, minPause), maxPause)
		if e.d.verifying() {
			pause = min(pause, urgent)
		}
		if wait := time.Until(m.soon); !m.soon.IsZero() && wait < e.d.cfg.Resync {
			last.index, pause = 0, max(pause, min(wait, maxPause)) // a list that waits would come too late for that
		}
		sleep(ctx, pause)
	}
}

// actions is how often something was done here.
func (e *informer) actions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acted
}

// did notes that something was done here that lists of before do not show.
func (e *informer) did() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acted++
}

// compare tells everybody of the jobs that have changed since the last list.
func (e *informer) compare(namespace string, now *sight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.known[namespace]
	if before == nil {
		before = &sight{}
	}
	now.marks = make(map[driver.JobID]string, len(now.jobs))
	for _, l := range now.jobs {
		now.marks[l.id] = l.mark
		if before.marks[l.id] != l.mark {
			e.tell(l.id)
		}
	}
	for id := range before.marks {
		if _, ok := now.marks[id]; !ok {
			e.tell(id)
		}
	}
	e.known[namespace] = now
}

// now are the jobs of a namespace by the last list; false where that is too old.
func (e *informer) now(namespace string) ([]listed, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.known[namespace]
	if s == nil || s.acted != e.acted || time.Since(s.at) > 2*e.d.cfg.Resync {
		return nil, false
	}
	return s.jobs, true
}

// mark is what the last list says of a job; empty where there is none that counts.
func (e *informer) mark(id driver.JobID) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ns := range []string{place(id).namespace, api.AllNamespacesNamespace} {
		if s := e.known[ns]; s != nil && time.Since(s.at) <= 2*e.d.cfg.Resync {
			return s.marks[id]
		}
	}
	return ""
}

// tell has a job looked at. The caller holds the lock.
func (e *informer) tell(id driver.JobID) {
	for s := range e.subs {
		s.add(id)
	}
	e.due[id] = struct{}{}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// poke has a job looked at that was changed here.
func (e *informer) poke(id driver.JobID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell(id)
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
			e.d.keepLearned(ctx)
			e.d.prune(ctx)
			ids = e.d.unfinished(func(r brief) bool { return !r.ended })
		case <-soon.C:
			ids = e.d.unfinished(func(r brief) bool { return r.changing })
		case <-e.wake:
			ids = e.take()
		}
		g := errgroup.Group{}
		g.SetLimit(readers)
		for _, id := range ids {
			g.Go(func() error {
				once, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				err := e.d.tend(once, id)
				if errors.Is(err, driver.ErrNotFound) {
					err = e.d.missing(once, id)
				}
				if err != nil && ctx.Err() == nil {
					e.d.cfg.Logger.Warn("a job on record cannot be looked after", "job", string(id), "error", err)
				}
				return nil
			})
		}
		_ = g.Wait() // none of them returns an error
	}
}

// take are the jobs on record that are to be looked at.
func (e *informer) take() []driver.JobID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []driver.JobID
	for id := range e.due {
		if e.d.onRecord(id) {
			out = append(out, id)
		}
	}
	clear(e.due)
	return out
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
