package schedule

import (
	"encoding/json"
	"maps"

	"github.com/hashicorp/nomad/api"
)

// Destroys names the first difference between two versions of a group that cannot be
// brought to a running allocation, "" where there is none.
func Destroys(from, to *api.Job, group string) string {
	a, b := from.LookupTaskGroup(group), to.LookupTaskGroup(group)
	switch {
	case a == nil || b == nil:
		return "group"
	case len(a.Tasks) != len(b.Tasks):
		return "number of tasks"
	case !same(a.EphemeralDisk, b.EphemeralDisk):
		return "ephemeral disk"
	case !same(a.Networks, b.Networks):
		return "network"
	case !same(a.Volumes, b.Volumes):
		return "volume request"
	}
	for _, at := range a.Tasks {
		bt := lookup(b, at.Name)
		if bt == nil {
			return "task deleted"
		}
		if !maps.Equal(Meta(from, a, at), Meta(to, b, bt)) {
			return "task meta"
		}
		if d := destroysTask(at, bt); d != "" {
			return d
		}
	}
	return ""
}

func destroysTask(a, b *api.Task) string {
	ra, rb := a.Resources, b.Resources
	switch {
	case a.Driver != b.Driver:
		return "task driver"
	case a.User != b.User:
		return "task user"
	case !same(a.Config, b.Config):
		return "task config"
	case !maps.Equal(a.Env, b.Env):
		return "task env"
	case !same(a.Artifacts, b.Artifacts):
		return "task artifacts"
	case !same(a.Vault, b.Vault):
		return "task vault"
	case !same(a.Secrets, b.Secrets):
		return "task secrets"
	case !same(a.Templates, b.Templates):
		return "task templates"
	case !same(a.VolumeMounts, b.VolumeMounts):
		return "task volume mount"
	case !same(ra.Networks, rb.Networks):
		return "network"
	case !same(ra.CPU, rb.CPU):
		return "task cpu"
	case !same(ra.Cores, rb.Cores):
		return "task cores"
	case !same(ra.MemoryMB, rb.MemoryMB):
		return "task memory"
	case !same(ra.MemoryMaxMB, rb.MemoryMaxMB):
		return "task memory max"
	case !same(ra.Devices, rb.Devices):
		return "task devices"
	case !same(ra.NUMA, rb.NUMA):
		return "numa"
	case !same(ra.SecretsMB, rb.SecretsMB):
		return "task secrets size"
	case !same(a.Identity, b.Identity), !same(a.Identities, b.Identities):
		return "task identity"
	case logsDisabled(a) != logsDisabled(b):
		return "task log disabled"
	}
	return ""
}

func logsDisabled(t *api.Task) bool {
	return t.LogConfig != nil && t.LogConfig.Disabled != nil && *t.LogConfig.Disabled
}

func lookup(g *api.TaskGroup, name string) *api.Task {
	for _, t := range g.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Meta is what a task sees: its own over its group's over its job's.
func Meta(j *api.Job, g *api.TaskGroup, t *api.Task) map[string]string {
	out := map[string]string{}
	maps.Copy(out, j.Meta)
	maps.Copy(out, g.Meta)
	maps.Copy(out, t.Meta)
	return out
}

// same compares what two values say: nil and empty are alike, and so are numbers that
// came by different ways.
func same(a, b any) bool { return said(a) == said(b) }

func said(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	switch s := string(text); s {
	case "[]", "{}", "null":
		return ""
	default:
		return s
	}
}
