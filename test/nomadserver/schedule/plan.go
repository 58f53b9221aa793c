package schedule

import (
	"time"

	"github.com/hashicorp/nomad/api"
)

// Input is one job in its surroundings.
type Input struct {
	// Job is the current version, nil where it was purged.
	Job *api.Job
	// Allocs are all allocations of the job, whatever their state, oldest first.
	Allocs []*api.Allocation
	// Others stand on the node and belong to other jobs.
	Others []*api.Allocation
	Node   Node
	// EvalID is the evaluation that asks; allocations that wait for it are due.
	EvalID string
	Now    time.Time
}

// Stop ends an allocation.
type Stop struct {
	Alloc *api.Allocation
	// Why is the DesiredDescription.
	Why string
}

// Place makes an allocation.
type Place struct {
	Name, Group string
	Resources   *api.AllocatedResources
	// Cores are the numbers of the cores that a task has for itself.
	Cores map[string][]int
	// Previous is what it replaces, nil where there is none; Rescheduled tells that
	// the previous one had failed.
	Previous    *api.Allocation
	Rescheduled bool
	Metrics     *api.AllocationMetric
}

// Later is a failed allocation that is replaced at a time to come.
type Later struct {
	Alloc *api.Allocation
	At    time.Time
}

// Plan is what should change.
type Plan struct {
	Stop    []Stop
	Place   []Place
	InPlace []*api.Allocation // these run on under the job's new version
	Later   []Later
	// Failed says of each group that found no room why; Queued how many did not.
	Failed map[string]*api.AllocationMetric
	Queued map[string]int
	// Desired counts by group what the plan is meant to do, room or no room.
	Desired map[string]*api.DesiredUpdates
}

// The reasons for which allocations are stopped, in Nomad's words.
const (
	NotNeeded   = "alloc not needed due to job update"
	Updating    = "alloc is being updated due to job update"
	Migrating   = "alloc is being migrated"
	Rescheduled = "alloc was rescheduled because it failed"
)
