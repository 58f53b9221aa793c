package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Input is one job in its surroundings.
type Input struct {
	Job    *api.Job          // the current version, nil where it was purged
	Allocs []*api.Allocation // all of the job, whatever their state, oldest first
	Others []*api.Allocation // of other jobs on the node
	Node   Node
	EvalID string // the evaluation that asks: allocations that wait for it are due
	Now    time.Time
}

// Stop ends an allocation; Why is its DesiredDescription.
type Stop struct {
	Alloc *api.Allocation
	Why   string
}

// Place makes an allocation.
type Place struct {
	Name, Group string
	Resources   *api.AllocatedResources
	Cores       map[string][]int // that a task has for itself
	Previous    *api.Allocation  // that it replaces, nil where there is none
	Rescheduled bool             // the previous one had failed
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
	Failed  map[string]*api.AllocationMetric // why a group found no room
	Queued  map[string]int                   // how many of a group did not
	Desired map[string]*api.DesiredUpdates   // what the plan is meant to do, room or no room
}

const (
	notNeeded   = "alloc not needed due to job update"
	updating    = "alloc is being updated due to job update"
	migrating   = "alloc is being migrated"
	rescheduled = "alloc was rescheduled because it failed"
)

// scheduler works on one group of a job.
type scheduler struct {
	in    Input
	spec  *api.TaskGroup
	plan  *Plan
	held  map[string]struct{} // names that need no new allocation
	next  []placement
	count *api.DesiredUpdates
}

// placement is an allocation to place, in place of another or of none.
type placement struct {
	name     string
	previous *api.Allocation
	why      string // with which the previous one is stopped
}

// Decide makes the plan for a job: which allocations are stopped, replaced, updated in
// place or placed again.
//
// An allocation that has ended belongs to its version of a batch job: a newer version
// does all work again. A replacement that finds no room leaves its predecessor alone.
func Decide(in Input) *Plan {
	p := &Plan{Failed: map[string]*api.AllocationMetric{}, Queued: map[string]int{}, Desired: map[string]*api.DesiredUpdates{}}
	alive := in.Job != nil && !*in.Job.Stop
	for _, a := range in.Allocs {
		if alive && in.Job.LookupTaskGroup(a.TaskGroup) != nil {
			continue
		}
		if p.Desired[a.TaskGroup] == nil {
			p.Desired[a.TaskGroup] = &api.DesiredUpdates{}
		}
		if AllocEnded(a) {
			p.Desired[a.TaskGroup].Ignore++
			continue
		}
		p.Desired[a.TaskGroup].Stop++
		p.Stop = append(p.Stop, Stop{a, notNeeded})
	}
	if !alive {
		return p
	}
	free := newCapacity(in, p.Stop)
	var groups []*scheduler
	for _, spec := range in.Job.TaskGroups {
		g := &scheduler{in: in, spec: spec, plan: p, held: map[string]struct{}{}, count: &api.DesiredUpdates{}}
		p.Desired[*spec.Name], p.Queued[*spec.Name] = g.count, 0
		g.sort(free)
		groups = append(groups, g)
	}
	for _, g := range groups {
		g.place(free)
	}
	return p
}

func (g *scheduler) batch() bool { return *g.in.Job.Type == api.JobTypeBatch }

func (g *scheduler) size() int {
	if *g.in.Job.Type == api.JobTypeSystem {
		return 1 // there is one node
	}
	return *g.spec.Count
}

// full reports whether the group has all the allocations that it may have.
func (g *scheduler) full() bool { return len(g.held)+len(g.next) >= g.size() }

// older reports whether an allocation belongs to an earlier version of the job, or to a
// purged job of the same name.
func (g *scheduler) older(a *api.Allocation) bool {
	return *a.Job.Version < *g.in.Job.Version || *a.Job.CreateIndex < *g.in.Job.CreateIndex
}

// sort decides about each allocation of the group.
func (g *scheduler) sort(free *capacity) {
	var live []*api.Allocation
	for _, a := range g.in.Allocs {
		switch {
		case a.TaskGroup != *g.spec.Name:
		case a.ServerTerminalStatus(), a.NextAllocation != "", a.ClientTerminalStatus() && g.batch() && g.older(a):
			// It leaves its name to its successor, ended or not.
			g.count.Ignore++
		case a.ClientStatus == api.AllocClientStatusFailed:
			g.failed(a)
		case a.ClientTerminalStatus():
			g.count.Ignore++
			if g.batch() {
				g.hold(a)
			}
		default:
			live = append(live, a)
		}
	}
	// The lowest names stay, and of two with one name the younger.
	slices.SortStableFunc(live, func(a, b *api.Allocation) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(b.CreateIndex, a.CreateIndex))
	})
	for _, a := range live {
		g.running(a, free)
	}
	for i := 0; !g.full(); i++ {
		name := fmt.Sprintf("%s.%s[%d]", *g.in.Job.ID, *g.spec.Name, i)
		_, held := g.held[name]
		if !held && !slices.ContainsFunc(g.next, func(w placement) bool { return w.name == name }) {
			g.count.Place++
			g.next = append(g.next, placement{name: name})
		}
	}
}

func (g *scheduler) hold(a *api.Allocation) { g.held[a.Name] = struct{}{} }

// failed decides about an allocation that failed: replace it now, later or never.
func (g *scheduler) failed(a *api.Allocation) {
	at, ok := rescheduleAt(a, g.spec.ReschedulePolicy)
	if ok && (a.FollowupEvalID != "" && a.FollowupEvalID == g.in.EvalID || !at.After(g.in.Now)) {
		g.count.RescheduleNow++
		g.count.Place++
		g.next = append(g.next, placement{a.Name, a, rescheduled})
		return
	}
	g.count.Ignore++
	g.hold(a)
	if ok && a.FollowupEvalID == "" {
		g.count.RescheduleLater++
		g.plan.Later = append(g.plan.Later, Later{a, at})
	}
}

// rescheduleAt says when a failed allocation may be replaced; false means never. The delay
// is constant, whatever the policy says about its growth.
func rescheduleAt(a *api.Allocation, p *api.ReschedulePolicy) (time.Time, bool) {
	if p == nil || *p.Attempts == 0 && !*p.Unlimited {
		return time.Time{}, false
	}
	var ended time.Time
	for _, s := range a.TaskStates {
		if s.FinishedAt.After(ended) {
			ended = s.FinishedAt
		}
	}
	recent := 0
	if a.RescheduleTracker != nil {
		for _, e := range a.RescheduleTracker.Events {
			if ended.Sub(time.Unix(0, e.RescheduleTime)) < *p.Interval {
				recent++
			}
		}
	}
	return ended.Add(*p.Delay), *p.Unlimited || recent < *p.Attempts
}

// running decides about an allocation that runs or is about to.
func (g *scheduler) running(a *api.Allocation, free *capacity) {
	_, twice := g.held[a.Name]
	switch {
	case twice || g.full():
		g.count.Stop++
		g.plan.Stop = append(g.plan.Stop, Stop{a, notNeeded})
		free.use(a, -1)
	case a.DesiredTransition.ShouldMigrate():
		g.count.Migrate++
		g.next = append(g.next, placement{a.Name, a, migrating})
	case *a.Job.JobModifyIndex == *g.in.Job.JobModifyIndex:
		g.count.Ignore++
		g.hold(a)
	case destructive(a.Job, g.in.Job, a.TaskGroup):
		g.count.DestructiveUpdate++
		g.next = append(g.next, placement{a.Name, a, updating})
	default:
		g.count.InPlaceUpdate++
		g.plan.InPlace = append(g.plan.InPlace, a)
		g.hold(a)
	}
}

// place looks for room; without any the predecessor stays as it is.
func (g *scheduler) place(free *capacity) {
	for _, w := range g.next {
		if m := g.plan.Failed[*g.spec.Name]; m != nil {
			m.CoalescedFailures++
			g.plan.Queued[*g.spec.Name]++
			continue
		}
		leaves := w.previous != nil && w.why != rescheduled
		if leaves {
			free.use(w.previous, -1)
		}
		res, cores, metric := free.take(g.in.Job, g.spec)
		if res == nil {
			if leaves {
				free.use(w.previous, 1)
			}
			g.plan.Failed[*g.spec.Name] = metric
			g.plan.Queued[*g.spec.Name]++
			continue
		}
		if w.previous != nil {
			g.plan.Stop = append(g.plan.Stop, Stop{w.previous, w.why})
		}
		g.plan.Place = append(g.plan.Place, Place{w.name, *g.spec.Name, res, cores, w.previous, w.why == rescheduled, metric})
	}
}
