package watch

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"time"

	"pitchpipe/driver"
)

// Source is the part of a driver that is watched.
type Source interface {
	Watch(ctx context.Context) (<-chan driver.Event, error)
	List(ctx context.Context) ([]driver.Job, error)
}

// Watcher feeds a Queue from a driver.
type Watcher struct {
	Source Source
	Queue  *Queue
	Resync time.Duration // how often every job is listed, default one minute
	Retry  time.Duration // pause before a broken stream is opened again, default one second
	Log    *slog.Logger

	listed map[driver.JobID]driver.Job // what the last list said about jobs that do not run
	lists  int                         // since the stream was opened
	warned time.Time
}

// every is how many lists there are to one after which every job is looked at.
const every = 10

// Run feeds the queue until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	resync := time.NewTicker(cmp.Or(max(w.Resync, 0), time.Minute))
	defer resync.Stop()
	for ctx.Err() == nil {
		events, err := w.Source.Watch(ctx)
		if err != nil {
			w.warn("watch", err)
		}
		w.lists = 0
		w.list(ctx)
		w.drain(ctx, events, resync.C)
		_ = driver.Pause(ctx, cmp.Or(max(w.Retry, 0), time.Second)) // the loop looks whether ctx has ended
	}
	return ctx.Err()
}

// drain reads events until the stream ends; without a stream it returns at once.
func (w *Watcher) drain(ctx context.Context, events <-chan driver.Event, resync <-chan time.Time) {
	for events != nil {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			w.Queue.Add(e.Job)
		case <-resync:
			w.list(ctx)
		}
	}
}

func (w *Watcher) list(ctx context.Context) {
	jobs, err := w.Source.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.warn("list", err)
		}
		return
	}
	whole := w.lists%every == 0
	w.lists++
	listed := make(map[driver.JobID]driver.Job, len(jobs))
	for _, j := range jobs {
		before, known := w.listed[j.ID]
		if j.State != driver.Running {
			listed[j.ID] = j
		}
		if whole || !known || !reflect.DeepEqual(before, j) {
			w.Queue.Add(j.ID)
		}
	}
	w.listed = listed
}

// warn logs a failure, once a minute: a scheduler that does not answer is asked every second.
func (w *Watcher) warn(call string, err error) {
	if now := time.Now(); now.Sub(w.warned) >= time.Minute {
		w.warned = now
		w.Log.Warn("the scheduler does not answer, will retry", "call", call, "error", err)
	}
}
