package jobdiff

import (
	"slices"

	"github.com/hashicorp/nomad/api"
)

// The remarks of the scheduler.
const (
	forcesCreate      = "forces create"
	forcesDestroy     = "forces destroy"
	forcesInPlace     = "forces in-place update"
	forcesDestructive = "forces create/destroy update"
)

// Annotate writes into a diff what it means: how many allocations of each group are
// touched and how, and for each task whether it is replaced.
func Annotate(d *api.JobDiff, desired map[string]*api.DesiredUpdates) {
	for _, g := range d.TaskGroups {
		g.Updates = updates(desired[g.Name])
		for _, f := range g.Fields {
			if f.Name == "Count" {
				annotateCount(f)
			}
		}
		for _, t := range g.Tasks {
			annotateTask(t, g)
		}
	}
}

func updates(u *api.DesiredUpdates) map[string]uint64 {
	if u == nil {
		return nil
	}
	out := map[string]uint64{}
	for name, n := range map[string]uint64{
		"ignore": u.Ignore, "create": u.Place, "destroy": u.Stop, "migrate": u.Migrate, "canary": u.Canary,
		"in-place update": u.InPlaceUpdate, "create/destroy update": u.DestructiveUpdate, "preemptions": u.Preemptions,
	} {
		if n > 0 {
			out[name] = n
		}
	}
	return out
}

func annotateCount(f *api.FieldDiff) {
	switch {
	case f.Type == added || len(f.New) > len(f.Old) || len(f.New) == len(f.Old) && f.New > f.Old:
		f.Annotations = append(f.Annotations, forcesCreate)
	default:
		f.Annotations = append(f.Annotations, forcesDestroy)
	}
}

func annotateTask(t *api.TaskDiff, g *api.TaskGroupDiff) {
	if t.Type == none {
		return
	}
	if g.Type == added || g.Type == deleted || t.Type == added || t.Type == deleted {
		remark := forcesCreate
		if g.Type == deleted || t.Type == deleted {
			remark = forcesDestroy
		}
		if g.Type == edited {
			remark = forcesDestructive
		}
		t.Annotations = append(t.Annotations, remark)
		return
	}
	mild := []string{"KillTimeout", "LogConfig", "Services", "Constraints", "Affinities", "RestartPolicy", "ScalingPolicies"}
	destroys := slices.ContainsFunc(t.Fields, func(f *api.FieldDiff) bool { return !slices.Contains(mild, f.Name) }) ||
		slices.ContainsFunc(t.Objects, func(o *api.ObjectDiff) bool { return !slices.Contains(mild, o.Name) })
	if destroys {
		t.Annotations = append(t.Annotations, forcesDestructive)
	} else {
		t.Annotations = append(t.Annotations, forcesInPlace)
	}
}
