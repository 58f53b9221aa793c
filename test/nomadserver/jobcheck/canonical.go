package jobcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// Copy is a deep copy.
func Copy(j *api.Job) *api.Job {
	text, err := json.Marshal(j)
	if err != nil {
		panic(fmt.Sprintf("a job that JSON cannot say: %v", err))
	}
	var out api.Job
	if err := json.Unmarshal(text, &out); err != nil {
		panic(fmt.Sprintf("a job that JSON cannot read back: %v", err))
	}
	return &out
}

// Canonical is a copy with the defaults of client and server filled in, and the
// constraints that its signals imply.
func Canonical(in *api.Job) *api.Job {
	j := Copy(in)
	j.Canonicalize()
	if len(j.Datacenters) == 0 {
		j.Datacenters = []string{"*"}
	}
	if *j.NodePool == "" {
		j.NodePool = new("default")
	}
	if j.Update == nil {
		j.Update = &api.UpdateStrategy{}
	}
	for _, g := range j.TaskGroups {
		if g.Scaling != nil {
			g.Scaling.Type = "horizontal"
		}
		implied(g)
		for _, t := range g.Tasks {
			if t.Identity == nil {
				t.Identity = &api.WorkloadIdentity{Name: "default", Audience: []string{"nomadproject.io"}}
			}
		}
	}
	return j
}

// implied adds the constraint that the node knows the signals of the tasks.
func implied(g *api.TaskGroup) {
	var signals []string
	for _, t := range g.Tasks {
		if t.KillSignal != "" {
			signals = append(signals, t.KillSignal)
		}
		for _, tmpl := range t.Templates {
			if tmpl.ChangeSignal != nil && *tmpl.ChangeSignal != "" {
				signals = append(signals, *tmpl.ChangeSignal)
			}
		}
	}
	if len(signals) == 0 {
		return
	}
	slices.Sort(signals)
	signals = slices.Compact(signals)
	want := api.Constraint{LTarget: "${attr.os.signals}", Operand: "set_contains", RTarget: strings.Join(signals, ",")}
	for _, c := range g.Constraints {
		if *c == want {
			return
		}
	}
	g.Constraints = append(g.Constraints, &want)
}
