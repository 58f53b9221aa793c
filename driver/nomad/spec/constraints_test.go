package spec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Servers add constraints for what tasks use. A change keeps all, each once, and whether they
// are there makes no difference when jobs are compared; what an owner asks of a node does.
func TestConstraintsThatServersAddDoNotCount(t *testing.T) {
	t.Parallel()
	c := api.NewConstraint
	identities := c("${attr.nomad.version}", "semver", ">= 1.7.0-a")
	added := []*api.Constraint{
		c("${attr.vault.version}", "semver", ">= 0.6.1"), c("${attr.consul.version}", "semver", ">= 1.8.0"), identities,
		c("${attr.os.signals}", "set_contains", "SIGHUP,SIGUSR1"), c("${attr.plugins.cni.version.bridge}", "semver", ">= 0.4.0"),
	}
	own := c("${attr.kernel.name}", "=", "linux")
	job := batch()
	job.TaskGroups[0].Constraints = append([]*api.Constraint{own, identities}, added...)
	moved := apply(t, job, driver.Change{Cores: 2})
	want := []*api.Constraint{own, identities, added[0], added[1], added[3], added[4]}
	if diff := cmp.Diff(want, moved.TaskGroups[0].Constraints); diff != "" {
		t.Errorf("what is registered with a change (-want +got):\n%s", diff)
	}
	without := batch()
	without.TaskGroups[0].Constraints = []*api.Constraint{own}
	if !spec.Same(job, without) {
		t.Error("another fingerprint with what servers add")
	}
	if spec.Same(without, batch()) {
		t.Error("the same fingerprint without a constraint of the owner's")
	}
}
