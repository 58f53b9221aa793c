package faultnomad_test

import (
	"slices"

	"pitchpipe/test/fault"
)

// The kinds.
const (
	kindBefore   = "controller killed before a request"
	kindBehind   = "controller killed behind a request"
	kindAfter    = "controller killed after an answer"
	kindAnywhere = "controller killed at any moment"
	kindLost     = "request or its answer lost"
	kindCut      = "queries and streams cut"
	kindAgent    = "agent killed and restarted"
	kindClient   = "client of the agent killed and restarted"
	kindWindow   = "job ends in the completion window"
	kindOwner    = "owner registers it anew in the move"
	kindStop     = "owner stops it in the move"
	kindAlloc    = "its allocation stopped by hand"
	kindRoom     = "no room in the cluster"
	kindEnd      = "job ends while it is moved"
)

// requests are those of a move, in their order, as the proxy tells them apart.
func requests() []string {
	return []string{atPlan, atSignal, atWait, atAgain, atRegister, atVerify}
}

// with puts a word before each of the points.
func with(word string, points ...string) []string {
	var out []string
	for _, p := range points {
		out = append(out, word+p)
	}
	return out
}

// What happens in the window: to a job with the completion marker or without it, and
// whether the controller dies after the registration.
const (
	windowMarked      = "marked"
	windowPlain       = "unmarked"
	windowMarkedCrash = "marked, controller killed"
	windowPlainCrash  = "unmarked, controller killed"
)

// What an owner registers.
const (
	ownersSame     = "same"     // takes tuning back
	ownersOther    = "other"    // another size
	ownersPriority = "priority" // restarts nothing by itself
)

// How there is no room.
const (
	roomFull       = "full"       // somebody else takes all memory
	roomIneligible = "ineligible" // the node takes nothing new
)

// families are all kinds and how often each comes, in proportion. Some can be done to an
// agent alone.
func families(agent bool) []fault.Family {
	out := []fault.Family{
		{Kind: kindBefore, Weight: 6, Points: with(before, requests()...)},
		{Kind: kindBehind, Weight: 6, Points: with(behind, requests()...)},
		{Kind: kindAfter, Weight: 6, Points: with(after, requests()...)},
		{Kind: kindWindow, Weight: 4, Points: with(before, atSignal, atAgain, atRegister, atRegister, atRegister), Actions: []string{windowPlain, windowMarked, windowPlainCrash, windowMarkedCrash}},
		{Kind: kindOwner, Weight: 3, Points: slices.Concat(with(before, atSignal, atAgain, atRegister, atVerify), with(behind, atRegister)), Actions: []string{ownersSame, ownersOther, ownersPriority}},
		{Kind: kindStop, Weight: 2, Points: slices.Concat(with(before, atSignal, atAgain, atRegister), with(behind, atRegister)), Actions: []string{"stop", "purge"}},
		{Kind: kindAlloc, Weight: 2, Points: with(before, atSignal, atAgain, atRegister, atVerify)},
		{Kind: kindLost, Weight: 3, Points: slices.Concat(with(before, atSignal, atRegister), with(behind, atPlan, atSignal, atRegister, atVerify))},
		{Kind: kindRoom, Weight: 2, Points: with(before, atRegister), Actions: []string{roomFull}},
		{Kind: kindAgent, Weight: 2},
		{Kind: kindCut, Weight: 3},
		{Kind: kindAnywhere, Weight: 3},
	}
	if !agent {
		return out
	}
	i := slices.IndexFunc(out, func(f fault.Family) bool { return f.Kind == kindRoom })
	out[i].Actions = append(out[i].Actions, roomIneligible)
	return append(out, fault.Family{Kind: kindClient, Weight: 2})
}

// families are those that this world can meet: without a tuner, the kills of Nomad itself.
func (w *world) families() []fault.Family {
	return slices.DeleteFunc(families(w.agent.Real), func(f fault.Family) bool {
		return !w.tuned && f.Kind != kindAgent && f.Kind != kindClient
	})
}

// clusterwide tells of faults that befall all.
func clusterwide(f fault.Fault) bool {
	return f.Kind == kindAgent || f.Kind == kindClient || f.Kind == kindRoom
}
