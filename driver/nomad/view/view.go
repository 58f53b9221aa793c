package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// CauseRescheduled is the cause of an attempt that this driver did not bring about: a
// failure that the job's own policy answers with another allocation, a node that was
// lost or drained, somebody's `nomad alloc stop`. It has the settings of the attempt
// before it.
const CauseRescheduled driver.Cause = "rescheduled"

// Known is the kept record of an attempt, since Nomad forgets allocations.
type Known struct {
	Alloc   string         `json:"alloc"`
	Index   uint64         `json:"index"` // of its creation
	Attempt driver.Attempt `json:"attempt"`
	Node    string         `json:"node,omitempty"`
	Version uint64         `json:"version"`        // of the job when it was placed
	Restart int64          `json:"turn,omitempty"` // Restart.At of the one that it began with; 0: none
}

// id identifies the attempt.
func (k Known) id() attemptID { return attemptID{k.Alloc, k.Restart} }

type attemptID struct {
	alloc   string
	restart int64
}

// Input is what was read of one job.
type Input struct {
	ID   driver.JobID
	Job  *api.Job // as it is registered
	Own  *api.Job // what its owner wrote
	Task string   // the main task's name

	Allocs   []*api.AllocationListStub
	Blocked  *api.Evaluation      // waits for room; nil: none does
	Marks    map[uint64]spec.Mark // of versions that were registered here
	Known    []Known
	Restarts []Restart // of the allocations, the oldest first
	Ignored  []string  // allocations that ran finished work again, for a moment
	Finished bool      // its work was done before it was stopped
	Goes     bool      // it left for an intent or is given back its owner's memory
}

// Job is the job with its attempts, and what is now known of these.
func Job(in Input) (driver.Job, []Known) {
	known := attempts(in)
	j := driver.Job{
		ID: in.ID, Name: name(in.Own), Owner: namespace(in.Job), Partition: namespace(in.Job),
		ExitCode: -1, Resources: spec.Resources(in.Own), Off: in.Job.Meta[spec.OffMeta] == "true",
	}
	if at := in.Job.SubmitTime; at != nil {
		j.Submitted = moment(*at)
	}
	for _, k := range known {
		j.Attempts = append(j.Attempts, k.Attempt)
		j.Node = k.Node
	}
	j.Attempt = len(known)
	if j.Attempt > 0 {
		last := j.Attempts[j.Attempt-1]
		j.Started, j.ExitCode, j.Change = j.Attempts[0].Started, last.ExitCode, last.Change
	}
	if several(in.Job) && len(in.Allocs) > 0 {
		whole(in, &j)
	} else {
		j.State, j.Detail = state(in)
	}
	switch {
	case j.State.Ended() && j.Ended.IsZero():
		j.Ended = ended(in, j)
	case j.State == driver.Running:
		j.ExitCode = -1
	}
	return j, known
}

// Latest is the last allocation, without those that are ignored; nil: none.
func Latest(allocs []*api.AllocationListStub, ignored []string) (last *api.AllocationListStub) {
	for _, a := range allocs {
		if !slices.Contains(ignored, a.ID) && (last == nil || a.CreateIndex >= last.CreateIndex) {
			last = a
		}
	}
	return last
}

func state(in Input) (driver.State, string) {
	stopped := spec.Deref(in.Job.Stop)
	a := Latest(in.Allocs, in.Ignored)
	dead := spec.Deref(in.Job.Status) == "dead"
	switch {
	case a == nil && in.Finished:
		return driver.Succeeded, ""
	case a == nil && stopped:
		return driver.Cancelled, "stopped before it began"
	case a == nil && dead && len(in.Known) > 0:
		return driver.Lost, "Nomad has forgotten its allocations"
	case a == nil && (in.Job.Periodic != nil || in.Job.ParameterizedJob != nil):
		return driver.Pending, spec.ObservedOnly(in.Job)
	case a == nil:
		return driver.Pending, Reason(in.Blocked)
	}
	t := TaskOf(a, in.Task)
	// An allocation that was placed and never began is nothing that happened.
	if stopped && t.Began.IsZero() && a.ClientStatus != api.AllocClientStatusFailed {
		in.Allocs = slices.DeleteFunc(slices.Clone(in.Allocs), func(other *api.AllocationListStub) bool { return other.ID == a.ID })
		return state(in)
	}
	switch {
	case in.Finished:
		return driver.Succeeded, "its work was done; another run of it was stopped"
	case Finished(a, in.Task):
		return driver.Succeeded, ""
	case in.Goes:
		return driver.Stopped, ""
	case Over(a) && (dead || stopped):
		return ending(a, in.Task, spec.Wrapped(in.Job), stopped)
	case Over(a):
		return driver.Pending, cmp.Or(Reason(in.Blocked), "waits for its next allocation")
	case stopped:
		return driver.Running, "is being stopped"
	case a.ClientStatus == api.AllocClientStatusRunning || t.Waits:
		return driver.Running, ""
	case a.ClientStatus == api.AllocClientStatusUnknown:
		return driver.Running, "unknown: its node is disconnected"
	}
	return driver.Pending, "placed on " + a.NodeName
}

// Reason says in one line why a job waits for room.
func Reason(blocked *api.Evaluation) string {
	if blocked == nil {
		return ""
	}
	return Failures(blocked.FailedTGAllocs)
}

// Failures says why groups could not be placed.
func Failures(failed map[string]*api.AllocationMetric) string {
	var parts []string
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		m := failed[group]
		if m == nil {
			continue
		}
		for _, d := range slices.Sorted(maps.Keys(m.DimensionExhausted)) {
			parts = append(parts, fmt.Sprintf("%s exhausted on %d of %d nodes", d, m.DimensionExhausted[d], m.NodesEvaluated))
		}
		for _, c := range slices.Sorted(maps.Keys(m.ConstraintFiltered)) {
			parts = append(parts, fmt.Sprintf("constraint %s filters %d nodes", c, m.ConstraintFiltered[c]))
		}
		for _, q := range m.QuotaExhausted {
			parts = append(parts, "quota exhausted: "+q)
		}
		if m.NodesEvaluated == 0 {
			parts = append(parts, "no node is eligible")
		}
	}
	if len(parts) == 0 {
		return "waits for room"
	}
	return "waits for room: " + strings.Join(parts, ", ")
}

// attempts are the known attempts, brought up to date, and those that began since.
func attempts(in Input) []Known {
	byID := map[attemptID]Known{}
	for _, k := range in.Known {
		byID[k.id()] = k
	}
	for _, a := range in.Allocs {
		t := TaskOf(a, in.Task)
		if slices.Contains(in.Ignored, a.ID) || t.Began.IsZero() && (a.ClientStatus != api.AllocClientStatusFailed || a.DesiredStatus == api.AllocDesiredStatusStop) {
			continue
		}
		for _, k := range runs(in, a, t, byID) {
			byID[k.id()] = k
		}
	}
	out := slices.SortedFunc(maps.Values(byID), func(a, b Known) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Restart, b.Restart))
	})
	for i := range out {
		at := &out[i].Attempt
		at.Number = i + 1
		switch {
		case out[i].Restart != 0: // its cause was known when it began
		case at.Cause == "" && (i == 0 || out[i].Version != out[i-1].Version):
			at.Cause = driver.CauseSubmitted // at first, or again
		case at.Cause == "":
			at.Cause = CauseRescheduled
		case i > 0 && out[i].Version == out[i-1].Version:
			at.Cause = CauseRescheduled
		}
	}
	return out
}

func ended(in Input, j driver.Job) time.Time {
	if n := len(j.Attempts); n > 0 && !j.Attempts[n-1].Ended.IsZero() {
		return j.Attempts[n-1].Ended
	}
	if a := Latest(in.Allocs, in.Ignored); a != nil {
		return time.Unix(0, a.ModifyTime).UTC()
	}
	return j.Submitted
}

// name is that of a job, and of a child that Nomad made that of its parent: the children
// of one do the same work, and Nomad gives each a name that comes once. A periodic child
// that was changed has lost its parent.
func name(own *api.Job) string {
	n := spec.Deref(own.Name)
	before, _, _ := strings.Cut(n, api.JobPeriodicLaunchSuffix)
	parent := cmp.Or(spec.Deref(own.ParentID), before)
	if n == spec.Deref(own.ID) && strings.HasPrefix(n, parent+"/") {
		return parent
	}
	return n
}

func namespace(job *api.Job) string {
	return cmp.Or(spec.Deref(job.Namespace), api.DefaultNamespace)
}
