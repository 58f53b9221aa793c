package main

import (
	"runtime"
	"sync/atomic"
)

// pieces is the number that the kinds cut most loops into.
const pieces = 64

// patience is for how many looks a helper waits for the next loop, and the caller
// for the last piece, before it gives its thread back: some tens of microseconds.
// Waking a sleeping thread takes longer than many a loop.
const (
	patience = 30_000
	restEach = 1_000 // looks between two offers of the thread to others
)

// team is a number of threads to work with. One loop runs at a time. How a loop is cut into
// pieces never depends on the number of threads, so a sum is the same number, bit for bit,
// on one thread and on many. The helpers end by themselves soon after the last loop.
type team struct {
	threads int
	looks   int          // how often to look for work before going to sleep
	helpers atomic.Int32 // running besides the caller
	loop    atomic.Pointer[loop]
}

// loop is one call of each.
type loop struct {
	pieces   int64
	f        func(piece int)
	next     atomic.Int64 // piece to hand out
	finished atomic.Int64
	done     chan struct{} // closed when all are finished
}

// newTeam returns a team of so many threads, at least one. Where this process may not
// use as many processors, its threads do not wait for each other actively.
func newTeam(threads int) *team {
	t := &team{threads: max(threads, 1), looks: patience}
	if t.threads > runtime.NumCPU() {
		t.looks = 1
	}
	return t
}

// each calls f once for every piece from 0 to pieces-1 and returns when all calls
// have. The pieces are handed out one by one, so that a thread that is held up by
// its neighbours does not hold up the others. f must write only what belongs to
// its piece.
func (t *team) each(pieces int, f func(piece int)) {
	n := min(t.threads, pieces)
	if n <= 1 {
		for i := range pieces {
			f(i)
		}
		return
	}
	l := &loop{pieces: int64(pieces), f: f, done: make(chan struct{})}
	t.loop.Store(l)
	for t.helpers.Load() < int32(n-1) {
		t.helpers.Add(1)
		go t.help()
	}
	l.work()
	if !t.wait(func() bool { return l.finished.Load() == l.pieces }) {
		<-l.done
	}
}

// help works on one loop after the other until none comes for a while. A loop
// never needs its helpers: what they do not take, the caller does.
func (t *team) help() {
	defer t.helpers.Add(-1)
	var last *loop
	for t.wait(func() bool { return t.loop.Load() != last }) {
		last = t.loop.Load()
		last.work()
	}
}

func (l *loop) work() {
	for {
		i := l.next.Add(1) - 1
		if i >= l.pieces {
			return
		}
		l.f(int(i))
		if l.finished.Add(1) == l.pieces {
			close(l.done)
		}
	}
}

// wait reports whether something became ready while it looked.
func (t *team) wait(ready func() bool) bool {
	for look := range t.looks {
		if ready() {
			return true
		}
		if look%restEach == restEach-1 {
			runtime.Gosched()
		}
	}
	return false
}

// sum adds what f returns for every piece, in the order of the pieces.
func (t *team) sum(pieces int, f func(piece int) float64) float64 {
	part := make([]float64, pieces)
	t.each(pieces, func(i int) { part[i] = f(i) })
	total := 0.0
	for _, v := range part {
		total += v
	}
	return total
}

// span cuts n items into pieces whose sizes differ by one at most and returns the
// bounds of one of them: from lo up to, not including, hi.
func span(n, pieces, piece int) (lo, hi int) {
	size, rest := n/pieces, n%pieces
	lo = piece*size + min(piece, rest)
	hi = lo + size
	if piece < rest {
		hi++
	}
	return lo, hi
}
