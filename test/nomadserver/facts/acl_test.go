package facts_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestRights(t *testing.T) {
	hold(t, nomadagent.Options{ACL: true}, []fact{
		{"without a token nothing is allowed, and an unknown token is like none", anonymous, both},
		{"a policy allows what it says", allows(tunerPolicies()), both},
		{"a policy has short words, patterns, JSON and denials", allows(otherPolicies()), realAgent},
		{"a policy that cannot be read is refused", badPolicies, both},
		{"policies and tokens are refused in these words", aclWords, realAgent},
		{"the smallest policy lets a tuner look at what runs", smallest, both},
		{"deregister-job and alloc-lifecycle let it stop what should not run", mayStop, both},
		{"read-fs reads the output of a task too", readsOutput, both},
		{"a registration over a version that a job does not have shows the right to register, and makes nothing", showsTheRight, both},
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
	name := fmt.Sprintf("%s-%d", c.id, time.Now().UnixNano())
	if _, err := c.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: rules}, nil); err != nil {
		t.Fatal(err)
	}
	token := must[*api.ACLToken](t)(c.ACLTokens().Create(&api.ACLToken{Name: name, Type: "client", Policies: []string{name}}, nil))
	return c.with(t, token.SecretID)
}

func (c cluster) with(t *testing.T, token string) cluster {
	t.Helper()
	client, err := api.NewClient(&api.Config{Address: c.addr, SecretID: token})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{Client: client, addr: c.addr, id: c.id, token: token, real: c.real}
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

// smallest is what the table of requests does not show: the rights that are about an
// allocation that runs, and on the real agent its statistics and the stream of events.
func smallest(t *testing.T, c cluster) {
	tuner := c.as(t, tunerPolicy)
	_, _, err := tuner.Jobs().Register(c.job(lasting), nil)
	allowed(t, "registering", err)
	a := tuner.awaitAllocs(t, "running")[0]
	alloc := tuner.alloc(t, a.ID)
	_, _, _, err = tuner.Jobs().Versions(c.id, false, nil)
	allowed(t, "versions", err)
	_, _, err = tuner.Jobs().Validate(c.job(lasting), nil)
	allowed(t, "validating", err)
	_, _, err = tuner.AllocFS().List(alloc, "/", nil)
	allowed(t, "files", err)
	if code := tuner.get(t, "/v1/client/fs/logs/"+a.ID+"?task=t&type=stdout&plain=true").StatusCode; code != http.StatusOK {
		t.Errorf("logs: %d", code)
	}
	forbidden(t, "signalling", tuner.Allocations().Signal(alloc, nil, "t", "SIGHUP"))
	_, err = tuner.Allocations().Stop(alloc, nil)
	forbidden(t, "stopping an allocation", err)
	if !c.real {
		return
	}
	_, err = tuner.Allocations().Stats(alloc, nil)
	allowed(t, "statistics", err)
	if code := tuner.get(t, "/v1/event/stream?topic=Job&topic=Allocation&topic=Evaluation").StatusCode; code != http.StatusOK {
		t.Errorf("events: %d", code)
	}
}

// request is answered with 403 where the token lacks the right.
type request struct {
	right, method, path, body string
	by                        agents
}

func requests() []request {
	const job = `{"Job":{"ID":"j","Name":"j","Type":"batch","Datacenters":["*"],"TaskGroups":[{"Name":"g","Count":0,"Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":"/bin/true"}}]}]}}`
	return []request{
		{"list-jobs", "GET", "/v1/jobs", "", both},
		{"read-job", "GET", "/v1/job/none", "", both},
		{"parse-job", "PUT", "/v1/jobs/parse", `{"JobHCL":"x"}`, both},
		{"register-job", "PUT", "/v1/jobs", job, both},
		{"plan-job", "PUT", "/v1/job/j/plan", job, both},
		{"revert-job", "PUT", "/v1/job/none/revert", `{"JobID":"none","JobVersion":0}`, both},
		{"deregister-job", "DELETE", "/v1/job/none", "", both},
		{"tag-job-version", "PUT", "/v1/job/none/versions/x/tag", `{"Version":0}`, both},
		{"dispatch-job", "PUT", "/v1/job/none/dispatch", `{}`, both},
		{"node:read", "GET", "/v1/nodes", "", both},
		{"list tuner/a", "GET", "/v1/vars?prefix=tuner/a", "", both},
		{"read tuner/a", "GET", "/v1/var/tuner/a", "", both},
		{"write tuner/a", "PUT", "/v1/var/tuner/a", `{"Items":{"k":"v"}}`, both},
		{"destroy tuner/a", "DELETE", "/v1/var/tuner/none", "", both},
		{"read other", "GET", "/v1/var/other", "", both},
		{"read nomad/jobs/j", "GET", "/v1/var/nomad/jobs/j", "", both},
		{"evaluate-job", "PUT", "/v1/job/none/evaluate", `{"JobID":"none"}`, realAgent},
		{"scale-job", "PUT", "/v1/job/none/scale", `{"Target":{"Group":"g"},"Message":"m"}`, realAgent},
		{"read-job-scaling", "GET", "/v1/job/none/scale", "", realAgent},
		{"list-scaling-policies", "GET", "/v1/scaling/policies", "", realAgent},
		{"agent:read", "GET", "/v1/agent/self", "", realAgent},
		{"operator:read", "GET", "/v1/operator/scheduler/configuration", "", realAgent},
		{"operator:write", "PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"binpack"}`, realAgent},
	}
}

const submitJob = "deregister-job, evaluate-job, parse-job, plan-job, register-job, revert-job, tag-job-version"

// A case is a name, a policy, and the requests that it allows.
func tunerPolicies() [][3]string {
	return [][3]string{
		{"the smallest that a tuner needs", tunerPolicy, "destroy tuner/a, list tuner/a, list-jobs, list-scaling-policies, node:read, parse-job, plan-job, read tuner/a, read-job, read-job-scaling, register-job, tag-job-version, write tuner/a"},
		{"the same before 2.0", `namespace "default" { capabilities = ["submit-job", "read-job", "list-jobs", "parse-job"] }`, submitJob + ", list-jobs, list-scaling-policies, read-job, read-job-scaling, scale-job"},
		{"write brings list along", "namespace \"default\" {\n  variables {\n    path \"*\" {\n      capabilities = [\"write\"]\n    }\n  }\n}", "list tuner/a, write tuner/a"},
	}
}

func otherPolicies() [][3]string {
	return [][3]string{
		{"a word for reading", `namespace "default" { policy = "read" }`, "list-jobs, list-scaling-policies, parse-job, read-job, read-job-scaling"},
		{"a word for writing", `namespace "*" { policy = "write" }`, submitJob + ", dispatch-job, list-jobs, list-scaling-policies, read-job, read-job-scaling, scale-job"},
		{"one that denies", "namespace \"*\" { policy = \"write\" }\nnamespace \"default\" { policy = \"deny\" }", ""},
		{"the closest pattern", "namespace \"d*\" { policy = \"read\" }\nnamespace \"defa*\" { capabilities = [\"list-jobs\"] }", "list-jobs"},
		{"JSON", `{"namespace":{"default":{"capabilities":["list-jobs"],"variables":{"path":{"tuner/a":{"capabilities":["read"]}}}}},"agent":{"policy":"read"}}`, "agent:read, list tuner/a, list-jobs, read tuner/a"},
		{"the operator", "operator { policy = \"write\" }\nagent { policy = \"write\" }\nnode { policy = \"deny\" }", "agent:read, operator:read, operator:write"},
	}
}

func allows(policies [][3]string) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) {
		if _, _, err := c.Variables().Update(&api.Variable{Path: "tuner/a", Items: api.VariableItems{"k": "v"}}, nil); err != nil {
			t.Fatal(err)
		}
		for _, p := range policies {
			as := c.as(t, p[1])
			var want, got []string
			for _, r := range requests() {
				if r.by == realAgent && !c.real {
					continue
				}
				if slices.Contains(strings.Split(p[2], ", "), r.right) {
					want = append(want, r.right)
				}
				status, text := as.do(t, r.method, r.path, r.body)
				// A list of variables is only shorter.
				if status != http.StatusForbidden && (!strings.HasPrefix(r.right, "list tuner") || strings.TrimSpace(text) != "[]") {
					got = append(got, r.right)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", p[0], diff)
			}
		}
	}
}

func badPolicies(t *testing.T, c cluster) {
	for _, rules := range []string{`node {`, "node { policy = \"read\" }\ntuning { policy = \"read\" }"} {
		_, err := c.ACLPolicies().Upsert(&api.ACLPolicy{Name: "bad", Rules: rules}, nil)
		refused(t, err, 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: ")
	}
	_, _, err := c.ACLTokens().Bootstrap(nil)
	refused(t, err, 400, "ACL bootstrap already done (reset index: ")
	_, _, err = c.ACLTokens().Create(&api.ACLToken{Type: "client"}, nil)
	refused(t, err, 400, "token 0 invalid: 1 error occurred:\n\t* client token missing policies or roles")
}

func aclWords(t *testing.T, c cluster) {
	reader := c.as(t, `namespace "default" { policy = "read" }`)
	policy := func(rules string) string { return `{"Name":"bad","Rules":` + quoted(rules) + `}` }
	for _, r := range []struct {
		by                 cluster
		method, path, body string
		status             int
		text               string
	}{
		{c, "GET", "/v1/acl/token/self", "", 200, `{"`},
		{reader, "GET", "/v1/acl/tokens", "", 403, "Permission denied"},
		{reader, "GET", "/v1/acl/policies", "", 200, `[{"`},
		{reader, "GET", "/v1/acl/policy/other", "", 403, "Permission denied"},
		{reader, "PUT", "/v1/acl/policy/bad", policy(`node { policy = "read" }`), 403, "Permission denied"},
		{c, "GET", "/v1/acl/policy/other", "", 404, "ACL policy not found"},
		{c, "PUT", "/v1/acl/policy/other", policy(`node { policy = "read" }`), 400, "ACL policy name does not match request path"},
		{c, "PUT", "/v1/acl/policy/bad", policy(`namespace "default" { capabilities = ["fly"] }`), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Invalid namespace capability 'fly'"},
		{c, "PUT", "/v1/acl/policy/bad", policy(`namespace "default" { variables {} }`), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Invalid variable policy: no variable paths in"},
		{c, "PUT", "/v1/acl/token", `{"Type":"king"}`, 400, "token 0 invalid: 1 error occurred:\n\t* token type must be client or management\n\n"},
		{c, "GET", "/v1/acl/token/00000000-0000-4000-8000-000000000000", "", 404, "ACL token not found"},
	} {
		status, text := r.by.do(t, r.method, r.path, r.body)
		if status != r.status || !strings.HasPrefix(text, r.text) {
			t.Errorf("%s %s %s: %d %q, want %d %q", r.method, r.path, r.body, status, text, r.status, r.text)
		}
	}
}

func mayStop(t *testing.T, c cluster) {
	a := c.alloc(t, c.runs(t, c.job(lasting)).ID)
	stopper := c.as(t, `namespace "default" { capabilities = ["read-job", "deregister-job", "alloc-lifecycle"] }`)
	_, err := stopper.Allocations().Stop(a, nil)
	allowed(t, "stopping an allocation", err)
	_, _, err = stopper.Jobs().Deregister(c.id, false, nil)
	allowed(t, "stopping the job", err)
}

func readsOutput(t *testing.T, c cluster) {
	a := c.runs(t, c.job(lasting))
	path := "/v1/client/fs/logs/" + a.ID + "?task=t&type=stdout&plain=true"
	if code := c.as(t, `namespace "default" { capabilities = ["read-fs"] }`).get(t, path).StatusCode; code != http.StatusOK {
		t.Errorf("with read-fs: %d", code)
	}
	if code := c.as(t, `namespace "default" { capabilities = ["read-job"] }`).get(t, path).StatusCode; code < 400 { // the node says it as 500
		t.Errorf("without: %d", code)
	}
}

func showsTheRight(t *testing.T, c cluster) {
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
