package nomadserver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

// queue holds the evaluations that are due.
type queue struct {
	mu   sync.Mutex
	due  []string
	news chan struct{}
}

func (q *queue) add(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Contains(q.due, id) {
		q.due = append(q.due, id)
	}
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func (q *queue) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.due
	q.due = nil
	return due
}

// follow queues the evaluations of a transaction that wait for nothing.
func (q *queue) follow(evals []*api.Evaluation) {
	for _, e := range evals {
		if e.Status == api.EvalStatusPending && !e.WaitUntil.After(time.Now()) {
			q.add(e.ID)
		}
	}
}

// evaluate works evaluations off, one at a time.
func (s *Server) evaluate() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.queue.news:
			for _, id := range s.queue.take() {
				s.decide(id)
			}
		}
	}
}

// decide makes the plan for one evaluation and carries it out: first what the plan
// changes, then that the evaluation is complete, as two transactions.
func (s *Server) decide(id string) {
	var plan *cluster.Plan
	s.write(func(tx *cluster.Tx) error {
		e := tx.Eval(id)
		if e == nil || cluster.EvalEnded(e) {
			return errNothing
		}
		of := cluster.ID{Namespace: e.Namespace, Job: e.JobID}
		plan = cluster.Decide(s.input(tx.Tables, of, tx.Job(of), id))
		return s.apply(tx, e, tx.Job(of), plan)
	})
	if plan != nil {
		s.write(func(tx *cluster.Tx) error {
			s.finish(tx, *tx.Eval(id), plan)
			return nil
		})
	}
}

// input is what the scheduler looks at.
func (s *Server) input(t *cluster.Tables, id cluster.ID, job *api.Job, eval string) cluster.Input {
	in := cluster.Input{Job: job, Allocs: t.AllocsOf(id), EvalID: eval, Now: time.Now(), Node: s.node.offer(t)}
	for _, a := range t.Allocs("*") {
		if (a.Namespace != id.Namespace || a.JobID != id.Job) && !a.ClientTerminalStatus() {
			in.Others = append(in.Others, a)
		}
	}
	return in
}

// apply writes the plan down.
func (s *Server) apply(tx *cluster.Tx, e *api.Evaluation, job *api.Job, p *cluster.Plan) error {
	if len(p.Stop)+len(p.InPlace)+len(p.Place) == 0 {
		return errNothing
	}
	for _, stop := range p.Stop {
		a := *tx.Alloc(stop.Alloc.ID)
		a.DesiredStatus, a.DesiredDescription = api.AllocDesiredStatusStop, stop.Why
		tx.PutAlloc(&a, false)
	}
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
	return nil
}

func (s *Server) newAlloc(e *api.Evaluation, job *api.Job, p cluster.Place) *api.Allocation {
	a := &api.Allocation{
		ID: uuid(), Namespace: e.Namespace, EvalID: e.ID, Name: p.Name, NodeID: s.node.id, NodeName: s.node.name,
		JobID: e.JobID, Job: job, TaskGroup: p.Group, AllocatedResources: p.Resources, Metrics: p.Metrics,
		DesiredStatus: api.AllocDesiredStatusRun, ClientStatus: api.AllocClientStatusPending, TaskStates: map[string]*api.TaskState{},
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

// finish notes the outcome of an evaluation: what found no room waits in a blocked
// evaluation, what is to be done later in one that is pending until then.
func (s *Server) finish(tx *cluster.Tx, e api.Evaluation, p *cluster.Plan) {
	id := cluster.ID{Namespace: e.Namespace, Job: e.JobID}
	tx.SetQueued(id, p.Queued)
	e.QueuedAllocations, e.FailedTGAllocs = p.Queued, p.Failed
	e.Status = api.EvalStatusComplete
	switch {
	case len(p.Failed) == 0:
		e.FailedTGAllocs = nil
		cancelBlocked(tx, id, fmt.Sprintf("evaluation %q successful", e.ID), e.ID)
	case e.TriggeredBy == "queued-allocs":
		e.Status = api.EvalStatusBlocked // it goes on waiting
	default:
		cancelBlocked(tx, id, "existing blocked evaluation exists for this job", e.ID)
		b := newEval(tx.Job(id), "queued-allocs")
		b.Status, b.PreviousEval = api.EvalStatusBlocked, e.ID
		b.FailedTGAllocs, b.QueuedAllocations = p.Failed, p.Queued
		e.BlockedEval = b.ID
		tx.PutEval(b)
	}
	for _, l := range p.Later {
		f := newEval(tx.Job(id), "alloc-failure")
		f.WaitUntil, f.PreviousEval = l.At, e.ID
		a := *tx.Alloc(l.Alloc.ID)
		a.FollowupEvalID = f.ID
		tx.PutAlloc(&a, false)
		tx.PutEval(f)
		s.after(time.Until(l.At), func() { s.queue.add(f.ID) })
	}
	tx.PutEval(&e)
}

// cancelBlocked ends the blocked evaluations of a job, but one.
func cancelBlocked(tx *cluster.Tx, id cluster.ID, why, but string) {
	for _, b := range tx.EvalsOf(id) {
		if b.Status == api.EvalStatusBlocked && b.ID != but {
			ended := *b
			ended.Status, ended.StatusDescription = api.EvalStatusCancelled, why
			tx.PutEval(&ended)
		}
	}
}

// retryBlocked evaluates again what found no room.
func (s *Server) retryBlocked() {
	s.store.Read(func(t *cluster.Tables) {
		for _, e := range t.Blocked() {
			s.queue.add(e.ID)
		}
	})
}
