package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/nomad/spec"
)

// several reports whether the work of a job is that of several: of groups, of allocations of
// one group, or of main tasks. Such a job is only observed.
func several(job *api.Job) bool {
	g, t := spec.Main(job)
	kind := spec.Deref(job.Type)
	return t == nil || g.Count != nil && *g.Count != 1 || kind == "system" || kind == "sysbatch"
}

// parts are the last allocations of a job that runs as several: one of each name, and on
// each node where all have one name.
func parts(in Input) []*api.AllocationListStub {
	kind := spec.Deref(in.Job.Type)
	last := map[string]*api.AllocationListStub{}
	for _, a := range in.Allocs {
		place := a.Name
		if kind == "system" || kind == "sysbatch" {
			place += " " + a.NodeID
		}
		if before := last[place]; before == nil || before.CreateIndex < a.CreateIndex {
			last[place] = a
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b *api.AllocationListStub) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

// whole fills in the state of a job that runs as several: it has ended when Nomad says that
// nothing of it is left to be done, and did its work where no part of it ended otherwise.
func whole(in Input, j *driver.Job) {
	stopped := spec.Deref(in.Job.Stop)
	j.State, j.ExitCode, j.Started = driver.Succeeded, 0, time.Time{}
	waits, runs := spec.Deref(in.Job.Status) != "dead" && !stopped, false
	var end time.Time
	for _, a := range parts(in) {
		runs = runs || a.ClientStatus == api.AllocClientStatusRunning
		waits = waits || !Over(a) && a.DesiredStatus == api.AllocDesiredStatusRun
		state, detail := driver.Cancelled, "stopped before it began"
		for _, name := range mains(in.Job, a) {
			t := TaskOf(a, name)
			if !t.Began.IsZero() && (j.Started.IsZero() || t.Began.Before(j.Started)) {
				j.Started = t.Began
			}
			if t.Finished.After(end) {
				end = t.Finished
			}
			if state, detail = ending(a, name, false, spec.Deref(in.Job.Stop)); state != driver.Succeeded {
				break
			}
		}
		if state != driver.Succeeded && (j.State == driver.Succeeded || j.State == driver.Cancelled) {
			j.State, j.Detail, j.ExitCode = state, a.Name+": "+detail, -1
			if state == driver.Failed {
				j.ExitCode = TaskOf(a, mains(in.Job, a)[0]).Exit
			}
		}
	}
	switch {
	case runs:
		j.State, j.Detail, j.ExitCode = driver.Running, "", -1
	case waits:
		j.State, j.Detail, j.ExitCode = driver.Pending, cmp.Or(Reason(in.Blocked), "waits for its next allocation"), -1
	case !end.IsZero():
		j.Ended = end.UTC()
	}
}

// Done reports whether an allocation did its work, in all of its main tasks.
func Done(job *api.Job, a *api.AllocationListStub) bool {
	return !slices.ContainsFunc(mains(job, a), func(task string) bool { return !Finished(a, task) })
}

// mains are the tasks whose end is that of an allocation.
func mains(job *api.Job, a *api.AllocationListStub) (names []string) {
	for _, g := range job.TaskGroups {
		if spec.Deref(g.Name) != a.TaskGroup {
			continue
		}
		for _, t := range nomadjson.Mains(g.Tasks) {
			names = append(names, t.Name)
		}
	}
	return names
}
