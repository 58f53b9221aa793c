package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// ID names a job.
type ID struct{ Namespace, Job string }

// IDOf is the name of a canonical job.
func IDOf(j *api.Job) ID { return ID{Namespace: *j.Namespace, Job: *j.ID} }

// The tables that count their changes, as prefixes of watch keys.
const (
	Jobs        = "jobs"
	Allocs      = "allocs"
	Evals       = "evals"
	Summaries   = "job_summary"
	Policies    = "scaling_policy"
	Submissions = "job_submission"
	Nodes       = "nodes"
	Scaling     = "scaling_event"
)

// Key is the watch key of one row or of the rows of one job of a table.
func Key(table string, names ...string) string {
	return table + "/" + strings.Join(names, "/")
}

// Tables is the content. Only a Tx changes it.
type Tables struct {
	index   uint64
	touched map[string]uint64

	jobs        map[ID]*api.Job
	versions    map[ID][]*api.Job // newest first
	submissions map[ID]map[uint64]*api.JobSubmission
	evals       map[string]*api.Evaluation
	evalsOf     map[ID][]string
	allocs      map[string]*api.Allocation
	allocsOf    map[ID][]string
	events      map[ID]map[string][]api.ScalingEvent // by group, newest first
	queued      map[ID]map[string]int
	cores       map[string]map[string][]int
	gone        map[ID]int // children that were purged, by their parent
}

func newTables() *Tables {
	return &Tables{
		index: 1, touched: map[string]uint64{},
		jobs: map[ID]*api.Job{}, versions: map[ID][]*api.Job{}, submissions: map[ID]map[uint64]*api.JobSubmission{},
		evals: map[string]*api.Evaluation{}, evalsOf: map[ID][]string{},
		allocs: map[string]*api.Allocation{}, allocsOf: map[ID][]string{},
		events: map[ID]map[string][]api.ScalingEvent{}, queued: map[ID]map[string]int{},
		cores: map[string]map[string][]int{}, gone: map[ID]int{},
	}
}

// Gone is how many children of a job are forgotten: a job's summary counts them still.
func (t *Tables) Gone(parent ID) int { return t.gone[parent] }

// Index is that of the last change of anything.
func (t *Tables) Index() uint64 { return t.index }

// Touched is the index of the last change of what the key watches, 0 = none yet.
func (t *Tables) Touched(key string) uint64 { return t.touched[key] }

// LastOf is the latest of several keys.
func (t *Tables) LastOf(keys ...string) uint64 {
	var last uint64
	for _, k := range keys {
		last = max(last, t.touched[k])
	}
	return last
}

// Job is nil where there is none.
func (t *Tables) Job(id ID) *api.Job { return t.jobs[id] }

// Jobs lists those of a namespace, "*" = all, by name.
func (t *Tables) Jobs(namespace string) []*api.Job {
	var out []*api.Job
	for id, j := range t.jobs {
		if namespace == "*" || id.Namespace == namespace {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *api.Job) int {
		return cmp.Or(cmp.Compare(*a.Namespace, *b.Namespace), cmp.Compare(*a.ID, *b.ID))
	})
	return out
}

// Versions lists what is kept of a job, newest first.
func (t *Tables) Versions(id ID) []*api.Job { return slices.Clone(t.versions[id]) }

// Version is nil where it is not kept.
func (t *Tables) Version(id ID, version uint64) *api.Job {
	for _, j := range t.versions[id] {
		if *j.Version == version {
			return j
		}
	}
	return nil
}

// Submission is the source of a version, nil where there is none.
func (t *Tables) Submission(id ID, version uint64) *api.JobSubmission {
	return t.submissions[id][version]
}

// Eval is nil where there is none.
func (t *Tables) Eval(id string) *api.Evaluation { return t.evals[id] }

// EvalsOf lists those of a job, newest first.
func (t *Tables) EvalsOf(id ID) []*api.Evaluation {
	var out []*api.Evaluation
	for _, e := range slices.Backward(t.evalsOf[id]) {
		out = append(out, t.evals[e])
	}
	return out
}

// Evals lists those of a namespace, "*" = all, newest first.
func (t *Tables) Evals(namespace string) []*api.Evaluation {
	out := slices.Collect(maps.Values(t.evals))
	out = slices.DeleteFunc(out, func(e *api.Evaluation) bool { return namespace != "*" && e.Namespace != namespace })
	slices.SortFunc(out, func(a, b *api.Evaluation) int {
		return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Alloc is nil where there is none.
func (t *Tables) Alloc(id string) *api.Allocation { return t.allocs[id] }

// AllocsOf lists those of a job, oldest first.
func (t *Tables) AllocsOf(id ID) []*api.Allocation {
	var out []*api.Allocation
	for _, a := range t.allocsOf[id] {
		out = append(out, t.allocs[a])
	}
	return out
}

// Allocs lists those of a namespace, "*" = all, newest first.
func (t *Tables) Allocs(namespace string) []*api.Allocation {
	out := slices.Collect(maps.Values(t.allocs))
	out = slices.DeleteFunc(out, func(a *api.Allocation) bool { return namespace != "*" && a.Namespace != namespace })
	slices.SortFunc(out, func(a, b *api.Allocation) int {
		return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// ScalingEvents lists those of a job by group, newest first.
func (t *Tables) ScalingEvents(id ID) map[string][]api.ScalingEvent {
	return maps.Clone(t.events[id])
}

// Queued says how many allocations of each group the last evaluation could not place.
func (t *Tables) Queued(id ID) map[string]int { return t.queued[id] }

// Reserved gives, by task, the cores that an allocation has for itself.
func (t *Tables) Reserved(alloc string) map[string][]int { return t.cores[alloc] }
