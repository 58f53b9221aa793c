package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"pitchpipe/driver"
)

// Scheduler reads jobs.
type Scheduler interface {
	Get(ctx context.Context, id driver.JobID) (driver.Job, error)
	Capabilities() driver.Capabilities
}

// Queue hands out the ids of jobs to reconcile.
type Queue interface {
	Get(ctx context.Context) (driver.JobID, error)
	Done(id driver.JobID)
	AddAfter(id driver.JobID, d time.Duration)
}

// Config is what a Loop needs.
type Config struct {
	Scheduler   Scheduler
	Records     Records
	Queue       Queue
	Services    Services
	Stages      Stages // DefaultStages outside of tests and comparisons
	Log         *slog.Logger
	Workers     int           // default 4
	Tick        time.Duration // how often a running job is measured, default 500 ms
	Step        time.Duration // how often an intent is advanced, default 100 ms
	RestartCost time.Duration // assumed until one was measured; default 3 s
	// Now is the clock; nil = time.Now. A replay of recorded jobs has another.
	Now func() time.Time

	// AfterSave is called after each durable write. It is nil outside of crash tests.
	AfterSave func(r *Record)
}

// Loop reconciles jobs. Use New.
type Loop struct {
	cfg      Config
	services Services
	stages   Stages
	mu       sync.Mutex
	failures map[driver.JobID]int
	jobs     map[driver.JobID]*inMemory
	caps     caps
}

// inMemory is what is kept of a live job in memory alone. One worker at a time uses it.
type inMemory struct {
	outlook   driver.Outlook // as the scheduler last said
	outlookAt time.Time
	listening int       // the attempt whose listener was last checked
	listenAt  time.Time // when to check it again
}

func (l *Loop) inMemory(id driver.JobID) *inMemory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[id] == nil {
		l.jobs[id] = &inMemory{}
	}
	return l.jobs[id]
}

// New makes a Loop; it does nothing before Run.
func New(cfg Config) *Loop {
	cfg.Workers = cmp.Or(cfg.Workers, 4)
	cfg.Tick = cmp.Or(cfg.Tick, 500*time.Millisecond)
	cfg.Step = cmp.Or(cfg.Step, 100*time.Millisecond)
	cfg.RestartCost = cmp.Or(cfg.RestartCost, 3*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Loop{cfg: cfg, services: cfg.Services, stages: cfg.Stages, failures: map[driver.JobID]int{}, jobs: map[driver.JobID]*inMemory{}}
}

// Run works until ctx ends and returns its error. The next Run continues where it stopped.
func (l *Loop) Run(ctx context.Context) error {
	records, err := l.cfg.Records.All(ctx)
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	l.caps.restore(records)
	var workers sync.WaitGroup
	for range l.cfg.Workers {
		workers.Go(func() {
			for l.work(ctx) {
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

func (l *Loop) work(ctx context.Context) bool {
	id, err := l.cfg.Queue.Get(ctx)
	if err != nil {
		return false
	}
	defer l.cfg.Queue.Done(id)
	again, err := l.safely(ctx, id)
	l.mu.Lock()
	if err == nil {
		delete(l.failures, id)
	} else {
		l.failures[id]++
		again = backoff(l.failures[id])
	}
	l.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		l.cfg.Log.Warn("job will be reconciled again", "job", id, "after", again, "error", err)
	}
	if again > 0 {
		l.cfg.Queue.AddAfter(id, again)
	}
	return true
}

// One bad job never stops the others.
func (l *Loop) safely(ctx context.Context, id driver.JobID) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.cfg.Log.Error("panic while reconciling", "job", id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return l.Reconcile(ctx, id)
}

var errPanic = errors.New("panic")

func backoff(failures int) time.Duration {
	return min(time.Minute, 200*time.Millisecond<<min(failures, 9))
}

// patience is how long to wait until a waiting job is decided again: the longer it has waited,
// the longer. Its start is an event.
func (p *reconciliation) patience() time.Duration {
	waited := p.now.Sub(p.job.Submitted)
	return min(max(p.cfg.Tick, waited/10), max(p.cfg.Tick, time.Minute))
}

func (l *Loop) save(ctx context.Context, r *Record) error {
	if err := l.cfg.Records.Save(ctx, r); err != nil {
		return fmt.Errorf("save the record of %s: %w", r.Job, err)
	}
	if l.cfg.AfterSave != nil {
		l.cfg.AfterSave(r)
	}
	return nil
}
