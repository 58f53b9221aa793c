package nomadserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/schedule"
	"pitchpipe/test/nomadserver/state"
)

// queue holds the evaluations that are due.
type queue struct {
	mu   sync.Mutex
	due  []string
	news chan struct{}
}

func newQueue() *queue { return &queue{news: make(chan struct{}, 1)} }

func (q *queue) add(ids ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		if !slices.Contains(q.due, id) {
			q.due = append(q.due, id)
		}
	}
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func (q *queue) take() (string, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return "", false
	}
	id := q.due[0]
	q.due = q.due[1:]
	return id, true
}

// see queues the evaluations of a transaction that wait for nothing.
func (q *queue) see(c state.Commit) {
	for _, batch := range c.Batches {
		for _, change := range batch {
			if e, ok := change.Row.(*api.Evaluation); ok && e.Status == api.EvalStatusPending && !e.WaitUntil.After(time.Now()) {
				q.add(e.ID)
			}
		}
	}
}

// evaluate works evaluations off, one at a time.
func (s *Server) evaluate() {
	for {
		id, ok := s.queue.take()
		if !ok {
			select {
			case <-s.ctx.Done():
				return
			case <-s.queue.news:
			}
			continue
		}
		s.decide(id)
	}
}

// decide makes the plan for one evaluation and carries it out: first what the plan
// changes, then that the evaluation is complete, as two transactions.
func (s *Server) decide(id string) {
	var plan *schedule.Plan
	s.write("PlanResult", func(tx *state.Tx) error {
		e := tx.Eval(id)
		if e == nil || state.EvalEnded(e) {
			return errNothing
		}
		plan = schedule.Decide(s.input(tx.Tables, e.Namespace, e.JobID, nil, id))
		if !s.apply(tx, e, plan) {
			return errNothing
		}
		return nil
	})
	if plan == nil {
		return
	}
	s.write("EvaluationUpdated", func(tx *state.Tx) error {
		s.finish(tx, tx.Eval(id), plan)
		return nil
	})
}

// input is what the scheduler looks at; spec stands in for the registered job, nil =
// the registered one.
func (s *Server) input(t *state.Tables, namespace, job string, spec *api.Job, eval string) schedule.Input {
	id := state.ID{Namespace: namespace, Job: job}
	in := schedule.Input{Job: t.Job(id), Allocs: t.AllocsOf(id), EvalID: eval, Now: time.Now(), Node: s.node.offer(t, s.memoryMax())}
	if spec != nil {
		in.Job = spec
	}
	for _, a := range t.Allocs("*") {
		if (a.Namespace != namespace || a.JobID != job) && !a.ClientTerminalStatus() {
			in.Others = append(in.Others, a)
		}
	}
	return in
}

// apply writes the plan down; false = there was nothing to write.
func (s *Server) apply(tx *state.Tx, e *api.Evaluation, p *schedule.Plan) bool {
	for _, stop := range p.Stop {
		a := *tx.Alloc(stop.Alloc.ID)
		a.DesiredStatus, a.DesiredDescription = api.AllocDesiredStatusStop, stop.Why
		tx.PutAlloc(&a, false)
	}
	id := state.ID{Namespace: e.Namespace, Job: e.JobID}
	job := tx.Job(id)
	for _, old := range p.InPlace {
		a := *old
		a.Job, a.EvalID = job, e.ID
		tx.PutAlloc(&a, false)
	}
	for _, place := range p.Place {
		a := s.newAlloc(e, job, place)
		tx.Reserve(a.ID, place.Cores)
		tx.PutAlloc(a, false)
	}
	if len(p.Stop)+len(p.InPlace)+len(p.Place) == 0 {
		return false
	}
	seen := *e
	tx.PutEval(&seen)
	return true
}

func (s *Server) newAlloc(e *api.Evaluation, job *api.Job, p schedule.Place) *api.Allocation {
	a := &api.Allocation{
		ID: uuid(), Namespace: e.Namespace, EvalID: e.ID, Name: p.Name, NodeID: s.node.id, NodeName: s.node.name,
		JobID: e.JobID, Job: job, TaskGroup: p.Group, AllocatedResources: p.Resources, Metrics: p.Metrics,
		TaskResources: map[string]*api.Resources{},
		DesiredStatus: api.AllocDesiredStatusRun, ClientStatus: api.AllocClientStatusPending,
	}
	for _, t := range job.LookupTaskGroup(p.Group).Tasks {
		a.TaskResources[t.Name] = t.Resources
	}
	if p.Previous == nil {
		return a
	}
	a.PreviousAllocation = p.Previous.ID
	if p.Rescheduled {
		a.RescheduleTracker = &api.RescheduleTracker{}
		if t := p.Previous.RescheduleTracker; t != nil {
			a.RescheduleTracker.Events = slices.Clone(t.Events)
		}
		a.RescheduleTracker.Events = append(a.RescheduleTracker.Events, &api.RescheduleEvent{
			RescheduleTime: time.Now().UnixNano(), PrevAllocID: p.Previous.ID, PrevNodeID: p.Previous.NodeID,
		})
	}
	return a
}

// finish notes what became of an evaluation: what found no room waits in a blocked
// one, what is to be done later in one that is pending until then.
func (s *Server) finish(tx *state.Tx, old *api.Evaluation, p *schedule.Plan) {
	e := *old
	id := state.ID{Namespace: e.Namespace, Job: e.JobID}
	e.QueuedAllocations, e.FailedTGAllocs = p.Queued, p.Failed
	tx.SetQueued(id, p.Queued)
	if len(p.Failed) > 0 && e.TriggeredBy == "queued-allocs" {
		e.Status = api.EvalStatusBlocked // it goes on waiting
		tx.PutEval(&e)
		return
	}
	e.Status = api.EvalStatusComplete
	if len(p.Failed) == 0 {
		e.FailedTGAllocs = nil
		s.unblock(tx, id, fmt.Sprintf("evaluation %q successful", e.ID), e.ID)
	} else {
		s.unblock(tx, id, "existing blocked evaluation exists for this job", e.ID)
		b := newEval(tx.Job(id), "queued-allocs")
		b.Status, b.PreviousEval = api.EvalStatusBlocked, e.ID
		b.StatusDescription = "created to place remaining allocations"
		b.FailedTGAllocs, b.QueuedAllocations = p.Failed, p.Queued
		e.BlockedEval = b.ID
		tx.PutEval(b)
	}
	for _, l := range p.Later {
		f := newEval(tx.Job(id), "alloc-failure")
		f.WaitUntil, f.PreviousEval = l.At, e.ID
		f.StatusDescription = "created for delayed rescheduling"
		a := *tx.Alloc(l.Alloc.ID)
		a.FollowupEvalID = f.ID
		tx.PutAlloc(&a, false)
		tx.PutEval(f)
		s.after(time.Until(l.At), func() { s.queue.add(f.ID) })
	}
	tx.PutEval(&e)
}

// unblock ends the blocked evaluations of a job, but one.
func (s *Server) unblock(tx *state.Tx, id state.ID, why, but string) {
	for _, b := range tx.EvalsOf(id) {
		if b.Status != api.EvalStatusBlocked || b.ID == but {
			continue
		}
		c := *b
		c.Status, c.StatusDescription = api.EvalStatusCancelled, why
		tx.PutEval(&c)
	}
}

// roomAppeared looks anew at everything that found none.
func (s *Server) roomAppeared() {
	s.store.Read(func(t *state.Tables) {
		for _, e := range slices.Backward(t.Evals("*")) {
			if e.Status == api.EvalStatusBlocked {
				s.queue.add(e.ID)
			}
		}
	})
}

// after runs f once, unless the cluster ends before.
func (s *Server) after(d time.Duration, f func()) {
	timer := time.AfterFunc(d, f)
	context.AfterFunc(s.ctx, func() { timer.Stop() })
}

func newEval(j *api.Job, why string) *api.Evaluation {
	return &api.Evaluation{
		ID: uuid(), Namespace: *j.Namespace, JobID: *j.ID, Priority: *j.Priority, Type: *j.Type,
		JobModifyIndex: *j.JobModifyIndex, TriggeredBy: why, Status: api.EvalStatusPending,
	}
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
