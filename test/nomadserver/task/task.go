package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Errors of Start and of the methods.
var (
	// ErrSpec says what of the task cannot be run here.
	ErrSpec = errors.New("task cannot be run")
	// ErrNotRunning is in the agent's words.
	ErrNotRunning = errors.New("Task not running")
)

// Spec says what to run.
type Spec struct {
	AllocID string
	Dir     string // of the allocation; the task's own is Dir/TASK
	PrevDir string // of the allocation that this one replaces, for a sticky disk; empty = beside Dir, by its id
	Alloc   *api.Allocation
	Job     *api.Job
	Group   *api.TaskGroup
	Task    *api.Task
	CPUs    []int             // reserved cores; none = those of NOMAD_CPU_CORES in Env, or all
	Env     map[string]string // over the task's own, such as NOMAD_TOKEN
	Node    map[string]string // names that the task may interpolate: attr.x, meta.x, node.x

	Variables Variables // for templates; nil = they are not rendered
}

// withDefaults finds in the allocation what the caller did not say.
func (s Spec) withDefaults() Spec {
	if s.PrevDir == "" && s.Alloc != nil && s.Alloc.PreviousAllocation != "" {
		s.PrevDir = filepath.Join(filepath.Dir(s.Dir), s.Alloc.PreviousAllocation)
	}
	if len(s.CPUs) == 0 {
		for word := range strings.SplitSeq(s.Env["NOMAD_CPU_CORES"], ",") {
			if n, err := strconv.Atoi(word); err == nil && n >= 0 {
				s.CPUs = append(s.CPUs, n)
			}
		}
	}
	s.Env = maps.Clone(s.Env)
	delete(s.Env, "NOMAD_CPU_CORES") // the agent's way to write it is 0-1 for 0,1
	return s
}

// states of a task
const (
	pending = "pending"
	running = "running"
	dead    = "dead"
)

// Task is a task that was started. Its methods may be called at the same time.
type Task struct {
	spec    Spec
	changed func(api.TaskState)
	done    chan struct{}

	kill     chan struct{} // closed by Kill
	killOnce sync.Once
	over     chan struct{} // closed when nothing of it is started any more
	watchers sync.WaitGroup

	mu        sync.Mutex
	state     api.TaskState
	process   *process          // nil where none runs
	given     map[string]string // by its templates
	restart   bool              // the next end is followed by a start, whatever the policy says
	states    []api.TaskState
	notify    chan struct{} // there is something in states
	exhausted bool          // no more states will come
}

// Start begins to run the task and returns at once. The state at every change is handed
// to changed, one call at a time and in order, the last of them before Done is closed.
// The context ends the task as a machine that is switched off does: all its processes
// are killed without an event.
func Start(ctx context.Context, s Spec, changed func(api.TaskState)) (*Task, error) {
	if len(s.Task.Artifacts) > 0 {
		return nil, fmt.Errorf("%w: artifacts are not fetched", ErrSpec)
	}
	switch s.Task.Driver {
	case "raw_exec", "exec", "mock_driver":
	default:
		return nil, fmt.Errorf("%w: driver %q", ErrSpec, s.Task.Driver)
	}
	s = s.withDefaults()
	t := &Task{spec: s, changed: changed, done: make(chan struct{}), kill: make(chan struct{}), over: make(chan struct{}), notify: make(chan struct{}, 1)}
	t.state.State = pending
	told := make(chan struct{})
	go func() { t.tell(); close(told) }()
	go func() {
		t.run(ctx)
		close(t.over)
		t.watchers.Wait()
		t.mu.Lock()
		t.exhausted = true
		t.mu.Unlock()
		t.wake()
		<-told
		close(t.done)
	}()
	return t, nil
}

// tell hands the states on.
func (t *Task) tell() {
	for range t.notify {
		t.mu.Lock()
		list, last := t.states, t.exhausted
		t.states = nil
		t.mu.Unlock()
		for _, s := range list {
			t.changed(s)
		}
		if last {
			return
		}
	}
}

func (t *Task) wake() {
	select {
	case t.notify <- struct{}{}:
	default:
	}
}

// update changes the state and adds events to it.
func (t *Task) update(change func(*api.TaskState), events ...*api.TaskEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updateLocked(change, events...)
}

func (t *Task) updateLocked(change func(*api.TaskState), events ...*api.TaskEvent) {
	change(&t.state)
	t.state.Events = append(t.state.Events, events...)
	// A real agent keeps as many.
	t.state.Events = t.state.Events[max(0, len(t.state.Events)-10):]
	snapshot := t.state
	snapshot.Events = append([]*api.TaskEvent(nil), t.state.Events...)
	t.states = append(t.states, snapshot)
	t.wake()
}

func (t *Task) emit(events ...*api.TaskEvent) { t.update(func(*api.TaskState) {}, events...) }

// run starts the task as often as its policy says.
func (t *Task) run(ctx context.Context) {
	t.emit(event(api.TaskReceived))
	policy := policyOf(t.spec)
	draw := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // a jitter
	for first := true; ; first = false {
		result, killed := t.attempt(ctx, first)
		if ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		triggered := t.restart
		t.restart = false
		t.mu.Unlock()
		next := verdict{action: killTask}
		if !killed {
			next = policy.next(result, triggered, time.Now(), draw)
		}
		switch next.action {
		case finish:
		case killTask:
			t.emit(event(api.TaskKilled))
		case giveUp:
			t.update(func(s *api.TaskState) { s.State, s.Failed = dead, true }, notRestarting(next.reason))
		case again:
			t.update(func(s *api.TaskState) { s.State, s.Restarts, s.LastRestart = pending, s.Restarts+1, time.Now().UTC() }, restarting(next.reason, next.delay))
			if t.pause(ctx, next.delay) {
				continue
			}
			if ctx.Err() != nil {
				return
			}
		}
		t.update(func(s *api.TaskState) { s.State, s.FinishedAt = dead, time.Now().UTC() })
		return
	}
}

// pause waits and tells whether the task goes on afterwards.
func (t *Task) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.kill:
		return false
	case <-ctx.Done():
		return false
	}
}

// attempt prepares and runs the task once and tells whether it was killed.
func (t *Task) attempt(ctx context.Context, first bool) (outcome, bool) {
	select {
	case <-t.kill:
		return outcome{}, true
	default:
	}
	if first {
		t.emit(buildingTaskDir())
	}
	if err := t.spec.folders(); err != nil {
		return t.failed(api.TaskSetupFailure, err)
	}
	if first {
		if ok, err := t.template(ctx); err != nil {
			return t.failed(api.TaskSetupFailure, err)
		} else if !ok {
			return outcome{}, true
		}
	}
	env := t.spec.environment()
	t.mu.Lock()
	maps.Copy(env, t.given)
	t.mu.Unlock()
	config, err := t.spec.config(env)
	if err != nil {
		return t.failed(api.TaskFailedValidation, err)
	}
	p, err := t.launch(config, env)
	if err != nil {
		return t.failed(api.TaskDriverFailure, err)
	}
	killed := t.wait(ctx, p)
	t.mu.Lock()
	t.process = nil
	t.mu.Unlock()
	p.clear()
	if ctx.Err() == nil {
		t.emit(terminated(p.result))
	}
	return p.result, killed
}

// launch starts the process. Whoever has seen a word of it finds the task started.
func (t *Task) launch(c config, env map[string]string) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := launch(t.spec, c, env)
	if err != nil {
		return nil, err
	}
	t.process = p
	t.updateLocked(func(s *api.TaskState) {
		s.State = running
		if s.StartedAt.IsZero() {
			s.StartedAt = time.Now().UTC()
		}
	}, event(api.TaskStarted))
	return p, nil
}

func (t *Task) failed(kind string, err error) (outcome, bool) {
	t.emit(failure(kind, err))
	return outcome{err: err}, false
}

// wait waits for the end of the process and tells whether Kill brought it about.
func (t *Task) wait(ctx context.Context, p *process) bool {
	select {
	case <-p.ended:
		return false
	case <-ctx.Done():
		p.end("SIGKILL", 0)
		<-p.ended
		return false
	case <-t.kill:
		if p.left() {
			return false
		}
	}
	if d := t.spec.Task.ShutdownDelay; d > 0 {
		t.update(func(s *api.TaskState) { s.State = pending }, shutdownDelay(d))
		select {
		case <-p.ended:
			return true
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	t.end(p)
	<-p.ended
	return true
}

func (t *Task) end(p *process) { p.end(orElse(t.spec.Task.KillSignal, "SIGINT"), t.killTimeout()) }

// killTimeout is how long the process has after its signal. The agent allows 30 s.
func (t *Task) killTimeout() time.Duration {
	if d := t.spec.Task.KillTimeout; d != nil {
		return min(*d, 30*time.Second)
	}
	return 5 * time.Second
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Kill sends the task its kill_signal after its shutdown_delay, and kills it after its
// kill_timeout. It returns at once.
func (t *Task) Kill() {
	t.killOnce.Do(func() {
		select {
		case <-t.done:
			return
		default:
		}
		if !t.left() {
			t.emit(killing(t.killTimeout()))
		}
		close(t.kill)
	})
}

// Signal sends a signal to the task's first process. The error is ErrNotRunning where
// there is none.
func (t *Task) Signal(sig string) error {
	t.mu.Lock()
	p := t.process
	t.mu.Unlock()
	if p == nil {
		return ErrNotRunning
	}
	t.emit(signaling(sig))
	return p.signal(sig)
}

// Restart ends the process as Kill does and starts it again, whatever the policy says.
// It returns when the old one has ended.
func (t *Task) Restart() error { return t.restartFor("User requested task to restart") }

func (t *Task) restartFor(reason string) error {
	t.mu.Lock()
	p := t.process
	t.restart = p != nil
	t.mu.Unlock()
	if p == nil {
		return ErrNotRunning
	}
	t.emit(restartSignaled(reason))
	t.end(p)
	<-p.ended
	return nil
}

// Done is closed when the task is dead and its last state was handed on.
func (t *Task) Done() <-chan struct{} { return t.done }

// State is the task's state now.
func (t *Task) State() api.TaskState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Events = append([]*api.TaskEvent(nil), t.state.Events...)
	return s
}

// PIDs are the processes that the task has now.
func (t *Task) PIDs() []int {
	t.mu.Lock()
	p := t.process
	t.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.pids()
}

// Logs reads what the task wrote: stream is stdout or stderr, offset the first byte,
// negative from the end. With follow it goes on until the task is dead. Close it.
func (t *Task) Logs(stream string, offset int64, follow bool) io.ReadCloser {
	return openLog(t.spec.logPath(stream), offset, follow, t.done)
}
