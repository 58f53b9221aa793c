package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"
)

var (
	// ErrSpec says what of the task cannot be run here.
	ErrSpec = errors.New("task cannot be run")
	// ErrNotRunning is in the agent's words.
	ErrNotRunning = errors.New("Task not running")
)

// Spec says what to run. The job is the allocation's, canonical.
type Spec struct {
	Dir       string // of the allocation; the task's own is Dir/TASK
	PrevDir   string // of the allocation that this one replaces, for a sticky disk
	Alloc     *api.Allocation
	Group     *api.TaskGroup
	Task      *api.Task
	CPUs      []int             // reserved cores
	Node      map[string]string // names that the task may interpolate
	Variables Variables
}

func (s Spec) dir() string { return filepath.Join(s.Dir, s.Task.Name) }

// logPath is where a stream goes. A real agent goes on in a file 1 when the first is full.
func (s Spec) logPath(stream string) string {
	return filepath.Join(s.Dir, "alloc", "logs", s.Task.Name+"."+stream+".0")
}

func (s Spec) resources() *api.AllocatedTaskResources {
	return s.Alloc.AllocatedResources.Tasks[s.Task.Name]
}

// folders makes the folders of the allocation and of the task. A sticky disk moves
// alloc/data and the task's local folder over, once.
func (s Spec) folders() error {
	for _, dir := range []string{"alloc", "alloc/data", "alloc/logs", "alloc/tmp", s.Task.Name, s.Task.Name + "/local", s.Task.Name + "/secrets", s.Task.Name + "/tmp"} {
		path := filepath.Join(s.Dir, dir)
		// The umask takes bits off that a task of another user needs.
		if err := errors.Join(os.MkdirAll(path, 0o777), os.Chmod(path, 0o777)); err != nil { //nolint:gosec // as above
			return err
		}
	}
	if d := s.Group.EphemeralDisk; s.PrevDir == "" || d.Sticky == nil || !*d.Sticky {
		return nil
	}
	for _, dir := range []string{"alloc/data", s.Task.Name + "/local"} {
		from, to := filepath.Join(s.PrevDir, dir), filepath.Join(s.Dir, dir)
		if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
			continue
		}
		// What is there already is the task's own.
		if entries, err := os.ReadDir(to); err != nil {
			return err
		} else if len(entries) > 0 {
			continue
		}
		if err := errors.Join(os.Remove(to), os.Rename(from, to)); err != nil {
			return err
		}
	}
	return nil
}

const (
	pending = "pending"
	running = "running"
	dead    = "dead"
)

// Task is a task that was started. Its methods are safe for concurrent use.
type Task struct {
	spec    Spec
	changed func(api.TaskState)
	done    chan struct{}

	kill     chan struct{} // closed by Kill
	killOnce sync.Once
	over     chan struct{} // closed when nothing of it is started any more
	watchers sync.WaitGroup

	mu       sync.Mutex
	state    api.TaskState
	process  *process          // nil where none runs
	rendered map[string]string // environment of its templates
	restart  bool              // the next end is followed by a start, whatever the policy says
}

// Start begins to run the task and returns at once. It hands every new state to changed,
// one at a time and in order, the last one before Done is closed; changed calls no method of
// the task. When the context ends the processes are killed without an event, as when a
// machine is switched off.
func Start(ctx context.Context, s Spec, changed func(api.TaskState)) (*Task, error) {
	switch {
	case s.Task.Driver != "raw_exec":
		return nil, fmt.Errorf("%w: driver %q", ErrSpec, s.Task.Driver)
	case len(s.Task.Artifacts) > 0 || s.Task.User != "" || s.Task.Lifecycle != nil || s.Task.DispatchPayload != nil:
		return nil, fmt.Errorf("%w: artifacts, users, lifecycles and payloads are not known here", ErrSpec)
	}
	t := &Task{spec: s, changed: changed, done: make(chan struct{}), kill: make(chan struct{}), over: make(chan struct{})}
	t.state.State = pending
	go func() {
		defer close(t.done)
		t.run(ctx)
		t.mu.Lock()
		close(t.over)
		t.mu.Unlock()
		t.watchers.Wait()
	}()
	return t, nil
}

// update changes the state, adds events to it and hands it on.
func (t *Task) update(change func(*api.TaskState), events ...*api.TaskEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.updateLocked(change, events...)
}

func (t *Task) updateLocked(change func(*api.TaskState), events ...*api.TaskEvent) {
	select {
	case <-t.over:
		return
	default:
	}
	change(&t.state)
	all := slices.Concat(t.state.Events, events)
	t.state.Events = all[max(0, len(all)-10):] // a real agent keeps as many
	t.changed(t.state)
}

func (t *Task) emit(events ...*api.TaskEvent) { t.update(func(*api.TaskState) {}, events...) }

// run starts the task as often as its policy says.
func (t *Task) run(ctx context.Context) {
	defer func() {
		if ctx.Err() == nil {
			t.update(func(s *api.TaskState) { s.State, s.FinishedAt = dead, time.Now().UTC() })
		}
	}()
	t.emit(received())
	policy := newPolicy(t.spec)
	for first := true; ; first = false {
		result, ended := t.attempt(ctx, first)
		t.mu.Lock()
		again, delay, reason := t.restart, time.Duration(0), ""
		t.restart = false
		t.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return
		case ended:
			t.emit(killed())
			return
		case !again:
			again, delay, reason = policy.next(result, time.Now())
		}
		if !again {
			if reason != "" {
				t.update(func(s *api.TaskState) { s.State, s.Failed = dead, true }, notRestarting(reason))
			}
			return
		}
		t.update(func(s *api.TaskState) { s.State, s.Restarts, s.LastRestart = pending, s.Restarts+1, time.Now().UTC() }, restarting(reason, delay))
		if !pause(delay, t.kill, ctx.Done()) {
			return
		}
	}
}

// pause waits and reports whether the time was over before one of the channels was closed;
// nil is a channel that never is.
func pause(d time.Duration, a, b <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a:
		return false
	case <-b:
		return false
	}
}

// attempt prepares and runs the task once and reports whether Kill ended it.
func (t *Task) attempt(ctx context.Context, first bool) (outcome, bool) {
	select {
	case <-t.kill:
		return outcome{}, true
	default:
	}
	failed := func(kind string, err error) (outcome, bool) {
		t.emit(failure(kind, err))
		return outcome{err: err}, false
	}
	if first {
		t.emit(buildingTaskDir())
	}
	if err := t.spec.folders(); err != nil {
		return failed(api.TaskSetupFailure, err)
	}
	if first && len(t.spec.Task.Templates) > 0 {
		if ok, err := t.template(ctx); err != nil {
			return failed(api.TaskSetupFailure, err)
		} else if !ok {
			return outcome{}, true
		}
	}
	env := t.spec.environment()
	t.mu.Lock()
	maps.Copy(env, t.rendered)
	t.mu.Unlock()
	config, err := t.spec.config(env)
	if err != nil {
		return failed(api.TaskFailedValidation, err)
	}
	p, err := t.launch(config, env)
	if err != nil {
		return failed(api.TaskDriverFailure, err)
	}
	ended := t.wait(ctx, p)
	t.mu.Lock()
	t.process = nil
	t.mu.Unlock()
	p.clear()
	if ctx.Err() == nil {
		t.emit(terminated(p.result))
	}
	return p.result, ended
}

// ahead is how long a process runs before its state says so. A real client reports up to
// 200 ms late, and no process has its signal handlers in its first moment.
const ahead = 50 * time.Millisecond

// launch starts the process. A reader of its output finds the task started.
func (t *Task) launch(c config, env map[string]string) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, err := launch(t.spec, c, env)
	if err != nil {
		return nil, err
	}
	pause(ahead, p.ended, nil)
	t.process = p
	t.updateLocked(func(s *api.TaskState) {
		s.State = running
		if s.StartedAt.IsZero() {
			s.StartedAt = time.Now().UTC()
		}
	}, started())
	return p, nil
}

// wait waits for the end of the process and reports whether Kill brought it about.
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
		pause(d, p.ended, ctx.Done())
	}
	t.end(p)
	<-p.ended
	return true
}

func (t *Task) end(p *process) {
	signal := t.spec.Task.KillSignal
	if signal == "" {
		signal = "SIGINT"
	}
	p.end(signal, t.killTimeout())
}

// killTimeout is how long the process has after its signal. The agent allows 30 s.
func (t *Task) killTimeout() time.Duration { return min(*t.spec.Task.KillTimeout, 30*time.Second) }

// Kill sends the task its kill_signal after its shutdown_delay, and kills it after its
// kill_timeout. It returns at once.
func (t *Task) Kill() {
	t.killOnce.Do(func() {
		t.mu.Lock()
		p, state := t.process, t.state.State
		t.mu.Unlock()
		if state != dead && (p == nil || !p.left()) {
			t.emit(killing(t.killTimeout()))
		}
		close(t.kill)
	})
}

// Signal sends a signal to the task's first process.
func (t *Task) Signal(sig string) error {
	p := t.current()
	if p == nil {
		return ErrNotRunning
	}
	t.emit(signaling(sig))
	return p.signal(sig)
}

func (t *Task) current() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.process
}

// Restart ends the process as Kill does and starts it again, whatever the policy says.
// It returns when the old process has ended.
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
