package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// A constraint is left out of what an owner wrote where the servers would add it again at
// the next registration, and only there.
func TestAnOwnersOwnConstraintsStay(t *testing.T) {
	t.Parallel()
	c := api.NewConstraint
	vault, consul := c("${attr.vault.version}", "semver", ">= 0.6.1"), c("${attr.consul.version}", "semver", ">= 1.8.0")
	signals := c("${attr.os.signals}", "set_contains", "SIGHUP,SIGUSR1")
	native, identities := c("${attr.nomad.service_discovery}", "=", "true"), c("${attr.nomad.version}", "semver", ">= 1.7.0-a")
	bridge, portmap := c("${attr.plugins.cni.version.bridge}", "semver", ">= 0.4.0"), c("${attr.plugins.cni.version.portmap}", "semver", ">= 0.4.0")
	higher := c("${attr.vault.version}", "semver", ">= 1.16")
	for name, tt := range map[string]struct {
		uses func(*api.TaskGroup, *api.Task)
		has  []*api.Constraint
		want []*api.Constraint
	}{
		"nothing is used: all are its owner's": {nil, []*api.Constraint{vault, consul, signals, native, bridge, identities}, []*api.Constraint{vault, consul, signals, native, bridge, identities}},
		"Vault is used":                        {func(_ *api.TaskGroup, t *api.Task) { t.Vault = &api.Vault{} }, []*api.Constraint{vault, consul, identities}, []*api.Constraint{consul}},
		"a higher version of Vault is his wish": {
			func(_ *api.TaskGroup, t *api.Task) { t.Vault = &api.Vault{} }, []*api.Constraint{higher}, []*api.Constraint{higher},
		},
		"a service is known to Consul": {func(g *api.TaskGroup, _ *api.Task) { g.Services = []*api.Service{{}} }, []*api.Constraint{vault, consul}, []*api.Constraint{vault}},
		"a service is known to Nomad": {
			func(_ *api.TaskGroup, t *api.Task) { t.Services = []*api.Service{{Provider: "nomad"}} }, []*api.Constraint{consul, native}, []*api.Constraint{consul},
		},
		"signals are sent": {func(_ *api.TaskGroup, t *api.Task) {
			t.KillSignal, t.Templates = "SIGUSR1", []*api.Template{{ChangeMode: new("signal"), ChangeSignal: new("SIGHUP")}}
		}, []*api.Constraint{signals, c("${attr.os.signals}", "set_contains", "SIGUSR2")}, []*api.Constraint{c("${attr.os.signals}", "set_contains", "SIGUSR2")}},
		"its network is a bridge": {func(g *api.TaskGroup, _ *api.Task) { g.Networks = []*api.NetworkResource{{Mode: "bridge"}} }, []*api.Constraint{bridge, portmap}, nil},
		"its task has identities": {func(_ *api.TaskGroup, t *api.Task) { t.Identities = []*api.WorkloadIdentity{{Name: "x"}} }, []*api.Constraint{identities, identities}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := batch()
			g := job.TaskGroups[0]
			if tt.uses != nil {
				tt.uses(g, g.Tasks[0])
			}
			g.Constraints = tt.has
			moved := apply(t, job, driver.Change{Cores: 2})
			if diff := cmp.Diff(tt.want, moved.TaskGroups[0].Constraints); diff != "" {
				t.Errorf("what is registered with a change (-want +got):\n%s", diff)
			}
			without := batch()
			if g := without.TaskGroups[0]; tt.uses != nil {
				tt.uses(g, g.Tasks[0])
			}
			if same := spec.Same(job, without); same != (len(tt.want) == 0) {
				t.Errorf("the same as without any: %v", same)
			}
		})
	}
}
