package benchnomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/measure"
	"pitchpipe/test/nomadagent"
)

// Options say what is measured.
type Options struct {
	Kind    nomadagent.Kind
	Jobs    int           // that are registered
	Stanzas int           // of them that have a stanza
	Over    time.Duration // each measurement of the cost
	Seen    int           // new jobs, each time
	Root    string        // of this checkout
	Trace   io.Writer     // what is being done
}

// Run measures. Where there can be no agent the error is nomadagent.ErrUnavailable.
func Run(ctx context.Context, o Options) (r Report, err error) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(o.Trace, format+"\n", args...) }
	dir, err := os.MkdirTemp("", "pitchpipe-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := build(ctx, o.Root, dir)
	if err != nil {
		return r, err
	}
	agent, err := nomadagent.Launch(ctx, nomadagent.Options{Kind: o.Kind})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, agent.Stop(context.WithoutCancel(ctx))) }()
	cluster, err := agent.Connect()
	if err != nil {
		return r, err
	}
	defer cluster.Close()
	r = Report{Machine: measure.ThisMachine(), Nomad: agent.Name(), Jobs: o.Jobs, Stanzas: o.Stanzas}
	say("registering %d jobs with %s", o.Jobs, agent.Name())
	begin := time.Now()
	if err := fill(ctx, cluster, o.Jobs, o.Stanzas); err != nil {
		return r, err
	}
	r.Filled = time.Since(begin)
	p, err := newProxy(ctx, agent.Addr)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	say("starting the controller")
	s := subject{proxy: p}
	if s.controller, err = start(ctx, program, dir, p.addr, agent.Token, o.Trace); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.controller.stop()) }()
	begin = time.Now()
	if err := s.controller.await(ctx, "tuned-", o.Stanzas, 100*time.Millisecond); err != nil {
		return r, err
	}
	if r.Arrived, err = s.spent(); err != nil {
		return r, err
	}
	r.Arrived.Over = time.Since(begin)
	return r, r.watch(ctx, cluster, s, o, say)
}

// watch measures while nothing happens, and while others register jobs.
func (r *Report) watch(ctx context.Context, c *api.Client, s subject, o Options, say func(string, ...any)) (err error) {
	say("watching for %v while nothing happens", o.Over)
	if r.Quiet, err = s.over(ctx, o.Over); err != nil {
		return err
	}
	say("%d new jobs while nothing else happens", o.Seen)
	if r.SeenQuiet, err = seen(ctx, c, s.controller, "quiet", o.Seen); err != nil {
		return err
	}
	stop := others(ctx, c)
	defer func() { err = errors.Join(err, stop()) }()
	say("watching for %v while others register a job every second", o.Over)
	if r.Busy, err = s.over(ctx, o.Over); err != nil {
		return err
	}
	say("%d new jobs while others register", o.Seen)
	if r.SeenBusy, err = seen(ctx, c, s.controller, "busy", o.Seen); err != nil {
		return err
	}
	r.Controller, err = measure.Used(s.controller.cmd.Process.Pid)
	r.Machine.LoadAfter = measure.Load()
	return err
}

// subject is what is measured.
type subject struct {
	controller *controller
	proxy      *proxy
}

// spent is what was used so far.
func (s subject) spent() (Cost, error) {
	u, err := measure.Used(s.controller.cmd.Process.Pid)
	return Cost{CPU: u.CPU, Requests: s.proxy.requests.Load(), Bytes: s.proxy.bytes.Load()}, err
}

// over measures for a while.
func (s subject) over(ctx context.Context, d time.Duration) (Cost, error) {
	begin := time.Now()
	a, err := s.spent()
	if err != nil {
		return Cost{}, err
	}
	if err := measure.Pause(ctx, d); err != nil {
		return Cost{}, err
	}
	b, err := s.spent()
	return Cost{Over: time.Since(begin), CPU: b.CPU - a.CPU, Requests: b.Requests - a.Requests, Bytes: b.Bytes - a.Bytes}, err
}

// seen registers jobs at random times, and tells of each how long after that the
// controller knew it.
func seen(ctx context.Context, c *api.Client, ours *controller, name string, jobs int) ([]time.Duration, error) {
	var out []time.Duration
	for i := range jobs {
		if err := measure.Pause(ctx, time.Duration(rand.Int64N(int64(3*time.Second)))); err != nil { //nolint:gosec // any time will do
			return nil, err
		}
		id := fmt.Sprintf("new-%s-%d-job", name, i)
		at, err := register(ctx, c, tuned(id))
		if err != nil {
			return nil, err
		}
		if err := ours.await(ctx, id, 1, 50*time.Millisecond); err != nil {
			return nil, err
		}
		out = append(out, time.Since(at))
	}
	slices.Sort(out)
	return out, nil
}
