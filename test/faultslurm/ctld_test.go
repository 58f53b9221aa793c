package faultslurm_test

import (
	"fmt"
	"syscall"
	"time"
)

// restartCtld restarts slurmctld in the middle of moves. One that is killed loses
// what it did not save in its last seconds; one that is told to end does not.
func (r *round) restartCtld(kill bool) ([]string, error) {
	r.settled()
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(r.random(1000)) * time.Millisecond)
	before, err := r.w.jobs()
	if err != nil {
		return nil, err
	}
	r.w.ctld.Lock()
	defer r.w.ctld.Unlock()
	at := time.Now()
	if kill {
		r.w.c.KillCtld()
	} else {
		r.w.c.StopCtld()
	}
	time.Sleep(time.Duration(r.random(1500)) * time.Millisecond)
	if err := r.w.c.StartCtld(r.w.t.Context()); err != nil {
		return nil, err
	}
	after, err := r.w.jobs()
	if err != nil {
		return nil, err
	}
	if kill {
		r.forgotten(at, before, after)
		r.remind(batchStart+10*time.Second+2*time.Second, 6*time.Second)
	}
	return touched, nil
}

// remind has the nodes tell slurmctld which jobs they have: by itself it asks them
// for that after half an hour, and shows jobs until then that have no process.
func (r *round) remind(waits ...time.Duration) {
	r.pending.Go(func() {
		for _, wait := range waits {
			time.Sleep(wait)
			if _, err := r.w.run("root", "scontrol", "reconfigure"); err != nil {
				r.complain("reconfigure: %v", err)
			}
		}
	})
}

// forgotten finds the jobs of which a killed slurmctld lost something.
func (r *round) forgotten(at time.Time, before, after map[string]record) {
	for _, j := range r.jobs {
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
			for _, t := range readJournal(j.journal(), j.epochs).events {
				if age := at.Sub(t); age > -time.Second && age < 8*time.Second {
					why = fmt.Sprintf("what became of an attempt %.1f s before", age.Seconds())
				}
			}
		}
		if why != "" {
			r.w.fates.add(j.id, why)
		}
	}
}

// stopCtld has slurmctld stand still until commands time out.
func (r *round) stopCtld() ([]string, error) {
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	pid := r.w.c.Daemons()["slurmctld"]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	time.Sleep(patient + time.Duration(500+r.random(1500))*time.Millisecond)
	return touched, syscall.Kill(pid, syscall.SIGCONT)
}

func (r *round) restartNode() ([]string, error) {
	touched, err := r.met(r.w.owners...)
	if err != nil {
		return nil, err
	}
	i := r.random(len(r.w.c.Nodes()))
	r.w.c.KillNode(i)
	time.Sleep(time.Duration(r.random(2000)) * time.Millisecond)
	return touched, r.w.c.StartNode(r.w.t.Context(), i)
}
