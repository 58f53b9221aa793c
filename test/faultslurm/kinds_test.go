package faultslurm_test

import (
	"slices"
	"strings"

	"pitchpipe/test/fault"
)

// The kinds.
const (
	kindAfter     = "controller killed after a step"
	kindBefore    = "controller killed before an effect"
	kindSaved     = "controller killed after its own record"
	kindAnywhere  = "controller killed at any moment"
	kindCancel    = "owner cancels in the move"
	kindHold      = "owner holds and releases in the move"
	kindUpdate    = "owner updates in the move"
	kindDisk      = "journal's disk is full"
	kindSettings  = "settings folder is not to be trusted"
	kindCtldSaved = "slurmctld killed when it had saved"
	kindCtldKill  = "slurmctld killed with work not saved"
	kindCtldTerm  = "slurmctld ended and restarted"
	kindCtldStop  = "slurmctld stands still"
	kindNode      = "slurmd restarted"
	kindBroker    = "broker killed after a step"
	kindBrokerAny = "broker killed at any moment"
	kindEnd       = "job ends while it is moved"
	kindGiveUp    = "owner cancels a trial"
	kindRequeue   = "owner requeues a trial"
)

// steps are the durable steps of a move, in their order.
func steps() []string {
	return []string{
		"asking", "signal-sent", "signalled", "stopping", "end-sent", "end-acknowledged", "delayed", "released", "stopped",
		"settings", "changing", "changed", "queued", "followed", "listening",
	}
}

// effects are those of a move on Slurm.
func effects() []string {
	return []string{"before:signal", "before:requeue", "before:update", "before:release"}
}

// saves are the controller's own records in a move.
func saves() []string {
	return []string{"saved:probe:", "saved:probe:checkpointing", "saved:probe:stopped", "saved:probe:changed", "saved:profiling:"}
}

// brokerSteps are those of the broker.
func brokerSteps() []string {
	var out []string
	for _, verb := range []string{"signal", "requeue", "update", "release"} {
		out = append(out, verb+"-recorded", verb+"-done")
	}
	return out
}

// between are the steps at which the owner does something.
func between() []string {
	return []string{"signalled", "end-acknowledged", "stopped", "changed", "before:update", "before:requeue", "queued"}
}

// ownersUpdates are what an owner changes of his job.
func ownersUpdates() []string { return []string{"TimeLimit=03:15:00", "NumCPUs=2", "Comment=mine"} }

// families are all kinds and how often each comes, in proportion.
func families(disk bool) []fault.Family {
	out := []fault.Family{
		{Kind: kindAfter, Weight: 14, Points: steps()},
		{Kind: kindCtldSaved, Weight: 2},
		{Kind: kindCtldKill, Weight: 1},
		{Kind: kindUpdate, Weight: 3, Points: between(), Actions: ownersUpdates()},
		{Kind: kindSettings, Weight: 2, Points: []string{"changed", "queued"}, Actions: []string{"writable", "foreign", "closed"}},
		{Kind: kindBefore, Weight: 4, Points: effects()},
		{Kind: kindHold, Weight: 3, Points: between()},
		{Kind: kindCtldStop, Weight: 2},
		{Kind: kindCancel, Weight: 3, Points: between()},
		{Kind: kindNode, Weight: 2},
		{Kind: kindBroker, Weight: 5, Points: brokerSteps()},
		{Kind: kindBrokerAny, Weight: 1},
		{Kind: kindAnywhere, Weight: 3},
		{Kind: kindSaved, Weight: 4, Points: saves()},
		{Kind: kindCtldTerm, Weight: 1},
	}
	if disk {
		out = append(out, fault.Family{Kind: kindDisk, Weight: 3})
	}
	return out
}

// families are those that this world can meet: without a tuner, what befalls Slurm itself.
func (w *world) families() []fault.Family {
	if !w.tuned {
		return slices.DeleteFunc(families(false), func(f fault.Family) bool { return !clusterwide(fault.Fault{Kind: f.Kind}) })
	}
	return families(w.owners[0].disk)
}

// pointsOf are the points at which a fault can strike.
func pointsOf(f fault.Fault) []string {
	points := fault.Points(families(true), f.Kind)
	if strings.HasPrefix(f.Action, "NumCPUs") { // which Slurm takes of a job that waits, and of no other
		points = slices.DeleteFunc(points, func(p string) bool { return p == "signalled" || p == "before:requeue" || p == "end-acknowledged" })
	}
	return points
}

// clusterwide tells of faults that befall all.
func clusterwide(f fault.Fault) bool {
	switch f.Kind {
	case kindCtldKill, kindCtldSaved, kindCtldTerm, kindCtldStop, kindNode:
		return true
	}
	return false
}
