package benchslurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/measure"
	"pitchpipe/test/slurmcluster"
)

// Options say what is measured.
type Options struct {
	Jobs  int           // in the queue
	Over  time.Duration // each measurement of the cost
	Seen  int           // new jobs, each time
	Root  string        // of this checkout
	Trace io.Writer     // what is being done
}

// Run measures. Where there can be no cluster the error is
// slurmcluster.ErrUnavailable.
func Run(ctx context.Context, o Options) (r Report, err error) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(o.Trace, format+"\n", args...) }
	dir, err := os.MkdirTemp("", "pitchpipe-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings, err := options(o.Jobs, o.Root, dir)
	if err != nil {
		return r, err
	}
	if err := slurmcluster.Available(settings); err != nil {
		return r, err
	}
	program, err := build(ctx, o.Root, dir)
	if err != nil {
		return r, err
	}
	c, err := slurmcluster.Start(ctx, settings)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Stop(context.WithoutCancel(ctx))) }()
	r = Report{Jobs: o.Jobs, Machine: measure.ThisMachine(), Version: version(ctx, c)}
	say("submitting %d jobs", o.Jobs)
	begin := time.Now()
	if err := fill(ctx, c, o.Jobs); err != nil {
		return r, err
	}
	r.Filled = time.Since(begin)
	s := subject{slurmctld: c.Daemons()["slurmctld"]}
	say("slurmctld alone for twice %v", o.Over/2)
	if err := measure.Pause(ctx, min(o.Over, 10*time.Second)); err != nil { // it saves its state after a while
		return r, err
	}
	if r.Alone, err = s.over(ctx, o.Over/2); err != nil {
		return r, err
	}
	stop := others(ctx, c)
	r.AloneBusy, err = s.over(ctx, o.Over/2)
	if err := errors.Join(err, stop()); err != nil {
		return r, err
	}
	say("starting the controller")
	socket, err := c.StartRest(ctx, slurmcluster.Controller)
	if err != nil && !errors.Is(err, slurmcluster.ErrUnavailable) {
		return r, err
	}
	w, err := start(ctx, c, program, socket, o.Trace)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.stop(&r)) }()
	s.ours = []int{w.controller.Process.Pid, w.broker.Process.Pid}
	if socket != "" { // it runs for the controller alone, so it counts as ours
		r.Rest = true
		s.ours = append(s.ours, c.Daemons()[slurmcluster.Rest(slurmcluster.Controller)])
	}
	begin = time.Now()
	if err := s.calm(ctx, w.client, (o.Jobs+share-1)/share, min(max(o.Over/10, time.Second), 10*time.Second)); err != nil {
		return r, err
	}
	if r.Arrived.Controller, r.Arrived.Children, err = s.spent(); err != nil {
		return r, err
	}
	r.Arrived.Over = time.Since(begin)
	return r, r.watch(ctx, c, s, w.client, o, say)
}

// watch measures the quiet queue, and the queue into which others submit.
func (r *Report) watch(ctx context.Context, c *slurmcluster.Cluster, s subject, client *api.Client, o Options, say func(string, ...any)) (err error) {
	say("watching a quiet queue for %v", o.Over)
	if r.Quiet, err = s.over(ctx, o.Over); err != nil {
		return err
	}
	say("%d new jobs in a quiet queue", o.Seen)
	if r.SeenQuiet, err = seen(ctx, c, client, o.Seen); err != nil {
		return err
	}
	stop := others(ctx, c)
	defer func() { err = errors.Join(err, stop()) }()
	say("watching for %v while others submit a job every second", o.Over)
	if r.Busy, err = s.over(ctx, o.Over); err != nil {
		return err
	}
	say("%d new jobs while others submit", o.Seen)
	if r.SeenBusy, err = seen(ctx, c, client, o.Seen); err != nil {
		return err
	}
	if r.Controller, err = measure.Used(s.ours[0]); err != nil {
		return err
	}
	if r.Broker, err = measure.Used(s.ours[1]); err != nil {
		return err
	}
	r.Slurmctld, err = measure.Used(s.slurmctld)
	r.Machine.LoadAfter = measure.Load()
	return err
}
