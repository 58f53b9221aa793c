package spec

import (
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// unwritten takes off a group the constraints that servers add to it at each registration,
// for what its tasks use. What they would not add again is its owner's: for a job that
// uses no Consul, its version is a constraint as any other, and a higher version than the
// servers want is his wish. What only Nomad Enterprise has is left out.
func unwritten(job *api.Job, g *api.TaskGroup) {
	var added []api.Constraint
	add := func(left, operand, right string) {
		added = append(added, api.Constraint{LTarget: "${attr." + left + "}", Operand: operand, RTarget: right})
	}
	version := func(of, least string) { add(of, api.ConstraintSemver, ">= "+least) }
	for _, other := range job.TaskGroups {
		for _, t := range other.Tasks {
			for _, s := range t.Secrets {
				if s != nil {
					add("plugins.secrets."+s.Provider+".version", api.ConstraintAttributeIsSet, "")
				}
			}
		}
	}
	services, identities := slices.Clone(g.Services), g.Consul != nil
	var signals []string
	for _, t := range g.Tasks {
		services = append(services, t.Services...)
		identities = identities || len(t.Identities) > 0 || t.Vault != nil || t.Consul != nil
		signals = append(signals, signalsOf(t)...)
		if t.Vault != nil {
			version("vault.version", "0.6.1")
		}
	}
	slices.Sort(signals)
	if signals = slices.Compact(signals); len(signals) > 0 {
		add("os.signals", api.ConstraintSetContains, strings.Join(signals, ","))
	}
	for _, s := range services {
		switch {
		case s == nil:
		case s.Provider == "nomad":
			add("nomad.service_discovery", "=", "true")
			version("nomad.version", "1.4.0") // for checks
		case s.Provider == "" || s.Provider == api.ServiceProviderConsul:
			version("consul.version", "1.8.0")
			version("consul.version", "1.7.0") // before Nomad 1.7
			if c := s.Connect; c != nil && c.SidecarService != nil && c.SidecarService.Proxy != nil && c.SidecarService.Proxy.TransparentProxy != nil {
				version("plugins.cni.version.consul-cni", "1.4.2")
				version("nomad.version", "1.8.0-dev")
			}
		}
	}
	if identities || len(services) > 0 {
		version("nomad.version", "1.7.0-a")
	}
	for _, n := range g.Networks {
		if n != nil && n.Mode == "bridge" {
			for _, plugin := range []string{"bridge", "firewall", "host-local", "loopback", "portmap"} {
				version("plugins.cni.version."+plugin, "0.4.0")
			}
		}
	}
	g.Constraints = without(g.Constraints, added)
	for _, t := range g.Tasks {
		if len(t.Services) > 0 { // those of Consul are added to the task too
			t.Constraints = without(t.Constraints, added)
		}
	}
}

// without leaves out constraints, nil where none is left.
func without(cs []*api.Constraint, added []api.Constraint) []*api.Constraint {
	out := slices.DeleteFunc(slices.Clone(cs), func(c *api.Constraint) bool { return c != nil && slices.Contains(added, *c) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// signalsOf are the signals that a task's node has to know.
func signalsOf(t *api.Task) []string {
	var out []string
	if t.KillSignal != "" {
		out = append(out, t.KillSignal)
	}
	if v := t.Vault; v != nil && Deref(v.ChangeMode) == "signal" {
		out = append(out, Deref(v.ChangeSignal))
	}
	for _, p := range t.Templates {
		if p != nil && Deref(p.ChangeMode) == "signal" {
			out = append(out, Deref(p.ChangeSignal))
		}
	}
	return out
}
