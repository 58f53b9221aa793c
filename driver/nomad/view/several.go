package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// several reports whether the work of a job is that of several: of groups, of allocations of
// one group, or of main tasks. Such a job is only observed.
func several(job *api.Job) bool {
	g, t := spec.Main(job)
	kind := deref(job.Type)
	return t == nil || g.Count != nil && *g.Count != 1 || kind == "system" || kind == "sysbatch"
}

// parts are the last allocations of a job that runs as several: of each place in it, in
// the order of their names. Places that it has no more do not count.
func parts(in Input) []*api.AllocationListStub {
	counts := map[string]int{}
	for _, g := range in.Job.TaskGroups {
		counts[deref(g.Name)] = 1
		if g.Count != nil {
			counts[deref(g.Name)] = *g.Count
		}
	}
	kind := deref(in.Job.Type)
	last := map[string]*api.AllocationListStub{}
	for _, a := range in.Allocs {
		if count, ok := counts[a.TaskGroup]; ok && index(a.Name) >= count || !ok && a.TaskGroup != "" || slices.Contains(in.Ignored, a.ID) {
			continue
		}
		place := a.Name
		if kind == "system" || kind == "sysbatch" {
			place += " " + a.NodeID // one on each node, all of one name
		}
		if before := last[place]; before == nil || before.CreateIndex < a.CreateIndex {
			last[place] = a
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b *api.AllocationListStub) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// index is that of an allocation in its group, which its name "job.group[index]" tells.
func index(name string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(name[strings.LastIndexByte(name, '[')+1:], "]"))
	if err != nil {
		return 0
	}
	return n
}

// whole is the state of a job that runs as several: it has ended when Nomad says that
// nothing of it is left to be done, and done its work where all of it was done.
func whole(in Input) (driver.State, string) {
	stopped := in.Job.Stop != nil && *in.Job.Stop
	all := parts(in)
	is := func(which func(*api.AllocationListStub) bool) bool { return slices.ContainsFunc(all, which) }
	switch {
	case is(func(a *api.AllocationListStub) bool {
		return !Over(a) && (begun(a) || a.ClientStatus == api.AllocClientStatusRunning)
	}):
		if stopped {
			return driver.Running, "is being stopped"
		}
		return driver.Running, ""
	case is(func(a *api.AllocationListStub) bool { return !Over(a) && a.DesiredStatus == api.AllocDesiredStatusRun }):
		return driver.Pending, "some of it is placed"
	case deref(in.Job.Status) != "dead" && !stopped:
		if r := Reason(in.Blocked); r != "" {
			return driver.Pending, r
		}
		return driver.Pending, "waits for its next allocation"
	case !is(begun):
		if stopped {
			return driver.Cancelled, "stopped before it began"
		}
		return driver.NotStarted, "none of it began"
	}
	cancelled := false
	for _, a := range all {
		switch state, detail := outcome(a, mains(in.Job, a.TaskGroup)); state {
		case driver.Succeeded:
		case driver.Cancelled:
			cancelled = true
		default:
			return state, a.Name + ": " + detail
		}
	}
	if cancelled {
		return driver.Cancelled, "some of it was stopped"
	}
	return driver.Succeeded, ""
}

// mains are the tasks of a group whose end is that of its allocation: its leader, or else
// those that are no helpers of others. The other tasks are ended then.
func mains(job *api.Job, group string) []string {
	var out []string
	for _, g := range job.TaskGroups {
		if deref(g.Name) != group {
			continue
		}
		for _, t := range g.Tasks {
			switch {
			case t.Leader:
				return []string{t.Name}
			case t.Lifecycle == nil || t.Lifecycle.Empty():
				out = append(out, t.Name)
			}
		}
	}
	return out
}

// outcome is how a part of such a job ended.
func outcome(a *api.AllocationListStub, mains []string) (driver.State, string) {
	killed := false // before it had done its work
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		t := TaskOf(a, name)
		switch {
		case a.ClientStatus == api.AllocClientStatusFailed && t.Failed && t.Began.IsZero():
			return driver.NotStarted, t.Why
		case a.ClientStatus == api.AllocClientStatusFailed && t.Failed && t.Memory:
			return driver.MemoryExceeded, fmt.Sprintf("task %s was ended by SIGKILL, which Nomad did not send", name)
		case a.ClientStatus == api.AllocClientStatusFailed && t.Failed:
			return driver.Failed, fmt.Sprintf("task %s ended with status %d", name, t.Exit)
		}
		killed = killed || slices.Contains(mains, name) && (t.Killed || t.Began.IsZero())
	}
	switch {
	case a.ClientDescription == timedOut:
		return driver.TimeExceeded, a.ClientDescription
	case a.ClientStatus == api.AllocClientStatusLost:
		return driver.Lost, "its node was lost: " + a.ClientDescription
	case a.ClientStatus != api.AllocClientStatusComplete:
		return driver.Failed, a.ClientDescription
	case a.DesiredStatus == api.AllocDesiredStatusStop && (killed || len(a.TaskStates) == 0):
		return driver.Cancelled, a.DesiredDescription
	}
	return driver.Succeeded, ""
}

// begun reports whether any task of an allocation began.
func begun(a *api.AllocationListStub) bool { return !first(a).IsZero() }

// first is when the first task of an allocation began; zero: none did.
func first(a *api.AllocationListStub) time.Time {
	var at time.Time
	for name := range a.TaskStates {
		if t := TaskOf(a, name).Began; !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// span fills in when a job of several began and ended, and with what, as far as its
// attempts, which are of one task, do not tell.
func span(in Input, j *driver.Job) {
	var end time.Time
	exit := 0
	for _, a := range parts(in) {
		if at := first(a); !at.IsZero() && (j.Started.IsZero() || at.Before(j.Started)) {
			j.Started = at
		}
		for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
			t := TaskOf(a, name)
			if t.Finished.After(end) {
				end = t.Finished
			}
			if exit == 0 && t.Failed {
				exit = t.Exit
			}
		}
	}
	j.ExitCode = -1
	if j.State.Ended() {
		if j.ExitCode = exit; exit == 0 && j.State != driver.Succeeded {
			j.ExitCode = -1
		}
		if !end.IsZero() {
			j.Ended = end.UTC()
		}
	}
}
