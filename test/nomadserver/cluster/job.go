package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// Copy is a deep copy.
func Copy(j *api.Job) *api.Job {
	var out api.Job
	text, err := json.Marshal(j)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("a job that JSON cannot hold: %v", err))
	}
	return &out
}

// Canonical is a copy with the defaults of client and server, and the constraint that the
// signals of its tasks imply.
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
		var signals []string
		for _, t := range g.Tasks {
			if t.KillSignal != "" {
				signals = append(signals, t.KillSignal)
			}
			if t.Identity == nil {
				t.Identity = &api.WorkloadIdentity{Name: "default", Audience: []string{"nomadproject.io"}}
			}
		}
		slices.Sort(signals)
		want := api.Constraint{LTarget: "${attr.os.signals}", Operand: "set_contains", RTarget: strings.Join(slices.Compact(signals), ",")}
		if len(signals) > 0 && !slices.ContainsFunc(g.Constraints, func(c *api.Constraint) bool { return *c == want }) {
			g.Constraints = append(g.Constraints, &want)
		}
	}
	return j
}

// Changed reports whether a canonical job differs from the registered one. What the
// server sets does not count; the tag of a version does.
func Changed(old, job *api.Job) bool {
	spec := func(j *api.Job) string {
		c := *j
		c.Status, c.StatusDescription, c.Stable, c.Version = nil, nil, nil, nil
		c.CreateIndex, c.ModifyIndex, c.JobModifyIndex, c.SubmitTime = nil, nil, nil, nil
		return text(&c)
	}
	return old == nil || spec(old) != spec(job)
}

// destructive reports whether a group differs in what a running allocation cannot change.
func destructive(from, to *api.Job, group string) bool { return fixed(from, group) != fixed(to, group) }

// fixed is all of a group that an allocation keeps until it ends, as a text.
func fixed(j *api.Job, group string) string {
	g := j.LookupTaskGroup(group)
	parts := []any{g.EphemeralDisk, g.Networks, g.Volumes, len(g.Tasks)}
	for _, t := range g.Tasks {
		r := t.Resources
		meta := map[string]string{}
		for _, m := range []map[string]string{j.Meta, g.Meta, t.Meta} {
			maps.Copy(meta, m)
		}
		parts = append(parts, t.Name, t.Driver, t.User, t.Config, t.Env, meta, t.Artifacts, t.Vault, t.Secrets, t.Templates, t.VolumeMounts,
			t.Identity, t.Identities, t.LogConfig != nil && t.LogConfig.Disabled != nil && *t.LogConfig.Disabled,
			r.Networks, r.CPU, r.Cores, r.MemoryMB, r.MemoryMaxMB, r.Devices, r.NUMA, r.SecretsMB)
	}
	return text(parts)
}

// text writes a value so that equal texts mean equal values: nil and empty are alike, and
// so are numbers of different types.
func text(v any) string {
	var tree any
	out, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(out, &tree)
	}
	if err == nil {
		out, err = json.Marshal(prune(tree))
	}
	if err != nil {
		panic(fmt.Sprintf("a value that JSON cannot hold: %v", err))
	}
	return string(out)
}

// prune leaves out null, empty lists, empty maps and the indexes of a scaling policy.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k] = prune(e); v[k] == nil || k == "CreateIndex" || k == "ModifyIndex" {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}
