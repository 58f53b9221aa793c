package nomad

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

var _ driver.Adviser = (*Driver)(nil)

// advised is on record of a job that has a lower priority than its owner gave it, or prefers nodes.
type advised struct {
	Job     driver.JobID `json:"job"`
	Index   uint64       `json:"index"`   // of the job's creation
	Version uint64       `json:"version"` // that was registered before
	Own     int          `json:"own"`     // priority
	Given   int          `json:"given"`
	Class   string       `json:"class,omitempty"` // of the nodes that it prefers; empty = no advice
}

const advicePrefix = "advice-"

func (l advised) name() string { return advicePrefix + driver.Digest(string(l.Job))[:40] }

// none reports whether the job is as its owner has it.
func (l advised) none() bool { return l.Given == l.Own && l.Class == "" }

// of reports whether a job still has what it was given, and no new word of its owner.
func (l advised) of(job *api.Job) bool {
	return l.Index == spec.Deref(job.CreateIndex) && l.Given == spec.Deref(job.Priority) &&
		(l.Class == "" || len(job.Affinities) > 0 && reflect.DeepEqual(job.Affinities[0], affinity(l.Class)))
}

// affinity is what an advised class is given by. Its weight, of -100 to 100, is Nomad's own where none is named.
func affinity(class string) *api.Affinity { return api.NewAffinity("${node.class}", "=", class, 50) }

// prefers is the first of the affinities of a job, its group and its task: the class of nodes that it names, or another value.
func prefers(job *api.Job) string {
	all := slices.Clone(job.Affinities)
	for _, g := range job.TaskGroups {
		all = append(all, g.Affinities...)
		for _, t := range g.Tasks {
			all = append(all, t.Affinities...)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return cmp.Or(all[0].RTarget, all[0].Operand)
}

// advice is what is remembered between two looks at the queue.
type advice struct {
	mu    sync.Mutex
	given map[driver.JobID]advised  // as the journal has it; nil: not read
	read  map[driver.JobID]*api.Job // registrations
}

// recallAdvice reads what is on record. The caller holds the lock.
func (d *Driver) recallAdvice(ctx context.Context) error {
	if d.advice.given != nil {
		return nil
	}
	names, err := d.cfg.Journal.List(ctx)
	given := map[driver.JobID]advised{}
	for _, name := range names {
		if err != nil || !strings.HasPrefix(name, advicePrefix) {
			continue
		}
		var data []byte
		var l advised
		if data, err = d.cfg.Journal.Load(ctx, name); err == nil {
			err = json.Unmarshal(data, &l)
		}
		given[l.Job] = l
	}
	if err != nil {
		return fmt.Errorf("records of advice: %w: %w", driver.ErrTransient, err)
	}
	d.advice.given = given
	return nil
}

// keepAdvice makes what a job was given durable, or forgets it where that is what its owner wrote.
func (d *Driver) keepAdvice(ctx context.Context, l advised) (err error) {
	was, known := d.advice.given[l.Job]
	switch {
	case l.none() && known:
		delete(d.advice.given, l.Job)
		err = d.cfg.Journal.Delete(ctx, l.name())
	case !l.none() && l != was:
		d.advice.given[l.Job] = l
		var data []byte
		if data, err = json.Marshal(l); err == nil {
			err = d.cfg.Journal.Save(ctx, l.name(), data)
		}
	}
	if err != nil {
		d.advice.given = nil
		return fmt.Errorf("record of advice: %w: %w", driver.ErrTransient, err)
	}
	return nil
}

// Queue implements driver.Adviser by two lists for each namespace and one of nodes. The jobs have no time limits (Advise).
// A namespace that the token may not list hides no other, nor does a job that cannot be read: it is as it was last read.
func (d *Driver) Queue(ctx context.Context) (jobs []driver.Job, err error) {
	d.advice.mu.Lock()
	defer d.advice.mu.Unlock()
	if err := d.recallAdvice(ctx); err != nil {
		return nil, err
	}
	classes, err := d.classes(ctx)
	if err != nil {
		return nil, err
	}
	next, over := map[driver.JobID]*api.Job{}, map[driver.JobID]bool{}
	var denied []error
	for _, ns := range d.ns {
		stubs, _, err := d.c.api.Jobs().List(query(ctx, ns))
		err = asked("jobs of "+ns, listJobs, ns, err)
		var allocs []*api.AllocationListStub
		if err == nil {
			allocs, _, err = d.c.api.Allocations().List(query(ctx, ns))
			err = asked("allocations of "+ns, readJob, ns, err)
		}
		switch {
		case errors.Is(err, driver.ErrDenied):
			denied = append(denied, err)
			continue
		case err != nil:
			return nil, err
		}
		slices.SortFunc(allocs, func(a, b *api.AllocationListStub) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
		by := map[driver.JobID][]*api.AllocationListStub{}
		for _, a := range allocs {
			id := where{a.Namespace, a.JobID}.jobID()
			by[id] = append(by[id], a)
		}
		for _, s := range stubs {
			w := where{s.Namespace, s.ID}
			job := d.advice.read[w.jobID()]
			switch {
			case s.Type != api.JobTypeBatch || (s.Periodic || s.ParameterizedJob) && s.ParentID == "":
				continue
			case job == nil || spec.Deref(job.JobModifyIndex) != s.JobModifyIndex:
				if now, err := d.c.job(ctx, w); err == nil {
					job = now
				} else if job == nil || errors.Is(err, driver.ErrNotFound) {
					continue
				}
			}
			next[w.jobID()] = job
			j := plain(w.jobID(), job, s, by[w.jobID()], classes)
			over[j.ID] = j.State.Ended()
			if l, ok := d.advice.given[j.ID]; ok && !over[j.ID] && l.of(job) {
				j.Nice = l.Own - l.Given
			}
			jobs = append(jobs, j)
		}
	}
	d.advice.read = next
	for id, l := range d.advice.given {
		if next[id] == nil {
			_, err := d.c.job(ctx, place(id))
			over[id] = errors.Is(err, driver.ErrNotFound) // else it could only not be listed or read
		}
		if l.Given, l.Class = l.Own, ""; over[id] && d.c.mayAct(ctx) == nil {
			if err := d.keepAdvice(ctx, l); err != nil {
				return nil, err
			}
		}
	}
	if len(denied) == len(d.ns) {
		return nil, errors.Join(denied...)
	}
	return jobs, nil
}

// classes are those of the nodes by their ids. Where the token may not list nodes, none is known.
func (d *Driver) classes(ctx context.Context) (map[string]string, error) {
	nodes, _, err := d.c.api.Nodes().List(query(ctx, ""))
	if err = asked("nodes", readNodes, "", err); err != nil && !errors.Is(err, driver.ErrDenied) {
		return nil, err
	}
	out := map[string]string{}
	for _, n := range nodes {
		out[n.ID] = n.NodeClass
	}
	return out, nil
}

// plain is a job as its registration, the list of jobs, its allocations, the oldest first, and the classes of nodes show it.
func plain(id driver.JobID, job *api.Job, s *api.JobListStub, allocs []*api.AllocationListStub, classes map[string]string) driver.Job {
	now := *job
	now.Status, now.Stop = &s.Status, &s.Stop
	if s.Status != "dead" { // what ended before it was registered again is not a run of it
		allocs = slices.DeleteFunc(allocs, func(a *api.AllocationListStub) bool { return a.JobVersion < spec.Deref(job.Version) && view.Over(a) })
	}
	in := view.Input{ID: id, Job: &now, Own: &now, Allocs: allocs}
	if _, t := spec.Main(job); t != nil {
		in.Task = t.Name
	}
	j, _ := view.Job(in)
	j.Name, j.Resources.TimeLimit, j.Prefers = cmp.Or(s.ParentID, j.Name), 0, prefers(job)
	for k, a := range allocs {
		if k > 0 && classes[a.NodeID] != j.Class {
			j.Class = ""
			break
		}
		j.Class = classes[a.NodeID]
	}
	return j
}

// Past implements driver.Adviser by what Nomad still remembers: it has no accounting.
func (d *Driver) Past(ctx context.Context, since, until time.Time) ([]driver.Job, error) {
	jobs, err := d.Queue(ctx)
	return slices.DeleteFunc(jobs, func(j driver.Job) bool {
		return !j.State.Ended() || j.Ended.Before(since) || !j.Ended.Before(until)
	}), err
}

// Advise implements driver.Adviser by the priority of a job that waits and an affinity for a class
// of nodes. A job that runs keeps what it has: Nomad runs again what ends just before its job is registered.
func (d *Driver) Advise(ctx context.Context, a driver.Advice) error {
	w := place(a.Job)
	switch {
	case a.TimeLimit != 0:
		return fmt.Errorf("advise job %s: Nomad starts no job sooner for a shorter time limit: %w", a.Job, driver.ErrUnsupported)
	case a.Nice < 0:
		return fmt.Errorf("advise job %s: nice %d is above its owner's priority: %w", a.Job, a.Nice, driver.ErrInvalid)
	case !d.sees(w.namespace):
		return fmt.Errorf("advise job %s: namespace %s is not seen here: %w", a.Job, w.namespace, driver.ErrNotFound)
	}
	d.advice.mu.Lock()
	defer d.advice.mu.Unlock()
	job, unknown, err := d.c.whole(ctx, w)
	if err == nil {
		err = d.recallAdvice(ctx)
	}
	if err != nil {
		return err
	}
	was := d.advice.given[a.Job]
	if !was.of(job) {
		own := spec.Deref(job.Priority)
		was = advised{Job: a.Job, Index: spec.Deref(job.CreateIndex), Own: own, Given: own}
	}
	l := was
	l.Given, l.Class = max(1, l.Own-a.Nice), a.Class
	status := spec.Deref(job.Status)
	switch {
	case l == was && !l.none(): // done already
		return d.onlyOnce(ctx, w, job, l.Version)
	case l == was: // done already, or its owner's new word
		return d.keepAdvice(ctx, l)
	case status == "dead" && l.none():
		return nil
	case spec.Stanza(job) && !l.none(): // with another priority it would be another job to the tuner
		return fmt.Errorf("advise job %s: it has a stanza: %w", a.Job, driver.ErrDenied)
	case a.Class != "" && was.Class == "" && prefers(job) != "":
		return fmt.Errorf("advise job %s: its owner says which nodes it prefers: %w", a.Job, driver.ErrDenied)
	case status != "pending":
		return fmt.Errorf("advise job %s: it is %s: %w", a.Job, status, driver.ErrConflict)
	case unknown != "":
		return fmt.Errorf("advise job %s: this version of Pitchpipe does not know %s, which Nomad does, and would lose it: %w", a.Job, unknown, driver.ErrUnsupported)
	}
	l.Version = spec.Deref(job.Version)
	begun, err := d.ofVersion(ctx, w, l.Version)
	switch {
	case err != nil:
		return err
	case len(begun) > 0: // it failed, and waits for its next attempt
		return fmt.Errorf("advise job %s: it ran before, and a registration would start it at once: %w", a.Job, driver.ErrConflict)
	}
	if err := d.c.mayAct(ctx); err != nil {
		return err
	}
	if !l.none() { // on the way back the record stays until the job is as its owner has it
		if err := d.keepAdvice(ctx, l); err != nil {
			return err
		}
	}
	sub := d.c.submission(ctx, w, l.Version)
	job.Priority = &l.Given
	if was.Class != "" {
		job.Affinities = job.Affinities[1:]
	}
	if l.Class != "" {
		job.Affinities = slices.Insert(job.Affinities, 0, affinity(l.Class))
	}
	if err := d.c.register(ctx, w, job, spec.Deref(job.JobModifyIndex), sub); err != nil {
		return err
	}
	if err := d.onlyOnce(ctx, w, job, l.Version); err != nil {
		return err
	}
	return d.keepAdvice(ctx, l)
}

// ofVersion lists the allocations that one version of a job has.
func (d *Driver) ofVersion(ctx context.Context, w where, version uint64) ([]*api.AllocationListStub, error) {
	allocs, err := d.c.allocations(ctx, w)
	return slices.DeleteFunc(allocs, func(a *api.AllocationListStub) bool { return a.JobVersion != version }), err
}

// onlyOnce stops a job that began and was done between the look at it and its registration,
// which replaced that version and runs it again.
func (d *Driver) onlyOnce(ctx context.Context, w where, job *api.Job, version uint64) error {
	begun, err := d.ofVersion(ctx, w, version)
	if err != nil || !slices.ContainsFunc(begun, func(a *api.AllocationListStub) bool { return view.Done(job, a) }) {
		return err
	}
	return d.c.stop(ctx, w)
}
