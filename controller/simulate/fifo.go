package simulate

import (
	"context"
	"math"
)

// fifo starts jobs in the order of their arrival and waits for the first that does not fit.
func fifo() Spec {
	return Spec{Name: "fifo", New: inOrder(func(*Pool, *Job) float64 { return 0 })}
}

// sjf is fifo ordered by the true durations: an oracle.
func sjf() Spec { return Spec{Name: "sjf", Oracle: true, New: inOrder((*Pool).Remaining)} }

// line starts jobs from the head of an order and stops at the first that does not fit. Of the same key those come
// first that came first.
type line struct {
	pool  *Pool
	queue events
	key   func(*Pool, *Job) float64
}

func inOrder(key func(*Pool, *Job) float64) func(context.Context, Input) (func(*Pool) Policy, error) {
	return whatever(func(p *Pool) Policy { return &line{pool: p, key: key} })
}

func (l *line) Arrive(j *Job) {
	l.queue.push(item{key: l.key(l.pool, j), seq: j.Seq, job: j})
}

func (*line) Ended(*Job) {}

func (l *line) Decide() float64 {
	for len(l.queue) > 0 && l.pool.Start(l.queue[0].job) {
		l.queue.pop()
	}
	return math.Inf(1)
}
