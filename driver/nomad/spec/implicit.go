package spec

import (
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// unwritten takes off a group the constraints that servers add to it at each registration,
// for what its tasks use. What they would not add again is its owner's: for a job that
// uses no Consul, its version is a constraint as any other, and a higher version than the
// servers want is his wish.
func unwritten(job *api.Job, g *api.TaskGroup) {
	added := ofGroup(g)
	for _, other := range job.TaskGroups {
		for _, t := range other.Tasks {
			for _, s := range t.Secrets {
				if s != nil {
					added = append(added, constraint("${attr.plugins.secrets."+s.Provider+".version}", api.ConstraintAttributeIsSet, ""))
				}
			}
		}
	}
	g.Constraints = without(g.Constraints, added)
	for _, t := range g.Tasks {
		t.Constraints = without(t.Constraints, ofServices(t.Services))
	}
}

func constraint(left, operand, right string) api.Constraint {
	return api.Constraint{LTarget: left, Operand: operand, RTarget: right}
}

// without leaves out constraints, nil where none is left.
func without(cs []*api.Constraint, added []api.Constraint) []*api.Constraint {
	out := slices.DeleteFunc(slices.Clone(cs), func(c *api.Constraint) bool { return c != nil && slices.Contains(added, *c) })
	if len(out) == 0 {
		return nil
	}
	return out
}

const (
	nomadVersion = "${attr.nomad.version}"
	semver       = api.ConstraintSemver
)

// ofGroup are the constraints that servers add for what a group and its tasks use.
func ofGroup(g *api.TaskGroup) []api.Constraint {
	var out []api.Constraint
	var signals []string
	services, identities := slices.Clone(g.Services), false
	for _, t := range g.Tasks {
		services = append(services, t.Services...)
		identities = identities || len(t.Identities) > 0 || t.Vault != nil || t.Consul != nil
		signals = append(signals, signalsOf(t)...)
		if v := t.Vault; v != nil && (v.Cluster == "" || v.Cluster == "default") {
			out = append(out, constraint("${attr.vault.version}", semver, ">= 0.6.1"))
		} else if v != nil {
			out = append(out, constraint("${attr.vault."+v.Cluster+".version}", semver, ">= 1.11.0"))
		}
		if r := t.Resources; r != nil && r.NUMA != nil && r.NUMA.Affinity != "none" {
			out = append(out, constraint(nomadVersion, semver, ">= 1.6.3-dev"), constraint("${attr.kernel.name}", "=", "linux"))
		}
		if t.Schedule != nil {
			out = append(out, constraint(nomadVersion, semver, ">= 1.8.0-dev"))
		}
	}
	slices.Sort(signals)
	if signals = slices.Compact(signals); len(signals) > 0 {
		out = append(out, constraint("${attr.os.signals}", api.ConstraintSetContains, strings.Join(signals, ",")))
	}
	out = append(out, ofServices(services)...)
	if identities || len(services) > 0 || g.Consul != nil {
		out = append(out, constraint(nomadVersion, semver, ">= 1.7.0-a"))
	}
	for _, n := range g.Networks {
		if n != nil && n.Mode == "bridge" {
			for _, plugin := range []string{"bridge", "firewall", "host-local", "loopback", "portmap"} {
				out = append(out, constraint("${attr.plugins.cni.version."+plugin+"}", semver, ">= 0.4.0"))
			}
		}
	}
	return out
}

// ofServices are those that are added for services: to their group, and those of Consul to
// the task too of which they are.
func ofServices(services []*api.Service) []api.Constraint {
	var out []api.Constraint
	for _, s := range services {
		switch {
		case s == nil:
		case s.Provider == "nomad":
			out = append(out, constraint("${attr.nomad.service_discovery}", "=", "true"))
			if len(s.Checks) > 0 {
				out = append(out, constraint(nomadVersion, semver, ">= 1.4.0"))
			}
		case s.Provider == "" || s.Provider == api.ServiceProviderConsul:
			left := "${attr.consul.version}"
			if s.Cluster != "" && s.Cluster != "default" {
				left = "${attr.consul." + s.Cluster + ".version}"
			}
			out = append(out, constraint(left, semver, ">= 1.8.0"), constraint(left, semver, ">= 1.7.0")) // the second before 1.7
			if c := s.Connect; c != nil && c.SidecarService != nil && c.SidecarService.Proxy != nil && c.SidecarService.Proxy.TransparentProxy != nil {
				out = append(out, constraint("${attr.plugins.cni.version.consul-cni}", semver, ">= 1.4.2"), constraint(nomadVersion, semver, ">= 1.8.0-dev"))
			}
		}
	}
	return out
}

// signalsOf are the signals that a task's node has to know.
func signalsOf(t *api.Task) []string {
	var out []string
	if t.KillSignal != "" {
		out = append(out, t.KillSignal)
	}
	if v := t.Vault; v != nil && deref(v.ChangeMode) == "signal" {
		out = append(out, deref(v.ChangeSignal))
	}
	for _, p := range t.Templates {
		if p != nil && deref(p.ChangeMode) == "signal" {
			out = append(out, deref(p.ChangeSignal))
		}
	}
	return out
}
