package faultslurm_test

import (
	"slices"
	"strings"
	"time"

	"pitchpipe/test/fault"
)

// newHand moves the owner's jobs as the tuner does: it asks a job to save, requeues it,
// changes it and releases it.
func newHand(o *owner) *fault.Hand {
	var records map[string]record
	return fault.ByHand(o.w.t, o.w.story, 3, func() (out []fault.Move) {
		var err error
		if records, err = o.w.records(); err != nil {
			return nil // slurmctld is away
		}
		jobs := o.w.every()
		slices.SortFunc(jobs, func(a, b *job) int { return strings.Compare(a.id, b.id) })
		for _, j := range jobs {
			told := fault.Read(j.journal(), j.epochs)
			if n := len(told.Attempts); j.owner == o && !j.plain && !j.hurried() && told.Ends == 0 && n > 0 && records[j.id]["JobState"] == "RUNNING" &&
				time.Since(told.Attempts[n-1].Began) > 3*time.Second {
				out = append(out, fault.Move{ID: j.id, Attempts: n})
			}
		}
		return out
	}, func(m *fault.Move) (bool, error) { return o.step(m, records[m.ID]) })
}

// step takes the next step of a move by hand.
func (o *owner) step(m *fault.Move, r record) (over bool, err error) {
	j := o.w.known(m.ID)
	if r == nil || j == nil {
		return j == nil, nil
	}
	told := fault.Read(j.journal(), j.epochs)
	n := len(told.Attempts)
	running, held := r["JobState"] == "RUNNING", r["Priority"] == "0" || strings.HasPrefix(r["Reason"], "JobHeld")
	switch {
	case r.ended() || running && (told.Ends > 0 || n > m.Attempts):
		return true, nil
	case running && m.Asked.IsZero():
		m.Asked = time.Now()
		_, err = o.as("scancel", "--signal=USR1", "--batch", m.ID)
	case running && n > 0 && !j.exit && told.Attempts[n-1].Saved > told.Attempts[n-1].From:
		_, err = o.as("scontrol", "requeuehold", m.ID)
	case running:
		return time.Since(m.Asked) > 20*time.Second, nil // it was not heard
	case held && !m.Changed && r["JobState"] != "COMPLETING":
		m.Changed = true
		_, err = o.as("scontrol", "update", "JobId="+m.ID, "Comment=by hand")
	case held && r["JobState"] != "COMPLETING":
		_, err = o.as("scontrol", "release", m.ID)
	}
	if err != nil && refused(err) {
		err = nil
	}
	return false, err
}
