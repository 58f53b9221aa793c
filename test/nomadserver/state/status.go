package state

import "github.com/hashicorp/nomad/api"

// The statuses of a job.
const (
	Pending = "pending"
	Running = "running"
	Dead    = "dead"
)

// EvalEnded tells whether an evaluation will not change any more.
func EvalEnded(e *api.Evaluation) bool {
	switch e.Status {
	case api.EvalStatusComplete, api.EvalStatusFailed, api.EvalStatusCancelled:
		return true
	}
	return false
}

// AllocEnded tells whether an allocation is meant to end or has ended.
func AllocEnded(a *api.Allocation) bool { return a.ServerTerminalStatus() || a.ClientTerminalStatus() }

func (tx *Tx) doubt(id ID) {
	if tx.unsure == nil {
		tx.unsure = map[ID]struct{}{}
	}
	tx.unsure[id] = struct{}{}
}

// settle sets the status of every job that the transaction may have moved; the
// ModifyIndex moves with the status, the JobModifyIndex never.
func (tx *Tx) settle() {
	for id := range tx.unsure {
		j := tx.jobs[id]
		if j == nil {
			continue
		}
		status := tx.statusOf(j)
		if status == *j.Status {
			continue
		}
		next := *j
		next.Status, next.ModifyIndex = &status, new(tx.at)
		tx.put(&next)
		if parent := *j.ParentID; parent != "" {
			tx.touch(Summaries, Key(Summaries, id.Namespace, parent))
		}
	}
	clear(tx.unsure)
}

func (tx *Tx) statusOf(j *api.Job) string {
	if *j.Type == api.JobTypeSystem || j.IsPeriodic() || j.IsParameterized() {
		if *j.Stop {
			return Dead
		}
		return Running
	}
	id := IDOf(j)
	for _, a := range tx.allocsOf[id] {
		if !AllocEnded(tx.allocs[a]) {
			return Running
		}
	}
	for _, e := range tx.evalsOf[id] {
		if !EvalEnded(tx.evals[e]) {
			return Pending
		}
	}
	if len(tx.evalsOf[id]) > 0 || *j.Stop {
		return Dead
	}
	return Pending
}
