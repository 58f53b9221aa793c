package facts_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestRights(t *testing.T) {
	hold(t, nomadagent.Options{ACL: true}, []fact{
		{"without a token nothing is allowed, and an unknown token is like none", anonymous},
		{"the smallest policy lets a tuner watch, plan, register and keep its state", smallest},
		{"what the smallest policy leaves out is refused", leftOut},
		{"deregister-job and alloc-lifecycle let it stop what should not run", mayStop},
		{"submit-job stands for registering, planning and reverting", submitJob},
		{"read-fs reads the output of a task too", readsOutput},
		{"a registration over a version that a job does not have tells of the right to register, and makes nothing", tellsOfTheRight},
	})
}

const tunerPolicy = `
namespace "default" {
  capabilities = ["list-jobs", "read-job", "parse-job", "plan-job", "register-job", "tag-job-version",
                  "read-logs", "read-fs", "read-job-scaling", "list-scaling-policies", "read-scaling-policy"]
  variables {
    path "tuner/*" {
      capabilities = ["list", "read", "write", "destroy"]
    }
  }
}
node {
  policy = "read"
}
`

// as is the cluster with a token of a policy.
func (c cluster) as(t *testing.T, rules string) cluster {
	t.Helper()
	if _, err := c.ACLPolicies().Upsert(&api.ACLPolicy{Name: c.id, Rules: rules}, nil); err != nil {
		t.Fatal(err)
	}
	token, _, err := c.ACLTokens().Create(&api.ACLToken{Name: c.id, Type: "client", Policies: []string{c.id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.with(t, token.SecretID)
}

func (c cluster) with(t *testing.T, token string) cluster {
	t.Helper()
	client, err := api.NewClient(&api.Config{Address: c.addr, SecretID: token})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{Client: client, addr: c.addr, id: c.id, token: token}
}

func forbidden(t *testing.T, what string, err error) {
	t.Helper()
	var r api.UnexpectedResponseError
	if !errors.As(err, &r) || r.StatusCode() != http.StatusForbidden || !strings.Contains(r.Body(), "Permission denied") {
		t.Errorf("%s: %v, want 403 Permission denied", what, err)
	}
}

func allowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func anonymous(t *testing.T, c cluster) {
	none := c.with(t, "")
	_, _, err := none.Jobs().List(nil)
	forbidden(t, "listing jobs", err)
	_, _, err = none.Jobs().Register(c.job("true"), nil)
	forbidden(t, "registering", err)
	_, _, err = c.with(t, "14997b55-0f7c-4638-84d1-6aab7ebc82a8").Jobs().List(nil)
	forbidden(t, "with a token that is none", err)
}

func smallest(t *testing.T, c cluster) {
	tuner := c.as(t, tunerPolicy)
	j := c.job(lasting)
	_, _, err := tuner.Jobs().Plan(j, true, nil)
	allowed(t, "planning", err)
	_, _, err = tuner.Jobs().Register(j, nil)
	allowed(t, "registering", err)
	a := tuner.awaitAllocs(t, "running")[0]
	_, _, err = tuner.Jobs().List(nil)
	allowed(t, "listing", err)
	_, _, _, err = tuner.Jobs().Versions(c.id, true, nil)
	allowed(t, "versions", err)
	_, err = tuner.Jobs().TagVersion(c.id, 0, "orig", "", nil)
	allowed(t, "tagging", err)
	_, err = tuner.Jobs().ParseHCL(file, true)
	allowed(t, "parsing", err)
	_, _, err = tuner.Jobs().Validate(j, nil)
	allowed(t, "validating", err)
	_, _, err = tuner.Evaluations().List(nil)
	allowed(t, "evaluations", err)
	_, _, err = tuner.Nodes().List(nil)
	allowed(t, "nodes", err)
	_, _, err = tuner.Scaling().ListPolicies(nil)
	allowed(t, "scaling policies", err)
	alloc := tuner.alloc(t, a.ID)
	_, err = tuner.Allocations().Stats(alloc, nil)
	allowed(t, "statistics", err)
	_, _, err = tuner.AllocFS().List(alloc, "/", nil)
	allowed(t, "files", err)
	if code := tuner.get(t, "/v1/client/fs/logs/"+a.ID+"?task=t&type=stdout").StatusCode; code != http.StatusOK {
		t.Errorf("logs: %d", code)
	}
	if code := tuner.get(t, "/v1/event/stream?topic=Job&topic=Allocation&topic=Evaluation").StatusCode; code != http.StatusOK {
		t.Errorf("events: %d", code)
	}
	_, _, err = tuner.Variables().Create(&api.Variable{Path: "tuner/x", Items: api.VariableItems{"a": "b"}}, nil)
	allowed(t, "a variable", err)
}

func leftOut(t *testing.T, c cluster) {
	c.register(t, c.job(lasting))
	a := c.alloc(t, c.awaitAllocs(t, "running")[0].ID)
	j := c.job(lasting)
	j.Priority = new(60)
	c.register(t, j)
	tuner := c.as(t, tunerPolicy)
	_, _, err := tuner.Jobs().Revert(c.id, 0, nil, nil, "", "")
	forbidden(t, "reverting", err)
	_, _, err = tuner.Jobs().Deregister(c.id, false, nil)
	forbidden(t, "stopping", err)
	_, _, err = tuner.Jobs().ForceEvaluate(c.id, nil)
	forbidden(t, "evaluating", err)
	forbidden(t, "signalling", tuner.Allocations().Signal(a, nil, "t", "SIGHUP"))
	_, err = tuner.Allocations().Stop(a, nil)
	forbidden(t, "stopping an allocation", err)
	_, _, err = tuner.Jobs().Scale(c.id, "g", nil, "x", false, nil, nil)
	forbidden(t, "scaling", err)
	if code := tuner.get(t, "/v1/agent/self").StatusCode; code != http.StatusForbidden {
		t.Errorf("the agent itself: %d", code)
	}
	_, _, err = tuner.Operator().SchedulerGetConfiguration(nil)
	forbidden(t, "the scheduler's configuration", err)
	_, _, err = tuner.Variables().Create(&api.Variable{Path: "other/x", Items: api.VariableItems{"a": "b"}}, nil)
	forbidden(t, "another variable", err)
}

func mayStop(t *testing.T, c cluster) {
	c.register(t, c.job(lasting))
	a := c.alloc(t, c.awaitAllocs(t, "running")[0].ID)
	stopper := c.as(t, `namespace "default" { capabilities = ["read-job", "deregister-job", "alloc-lifecycle"] }`)
	_, err := stopper.Allocations().Stop(a, nil)
	allowed(t, "stopping an allocation", err)
	_, _, err = stopper.Jobs().Deregister(c.id, false, nil)
	allowed(t, "stopping the job", err)
}

func submitJob(t *testing.T, c cluster) {
	old := c.as(t, `namespace "default" { capabilities = ["submit-job", "read-job"] }`)
	j := c.job(lasting)
	_, _, err := old.Jobs().Plan(j, true, nil)
	allowed(t, "planning", err)
	_, _, err = old.Jobs().Register(j, nil)
	allowed(t, "registering", err)
	j.Priority = new(60)
	old.register(t, j)
	_, _, err = old.Jobs().Revert(c.id, 0, nil, nil, "", "")
	allowed(t, "reverting", err)
	_, _, err = old.Jobs().Deregister(c.id, false, nil)
	allowed(t, "stopping", err)
}

func readsOutput(t *testing.T, c cluster) {
	c.register(t, c.job(lasting))
	a := c.awaitAllocs(t, "running")[0]
	path := "/v1/client/fs/logs/" + a.ID + "?task=t&type=stdout"
	if code := c.as(t, `namespace "default" { capabilities = ["read-fs"] }`).get(t, path).StatusCode; code != http.StatusOK {
		t.Errorf("with read-fs: %d", code)
	}
	if code := c.as(t, `namespace "default" { capabilities = ["read-job"] }`).get(t, path).StatusCode; code < 400 { // the node says it as 500
		t.Errorf("without: %d", code)
	}
}

func tellsOfTheRight(t *testing.T, c cluster) {
	ask := func(rules string) error {
		_, _, err := c.as(t, rules).Jobs().EnforceRegister(c.job(lasting), math.MaxInt64, nil)
		return err
	}
	forbidden(t, "without register-job", ask(`namespace "default" { capabilities = ["read-job", "plan-job"] }`))
	for _, right := range []string{"register-job", "submit-job"} {
		refused(t, ask(`namespace "default" { capabilities = ["`+right+`"] }`), http.StatusInternalServerError, "Enforcing job modify index")
	}
	if _, _, err := c.Jobs().Info(c.id, nil); err == nil {
		t.Error("a job was made")
	}
}
