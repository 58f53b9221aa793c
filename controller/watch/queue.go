package watch

import (
	"context"
	"sync"
	"time"

	"pitchpipe/driver"
)

// Queue hands out keys, each to one worker at a time. Use NewQueue.
type Queue struct {
	mu     sync.Mutex
	ready  []driver.JobID
	queued map[driver.JobID]bool  // in ready
	busy   map[driver.JobID]bool  // handed out, Done not called; true: added meanwhile
	later  map[driver.JobID]timer // AddAfter, one a key
	wake   chan struct{}
	closed bool
}

type timer struct {
	*time.Timer
	due time.Time
}

// NewQueue makes an empty queue.
func NewQueue() *Queue {
	return &Queue{queued: map[driver.JobID]bool{}, busy: map[driver.JobID]bool{}, later: map[driver.JobID]timer{}, wake: make(chan struct{}, 1)}
}

// Add asks for a look at a job as soon as a worker is free.
func (q *Queue) Add(id driver.JobID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(id)
}

func (q *Queue) add(id driver.JobID) {
	_, busy := q.busy[id]
	switch {
	case q.closed || q.queued[id]:
	case busy:
		q.busy[id] = true
	default:
		q.queued[id] = true
		q.ready = append(q.ready, id)
		q.signal()
	}
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// AddAfter asks for a look after d, or earlier if one is due earlier.
func (q *Queue) AddAfter(id driver.JobID, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	at := time.Now().Add(d)
	if old, waiting := q.later[id]; waiting {
		if !at.Before(old.due) {
			return
		}
		old.Stop()
	}
	q.later[id] = timer{due: at, Timer: time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.later[id].due.Equal(at) {
			delete(q.later, id)
			q.add(id)
		}
	})}
}

// Get waits for a key. The caller calls Done with it. It returns the context's
// error when ctx ends.
func (q *Queue) Get(ctx context.Context) (driver.JobID, error) {
	for {
		q.mu.Lock()
		if len(q.ready) > 0 {
			id := q.ready[0]
			q.ready = q.ready[1:]
			delete(q.queued, id)
			q.busy[id] = false
			if len(q.ready) > 0 {
				q.signal() // another worker may sleep
			}
			q.mu.Unlock()
			return id, nil
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-q.wake:
		}
	}
}

// Done ends the work on a key.
func (q *Queue) Done(id driver.JobID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := q.busy[id]
	delete(q.busy, id)
	if again {
		q.add(id)
	}
}

// Close stops the timers; later additions are ignored.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, t := range q.later {
		t.Stop()
	}
	clear(q.later)
}
