package state

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Kept is how many versions of a job are kept beside the tagged ones.
const Kept = 6

// Tx is one transaction: a reader that sees its own changes, and the changes.
type Tx struct {
	*Tables
	at      uint64
	batches [][]Change
	unsure  map[ID]struct{} // jobs whose status may have changed
}

// At is the index that the changes get.
func (tx *Tx) At() uint64 { return tx.at }

// Break starts another batch of the same transaction.
func (tx *Tx) Break() {
	tx.settle()
	tx.batches = append(tx.batches, nil)
}

func (tx *Tx) touch(keys ...string) {
	for _, k := range keys {
		tx.touched[k] = tx.at
	}
}

// changed notes a row; within a batch a row shows once, as it is at the end.
func (tx *Tx) changed(table string, row any, name any, deleted bool) {
	if len(tx.batches) == 0 {
		tx.batches = append(tx.batches, nil)
	}
	last := &tx.batches[len(tx.batches)-1]
	c := Change{Table: table, Row: row, Deleted: deleted, name: name}
	if i := slices.IndexFunc(*last, func(o Change) bool { return o.Table == table && o.name == name }); i >= 0 {
		(*last)[i] = c
		return
	}
	*last = append(*last, c)
}

// Register puts a new version of a job in place: j is the caller's to give, and its
// version, indexes and status are set. Without a source, that of the version number
// which j came with becomes the source of the new version, as in Nomad.
func (tx *Tx) Register(j *api.Job, sub *api.JobSubmission) {
	id := IDOf(j)
	old := tx.jobs[id]
	j.ModifyIndex, j.JobModifyIndex = new(tx.at), new(tx.at)
	if old == nil {
		j.CreateIndex = new(tx.at)
		j.Status = new("")
	} else {
		j.CreateIndex = old.CreateIndex
		j.Status = old.Status
		if *j.Version <= *old.Version {
			if sub == nil {
				sub = tx.submissions[id][*j.Version]
			}
			j.Version = new(*old.Version + 1)
		}
	}
	tx.jobs[id] = j
	tx.versions[id] = prune(append([]*api.Job{j}, tx.versions[id]...))
	tx.source(id, *j.Version, sub)
	tx.queue(j)
	tx.policies(old, j)
	tx.row(j)
	tx.doubt(id)
}

func (tx *Tx) source(id ID, version uint64, sub *api.JobSubmission) {
	if sub == nil {
		return
	}
	all := tx.submissions[id]
	if all == nil {
		all = map[uint64]*api.JobSubmission{}
		tx.submissions[id] = all
	}
	if all[version] == nil {
		all[version] = sub
	}
	have := slices.Sorted(maps.Keys(all))
	for len(have) > Kept {
		delete(all, have[0])
		have = have[1:]
	}
	tx.touch(Submissions, Key(Submissions, id.Namespace, id.Job))
}

func (tx *Tx) queue(j *api.Job) {
	id := IDOf(j)
	queued := maps.Clone(tx.queued[id])
	if queued == nil {
		queued = map[string]int{}
	}
	for _, g := range j.TaskGroups {
		if _, ok := queued[*g.Name]; !ok {
			queued[*g.Name] = 0
		}
	}
	tx.queued[id] = queued
	tx.touch(Summaries, Key(Summaries, id.Namespace, id.Job))
}

func (tx *Tx) policies(old, now *api.Job) {
	has := func(j *api.Job) bool {
		return j != nil && slices.ContainsFunc(j.TaskGroups, func(g *api.TaskGroup) bool { return g.Scaling != nil })
	}
	if has(old) || has(now) {
		tx.touch(Policies)
	}
}

// prune drops the oldest untagged versions beyond Kept.
func prune(versions []*api.Job) []*api.Job {
	untagged := 0
	return slices.DeleteFunc(versions, func(j *api.Job) bool {
		if j.VersionTag != nil {
			return false
		}
		untagged++
		return untagged > Kept
	})
}

// Amend puts a changed copy of the current version in place: its ModifyIndex moves,
// its JobModifyIndex and version do not.
func (tx *Tx) Amend(j *api.Job) {
	j.ModifyIndex = new(tx.at)
	tx.put(j)
	tx.doubt(IDOf(j))
}

// AmendVersion puts a changed copy of any kept version in place.
func (tx *Tx) AmendVersion(j *api.Job) {
	id := IDOf(j)
	if now := tx.jobs[id]; now != nil && *now.Version == *j.Version {
		tx.Amend(j)
		return
	}
	j.ModifyIndex = new(tx.at)
	tx.inVersions(j)
	tx.touch(Jobs, Key(Jobs, id.Namespace, id.Job))
}

func (tx *Tx) put(j *api.Job) {
	tx.jobs[IDOf(j)] = j
	tx.inVersions(j)
	tx.row(j)
}

func (tx *Tx) inVersions(j *api.Job) {
	id := IDOf(j)
	versions := slices.Clone(tx.versions[id])
	for i, v := range versions {
		if *v.Version == *j.Version {
			versions[i] = j
		}
	}
	tx.versions[id] = prune(versions)
}

func (tx *Tx) row(j *api.Job) {
	id := IDOf(j)
	tx.touch(Jobs, Key(Jobs, id.Namespace, id.Job))
	tx.changed(Jobs, j, id, false)
}

// Purge forgets a job; its evaluations and allocations stay until they are collected.
func (tx *Tx) Purge(id ID) {
	j := tx.jobs[id]
	if j == nil {
		return
	}
	delete(tx.jobs, id)
	delete(tx.versions, id)
	delete(tx.submissions, id)
	delete(tx.events, id)
	delete(tx.queued, id)
	delete(tx.gone, id)
	if parent := j.ParentID; parent != nil && *parent != "" {
		tx.gone[ID{Namespace: id.Namespace, Job: *parent}]++
	}
	tx.policies(j, nil)
	tx.touch(Jobs, Key(Jobs, id.Namespace, id.Job), Summaries, Key(Summaries, id.Namespace, id.Job))
	tx.changed(Jobs, j, id, true)
}

// PutEval puts an evaluation in place, new or changed; e is the caller's to give.
func (tx *Tx) PutEval(e *api.Evaluation) {
	id := ID{Namespace: e.Namespace, Job: e.JobID}
	e.ModifyIndex, e.ModifyTime = tx.at, time.Now().UnixNano()
	if old := tx.evals[e.ID]; old == nil {
		e.CreateIndex, e.CreateTime = tx.at, e.ModifyTime
		tx.evalsOf[id] = append(slices.Clip(tx.evalsOf[id]), e.ID)
	}
	tx.evals[e.ID] = e
	tx.touch(Evals, Key(Evals, "id", e.ID), Key(Evals, id.Namespace, id.Job))
	tx.changed(Evals, e, e.ID, false)
	tx.doubt(id)
}

// SetQueued notes how many allocations of each group found no room.
func (tx *Tx) SetQueued(id ID, queued map[string]int) {
	if tx.jobs[id] != nil && !maps.Equal(tx.queued[id], queued) {
		tx.queued[id] = queued
		tx.touch(Summaries, Key(Summaries, id.Namespace, id.Job))
	}
}

// PutAlloc puts an allocation in place, new or changed; a is the caller's to give.
// byClient tells that the change came from the node, which AllocModifyIndex ignores.
func (tx *Tx) PutAlloc(a *api.Allocation, byClient bool) {
	id := ID{Namespace: a.Namespace, Job: a.JobID}
	a.ModifyIndex, a.ModifyTime = tx.at, time.Now().UnixNano()
	if !byClient {
		a.AllocModifyIndex = tx.at
	}
	if old := tx.allocs[a.ID]; old == nil {
		a.CreateIndex, a.CreateTime = tx.at, a.ModifyTime
		tx.allocsOf[id] = append(slices.Clip(tx.allocsOf[id]), a.ID)
		if prev := tx.allocs[a.PreviousAllocation]; prev != nil {
			p := *prev
			p.NextAllocation = a.ID
			tx.PutAlloc(&p, false)
		}
	}
	tx.allocs[a.ID] = a
	tx.touch(Allocs, Key(Allocs, "id", a.ID), Key(Allocs, id.Namespace, id.Job), Summaries, Key(Summaries, id.Namespace, id.Job))
	tx.changed(Allocs, a, a.ID, false)
	tx.doubt(id)
}

// Reserve notes which cores the tasks of an allocation have for themselves.
func (tx *Tx) Reserve(alloc string, cores map[string][]int) { tx.cores[alloc] = cores }

// AddScalingEvent puts one on top of those of the group; ten are kept.
func (tx *Tx) AddScalingEvent(id ID, group string, e api.ScalingEvent) {
	const kept = 10
	all := maps.Clone(tx.events[id])
	if all == nil {
		all = map[string][]api.ScalingEvent{}
	}
	e.CreateIndex = tx.at
	list := append([]api.ScalingEvent{e}, all[group]...)
	all[group] = list[:min(len(list), kept)]
	tx.events[id] = all
	tx.touch(Scaling, Key(Scaling, id.Namespace, id.Job))
}
