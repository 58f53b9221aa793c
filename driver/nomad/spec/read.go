package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadjson"
)

const mebibyte = 1 << 20

// Main returns the group and the task that do a job's work: those of a job with one group,
// and in it its leader, or one task besides prestart hooks and sidecars. Nil: there is no such.
func Main(job *api.Job) (*api.TaskGroup, *api.Task) {
	if len(job.TaskGroups) != 1 {
		return nil, nil
	}
	g := job.TaskGroups[0]
	if mains := nomadjson.Mains(g.Tasks); len(mains) == 1 {
		return g, mains[0]
	}
	return g, nil
}

// ObservedOnly says why a job is seen but not changed; empty where it can be.
func ObservedOnly(job *api.Job) string {
	g, t := Main(job)
	switch {
	case nomadjson.Misread(Deref(job.ID)) != "":
		return nomadjson.Misread(Deref(job.ID)) + ": give it another id"
	case job.Dispatched || Deref(job.ParentID) != "" && job.ParameterizedJob != nil:
		return "a dispatched job cannot be changed, Nomad refuses it; tune its parameterized parent, which later dispatches follow"
	case job.ParameterizedJob != nil:
		return "a parameterized job runs only as dispatched jobs, which Nomad does not allow to change"
	case job.Periodic != nil:
		return "a periodic job runs only as its children, each of which is its own job"
	case Deref(job.Type) != "batch":
		return fmt.Sprintf("jobs of type %q are observed, not changed: they have no end to bring forward", Deref(job.Type))
	case job.IsMultiregion():
		return "jobs of several regions are observed, not changed"
	case len(job.TaskGroups) != 1:
		return fmt.Sprintf("jobs of %d groups are observed, not changed: a change of one would run finished work of another again", len(job.TaskGroups))
	case g.Count != nil && *g.Count != 1:
		return fmt.Sprintf("jobs of count %d are observed, not changed: Nomad would run their finished indexes again", *g.Count)
	case t == nil:
		return "groups of several main tasks without a leader are observed, not changed"
	case !slices.Contains(nomadjson.Drivers(), t.Driver):
		return fmt.Sprintf("tasks of driver %q are observed, not changed: want raw_exec, exec or docker", t.Driver)
	case t.Config["cgroup_v1_override"] != nil || t.Config["cgroup_v2_override"] != nil:
		return "a task that chooses its cgroups (cgroup_v1_override, cgroup_v2_override) is observed, not changed: Nomad's cores and memory do not bind it, and it cannot be measured"
	}
	return ""
}

// Stanza reports whether a job carries a tuning stanza, readable or not.
func Stanza(job *api.Job) bool {
	has := func(meta map[string]string) bool { return meta["tuning"] != "" }
	return has(job.Meta) || slices.ContainsFunc(job.TaskGroups, func(g *api.TaskGroup) bool {
		return has(g.Meta) || g.Scaling != nil && g.Scaling.Policy["tuning"] != nil ||
			slices.ContainsFunc(g.Tasks, func(t *api.Task) bool { return has(t.Meta) })
	})
}

// Carry puts a stanza into the scaling policy of a group, the one place of a job that takes
// any block and whose change restarts nothing. No name: it is of the only group.
func Carry(job *api.Job, group string, stanza *jobfile.Block) error {
	for _, g := range job.TaskGroups {
		if Deref(g.Name) == group || group == "" && len(job.TaskGroups) == 1 {
			block(g, "tuning", written(stanza))
			return nil
		}
	}
	return fmt.Errorf("a tuning block of the job, which has %d groups: want it in the group that it is meant for: %w", len(job.TaskGroups), driver.ErrInvalid)
}

// written is a block of a stanza as Nomad keeps it: each inner block in a list.
func written(b *jobfile.Block) map[string]any {
	out := map[string]any{}
	for _, a := range b.Attrs {
		out[a.Name] = plainly(a.Value)
	}
	for _, inner := range b.Blocks {
		body := written(inner)
		if inner.Label != "" {
			body = map[string]any{inner.Label: []any{body}}
		}
		list, _ := out[inner.Type].([]any)
		out[inner.Type] = append(list, body)
	}
	return out
}

func plainly(v jobfile.Value) any {
	switch v.Kind {
	case jobfile.String, jobfile.Bare:
		return v.Text
	case jobfile.Number:
		return v.Number
	case jobfile.Bool:
		return v.Bool
	case jobfile.List:
		out := []any{}
		for _, i := range v.List {
			out = append(out, plainly(i.Value))
		}
		return out
	case jobfile.Other:
	}
	return nil
}

// Resources are what a job asks for.
func Resources(job *api.Job) driver.Resources {
	r := driver.Resources{Cores: 1}
	g, t := Main(job)
	if g != nil && g.MaxRunDuration != nil {
		r.TimeLimit = *g.MaxRunDuration
	}
	if t == nil {
		return r
	}
	if res := t.Resources; res != nil {
		r.Cores, r.MemoryBytes = nomadjson.Size(res)
	}
	r.Env = maps.Clone(t.Env)
	delete(r.Env, Variable)
	if argv := nomadjson.Argv(t); argv != nil {
		r.Args = argv
		r.Command = jobfile.CommandIdentity(argv)
	}
	return r
}

// Deref is the value of a pointer, or none.
func Deref[T any](p *T) T { return nomadjson.Deref(p) }
