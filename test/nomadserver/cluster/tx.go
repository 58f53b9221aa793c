package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Kept is how many versions of a job are kept besides the tagged ones.
const Kept = 6

// The statuses of a job.
const (
	Pending = "pending"
	Running = "running"
	Dead    = "dead"
)

// Tx is one transaction: it reads its own changes. Rows that it gets belong to it.
type Tx struct {
	*Tables
	at     uint64
	allocs []*api.Allocation
	evals  []*api.Evaluation
	unsure map[ID]struct{} // jobs whose status may have changed
}

// At is the index that the changes get.
func (tx *Tx) At() uint64 { return tx.at }

// change is the record of a job's name for writing.
func (tx *Tx) change(id ID, tables ...Table) *record {
	r := tx.records[id]
	if r == nil {
		r = &record{}
		tx.records[id] = r
	}
	for _, t := range tables {
		tx.touched[t] = tx.at
		if t == Summaries {
			r.summaryAt = tx.at
		}
	}
	tx.unsure[id] = struct{}{}
	return r
}

// Register puts a new version of a job in place, and sets its version, indexes and
// status. Without a source, that of the version number which j came with becomes the
// source of the new version, as in Nomad.
func (tx *Tx) Register(j *api.Job, source *api.JobSubmission) {
	r := tx.change(IDOf(j), Jobs, Summaries)
	j.ModifyIndex, j.JobModifyIndex = new(tx.at), new(tx.at)
	if old := r.job; old == nil {
		j.CreateIndex, j.Status = new(tx.at), new("")
	} else {
		j.CreateIndex, j.Status = old.CreateIndex, old.Status
		if *j.Version <= *old.Version {
			if source == nil {
				source = r.sources[*j.Version]
			}
			j.Version = new(*old.Version + 1)
		}
	}
	r.job, r.versions = j, recent(append([]*api.Job{j}, r.versions...))
	if source != nil && r.sources[*j.Version] == nil {
		r.sources = with(r.sources, *j.Version, source)
		if have := slices.Sorted(maps.Keys(r.sources)); len(have) > Kept {
			delete(r.sources, have[0])
		}
	}
	for _, g := range j.TaskGroups {
		r.queued = with(r.queued, *g.Name, r.queued[*g.Name])
	}
}

// recent drops the oldest untagged versions.
func recent(versions []*api.Job) []*api.Job {
	untagged := 0
	return slices.DeleteFunc(versions, func(j *api.Job) bool {
		if j.VersionTag == nil {
			untagged++
		}
		return j.VersionTag == nil && untagged > Kept
	})
}

// Amend puts a changed copy of a kept version in its place: its ModifyIndex moves, its
// JobModifyIndex and version do not.
func (tx *Tx) Amend(j *api.Job) {
	r := tx.change(IDOf(j), Jobs)
	j.ModifyIndex = new(tx.at)
	if *r.job.Version == *j.Version {
		r.job = j
	}
	r.versions = recent(put(r.versions, j, func(v *api.Job) bool { return *v.Version == *j.Version }))
}

// Purge forgets a job; its evaluations and allocations stay until they are collected.
func (tx *Tx) Purge(id ID) {
	r := tx.change(id, Jobs, Summaries)
	if parent := *r.job.ParentID; parent != "" {
		tx.change(ID{Namespace: id.Namespace, Job: parent}).purged++
	}
	tx.records[id] = &record{evals: r.evals, allocs: r.allocs, summaryAt: r.summaryAt}
}

// PutEval puts an evaluation in place, new or changed.
func (tx *Tx) PutEval(e *api.Evaluation) {
	r := tx.change(ID{Namespace: e.Namespace, Job: e.JobID}, Evals)
	e.ModifyIndex, e.ModifyTime = tx.at, time.Now().UnixNano()
	if tx.Tables.evals[e.ID] == nil {
		e.CreateIndex, e.CreateTime = tx.at, e.ModifyTime
	}
	tx.Tables.evals[e.ID] = e
	r.evals = put(r.evals, e, func(o *api.Evaluation) bool { return o.ID == e.ID })
	tx.evals = append(tx.evals, e)
}

// PutAlloc puts an allocation in place, new or changed. byClient means that the change
// came from the node, which AllocModifyIndex ignores.
func (tx *Tx) PutAlloc(a *api.Allocation, byClient bool) {
	r := tx.change(ID{Namespace: a.Namespace, Job: a.JobID}, Allocs, Summaries)
	a.ModifyIndex, a.ModifyTime = tx.at, time.Now().UnixNano()
	if !byClient {
		a.AllocModifyIndex = tx.at
	}
	if tx.Tables.allocs[a.ID] == nil {
		a.CreateIndex, a.CreateTime = tx.at, a.ModifyTime
		if before := tx.Tables.allocs[a.PreviousAllocation]; before != nil {
			p := *before
			p.NextAllocation = a.ID
			tx.PutAlloc(&p, false)
		}
	}
	tx.Tables.allocs[a.ID] = a
	r.allocs = put(r.allocs, a, func(o *api.Allocation) bool { return o.ID == a.ID })
	tx.allocs = append(tx.allocs, a)
}

// SetQueued notes how many allocations of each group found no room.
func (tx *Tx) SetQueued(id ID, queued map[string]int) {
	if r := tx.record(id); r.job != nil && !maps.Equal(r.queued, queued) {
		tx.change(id, Summaries).queued = queued
	}
}

// Reserve notes which cores the tasks of an allocation have for themselves.
func (tx *Tx) Reserve(alloc string, cores map[string][]int) { tx.cores[alloc] = cores }

// settle sets the status of every job that the transaction may have moved; the
// ModifyIndex moves with the status, the JobModifyIndex never.
func (tx *Tx) settle() {
	for id := range maps.Clone(tx.unsure) {
		r := tx.records[id]
		if r.job == nil {
			continue
		}
		status := r.status()
		if status == *r.job.Status {
			continue
		}
		next := *r.job
		next.Status = &status
		tx.Amend(&next)
		if parent := *next.ParentID; parent != "" {
			tx.change(ID{Namespace: id.Namespace, Job: parent}, Summaries)
		}
	}
}

// AllocEnded reports whether an allocation is meant to end or has ended.
func AllocEnded(a *api.Allocation) bool { return a.ServerTerminalStatus() || a.ClientTerminalStatus() }

// EvalEnded reports whether an evaluation will not change any more.
func EvalEnded(e *api.Evaluation) bool {
	return e.Status == api.EvalStatusComplete || e.Status == api.EvalStatusCancelled
}

func (r *record) status() string {
	j := r.job
	switch {
	case *j.Type == api.JobTypeSystem || j.IsPeriodic() || j.IsParameterized():
		if *j.Stop {
			return Dead
		}
		return Running
	case slices.ContainsFunc(r.allocs, func(a *api.Allocation) bool { return !AllocEnded(a) }):
		return Running
	case slices.ContainsFunc(r.evals, func(e *api.Evaluation) bool { return !EvalEnded(e) }):
		return Pending
	case len(r.evals) > 0 || *j.Stop:
		return Dead
	}
	return Pending
}
