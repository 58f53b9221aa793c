package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/nomad/api"
)

// ID names a job.
type ID struct{ Namespace, Job string }

// IDOf is the name of a canonical job.
func IDOf(j *api.Job) ID { return ID{Namespace: *j.Namespace, Job: *j.ID} }

// Table is what a list is made of; each has the index of its last change.
type Table int

// The tables.
const (
	Jobs Table = iota
	Allocs
	Evals
	Summaries
	Variables
	numTables
)

// record is what the cluster knows of a job's name.
type record struct {
	job       *api.Job   // nil where it was purged
	versions  []*api.Job // newest first
	sources   map[uint64]*api.JobSubmission
	evals     []*api.Evaluation // oldest first, of purged jobs of that name too
	allocs    []*api.Allocation // the same
	queued    map[string]int    // allocations without room, by group
	purged    int               // children that were purged: the summary still counts them
	summaryAt uint64
}

// Tables is the content. Only a Tx changes it.
type Tables struct {
	index     uint64
	touched   [numTables]uint64
	records   map[ID]*record
	allocs    map[string]*api.Allocation
	evals     map[string]*api.Evaluation
	cores     map[string]map[string][]int // reserved, by allocation and task
	variables map[ID]*Variable
}

func newTables() *Tables {
	return &Tables{
		index: 1, records: map[ID]*record{}, allocs: map[string]*api.Allocation{}, evals: map[string]*api.Evaluation{},
		cores: map[string]map[string][]int{}, variables: map[ID]*Variable{},
	}
}

func (t *Tables) record(id ID) *record {
	if r := t.records[id]; r != nil {
		return r
	}
	return &record{}
}

// Index is that of the last transaction.
func (t *Tables) Index() uint64 { return t.index }

// Touched is the index of the last change of any of the tables.
func (t *Tables) Touched(tables ...Table) uint64 {
	var last uint64
	for _, table := range tables {
		last = max(last, t.touched[table])
	}
	return last
}

// Job is nil where there is none.
func (t *Tables) Job(id ID) *api.Job { return t.record(id).job }

// Jobs lists those of a namespace by name; "*" means all namespaces.
func (t *Tables) Jobs(namespace string) []*api.Job {
	var out []*api.Job
	for id, r := range t.records {
		if r.job != nil && (namespace == "*" || id.Namespace == namespace) {
			out = append(out, r.job)
		}
	}
	slices.SortFunc(out, func(a, b *api.Job) int {
		return cmp.Or(cmp.Compare(*a.Namespace, *b.Namespace), cmp.Compare(*a.ID, *b.ID))
	})
	return out
}

// Versions lists what is kept of a job, newest first.
func (t *Tables) Versions(id ID) []*api.Job { return slices.Clone(t.record(id).versions) }

// Version is nil where it is not kept.
func (t *Tables) Version(id ID, version uint64) *api.Job {
	for _, j := range t.record(id).versions {
		if *j.Version == version {
			return j
		}
	}
	return nil
}

// Submission is the source of a version, nil where there is none.
func (t *Tables) Submission(id ID, version uint64) *api.JobSubmission {
	return t.record(id).sources[version]
}

// Eval is nil where there is none.
func (t *Tables) Eval(id string) *api.Evaluation { return t.evals[id] }

// EvalsOf lists those of a job, newest first.
func (t *Tables) EvalsOf(id ID) []*api.Evaluation { return reversed(t.record(id).evals) }

// Blocked lists the evaluations that wait for room, oldest first.
func (t *Tables) Blocked() []*api.Evaluation {
	var out []*api.Evaluation
	for _, e := range t.evals {
		if e.Status == api.EvalStatusBlocked {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *api.Evaluation) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
	return out
}

// Alloc is nil where there is none.
func (t *Tables) Alloc(id string) *api.Allocation { return t.allocs[id] }

// AllocsOf lists those of a job, oldest first.
func (t *Tables) AllocsOf(id ID) []*api.Allocation { return slices.Clone(t.record(id).allocs) }

// Allocs lists those of a namespace, newest first; "*" means all namespaces.
func (t *Tables) Allocs(namespace string) []*api.Allocation {
	var out []*api.Allocation
	for _, a := range t.allocs {
		if namespace == "*" || a.Namespace == namespace {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *api.Allocation) int {
		return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Reserved gives, by task, the cores that an allocation has for itself.
func (t *Tables) Reserved(alloc string) map[string][]int { return t.cores[alloc] }

// Summary counts the allocations and the children of a job.
func (t *Tables) Summary(j *api.Job) *api.JobSummary {
	id := IDOf(j)
	r := t.record(id)
	out := &api.JobSummary{
		JobID: id.Job, Namespace: id.Namespace, Summary: map[string]api.TaskGroupSummary{}, Children: &api.JobChildrenSummary{},
		CreateIndex: *j.CreateIndex, ModifyIndex: r.summaryAt,
	}
	for group, queued := range r.queued {
		out.Summary[group] = api.TaskGroupSummary{Queued: queued}
	}
	for _, a := range r.allocs {
		g := out.Summary[a.TaskGroup]
		switch a.ClientStatus {
		case api.AllocClientStatusPending:
			g.Starting++
		case api.AllocClientStatusRunning:
			g.Running++
		case api.AllocClientStatusComplete:
			g.Complete++
		case api.AllocClientStatusFailed:
			g.Failed++
		}
		out.Summary[a.TaskGroup] = g
	}
	if !j.IsPeriodic() && !j.IsParameterized() {
		return out
	}
	out.Children.Dead = int64(r.purged)
	for _, child := range t.Jobs(id.Namespace) {
		switch {
		case *child.ParentID != id.Job:
		case *child.Status == Pending:
			out.Children.Pending++
		case *child.Status == Running:
			out.Children.Running++
		default:
			out.Children.Dead++
		}
	}
	return out
}

func reversed[T any](list []T) []T {
	out := slices.Clone(list)
	slices.Reverse(out)
	return out
}

// put replaces the row with that id, or appends it: never in the old list, which others
// may hold.
func put[T any](list []*T, row *T, same func(*T) bool) []*T {
	out := slices.Clone(list)
	if i := slices.IndexFunc(out, same); i >= 0 {
		out[i] = row
		return out
	}
	return append(out, row)
}

func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[K]V{}
	}
	out[k] = v
	return out
}
