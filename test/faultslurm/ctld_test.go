package faultslurm_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"pitchpipe/test/fault"
	"pitchpipe/test/sandbox"
)

// restartCtld restarts slurmctld in the middle of moves. On SIGTERM it saves
// what it was told.
func (r *round) restartCtld(end func()) ([]string, error) {
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(r.Random(1000)) * time.Millisecond)
	r.w.ctld.Lock()
	defer r.w.ctld.Unlock()
	end()
	time.Sleep(time.Duration(r.Random(1500)) * time.Millisecond)
	return touched, r.w.c.StartCtld(r.w.t.Context())
}

// killBusyCtld kills slurmctld in the middle of its work: what it acknowledged since it
// last saved is lost, and the fate of those jobs is Slurm's own.
func (r *round) killBusyCtld() ([]string, error) {
	time.Sleep(time.Until(r.Began.Add(8 * time.Second))) // what is lost is to be lost of moves
	var before map[string]record
	var at, saved time.Time
	touched, err := r.restartCtld(func() {
		var err error
		if before, err = r.w.records(); err != nil {
			r.Complain("before slurmctld was killed: %v", err)
		}
		at = time.Now()
		r.w.c.KillCtld()
		if saved, err = r.w.saved(); err != nil {
			r.Complain("when slurmctld saved: %v", err)
		}
	})
	if err != nil {
		return nil, err
	}
	after, err := r.w.records()
	if err != nil {
		return nil, err
	}
	r.w.forgotten(saved, at, before, after)
	r.w.mu.Lock()
	r.w.kills = append(r.w.kills, kill{saved, time.Now()})
	r.w.mu.Unlock()
	r.w.remind()
	return touched, nil
}

// killSavedCtld kills slurmctld between two steps of moves, at a moment when it has
// saved all that it acknowledged. Such a death may cost no job anything.
func (r *round) killSavedCtld() ([]string, error) {
	if _, err := r.met(r.w.owners...); err != nil {
		return nil, err
	}
	thaw := r.w.freeze()
	defer thaw()
	if err := r.w.quiet(); err != nil {
		return nil, err
	}
	r.w.ctld.Lock()
	defer r.w.ctld.Unlock()
	r.w.c.KillCtld()
	touched, err := r.met(r.w.owners...)
	thaw() // they get no answer
	time.Sleep(time.Duration(r.Random(1500)) * time.Millisecond)
	defer r.w.remind()
	return touched, errors.Join(err, r.w.c.StartCtld(r.w.t.Context()))
}

// kill is when a slurmctld was killed in its work: what it did between is forgotten.
type kill struct{ saved, back time.Time }

// requeueForgotten reports whether a job was ended by the signal of a requeue that a killed
// slurmctld forgot: nothing else sends that signal, and the next slurmctld takes it for
// the job's own failure.
func (w *world) requeueForgotten(rec record) bool {
	at, err := time.ParseInLocation("2006-01-02T15:04:05", rec["EndTime"], time.Local)
	if err != nil || rec["JobState"] != "FAILED" || rec["ExitCode"] != "0:15" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.kills, func(k kill) bool { return at.After(k.saved.Add(-time.Second)) && at.Before(k.back.Add(30*time.Second)) })
}

// freeze stops everything that moves jobs, so that slurmctld hears nothing, until thaw is
// called; calls after the first do nothing.
func (w *world) freeze() (thaw func()) {
	var frozen []*sandbox.Process
	var release []func()
	for _, o := range w.owners {
		for _, k := range o.keepers() {
			frozen = append(frozen, k.Current())
		}
		if o.hand != nil {
			release = append(release, o.hand.Rest())
		}
	}
	for _, p := range frozen {
		_ = p.Cmd.Process.Signal(syscall.SIGSTOP)
	}
	return sync.OnceFunc(func() {
		for _, p := range frozen {
			_ = p.Cmd.Process.Signal(syscall.SIGCONT)
		}
		for _, f := range release {
			f()
		}
	})
}

// quiet waits until slurmctld has saved the state of its jobs after the last thing that
// happened to any of them. It saves what is new every five seconds.
func (w *world) quiet() error {
	before, err := w.records()
	if err != nil {
		return err
	}
	asked := time.Time{} // to save
	changed := time.Now()
	for end := changed.Add(14 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if asked.Before(changed) {
			if err := w.news(); err != nil {
				return err
			}
			asked = time.Now()
		}
		now, err := w.records()
		if err != nil {
			return err
		}
		if !maps.EqualFunc(before, now, record.same) {
			before, changed = now, time.Now()
			continue
		}
		at, err := w.saved()
		if err != nil {
			return err
		}
		// What is in the file was gathered before the file was written.
		if at.Sub(asked) > 500*time.Millisecond {
			return nil
		}
	}
	return fault.ErrMissed
}

// news gives slurmctld something to save.
func (w *world) news() error {
	_, err := w.run("root", "scontrol", "update", "JobId="+w.bookmark, "Comment=quiet")
	if err == nil || !indexing(err) {
		return err
	}
	if _, err := w.run("root", "scancel", w.bookmark); err != nil {
		return err
	}
	if err := w.newBookmark(); err != nil {
		return err
	}
	return fault.ErrMissed
}

// saved is when slurmctld last wrote down the state of its jobs.
func (w *world) saved() (time.Time, error) {
	info, err := os.Stat(filepath.Join(w.c.Dir(), "ctld", "job_state"))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// remind has the nodes tell slurmctld in a while which jobs they have: by itself it asks
// them for that after half an hour, and shows jobs until then that have no process. It
// believes them only of jobs that began some time ago, so it is done twice.
func (w *world) remind() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.reminders = []time.Time{now.Add(batchStart + 12*time.Second), now.Add(batchStart + 20*time.Second)}
}

// forgotten finds the jobs that a killed slurmctld lost something of: what it showed
// before and not after, or was told after it last saved.
func (w *world) forgotten(saved, at time.Time, before, after map[string]record) {
	// Dumping takes a moment, in which more messages arrive.
	saved = saved.Add(-time.Second)
	for _, j := range w.every() {
		b, a := before[j.id], after[j.id]
		why := ""
		switch {
		case b == nil:
			continue
		case a == nil:
			why = "the job"
		case b.ended() && !a.ended():
			why = "its end"
		case a.restarts() < b.restarts():
			why = "its requeue"
		case b["JobState"] == "RUNNING" && a["JobState"] == "PENDING" && a.restarts() == b.restarts():
			why = "its start"
		case b["NumCPUs"] != a["NumCPUs"] && a["JobState"] == "PENDING", b["TimeLimit"] != a["TimeLimit"]:
			why = "an update"
		default:
			// What a node told it and it had no time to save shows later.
			for _, t := range fault.Read(j.journal(), j.epochs).Events {
				if t.After(saved) && t.Before(at.Add(time.Second)) {
					why = fmt.Sprintf("what became of an attempt %.1f s before", at.Sub(t).Seconds())
				}
			}
		}
		if why != "" {
			w.fates.add(j.id, why)
		}
	}
}

// stopCtld suspends slurmctld until commands time out.
func (r *round) stopCtld() ([]string, error) {
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	pid := r.w.c.Daemons()["slurmctld"]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	time.Sleep(patient + time.Duration(500+r.Random(1500))*time.Millisecond)
	return touched, syscall.Kill(pid, syscall.SIGCONT)
}

func (r *round) restartNode() ([]string, error) {
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	i := r.Random(len(r.w.c.Nodes()))
	r.w.c.KillNode(i)
	time.Sleep(time.Duration(r.Random(2000)) * time.Millisecond)
	defer r.w.remind()
	return touched, r.w.c.StartNode(r.w.t.Context(), i)
}
