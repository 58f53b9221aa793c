package cluster

import (
	"fmt"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// EnforceIndex refuses a registration over another version than the one that was read;
// index 0 means that there was no job.
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

// Transition refuses a change of what a job is.
func Transition(old, job *api.Job) error {
	if old == nil {
		return nil
	}
	if *old.Type != *job.Type {
		return fmt.Errorf("cannot update job from type %q to %q", *old.Type, *job.Type)
	}
	for _, kind := range []struct {
		name     string
		was, now bool
	}{{"periodic", old.IsPeriodic(), job.IsPeriodic()}, {"parameterized", old.IsParameterized(), job.IsParameterized()}} {
		switch {
		case kind.was && !kind.now:
			return fmt.Errorf("cannot update %s job to being non-%[1]s", kind.name)
		case !kind.was && kind.now:
			return fmt.Errorf("cannot update non-%s job to being %[1]s", kind.name)
		}
	}
	if old.Dispatched != job.Dispatched {
		return fmt.Errorf("field 'Dispatched' is read-only")
	}
	return nil
}

// Problems are what is wrong with a job, in Nomad's words.
type Problems []string

// Error joins them as Nomad does.
func (p Problems) Error() string {
	word := "errors"
	if len(p) == 1 {
		word = "error"
	}
	return fmt.Sprintf("%d %s occurred:\n\t* %s\n\n", len(p), word, strings.Join(p, "\n\t* "))
}

func (p *Problems) add(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// Validate refuses a canonical job that cannot work; the error is Problems.
func Validate(j *api.Job) error {
	var p Problems
	p.add(*j.ID == "", "Missing job ID")
	p.add(strings.Contains(*j.ID, " "), "Job ID contains a space")
	p.add(*j.Priority < 1 || *j.Priority > 100, "Job priority must be between [1, 100]")
	p.add(len(j.TaskGroups) == 0, "Missing job task groups")
	for _, g := range j.TaskGroups {
		if wrong := group(g); len(wrong) > 0 {
			p.add(true, "Task group %s validation failed: %s", *g.Name, wrong.Error())
		}
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

func group(g *api.TaskGroup) Problems {
	var p Problems
	p.add(*g.Count < 0, "Task group count can't be negative")
	p.add(len(g.Tasks) == 0, "Missing tasks for task group")
	if s := g.Scaling; s != nil {
		p.add(s.Max == nil, "Scaling policy max must be specified")
		p.add(s.Max != nil && *s.Max < *s.Min, "Scaling policy invalid: maximum count must not be less than minimum count")
	}
	for _, t := range g.Tasks {
		var of Problems
		r := t.Resources
		cores, memory, most := number(r.Cores), number(r.MemoryMB), number(r.MemoryMaxMB)
		of.add(t.Driver == "", "Missing task driver")
		of.add(cores > 0 && number(r.CPU) > 0, "Task can only ask for 'cpu' or 'cores' resource, not both.")
		of.add(cores < 0, "Task cannot ask for negative 'cores' resource.")
		of.add(memory < 10, "minimum MemoryMB value is 10; got %d", memory)
		of.add(most > 0 && most < memory, "MemoryMaxMB value (%d) should be larger than MemoryMB value (%d)", most, memory)
		if len(of) > 0 {
			p.add(true, "Task %s validation failed: %s", t.Name, of.Error())
		}
	}
	return p
}

func number(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

// Warnings are what Nomad says about a job that it accepts nevertheless; memoryMax
// means that memory oversubscription is on.
func Warnings(j *api.Job, memoryMax bool) string {
	var list Problems
	for _, g := range j.TaskGroups {
		for _, t := range g.Tasks {
			list.add(!memoryMax && number(t.Resources.MemoryMaxMB) > 0, "Memory oversubscription is not enabled; Task %q memory_max value will be ignored."+
				" Update the Scheduler Configuration to allow oversubscription.", *g.Name+"."+t.Name)
		}
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "1 warning:\n\n* " + list[0]
	}
	return fmt.Sprintf("%d warnings:\n\n* %s", len(list), strings.Join(list, "\n* "))
}
