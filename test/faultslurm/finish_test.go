package faultslurm_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"pitchpipe/test/fault"
)

// Finish lets the jobs come to their end and says how they ended.
func (r *round) Finish() (map[string]verdict, error) {
	if err := os.WriteFile(r.hurry(), nil, 0o644); err != nil { //nolint:gosec // the jobs look for it
		return nil, err
	}
	told := time.Now()
	records, at, err := r.ended()
	if err != nil {
		return nil, err
	}
	r.Settle()
	verdicts := map[string]verdict{}
	for _, j := range r.jobs {
		v := r.w.judge(j, records[j.id])
		v.took = max(0, at[j.id].Sub(told))
		verdicts[j.id] = v
	}
	return verdicts, nil
}

// ended waits until Slurm is through with every job, or nothing happens any more, and
// tells when it was seen to be.
func (r *round) ended() (records map[string]record, at map[string]time.Time, err error) {
	told, idle := time.Now(), 0
	since := map[string]time.Time{}
	at = map[string]time.Time{}
	for end := time.Now().Add(fault.Patience); ; time.Sleep(time.Second) {
		records, err := r.w.records()
		if err != nil {
			return nil, nil, err
		}
		r.hasten(records, since)
		open := 0
		for _, j := range r.jobs {
			if records[j.id].ended() {
				if at[j.id].IsZero() {
					at[j.id] = time.Now()
				}
			} else {
				open++
				at[j.id] = time.Time{} // what a slurmctld that was killed forgot
				if time.Since(told) > 15*time.Second {
					r.w.story.Logf("job %s: %s", j.id, records[j.id].show())
				}
			}
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
		}
		if r.stuck(records) {
			idle++
		} else {
			idle = 0
		}
		if idle > 30 || open == 0 || time.Now().After(end) {
			for _, j := range r.jobs {
				r.w.through(j)
				j.sealed = !records[j.id].ended() && r.w.sealed(j.id)
			}
			return records, at, nil
		}
	}
}

// hasten ends waits that are Slurm's: two minutes after its own requeue. An owner
// whose release was forgotten releases again.
func (r *round) hasten(records map[string]record, since map[string]time.Time) {
	for _, j := range r.jobs {
		rec := records[j.id]
		state := rec["JobState"] + rec["Reason"] + rec["Restarts"]
		switch at, ok := since[j.id+state]; {
		case !ok:
			since[j.id+state] = time.Now()
		case time.Since(at) < 5*time.Second || rec["JobState"] != "PENDING":
		case j.held && rec["Reason"] == "JobHeldUser":
			if err := j.release(); err != nil && !refused(err) {
				r.Complain("release %s: %v", j.id, err)
			}
		case rec["Reason"] == "BeginTime" && rec.restarts() > 0:
			if _, err := r.w.run("root", "scontrol", "update", "JobId="+j.id, "StartTime=now"); err != nil && !refused(err) {
				r.Complain("start %s: %v", j.id, err)
			}
		}
	}
}

// stuck reports whether those that have not ended are only jobs that somebody holds, and
// those that wait for them.
func (r *round) stuck(records map[string]record) bool {
	for _, j := range r.jobs {
		rec := records[j.id]
		if !rec.ended() && rec["JobState"] != "SPECIAL_EXIT" && !strings.HasPrefix(rec["Reason"], "JobHeld") && rec["Reason"] != "Dependency" {
			return false
		}
	}
	return true
}

// sealed reports whether not even root can change a job any more: a slurmctld that was ended
// while accounting gave a run its index may hold for ever that this is about to happen.
func (w *world) sealed(id string) bool {
	_, err := w.run("root", "scontrol", "update", "JobId="+id, "Nice=0")
	return err != nil && indexing(err)
}

// indexing tells of a change that slurmctld refused, since accounting is about to give the
// job's run its index.
func indexing(err error) bool { return strings.Contains(err.Error(), "DB index") }

// Passive are the faults that happen by themselves: jobs that came to their end in the
// move that asked them to save.
func (r *round) Passive() []fault.Strike {
	var out []fault.Strike
	for i, o := range r.w.owners {
		for _, j := range r.jobs {
			told := fault.Read(j.journal(), j.epochs)
			if n := len(told.Attempts); j.owner == o && j.way == wayEnd && told.Ends == 1 && told.Attempts[n-1].Saved > 0 {
				out = append(out, fault.Strike{Fault: fault.Fault{Kind: kindEnd, Owner: i}, Round: r.Number, Touched: []string{j.id}})
			}
		}
	}
	return out
}

// Clear cancels what is left of the round.
func (r *round) Clear() error {
	var errs []error
	for _, j := range r.jobs {
		if _, err := r.w.c.Run(context.WithoutCancel(r.w.t.Context()), "root", "scancel", j.id); err != nil && !refused(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
