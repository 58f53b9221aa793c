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
	queued map[driver.JobID]bool        // in ready
	busy   map[driver.JobID]bool        // handed out, Done not called
	dirty  map[driver.JobID]bool        // added while busy
	timers map[driver.JobID]*time.Timer // AddAfter, one a key
	due    map[driver.JobID]time.Time
	wake   chan struct{}
	closed bool
}

// NewQueue makes an empty queue.
func NewQueue() *Queue {
	return &Queue{
		queued: map[driver.JobID]bool{}, busy: map[driver.JobID]bool{}, dirty: map[driver.JobID]bool{},
		timers: map[driver.JobID]*time.Timer{}, due: map[driver.JobID]time.Time{}, wake: make(chan struct{}, 1),
	}
}

// Add asks for a look at a job as soon as a worker is free.
func (q *Queue) Add(id driver.JobID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(id)
}

func (q *Queue) add(id driver.JobID) {
	switch {
	case q.closed || q.queued[id]:
	case q.busy[id]:
		q.dirty[id] = true
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
	if old, waiting := q.due[id]; waiting {
		if !at.Before(old) {
			return
		}
		q.timers[id].Stop()
	}
	q.due[id] = at
	q.timers[id] = time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.due[id].Equal(at) {
			delete(q.due, id)
			delete(q.timers, id)
			q.add(id)
		}
	})
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
			q.busy[id] = true
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
	delete(q.busy, id)
	if q.dirty[id] {
		delete(q.dirty, id)
		q.add(id)
	}
}

// Close stops the timers; later additions are ignored.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for id, t := range q.timers {
		t.Stop()
		delete(q.timers, id)
		delete(q.due, id)
	}
}
