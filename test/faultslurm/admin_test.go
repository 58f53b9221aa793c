package faultslurm_test

import (
	"context"
	"strings"
	"time"

	"pitchpipe/test/fault"
)

// administer does what an administrator would after a crash of slurmctld: nodes that
// it drained are resumed, and jobs that it holds after a launch failed are released.
func (w *world) administer(ctx context.Context) {
	w.reviveCtld(ctx)
	w.resumeNodes(ctx)
	w.releaseJobs(ctx)
	w.askNodes(ctx)
}

// reviveCtld starts a slurmctld that ended by itself, as systemd would.
func (w *world) reviveCtld(ctx context.Context) {
	w.ctld.Lock()
	defer w.ctld.Unlock()
	if _, ok := w.c.Daemons()["slurmctld"]; ok {
		return
	}
	err := w.c.StartCtld(ctx)
	w.story.Logf("slurmctld had ended by itself and is started again: %v", err)
}

// resumeNodes takes nodes back that slurmctld drained since they had jobs that it did
// not know.
func (w *world) resumeNodes(ctx context.Context) {
	out, err := w.c.Run(ctx, "slurm", "sinfo", "-h", "-N", "-o", "%N %T")
	if err != nil {
		return // slurmctld is away
	}
	for line := range strings.Lines(out) {
		node, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(state, "drain") && !strings.HasPrefix(state, "down") {
			continue
		}
		_, err := w.c.Run(ctx, "root", "scontrol", "update", "NodeName="+node, "State=RESUME")
		w.story.Logf("node %s was %s and is resumed: %v", node, state, err)
	}
}

// askNodes makes the nodes tell what they run, where that is due.
func (w *world) askNodes(ctx context.Context) {
	w.mu.Lock()
	due := len(w.reminders) > 0 && time.Now().After(w.reminders[0])
	if due {
		w.reminders = w.reminders[1:]
	}
	w.mu.Unlock()
	if !due {
		return
	}
	if _, err := w.c.Run(ctx, "root", "scontrol", "reconfigure"); err != nil {
		w.story.Logf("reconfigure: %v", err)
	}
}

// releaseJobs lets jobs go that Slurm holds by itself.
func (w *world) releaseJobs(ctx context.Context) {
	out, err := w.c.Run(ctx, "slurm", "squeue", "-h", "-t", "PENDING,SPECIAL_EXIT", "-o", "%i %r")
	if err != nil {
		return
	}
	for line := range strings.Lines(out) {
		id, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		// No one here holds as an administrator: Slurm does, of itself.
		if !strings.Contains(why, "launch failed") && why != "JobHeldAdmin" {
			continue
		}
		w.fates.add(id, why)
		_, err := w.c.Run(ctx, "root", "scontrol", "release", id)
		if err == nil {
			w.story.Logf("%s", fault.Grep(w.c.Dir()+"/log/slurmctld.log", id))
		}
		w.story.Logf("job %s (%s) is released: %v", id, why, err)
	}
}

// remains fails the test where something is left of the jobs, or where a controller
// ended by its own fault.
func (w *world) remains() {
	w.t.Helper()
	if _, err := w.run("root", "scancel", w.bookmark); err != nil {
		w.t.Error(err)
	}
	if out, err := w.run("slurm", "squeue", "-h", "-a"); err != nil || out != "" {
		w.t.Errorf("jobs are left: %q, %v", out, err)
	}
	for _, o := range w.owners {
		if ids := o.unseen(); len(ids) > 0 {
			w.t.Errorf("jobs %v have ended, and the driver of %s holds that they are moved; its controller says of the first\n%s", ids, o.name, fault.Grep(o.log(), ids[0]))
		}
		for _, k := range o.keepers() {
			k.Examine(w.story)
		}
	}
}

// unseen are jobs that ended without the driver's knowing.
func (o *owner) unseen() []string {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		var ids []string
		for id, r := range o.records() {
			if r.Last == nil && (r.Moving != nil || r.Next != nil) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 || time.Now().After(end) {
			return ids
		}
	}
}
