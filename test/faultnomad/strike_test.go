package faultnomad_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/test/fault"
)

// inflict does a fault and returns the jobs that it touched.
func (r *round) inflict(f *fault.Fault) ([]string, error) {
	o := r.w.owners[f.Owner]
	switch f.Kind {
	case kindBefore, kindBehind, kindAfter:
		return r.killAt(o, f)
	case kindAnywhere:
		return r.killAnywhere(o)
	case kindLost:
		h, err := r.hit(f, nil, o)
		if err != nil {
			return nil, err
		}
		h.lost <- true
		return []string{h.job}, nil
	case kindCut:
		return r.cut(o)
	case kindAgent:
		return r.restart(r.w.agent.Kill, r.w.agent.Revive)
	case kindClient:
		return r.restart(r.w.agent.KillClient, r.w.agent.ReviveClient)
	case kindWindow:
		return r.endInWindow(o, f)
	case kindOwner, kindStop, kindAlloc:
		return r.meddle(o, f)
	case kindRoom:
		return r.fill(f)
	}
	return nil, fmt.Errorf("no such fault: %s", f.Kind)
}

// hit waits until a request of a job of this round was struck, of one of the owners: at
// the fault's own point, or where that is not reached in time at any other of its kind,
// which then becomes its point. The caller lets it go.
func (r *round) hit(f *fault.Fault, wants func(*job) bool, owners ...*owner) (hit, error) {
	for _, points := range [][]string{{f.Point}, fault.Points(families(true), f.Kind)} {
		ord := newOrder(points, func(id string) bool {
			j := r.byID(id)
			return j != nil && (wants == nil || wants(j))
		})
		h, err := r.await(ord, owners...)
		if err == nil {
			f.Point = h.point
			return h, nil
		}
	}
	return hit{}, fault.ErrMissed
}

// await leaves an order at the proxies of the owners until it is carried out.
func (r *round) await(ord *order, owners ...*owner) (h hit, err error) {
	for _, o := range owners {
		o.proxy.arm(ord)
		defer o.proxy.disarm(ord)
	}
	for end := time.Now().Add(fault.Opportunity); ; {
		select {
		case h := <-ord.hit:
			return h, nil
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().Before(end) && !r.Over() {
			continue
		}
		if ord.withdraw() {
			return hit{}, fault.ErrMissed
		}
		return <-ord.hit, nil // it is being carried out just now
	}
}

// killAt kills the controller at a point. What is lost after its effect is lost since no
// one is there any more.
func (r *round) killAt(o *owner, f *fault.Fault) ([]string, error) {
	h, err := r.hit(f, nil, o)
	if err != nil {
		return nil, err
	}
	if f.Kind == kindAfter {
		time.Sleep(time.Duration(r.Random(60)) * time.Millisecond)
	}
	var touched []string
	err = o.down.during(func() error {
		o.controller.Crash()
		h.lost <- true
		touched = o.meets(h.job)
		return eventually(o.answers)
	})
	return touched, err
}

func (r *round) killAnywhere(o *owner) ([]string, error) {
	if _, err := r.Await(func() []string { return r.moving(o) }); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(r.Random(700)) * time.Millisecond)
	touched := o.moving()
	if err := o.crash(); err != nil || len(touched) == 0 {
		return nil, errors.Join(err, fault.ErrMissed)
	}
	return touched, nil
}

// cut ends all that a controller asks and answers it nothing for a while.
func (r *round) cut(o *owner) ([]string, error) {
	if _, err := r.Await(func() []string { return r.moving(o) }); err != nil {
		return nil, err
	}
	touched := o.moving()
	err := o.down.during(func() error {
		o.proxy.cut(true)
		defer o.proxy.cut(false)
		if r.Random(2) == 0 {
			time.Sleep(time.Duration(r.Random(3000)) * time.Millisecond)
		}
		touched = append(touched, slices.DeleteFunc(o.moving(), func(id string) bool { return slices.Contains(touched, id) })...)
		return nil
	})
	if len(touched) == 0 {
		err = errors.Join(err, fault.ErrMissed)
	}
	return touched, err
}

// endInWindow makes a job do its work between two requests of a move, which goes on when
// Nomad knows of it.
func (r *round) endInWindow(o *owner, f *fault.Fault) ([]string, error) {
	marked := f.Action == windowMarked || f.Action == windowMarkedCrash
	h, err := r.hit(f, func(j *job) bool { return j.way == waySay && j.marked == marked && j.lives() }, o)
	if err != nil {
		return nil, err
	}
	j := r.byID(h.job)
	err = j.end()
	if err == nil {
		err = eventually(func() error {
			if a := j.newest(); a != nil && !terminal(a) {
				return fmt.Errorf("%s is %s", a.ID, a.ClientStatus)
			}
			return nil
		})
	}
	if f.Action != windowMarkedCrash && f.Action != windowPlainCrash || err != nil {
		h.lost <- false
		return []string{h.job}, err
	}
	// The next thing that it does for the job is its last; where it does no more, it dies
	// all the same.
	next := newOrder(with(behind, requests()...), func(id string) bool { return id == h.job })
	o.proxy.arm(next)
	h.lost <- false
	if n, err := r.await(next, o); err == nil {
		defer func() { n.lost <- true }()
	}
	return []string{h.job}, o.crash()
}

// meddle makes the owner do something to a job that is just between two requests.
func (r *round) meddle(o *owner, f *fault.Fault) ([]string, error) {
	h, err := r.hit(f, func(j *job) bool { return j.way != wayEnd && j.lives() }, o)
	if err != nil {
		return nil, err
	}
	defer func() { h.lost <- false }()
	j := r.byID(h.job)
	switch f.Kind {
	case kindOwner:
		err = j.registerAnew(f.Action)
	case kindStop:
		err = j.stop(f.Action == "purge")
	default:
		a := j.newest()
		if a == nil || over(a) || a.DesiredStatus != nomadapi.AllocDesiredStatusRun {
			return nil, fault.ErrMissed
		}
		_, err = r.w.nomad.Allocations().Stop(&nomadapi.Allocation{ID: a.ID}, o.read())
	}
	return []string{h.job}, err
}

// restart kills an agent, or a part of it, and starts it again.
func (r *round) restart(kill, revive func(context.Context) error) ([]string, error) {
	if _, err := r.Await(func() []string { return r.moving(r.w.owners...) }); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(r.Random(700)) * time.Millisecond)
	touched := r.moving(r.w.owners...)
	if err := r.w.starts(); err != nil {
		return nil, err
	}
	err := r.w.down.during(func() error {
		if err := kill(r.w.t.Context()); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.Random(1500)) * time.Millisecond)
		return revive(r.w.t.Context())
	})
	if err == nil && len(touched) == 0 {
		err = fault.ErrMissed
	}
	return touched, err
}

// fill lets a job be registered without room for it, and makes room later.
func (r *round) fill(f *fault.Fault) ([]string, error) {
	// What runs has its own room, which is enough: only a node that takes nothing new has
	// none for it.
	way := map[string]string{roomFull: wayLeave, roomIneligible: waySay}[f.Action]
	h, err := r.hit(f, func(j *job) bool { return j.way == way && j.lives() }, r.w.owners...)
	if err != nil {
		return nil, err
	}
	j := r.byID(h.job)
	free, err := r.take(f.Action)
	h.lost <- false
	if err != nil {
		return nil, err
	}
	var touched []string
	_, err = r.Await(func() []string {
		evals, _, err := r.w.nomad.Jobs().Evaluations(j.name, j.owner.read())
		if err == nil && slices.ContainsFunc(evals, func(e *nomadapi.Evaluation) bool { return e.Status == "blocked" }) {
			touched = []string{h.job}
		}
		return touched
	})
	if err == nil {
		time.Sleep(time.Duration(500+r.Random(2000)) * time.Millisecond)
		for _, o := range r.w.owners {
			touched = append(touched, slices.DeleteFunc(r.moving(o), func(id string) bool { return slices.Contains(touched, id) })...)
		}
	}
	return touched, errors.Join(err, free())
}

// leastMemory is what Nomad gives a task at least, in MiB.
const leastMemory = 10

// take takes the room, and returns what gives it back.
func (r *round) take(how string) (free func() error, err error) {
	client := r.w.nomad
	if how == roomIneligible {
		node, err := r.w.node()
		if err != nil {
			return nil, err
		}
		toggle := func(to bool) error {
			_, err := client.Nodes().ToggleEligibility(node, to, nil)
			return err
		}
		return func() error { return eventually(func() error { return toggle(true) }) }, toggle(false)
	}
	mib, err := r.w.freeMemory()
	switch {
	case err != nil:
		return nil, err
	case mib < leastMemory: // something else, which ends by itself, has what there is
		return nil, fault.ErrMissed
	}
	id := fmt.Sprintf("full-%d-%d", r.Number, time.Now().UnixNano())
	full := nomadapi.NewBatchJob(id, id, "global", 90)
	full.Datacenters = []string{"*"}
	task := nomadapi.NewTask("sleep", "raw_exec").SetConfig("command", "/bin/sleep").SetConfig("args", []string{"3600"})
	cpu := 1
	task.Resources = &nomadapi.Resources{CPU: &cpu, MemoryMB: &mib}
	full.AddTaskGroup(nomadapi.NewTaskGroup("g", 1).AddTask(task))
	if _, _, err := client.Jobs().Register(full, nil); err != nil {
		return nil, err
	}
	return func() error {
		_, _, err := client.Jobs().Deregister(id, true, nil)
		return err
	}, nil
}

// absent tells of a job that Nomad does not know.
func absent(err error) bool { return err != nil && strings.Contains(err.Error(), "not found") }
