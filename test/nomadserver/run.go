package nomadserver

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/acl"
	"pitchpipe/test/nomadserver/state"
	"pitchpipe/test/nomadserver/task"
)

// run runs one allocation: it waits for the one before, starts the tasks and tells
// the cluster what becomes of them.
type run struct {
	n     *node
	id    string
	alloc *api.Allocation // as it was placed
	over  chan struct{}   // closed when the allocation has ended

	stopped  chan struct{}
	stopOnce sync.Once
	limited  atomic.Bool // it was stopped at its max_run_duration

	mu         sync.Mutex
	tasks      map[string]Task
	measured   *api.AllocResourceUsage
	measuredAt time.Time
}

func newRun(n *node, a *api.Allocation) *run {
	return &run{n: n, id: a.ID, alloc: a, over: make(chan struct{}), stopped: make(chan struct{}), tasks: map[string]Task{}}
}

func (r *run) dir() string { return filepath.Join(r.n.s.opts.Dir, r.id) }

// stop begins the end of the allocation.
func (r *run) stop() { r.stopOnce.Do(func() { close(r.stopped) }) }

func (r *run) task(name string) Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[name]
}

func (r *run) all() map[string]Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tasks)
}

// live is the allocation's life.
func (r *run) live() {
	defer r.n.s.roomAppeared()
	defer close(r.over)
	defer r.n.s.ports.authority.Forget(r.id)
	if before := r.n.run(r.alloc.PreviousAllocation); before != nil {
		select {
		case <-before.over:
		case <-r.stopped:
		case <-r.n.s.ctx.Done():
			return
		}
	}
	select {
	case <-r.stopped:
		r.never()
		return
	default:
	}
	group := r.alloc.Job.LookupTaskGroup(r.alloc.TaskGroup)
	if limit := group.MaxRunDuration; limit != nil && *limit > 0 {
		// It counts from the placement, not from the start of a task.
		timer := time.AfterFunc(time.Until(time.Unix(0, r.alloc.CreateTime).Add(*limit)), func() {
			r.limited.Store(true)
			r.stop()
		})
		defer timer.Stop()
	}
	for _, stage := range stages(group) {
		if !r.stage(group, stage) {
			break
		}
	}
	r.settle()
}

// stages are the tasks that run at the same time, one list after the other; those
// that run beside the others stand in the list of the others.
func stages(g *api.TaskGroup) [][]*api.Task {
	var first, main, last []*api.Task
	for _, t := range g.Tasks {
		switch l := t.Lifecycle; {
		case l != nil && l.Hook == "prestart" && !l.Sidecar:
			first = append(first, t)
		case l != nil && l.Hook == "poststop":
			last = append(last, t)
		default:
			main = append(main, t)
		}
	}
	return slices.DeleteFunc([][]*api.Task{first, main, last}, func(l []*api.Task) bool { return len(l) == 0 })
}

// stage runs tasks until all have ended, and tells whether the next may start.
func (r *run) stage(g *api.TaskGroup, tasks []*api.Task) bool {
	started := map[string]Task{}
	ended := make(chan string, len(tasks))
	for _, t := range tasks {
		begun, err := r.n.s.ports.start(r.n.s.ctx, r.spec(g, t), func(st api.TaskState) { r.changed(t.Name, st) })
		if err != nil {
			r.changed(t.Name, failedState(err))
			ended <- t.Name
			continue
		}
		started[t.Name] = begun
		r.mu.Lock()
		r.tasks[t.Name] = begun
		r.mu.Unlock()
		r.n.work.Go(func() {
			<-begun.Done()
			ended <- t.Name
		})
	}
	stopped, ok := r.stopped, true
	for range tasks {
		var name string
		for name == "" {
			select {
			case name = <-ended:
			case <-stopped:
				stopped, ok = nil, false
				killAll(started)
			}
		}
		if r.failed(name) || leads(g, name) {
			killAll(started)
		}
		ok = ok && !r.failed(name)
	}
	return ok
}

func killAll(tasks map[string]Task) {
	for _, t := range tasks {
		t.Kill()
	}
}

func leads(g *api.TaskGroup, name string) bool {
	return slices.ContainsFunc(g.Tasks, func(t *api.Task) bool { return t.Name == name && t.Leader })
}

func failedState(err error) api.TaskState {
	now := time.Now()
	return api.TaskState{State: "dead", Failed: true, FinishedAt: now, Events: []*api.TaskEvent{
		{Type: "Received", Time: now.UnixNano(), Details: map[string]string{}},
		{Type: "Driver Failure", Time: now.UnixNano(), DriverError: err.Error(), DisplayMessage: err.Error(), Details: map[string]string{}},
		{Type: "Not Restarting", Time: now.UnixNano(), DisplayMessage: "Error was unrecoverable", Details: map[string]string{}, FailsTask: true},
	}}
}

// spec says what to start; what only the scheduler knows stands in it.
func (r *run) spec(g *api.TaskGroup, t *api.Task) task.Spec {
	out := task.Spec{
		AllocID: r.id, Dir: r.dir(), Alloc: r.alloc, Job: r.alloc.Job, Group: g, Task: t, Node: r.n.targets(), Variables: r.n.s.ports.variables,
	}
	if r.alloc.PreviousAllocation != "" {
		out.PrevDir = filepath.Join(r.n.s.opts.Dir, r.alloc.PreviousAllocation)
	}
	r.n.s.store.Read(func(tables *state.Tables) { out.CPUs = tables.Reserved(r.id)[t.Name] })
	if token := r.identity(g, t); token != "" && t.Identity.Env {
		out.Env = map[string]string{"NOMAD_TOKEN": token}
	}
	return out
}

// identity is the token of a task that asks for one; where it asks for a file, it lies
// in its secrets.
func (r *run) identity(g *api.TaskGroup, t *api.Task) string {
	if !r.n.s.opts.ACL || t.Identity == nil || !t.Identity.Env && !t.Identity.File {
		return ""
	}
	claim := acl.Claim{Namespace: *r.alloc.Job.Namespace, Job: *r.alloc.Job.ID, Group: *g.Name, Task: t.Name, Alloc: r.id}
	if parent := *r.alloc.Job.ParentID; parent != "" {
		claim.Job = parent
	}
	token := r.n.s.ports.authority.Identify(claim)
	if t.Identity.File {
		dir := filepath.Join(r.dir(), t.Name, "secrets")
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "nomad_token"), []byte(token), 0o600)
		}
		if err != nil {
			r.n.s.opts.Logger.Error("an identity has no file", "task", t.Name, "error", err)
		}
	}
	return token
}

func (r *run) failed(name string) bool {
	failed := false
	r.n.s.store.Read(func(t *state.Tables) {
		if a := t.Alloc(r.id); a != nil && a.TaskStates[name] != nil {
			failed = a.TaskStates[name].Failed
		}
	})
	return failed
}

// changed tells the cluster of a task's new state.
func (r *run) changed(name string, st api.TaskState) {
	r.n.s.write("AllocationUpdated", func(tx *state.Tx) error {
		old := tx.Alloc(r.id)
		if old == nil || r.n.s.ctx.Err() != nil {
			return errNothing
		}
		a := *old
		a.TaskStates = maps.Clone(a.TaskStates)
		if a.TaskStates == nil {
			a.TaskStates = map[string]*api.TaskState{}
		}
		a.TaskStates[name] = &st
		a.ClientStatus, a.ClientDescription = clientStatus(&a)
		if r.limited.Load() && a.ClientTerminalStatus() {
			a.ClientStatus, a.ClientDescription = api.AllocClientStatusComplete, "allocation exceeded max_run_duration"
		}
		tx.PutAlloc(&a, true)
		if a.ClientStatus == api.AllocClientStatusFailed && old.ClientStatus != a.ClientStatus {
			r.reschedule(tx, &a)
		}
		return nil
	})
}

// reschedule asks the scheduler what to do about a failed allocation.
func (r *run) reschedule(tx *state.Tx, a *api.Allocation) {
	job := tx.Job(state.ID{Namespace: a.Namespace, Job: a.JobID})
	if job == nil || *job.Stop || a.ServerTerminalStatus() {
		return
	}
	tx.PutEval(newEval(job, "alloc-failure"))
}

// clientStatus sums up the tasks of an allocation.
func clientStatus(a *api.Allocation) (status, description string) {
	group := a.Job.LookupTaskGroup(a.TaskGroup)
	dead, running, pending, failed := 0, 0, 0, false
	for _, t := range group.Tasks {
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
	case running > 0:
		return api.AllocClientStatusRunning, "Tasks are running"
	case pending > 0 && dead == 0:
		return api.AllocClientStatusPending, "No tasks have started"
	case pending > 0:
		return api.AllocClientStatusRunning, "Tasks are running"
	}
	return api.AllocClientStatusComplete, "All tasks have completed"
}

// never notes that an allocation was stopped before anything of it ran.
func (r *run) never() {
	for _, t := range r.alloc.Job.LookupTaskGroup(r.alloc.TaskGroup).Tasks {
		r.changed(t.Name, api.TaskState{State: "dead", FinishedAt: time.Now(), Events: []*api.TaskEvent{}})
	}
}

// settle makes sure that an allocation whose tasks have all ended has ended too: those
// of a stage that was not reached count as dead.
func (r *run) settle() {
	var missing []string
	r.n.s.store.Read(func(tables *state.Tables) {
		a := tables.Alloc(r.id)
		if a == nil || a.ClientTerminalStatus() {
			return
		}
		for _, t := range a.Job.LookupTaskGroup(a.TaskGroup).Tasks {
			if st := a.TaskStates[t.Name]; st == nil || st.State != "dead" {
				missing = append(missing, t.Name)
			}
		}
	})
	for _, name := range missing {
		r.changed(name, api.TaskState{State: "dead", FinishedAt: time.Now(), Events: []*api.TaskEvent{}})
	}
}
