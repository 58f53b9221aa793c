package faultslurm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// round is many jobs of two users, and the faults that meet them. The next begins while
// Slurm is still about the end of its jobs.
type round struct {
	w         *world
	number    int
	jobs      []*job
	submitted time.Time

	mu         sync.Mutex
	dice       *rand.Rand
	strikes    []strike
	latest     time.Time // when one met something, or the first job was moved
	complaints []string
	closed     bool // no more faults
	pending    sync.WaitGroup
	cluster    sync.RWMutex // held alone by what befalls all
}

func (r *round) random(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dice.IntN(n)
}

func (r *round) complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

func (r *round) byID(id string) *job {
	for _, j := range r.jobs {
		if j.id == id && id != "" {
			return j
		}
	}
	return nil
}

// needed tells whether another job waits for this one.
func (r *round) needed(j *job) bool {
	for _, other := range r.jobs {
		if other.after == j {
			return true
		}
	}
	return false
}

// over tells whether there is nothing left that a fault could meet.
func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// later does something that a fault leaves to be done, such as the end of a hold.
func (r *round) later(wait time.Duration, do func() error) {
	r.pending.Go(func() {
		time.Sleep(wait)
		if err := do(); err != nil && !refused(err) {
			r.complain("later: %v", err)
		}
	})
}

// perOwner are the jobs of one user in a round.
func (r *round) perOwner(o *owner, small bool) []*job {
	named := func(kind string, j job) *job {
		j.owner, j.name = o, fmt.Sprintf("r%d-%s", r.number, kind)
		if j.epochs == 0 {
			j.epochs = 1200
		}
		if j.way == "" {
			j.way = wayLeave
			j.exit = true
		}
		return &j
	}
	// A sample does not wait for sbatch --wait, which asks every half minute in the end.
	first := named("leaves", job{wait: !small})
	out := []*job{
		first, named("says", job{way: waySay, wait: !small}), named("ends", job{way: wayEnd, late: r.lateness()}),
		named("after", job{plain: true, after: first, epochs: 3}), named("leaves-too", job{}), named("says-too", job{way: waySay}),
	}
	if small {
		return out
	}
	out = append(out, named("fails", job{status: 3, way: waySay, wait: true}), named("ends-too", job{way: wayEnd, exit: true, late: r.lateness()}),
		named("leaves-3", job{}), named("leaves-4", job{}), named("says-3", job{way: waySay}))
	if o.broker == nil { // the controller of a site submits nobody's jobs
		out = append(out, named("asked", job{by: true}))
	}
	return out
}

func (r *round) lateness() time.Duration { return time.Duration(r.random(2500)) * time.Millisecond }

// submit makes the jobs of the round. slurmctld is not touched meanwhile.
func (r *round) submit(small bool) error {
	for _, o := range r.w.owners {
		r.jobs = append(r.jobs, r.perOwner(o, small)...)
	}
	for _, j := range r.jobs {
		if err := j.submit(r.hurry()); err != nil {
			return err
		}
		r.w.add(j)
	}
	r.submitted = time.Now()
	return nil
}

// hurry is the file that has the jobs of this round come to their end.
func (r *round) hurry() string { return filepath.Join(r.w.dir, fmt.Sprintf("hurry-%d", r.number)) }

// inject does the faults until all are done or no job is moved any more, and returns
// what is left. A fault that met nothing is tried again at another point. The
// controllers are struck at the same time, each by one fault at a time.
func (r *round) inject(faults []fault) (left []fault) {
	queues := [3][]fault{}
	for _, f := range faults {
		i := f.owner
		switch {
		case f.clusterwide():
			i = 2
		case f.kind == kindBroker || f.kind == kindBrokerAny:
			i = 1
		}
		queues[i] = append(queues[i], f)
	}
	stop := make(chan struct{})
	begun := make(chan struct{})
	go r.watch(stop, begun)
	<-begun
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, queue := range queues {
		wg.Go(func() {
			for len(queue) > 0 && !r.over() {
				f := queue[0]
				queue = queue[1:]
				err := r.one(f, i == 2)
				if err == nil {
					continue
				}
				if !errors.Is(err, errMissed) {
					r.complain("%s %s %s: %v", f.kind, f.point, f.action, err)
				}
				queue = append(queue, f.elsewhere(r.random))
			}
			mu.Lock()
			defer mu.Unlock()
			left = append(left, queue...)
		})
	}
	wg.Wait()
	close(stop)
	return left
}

func (f fault) clusterwide() bool {
	switch f.kind {
	case kindCtldKill, kindCtldSaved, kindCtldTerm, kindCtldStop, kindNode:
		return true
	}
	return false
}

// one does one fault. What befalls the whole cluster comes alone, so that it is
// known what met a job.
func (r *round) one(f fault, alone bool) error {
	if alone {
		r.cluster.Lock()
		defer r.cluster.Unlock()
	} else {
		r.cluster.RLock()
		defer r.cluster.RUnlock()
	}
	began := time.Now()
	touched, err := r.inflict(&f)
	took := time.Since(began).Seconds()
	if err != nil {
		r.w.t.Logf("%s round %d: %s %s %s of %s after %.1f s: %v", time.Now().Format("15:04:05.000"), r.number, f.kind, f.point, f.action, r.w.owners[f.owner].name, took, err)
		return err
	}
	r.w.t.Logf("%s round %d: %s %s %s of %s after %.1f s: jobs %s", time.Now().Format("15:04:05.000"), r.number, f.kind, f.point, f.action, r.w.owners[f.owner].name, took, strings.Join(touched, " "))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	r.strikes = append(r.strikes, strike{fault: f, round: r.number, touched: touched})
	return nil
}

// watch closes the round once few of its jobs are left, none has been moved for a while,
// or they are moved so seldom that faults meet nothing any more. It says when the first is.
func (r *round) watch(stop <-chan struct{}, begun chan<- struct{}) {
	begin := sync.OnceFunc(func() { close(begun) })
	defer begin()
	var last time.Time // when one was moved
	for {
		select {
		case <-stop:
			return
		case <-time.After(500 * time.Millisecond):
		}
		left := 0
		for _, j := range r.jobs {
			if !j.plain && readJournal(j.journal(), j.epochs).ends == 0 && !j.cancelled {
				left++
			}
		}
		if r.moved() {
			last = time.Now()
		}
		r.mu.Lock()
		idle := time.Since(r.submitted) > patience
		switch {
		case !r.latest.IsZero():
			idle = time.Since(last) > 3*opportunity || time.Since(r.latest) > 6*opportunity
		case !last.IsZero():
			r.latest = last
			begin()
		}
		r.closed = left <= 2 || idle
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return
		}
	}
}

// moved tells whether one of its jobs is.
func (r *round) moved() bool {
	for _, o := range r.w.owners {
		for id := range o.moving() {
			if r.byID(id) != nil {
				return true
			}
		}
	}
	return false
}
