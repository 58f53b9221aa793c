package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/test/measure"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// policy lets the tuner do what it wants.
const policy = "default:\n  max_mode: apply\n  control: 0\n"

// patience is how long the controller may take to know every job at its start, and any new
// one.
const patience = 4 * time.Minute

// options say what is measured.
type options struct {
	jobs    int           // in the queue
	stanzas int           // of them that have a stanza
	over    time.Duration // each measurement of the cost
	seen    int           // new jobs, each time
	root    string        // of this checkout
	trace   io.Writer     // what is being done
	nomad   nomadagent.Kind
}

// tuned reports whether job i of the queue has a stanza.
func (o options) tuned(i int) bool {
	every := max(o.jobs/o.stanzas, 1)
	return i%every == 0 && i/every < o.stanzas
}

// cluster is a scheduler with a queue that others fill.
type cluster struct {
	name   string
	verb   string // what a user does with a job
	server int    // process of the scheduler that costs are measured of, 0 = none
	settle bool   // a controller that knows all jobs may still be busy with them

	fill  func(ctx context.Context) error
	add   func(ctx context.Context, stanza bool) (job string, at time.Time, err error)
	start func(ctx context.Context) (*site, error) // the controller and what belongs to it
	asked func(r report) string                    // what the project asks for, and what was found
}

// site is a controller with what belongs to it.
type site struct {
	client    *api.Client
	processes []*sandbox.Process             // the controller is the first
	traffic   func() (requests, bytes int64) // nil = it is not counted
}

// run starts a program of the site, before those that run already.
func (s *site) run(name string, cmd *exec.Cmd, trace io.Writer) error {
	cmd.Stdout, cmd.Stderr = trace, trace
	p, err := sandbox.Begin(name, "", cmd)
	if err == nil {
		s.processes = append([]*sandbox.Process{p}, s.processes...)
	}
	return err
}

// stop ends all. Of a process that was waited for the kernel knows the peak memory of it or
// of the largest of its children.
func (s *site) stop(r *report) (err error) {
	if s.client != nil {
		s.client.Close()
	}
	for i, p := range s.processes {
		err = errors.Join(err, p.Leave(time.Minute))
		if u, ok := p.Cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && i == 0 && r != nil {
			r.largest = u.Maxrss << 10
		}
	}
	return err
}

// bench is a site on a cluster that is being measured.
type bench struct {
	options
	cluster

	site *site // nil = it is not there yet
}

// watch measures a cluster without a controller and with one.
func watch(ctx context.Context, o options, c cluster) (r report, err error) {
	b := &bench{options: o, cluster: c}
	r = report{machine: measure.ThisMachine(), cluster: c, jobs: o.jobs, stanzas: o.stanzas}
	b.say("%d jobs: %s", o.jobs, c.name)
	begin := time.Now()
	if err := c.fill(ctx); err != nil {
		return r, fmt.Errorf("fill the queue: %w", err)
	}
	r.filled = time.Since(begin)
	if c.server != 0 {
		if err := driver.Pause(ctx, min(o.over, 10*time.Second)); err != nil { // it saves its state after a while
			return r, err
		}
		if err := b.quietAndBusy(ctx, o.over/2, &r.alone, nil); err != nil {
			return r, err
		}
	}
	b.say("starting the controller")
	begin = time.Now()
	if b.site, err = c.start(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.site.stop(&r)) }()
	if err := b.await(ctx, func(jobs map[string]bool) bool { return len(jobs) >= o.stanzas }, 200*time.Millisecond); err != nil {
		return r, fmt.Errorf("the jobs with a stanza: %w", err)
	}
	if err := b.settled(ctx, min(max(o.over/10, time.Second), 10*time.Second)); err != nil {
		return r, err
	}
	if r.arrived, err = b.spent(); err != nil {
		return r, err
	}
	r.arrived.over = time.Since(begin)
	if err := b.quietAndBusy(ctx, o.over, &r.ours, &r.seen); err != nil {
		return r, err
	}
	held := func(name string, pid int) error {
		u, err := measure.Used(pid)
		r.memory = append(r.memory, memory{name, u})
		return err
	}
	for _, p := range b.site.processes {
		if err := held(p.Name, p.Cmd.Process.Pid); err != nil {
			return r, err
		}
	}
	if c.server != 0 {
		if err := held("the scheduler", c.server); err != nil {
			return r, err
		}
	}
	r.machine.LoadAfter = measure.Load()
	return r, nil
}

func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.trace, format+"\n", args...) }

// quietAndBusy measures for a while in which nothing happens, and for another in which
// others add a job every second; where seen is not nil also how soon new jobs are seen.
func (b *bench) quietAndBusy(ctx context.Context, d time.Duration, costs *[2]cost, seen *[2][]time.Duration) (err error) {
	for i, name := range [...]string{"nothing happens", "others " + b.verb + " a job every second"} {
		if i == 1 {
			stop := b.others(ctx)
			defer func() { err = errors.Join(err, stop()) }()
		}
		b.say("measuring for %v: %s", d, name)
		if costs[i], err = b.during(ctx, d); err != nil {
			return err
		}
		if seen == nil {
			continue
		}
		b.say("%d new jobs: %s", b.options.seen, name)
		if seen[i], err = b.newJobs(ctx); err != nil {
			return err
		}
	}
	return nil
}

// spent is what was used so far.
func (b *bench) spent() (c cost, err error) {
	if b.server != 0 {
		u, err := measure.Used(b.server)
		if err != nil {
			return c, err
		}
		c.server = u.CPU
	}
	if b.site == nil {
		return c, nil
	}
	for _, p := range b.site.processes {
		u, err := measure.Used(p.Cmd.Process.Pid)
		if err != nil {
			return c, err
		}
		c.cpu, c.children = c.cpu+u.CPU, c.children+u.Children
	}
	if b.site.traffic != nil {
		c.requests, c.bytes = b.site.traffic()
	}
	return c, nil
}

// during measures for a while.
func (b *bench) during(ctx context.Context, d time.Duration) (cost, error) {
	begin := time.Now()
	before, err := b.spent()
	if err != nil {
		return cost{}, err
	}
	if err := driver.Pause(ctx, d); err != nil {
		return cost{}, err
	}
	after, err := b.spent()
	return after.minus(before, time.Since(begin)), err
}

// settled waits until the controller has nothing more to do with its jobs than to watch.
func (b *bench) settled(ctx context.Context, window time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for b.settle {
		first, err := b.during(ctx, window)
		if err != nil {
			return err
		}
		second, err := b.during(ctx, window)
		if err != nil {
			return fmt.Errorf("the controller does not come to rest: %w", err)
		}
		if second.share(second.cpu) >= 0.8*first.share(first.cpu) {
			break // it does not become less any more
		}
	}
	return nil
}

// await waits until the jobs that the controller has dealt with are enough. It asks for the
// history: a list has jobs that the controller has not dealt with, too, and asking for one
// job would make the controller look at it.
func (b *bench) await(ctx context.Context, enough func(jobs map[string]bool) bool, every time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		events, err := b.site.client.History(ctx) // at first it does not answer
		jobs := map[string]bool{}
		for _, e := range events {
			name, _, _ := strings.Cut(e.Job, "@")
			jobs[name] = true
		}
		if err == nil && enough(jobs) {
			return nil
		}
		for _, p := range b.site.processes {
			if failed := p.Failed(); failed != nil {
				return fmt.Errorf("the %w: %w", failed, err)
			}
		}
		if driver.Pause(ctx, every) != nil {
			return fmt.Errorf("the controller has dealt with %d jobs: %w", len(jobs), errors.Join(ctx.Err(), err))
		}
	}
}

// newJobs adds jobs with a stanza at random times, and returns of each how long after that
// the controller knew it.
func (b *bench) newJobs(ctx context.Context) ([]time.Duration, error) {
	var out []time.Duration
	for range b.options.seen {
		if err := driver.Pause(ctx, time.Duration(rand.Int64N(int64(3*time.Second)))); err != nil { //nolint:gosec // any time will do
			return nil, err
		}
		job, at, err := b.add(ctx, true)
		if err != nil {
			return nil, err
		}
		if err := b.await(ctx, func(jobs map[string]bool) bool { return jobs[job] }, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("job %s: %w", job, err)
		}
		out = append(out, time.Since(at))
	}
	slices.Sort(out)
	return out, nil
}

// others adds a job without a stanza every second until stop is called.
func (b *bench) others(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, _, err := b.add(ctx, false); err != nil && ctx.Err() == nil {
				ended <- err
				return
			}
			if driver.Pause(ctx, time.Second) != nil {
				ended <- nil
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}
