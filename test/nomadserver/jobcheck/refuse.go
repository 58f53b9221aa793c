package jobcheck

import (
	"fmt"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// EnforceIndex refuses where the registered job is another than the one that was read;
// 0 means that none was there.
func EnforceIndex(old *api.Job, index uint64) error {
	const prefix = "Enforcing job modify index"
	switch {
	case old == nil && index != 0:
		return fmt.Errorf("%s %d: job does not exist", prefix, index)
	case old == nil:
		return nil
	case index == 0:
		return fmt.Errorf("%s 0: job already exists", prefix)
	case index != *old.JobModifyIndex:
		return fmt.Errorf("%s %d: job exists with conflicting job modify index: %d", prefix, index, *old.JobModifyIndex)
	}
	return nil
}

// Transition refuses changes of what a job is.
func Transition(old, job *api.Job) error {
	switch {
	case old == nil && job.Dispatched:
		return fmt.Errorf("job can't be submitted with 'Dispatched' set")
	case old == nil:
		return nil
	case *old.Type != *job.Type:
		return fmt.Errorf("cannot update job from type %q to %q", *old.Type, *job.Type)
	case old.IsPeriodic() && !job.IsPeriodic():
		return fmt.Errorf("cannot update periodic job to being non-periodic")
	case !old.IsPeriodic() && job.IsPeriodic():
		return fmt.Errorf("cannot update non-periodic job to being periodic")
	case old.IsParameterized() && !job.IsParameterized():
		return fmt.Errorf("cannot update parameterized job to being non-parameterized")
	case !old.IsParameterized() && job.IsParameterized():
		return fmt.Errorf("cannot update non-parameterized job to being parameterized")
	case old.Dispatched != job.Dispatched:
		return fmt.Errorf("field 'Dispatched' is read-only")
	}
	return nil
}

// Problems are the errors of a job, as Nomad words them.
type Problems []string

// Error joins them as Nomad does.
func (p Problems) Error() string {
	word := "errors"
	if len(p) == 1 {
		word = "error"
	}
	return fmt.Sprintf("%d %s occurred:\n\t* %s\n\n", len(p), word, strings.Join(p, "\n\t* "))
}

// Validate refuses a canonical job that cannot work; the error is Problems.
func Validate(j *api.Job) error {
	var p Problems
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	if *j.ID == "" {
		add("Missing job ID")
	} else if strings.ContainsAny(*j.ID, " \x00") {
		add("Job ID contains a space")
	}
	if *j.Name == "" {
		add("Missing job name")
	}
	switch *j.Type {
	case api.JobTypeService, api.JobTypeBatch, api.JobTypeSystem, api.JobTypeSysbatch:
	default:
		add("Invalid job type: %q", *j.Type)
	}
	if *j.Priority < 1 || *j.Priority > 100 {
		add("Job priority must be between [1, 100]")
	}
	if len(j.TaskGroups) == 0 {
		add("Missing job task groups")
	}
	for i, g := range j.TaskGroups {
		if g.Name == nil || *g.Name == "" {
			add("Job task group %d missing name", i+1)
			continue
		}
		if problems := group(g); len(problems) > 0 {
			add("Task group %s validation failed: %s", *g.Name, problems.Error())
		}
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

func group(g *api.TaskGroup) Problems {
	var p Problems
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	if *g.Count < 0 {
		add("Task group count can't be negative")
	}
	if len(g.Tasks) == 0 {
		add("Missing tasks for task group")
	}
	if s := g.Scaling; s != nil {
		if s.Max == nil {
			add("Scaling policy max must be specified")
		} else if *s.Max < *s.Min {
			add("Scaling policy invalid: maximum count must not be less than minimum count")
		}
	}
	names := map[string]struct{}{}
	for i, t := range g.Tasks {
		if t.Name == "" {
			add("Task %d missing name", i+1)
			continue
		}
		if _, ok := names[t.Name]; ok {
			add("Task %d redefines '%s' from task", i+1, t.Name)
		}
		names[t.Name] = struct{}{}
		if problems := task(t, g); len(problems) > 0 {
			add("Task %s validation failed: %s", t.Name, problems.Error())
		}
	}
	return p
}

func task(t *api.Task, g *api.TaskGroup) Problems {
	var p Problems
	add := func(format string, args ...any) { p = append(p, fmt.Sprintf(format, args...)) }
	if t.Driver == "" {
		add("Missing task driver")
	}
	r := t.Resources
	cores, mhz := number(r.Cores), number(r.CPU)
	switch {
	case cores > 0 && mhz > 0:
		add("Task can only ask for 'cpu' or 'cores' resource, not both.")
	case cores < 0:
		add("Task cannot ask for negative 'cores' resource.")
	}
	if l := t.LogConfig; l != nil && g.EphemeralDisk != nil {
		logs, disk := number(l.MaxFiles)*number(l.MaxFileSizeMB), number(g.EphemeralDisk.SizeMB)
		if disk <= logs {
			add("%s", strings.TrimSpace(Problems{fmt.Sprintf("log storage (%d MB) must be less than requested disk capacity (%d MB)", logs, disk)}.Error()))
		}
	}
	if m := number(r.MemoryMB); m < 10 {
		add("minimum MemoryMB value is 10; got %d", m)
	}
	if most := number(r.MemoryMaxMB); most != 0 && most != -1 && most < number(r.MemoryMB) {
		add("MemoryMaxMB value (%d) should be larger than MemoryMB value (%d)", most, number(r.MemoryMB))
	}
	return p
}

func number(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

// Warnings are what Nomad says of a job that it takes nevertheless.
func Warnings(j *api.Job, memoryMax bool) string {
	if memoryMax {
		return ""
	}
	var list []string
	for _, g := range j.TaskGroups {
		for _, t := range g.Tasks {
			if number(t.Resources.MemoryMaxMB) > 0 {
				list = append(list, fmt.Sprintf("Memory oversubscription is not enabled; Task %q memory_max value will be ignored."+
					" Update the Scheduler Configuration to allow oversubscription.", *g.Name+"."+t.Name))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	word := "warnings"
	if len(list) == 1 {
		word = "warning"
	}
	return fmt.Sprintf("%d %s:\n\n* %s", len(list), word, strings.Join(list, "\n* "))
}
