package faultslurm_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/test/fault"
	"pitchpipe/test/sandbox"
)

// inflict does a fault and returns the jobs that it touched.
func (r *round) inflict(f *fault.Fault) ([]string, error) {
	o := r.w.owners[f.Owner]
	switch f.Kind {
	case kindAfter, kindBefore, kindSaved:
		return r.killAt(o, o.controller, o.orders, f)
	case kindAnywhere:
		return r.killAnywhere(o, o.controller)
	case kindBroker, kindBrokerAny:
		o = r.w.owners[1]
		if f.Kind == kindBrokerAny {
			return r.killAnywhere(o, o.broker)
		}
		return r.killAt(o, o.broker, o.brokerOrders(), f)
	case kindCancel, kindHold, kindUpdate:
		return r.meddle(o, f)
	case kindDisk:
		return r.fillDisk(o)
	case kindSettings:
		return r.distrust(o, f)
	case kindCtldSaved:
		return r.killSavedCtld()
	case kindCtldKill:
		return r.killBusyCtld()
	case kindCtldTerm:
		return r.restartCtld(r.w.c.StopCtld)
	case kindCtldStop:
		return r.stopCtld()
	case kindNode:
		return r.restartNode()
	}
	return nil, fmt.Errorf("no such fault: %s", f.Kind)
}

// hit waits until the process was struck: at the fault's own point, or where that is not
// reached in time at any other of its kind, which then becomes its point.
func (r *round) hit(orders string, f *fault.Fault, action string) (hit, error) {
	all := pointsOf(*f)
	if !slices.Contains(all, f.Point) {
		f.Point = all[r.Random(len(all))]
	}
	for _, points := range [][]string{{f.Point}, all} {
		h, err := r.hitAt(orders, order{Points: points, Action: action})
		if err == nil {
			f.Point = h.Point
		}
		if err == nil || !errors.Is(err, fault.ErrMissed) {
			return h, err
		}
	}
	return hit{}, fault.ErrMissed
}

func (r *round) hitAt(orders string, o order) (hit, error) {
	if err := arm(orders, o); err != nil {
		return hit{}, err
	}
	for end := time.Now().Add(fault.Opportunity); ; time.Sleep(20 * time.Millisecond) {
		if h, ok := struck(orders); ok {
			return h, nil
		}
		if time.Now().After(end) || r.Over() {
			if err := os.Remove(filepath.Join(orders, armFile)); err == nil {
				return hit{}, fault.ErrMissed
			}
			// It is being carried out just now.
			time.Sleep(time.Second)
			if h, ok := struck(orders); ok {
				return h, nil
			}
			return hit{}, fault.ErrMissed
		}
	}
}

func (r *round) killAt(o *owner, k *fault.Keeper, orders string, f *fault.Fault) ([]string, error) {
	p := k.Plan()
	h, err := r.hit(orders, f, actionKill)
	if err != nil {
		k.Unplan(p)
		return nil, err
	}
	<-p.Ended
	touched := o.moving()
	if r.w.known(h.Job) != nil {
		touched[h.Job] = ""
	}
	if len(touched) == 0 {
		return nil, errors.Join(fault.ErrMissed, r.awake(o))
	}
	return slices.Sorted(maps.Keys(touched)), r.awake(o)
}

// met waits until a job of one of the owners is being moved.
func (r *round) met(owners ...*owner) ([]string, error) {
	for end := time.Now().Add(fault.Opportunity); ; time.Sleep(30 * time.Millisecond) {
		var out []string
		for _, o := range owners {
			out = slices.AppendSeq(out, maps.Keys(o.moving()))
		}
		if len(out) > 0 {
			slices.Sort(out)
			return out, nil
		}
		if time.Now().After(end) || r.Over() {
			return nil, fault.ErrMissed
		}
	}
}

func (r *round) killAnywhere(o *owner, k *fault.Keeper) ([]string, error) {
	if _, err := r.met(o); err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(r.Random(700)) * time.Millisecond)
	k.Crash()
	touched := o.moving()
	if len(touched) == 0 {
		return nil, errors.Join(fault.ErrMissed, r.awake(o))
	}
	return slices.Sorted(maps.Keys(touched)), r.awake(o)
}

// awake waits until the controller is there again.
func (r *round) awake(o *owner) error {
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, err := o.client.Jobs(r.w.t.Context())
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the controller of %s does not come back: %w\n%s", o.name, err, sandbox.Tail(o.log(), 20))
		}
	}
}

// pause suspends the controller while it works at one of the round's jobs, just between two
// steps, until goOn is called.
func (r *round) pause(o *owner, f *fault.Fault, fits func(*job) bool) (j *job, goOn func(), err error) {
	goOn = func() { o.goOn() }
	for end := time.Now().Add(fault.Opportunity); ; {
		h, err := r.hit(o.orders, f, actionPause)
		if err != nil {
			return nil, nil, err
		}
		if j := r.byID(h.Job); j != nil && !j.plain && fits(j) {
			return j, goOn, nil
		}
		goOn()
		if time.Now().After(end) {
			return nil, nil, fault.ErrMissed
		}
	}
}

// meddle makes the owner do something to a job that is just between two steps.
func (r *round) meddle(o *owner, f *fault.Fault) ([]string, error) {
	j, goOn, err := r.pause(o, f, func(j *job) bool { return !j.cancelled.Load() && (f.Kind != kindCancel || !j.by && !r.needed(j)) })
	if err != nil {
		return nil, err
	}
	defer goOn()
	switch f.Kind {
	case kindCancel:
		j.cancelled.Store(true) // whatever scancel says about it
		_, err = o.as("scancel", j.id)
	case kindHold:
		if _, err = o.as("scontrol", "hold", j.id); err == nil {
			j.held = true
			r.Later(3*time.Second, func() error {
				if err := j.release(); err != nil && !refused(err) {
					return err
				}
				return nil
			})
		}
	default:
		if _, err = o.as("scontrol", "update", "JobId="+j.id, f.Action); err == nil && strings.HasPrefix(f.Action, "TimeLimit") {
			_, j.limit, _ = strings.Cut(f.Action, "=")
		}
	}
	if err != nil && refused(err) {
		return nil, fault.ErrMissed
	}
	return []string{j.id}, err
}

// refused tells of a command that came too late, or too early, for the job's state.
func refused(err error) bool {
	for _, text := range []string{"no longer pending", "already completing", "already finished", "Invalid job id", "is disabled"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return indexing(err)
}

func (r *round) fillDisk(o *owner) ([]string, error) {
	if _, err := r.met(o); err != nil {
		return nil, err
	}
	free, err := o.fill()
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(1500+r.Random(1500)) * time.Millisecond)
	touched := o.moving()
	if err := errors.Join(free(), r.awake(o)); err != nil || len(touched) == 0 {
		return nil, errors.Join(err, fault.ErrMissed)
	}
	return slices.Sorted(maps.Keys(touched)), nil
}

// distrust makes the folder of the settings one that the prolog must not trust, as an attempt
// is about to begin, until it began.
func (r *round) distrust(o *owner, f *fault.Fault) ([]string, error) {
	dir, how := filepath.Join(o.dir, filepath.Base(settingsFolder)), f.Action
	_, goOn, err := r.pause(o, f, func(j *job) bool { return !j.cancelled.Load() })
	if err != nil {
		return nil, err
	}
	switch how {
	case "writable":
		err = os.Chmod(dir, 0o777)
	case "foreign":
		err = os.Chown(dir, 65534, -1)
	default:
		err = os.Chmod(dir, 0)
	}
	goOn()
	if err != nil {
		return nil, err
	}
	from := time.Now()
	var touched []string
	for end := from.Add(2 * fault.Opportunity); len(touched) == 0 && time.Now().Before(end) && !r.Over(); time.Sleep(100 * time.Millisecond) {
		for _, j := range r.jobs {
			if j.owner == o && !j.plain && r.beganSince(j, from) {
				touched = append(touched, j.id)
			}
		}
	}
	until := time.Now()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, o.uid, -1)); err != nil || len(touched) == 0 { //nolint:gosec // the TaskProlog reads it
		return nil, errors.Join(err, fault.ErrMissed)
	}
	for _, j := range r.jobs {
		told := fault.Read(j.journal(), j.epochs)
		for _, a := range told.Attempts {
			if j.owner == o && a.Began.After(from.Add(time.Second)) && a.Began.Before(until) && a.Batch != "-" {
				r.Complain("job %s: an attempt took BATCH_SIZE=%s out of a folder that is not to be trusted (%s)", j.id, a.Batch, how)
			}
		}
	}
	return touched, nil
}

// beganSince reports whether an attempt that is not the first began after a time.
func (r *round) beganSince(j *job, from time.Time) bool {
	told := fault.Read(j.journal(), j.epochs)
	n := len(told.Attempts)
	return n > 1 && told.Attempts[n-1].Began.After(from)
}
