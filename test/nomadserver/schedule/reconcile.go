package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// group is the work on one group of a job.
type group struct {
	in   Input
	spec *api.TaskGroup
	plan *Plan
	room *room

	held  map[string]struct{} // names that need no new allocation
	next  []wish
	count *api.DesiredUpdates
}

// wish is an allocation to place, in place of another or of none.
type wish struct {
	name        string
	previous    *api.Allocation
	why         string // with which the previous one is stopped, "" = it has ended
	rescheduled bool
}

// Decide makes the plan.
func Decide(in Input) *Plan {
	p := &Plan{
		Failed: map[string]*api.AllocationMetric{}, Queued: map[string]int{},
		Desired: map[string]*api.DesiredUpdates{},
	}
	if in.Job == nil || *in.Job.Stop {
		p.stopAll(in, func(*api.Allocation) bool { return true })
		return p
	}
	p.stopAll(in, func(a *api.Allocation) bool { return in.Job.LookupTaskGroup(a.TaskGroup) == nil })
	room := newRoom(in, p.Stop)
	var groups []*group
	for _, spec := range in.Job.TaskGroups {
		g := &group{in: in, spec: spec, plan: p, room: room, held: map[string]struct{}{}, count: &api.DesiredUpdates{}}
		p.Desired[*spec.Name] = g.count
		p.Queued[*spec.Name] = 0
		g.sort()
		groups = append(groups, g)
	}
	for _, g := range groups {
		g.place()
	}
	return p
}

func (p *Plan) stopAll(in Input, which func(*api.Allocation) bool) {
	for _, a := range in.Allocs {
		if !which(a) {
			continue
		}
		d := p.Desired[a.TaskGroup]
		if d == nil {
			d = &api.DesiredUpdates{}
			p.Desired[a.TaskGroup] = d
		}
		if a.ServerTerminalStatus() || a.ClientTerminalStatus() {
			d.Ignore++
			continue
		}
		d.Stop++
		p.Stop = append(p.Stop, Stop{Alloc: a, Why: NotNeeded})
	}
}

func (g *group) batch() bool {
	return *g.in.Job.Type == api.JobTypeBatch || *g.in.Job.Type == api.JobTypeSysbatch
}

func (g *group) size() int {
	if t := *g.in.Job.Type; t == api.JobTypeSystem || t == api.JobTypeSysbatch {
		return 1 // one node
	}
	return *g.spec.Count
}

// older tells whether an allocation belongs to an earlier version of the job, or to a
// purged job of the same name.
func (g *group) older(a *api.Allocation) bool {
	return *a.Job.Version < *g.in.Job.Version || *a.Job.CreateIndex < *g.in.Job.CreateIndex
}

// sort decides about each allocation there is.
func (g *group) sort() {
	var running []*api.Allocation
	for _, a := range g.in.Allocs {
		if a.TaskGroup != *g.spec.Name {
			continue
		}
		switch {
		case a.ServerTerminalStatus():
			// What is meant to end leaves its name to its successor, ended or not.
			g.count.Ignore++
		case a.ClientTerminalStatus():
			g.ended(a)
		default:
			running = append(running, a)
		}
	}
	// The lowest names stay, and of two with one name the younger.
	slices.SortStableFunc(running, func(a, b *api.Allocation) int {
		return cmp.Or(cmp.Compare(numberOf(a.Name), numberOf(b.Name)), cmp.Compare(b.CreateIndex, a.CreateIndex))
	})
	for _, a := range running {
		g.runs(a)
	}
	for i := 0; i < g.size() && len(g.held)+len(g.next) < g.size(); i++ {
		name := fmt.Sprintf("%s.%s[%d]", *g.in.Job.ID, *g.spec.Name, i)
		if _, ok := g.held[name]; ok || slices.ContainsFunc(g.next, func(w wish) bool { return w.name == name }) {
			continue
		}
		g.count.Place++
		g.next = append(g.next, wish{name: name})
	}
}

// ended decides about one that came to its end by itself.
func (g *group) ended(a *api.Allocation) {
	switch {
	case a.NextAllocation != "":
		g.count.Ignore++
	case g.batch() && g.older(a):
		// What an earlier version did, counts for nothing.
		g.count.Ignore++
	case a.ClientStatus == api.AllocClientStatusComplete && g.batch():
		g.count.Ignore++
		g.hold(a)
	case a.ClientStatus == api.AllocClientStatusFailed:
		g.failed(a)
	default:
		g.count.Ignore++
	}
}

func (g *group) failed(a *api.Allocation) {
	at, ok := rescheduleAt(a, g.spec.ReschedulePolicy)
	switch {
	case ok && (a.FollowupEvalID != "" && a.FollowupEvalID == g.in.EvalID || !at.After(g.in.Now.Add(window))),
		a.DesiredTransition.ShouldForceReschedule():
		g.count.RescheduleNow++
		g.count.Place++
		g.next = append(g.next, wish{name: a.Name, previous: a, why: Rescheduled, rescheduled: true})
	case ok && a.FollowupEvalID == "":
		g.count.RescheduleLater++
		g.count.Ignore++
		g.plan.Later = append(g.plan.Later, Later{Alloc: a, At: at})
		g.hold(a)
	default:
		g.count.Ignore++
		g.hold(a)
	}
}

func (g *group) hold(a *api.Allocation) { g.held[a.Name] = struct{}{} }

// runs decides about one that runs or is about to.
func (g *group) runs(a *api.Allocation) {
	_, twice := g.held[a.Name]
	migrate := a.DesiredTransition.ShouldMigrate() || a.DesiredTransition.ShouldReschedule()
	switch {
	case twice || len(g.held)+len(g.next) >= g.size():
		g.count.Stop++
		g.plan.Stop = append(g.plan.Stop, Stop{Alloc: a, Why: NotNeeded})
		g.room.leave(a)
	case migrate:
		g.count.Migrate++
		g.next = append(g.next, wish{name: a.Name, previous: a, why: Migrating})
	case *a.Job.JobModifyIndex == *g.in.Job.JobModifyIndex:
		g.count.Ignore++
		g.hold(a)
	case Destroys(a.Job, g.in.Job, a.TaskGroup) != "":
		g.count.DestructiveUpdate++
		g.next = append(g.next, wish{name: a.Name, previous: a, why: Updating})
	default:
		g.count.InPlaceUpdate++
		g.plan.InPlace = append(g.plan.InPlace, a)
		g.hold(a)
	}
}

// place looks for room; without any the predecessor stays as it is.
func (g *group) place() {
	for _, w := range g.next {
		if m := g.plan.Failed[*g.spec.Name]; m != nil {
			m.CoalescedFailures++
			g.plan.Queued[*g.spec.Name]++
			continue
		}
		back := func() {}
		if w.previous != nil && w.why != Rescheduled {
			back = g.room.leave(w.previous)
		}
		res, cores, metric := g.room.take(g.in.Job, g.spec)
		if res == nil {
			back()
			g.plan.Failed[*g.spec.Name] = metric
			g.plan.Queued[*g.spec.Name]++
			continue
		}
		if w.previous != nil {
			g.plan.Stop = append(g.plan.Stop, Stop{Alloc: w.previous, Why: w.why})
		}
		g.plan.Place = append(g.plan.Place, Place{
			Name: w.name, Group: *g.spec.Name, Resources: res, Cores: cores,
			Previous: w.previous, Rescheduled: w.rescheduled, Metrics: metric,
		})
	}
}

// numberOf is 2 of job.group[2].
func numberOf(name string) int {
	_, s, _ := strings.Cut(name[strings.LastIndexByte(name, '.')+1:], "[")
	n, err := strconv.Atoi(strings.TrimSuffix(s, "]"))
	if err != nil {
		return -1
	}
	return n
}
