package nomadserver

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
	"pitchpipe/test/nomadserver/task"
)

// run runs one allocation: it waits for the one before, starts the tasks and writes down
// their course.
type run struct {
	n     *node
	alloc *api.Allocation // as it was placed
	over  chan struct{}   // closed when the allocation has ended

	ctx  context.Context //nolint:containedctx // done when the allocation is to end
	stop context.CancelFunc

	mu    sync.Mutex
	tasks map[string]*task.Task
}

// errLimit is why an allocation ends at its max_run_duration.
var errLimit = errors.New("allocation exceeded max_run_duration")

func newRun(n *node, a *api.Allocation) *run {
	r := &run{n: n, alloc: a, over: make(chan struct{}), tasks: map[string]*task.Task{}}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(n.s.ctx))
	return r
}

func (r *run) dir() string { return filepath.Join(r.n.s.dir, r.alloc.ID) }

func (r *run) group() *api.TaskGroup { return r.alloc.Job.LookupTaskGroup(r.alloc.TaskGroup) }

func (r *run) all() map[string]*task.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tasks)
}

// execute runs the allocation from its placement to its end.
func (r *run) execute() {
	defer r.n.s.retryBlocked()
	defer close(r.over)
	defer r.stop()
	if before := r.n.run(r.alloc.PreviousAllocation); before != nil {
		select {
		case <-before.over:
		case <-r.ctx.Done():
		case <-r.n.s.ctx.Done():
			return
		}
	}
	if r.ctx.Err() != nil { // before anything of it ran
		for _, t := range r.group().Tasks {
			r.changed(t.Name, api.TaskState{State: "dead", FinishedAt: time.Now(), Events: []*api.TaskEvent{}})
		}
		return
	}
	if limit := r.group().MaxRunDuration; limit != nil && *limit > 0 {
		// It counts from the placement, not from the start of a task.
		ctx, cancel := context.WithDeadlineCause(r.ctx, time.Unix(0, r.alloc.CreateTime).Add(*limit), errLimit)
		defer cancel()
		r.ctx = ctx
	}
	r.work()
}

// work runs all tasks at the same time until each has ended. A task that fails ends the
// others.
func (r *run) work() {
	ended := make(chan string, len(r.group().Tasks))
	for _, t := range r.group().Tasks {
		started, err := task.Start(r.n.s.ctx, r.spec(t), func(st api.TaskState) { r.changed(t.Name, st) })
		if err != nil {
			r.n.s.opts.Logger.Error("a task cannot run", "job", *r.alloc.Job.ID, "task", t.Name, "error", err)
			r.changed(t.Name, api.TaskState{State: "dead", Failed: true, FinishedAt: time.Now(), Events: []*api.TaskEvent{
				{Type: "Driver Failure", Time: time.Now().UnixNano(), DriverError: err.Error(), DisplayMessage: err.Error()},
			}})
			ended <- t.Name
			continue
		}
		r.mu.Lock()
		r.tasks[t.Name] = started
		r.mu.Unlock()
		r.n.work.Go(func() {
			<-started.Done()
			ended <- t.Name
		})
	}
	killAll := func() {
		for _, t := range r.all() {
			t.Kill()
		}
	}
	stopped := r.ctx.Done()
	for left := len(r.group().Tasks); left > 0; {
		select {
		case name := <-ended:
			left--
			if st := r.now().TaskStates[name]; st != nil && st.Failed {
				killAll()
			}
		case <-stopped:
			stopped = nil
			killAll()
		}
	}
}

// now is the allocation as it is registered.
func (r *run) now() (a *api.Allocation) {
	r.n.s.store.Read(func(t *cluster.Tables) { a = t.Alloc(r.alloc.ID) })
	return a
}

func (r *run) spec(t *api.Task) task.Spec {
	out := task.Spec{Dir: r.dir(), Alloc: r.alloc, Group: r.group(), Task: t, Node: r.n.targets(), Variables: variables{r.n.s}}
	if r.alloc.PreviousAllocation != "" {
		out.PrevDir = filepath.Join(r.n.s.dir, r.alloc.PreviousAllocation)
	}
	r.n.s.store.Read(func(tables *cluster.Tables) { out.CPUs = tables.Reserved(r.alloc.ID)[t.Name] })
	return out
}

// changed writes a task's new state down. The scheduler decides about an allocation that
// has failed.
func (r *run) changed(name string, st api.TaskState) {
	r.n.s.write(func(tx *cluster.Tx) error {
		old := tx.Alloc(r.alloc.ID)
		if r.n.s.ctx.Err() != nil {
			return errNothing
		}
		a := *old
		a.TaskStates = maps.Clone(a.TaskStates)
		a.TaskStates[name] = &st
		a.ClientStatus, a.ClientDescription = clientStatus(&a)
		if errors.Is(context.Cause(r.ctx), errLimit) && a.ClientTerminalStatus() {
			a.ClientStatus, a.ClientDescription = api.AllocClientStatusComplete, errLimit.Error()
		}
		tx.PutAlloc(&a, true)
		job := tx.Job(cluster.ID{Namespace: a.Namespace, Job: a.JobID})
		if a.ClientStatus == api.AllocClientStatusFailed && old.ClientStatus != a.ClientStatus && job != nil && !*job.Stop && !a.ServerTerminalStatus() {
			tx.PutEval(newEval(job, "alloc-failure"))
		}
		return nil
	})
}

// clientStatus sums up the tasks of an allocation.
func clientStatus(a *api.Allocation) (status, description string) {
	running, pending, dead, failed := 0, 0, 0, false
	for _, t := range a.Job.LookupTaskGroup(a.TaskGroup).Tasks {
		st := a.TaskStates[t.Name]
		switch {
		case st == nil || st.State == "pending":
			pending++
		case st.State == "running":
			running++
		default:
			dead++
			failed = failed || st.Failed
		}
	}
	switch {
	case failed && running == 0:
		return api.AllocClientStatusFailed, "Failed tasks"
	case running > 0 || pending > 0 && dead > 0:
		return api.AllocClientStatusRunning, "Tasks are running"
	case pending > 0:
		return api.AllocClientStatusPending, "No tasks have started"
	}
	return api.AllocClientStatusComplete, "All tasks have completed"
}
