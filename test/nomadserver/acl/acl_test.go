package acl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/nomadserver/acl"
)

// ask sends a request with a token and returns the status and the body.
type ask func(token, method, path, body string) (int, string)

func direct(ctx context.Context, a *acl.ACL) ask {
	return func(token, method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		r.Header.Set("X-Nomad-Token", token)
		a.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

func agent(t *testing.T) (ask, string) {
	t.Helper()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real, ACL: true})
	return func(token, method, path, body string) (int, string) {
		as := *a
		as.Token = token
		status, text, err := as.Do(t.Context(), method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		return status, text
	}, a.Token
}

func bootstrap(t *testing.T, send ask) string {
	t.Helper()
	status, text := send("", "PUT", "/v1/acl/bootstrap", "")
	var token api.ACLToken
	if err := json.Unmarshal([]byte(text), &token); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	return token.SecretID
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// grant makes a policy and a token that has it.
func grant(t *testing.T, send ask, root, name, rules string) string {
	t.Helper()
	if status, text := send(root, "PUT", "/v1/acl/policy/"+name, `{"Name":`+quote(name)+`,"Rules":`+quote(rules)+`}`); status != 200 {
		t.Fatalf("policy %s: %d %s", name, status, text)
	}
	status, text := send(root, "PUT", "/v1/acl/token", `{"Type":"client","Policies":[`+quote(name)+`]}`)
	var token api.ACLToken
	if err := json.Unmarshal([]byte(text), &token); err != nil || status != 200 {
		t.Fatalf("token for %s: %d %s %v", name, status, text, err)
	}
	return token.SecretID
}

const job = `{"Job":{"ID":"j","Name":"j","Type":"batch","Datacenters":["none"],"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec","Config":{"command":"/bin/true"}}]}]}}`

// questions are capabilities with a request that a real agent answers with 403 where
// they are not there.
func questions() map[string][3]string {
	return map[string][3]string{
		"list-jobs":             {"GET", "/v1/jobs", ""},
		"read-job":              {"GET", "/v1/job/none", ""},
		"parse-job":             {"PUT", "/v1/jobs/parse", `{"JobHCL":"x"}`},
		"register-job":          {"PUT", "/v1/jobs", job},
		"plan-job":              {"PUT", "/v1/job/j/plan", job},
		"revert-job":            {"PUT", "/v1/job/none/revert", `{"JobID":"none","JobVersion":0}`},
		"deregister-job":        {"DELETE", "/v1/job/none", ""},
		"evaluate-job":          {"PUT", "/v1/job/none/evaluate", `{"JobID":"none"}`},
		"tag-job-version":       {"PUT", "/v1/job/none/versions/x/tag", `{"Version":0}`},
		"scale-job":             {"PUT", "/v1/job/none/scale", `{"Target":{"Group":"g"},"Message":"m"}`},
		"dispatch-job":          {"PUT", "/v1/job/none/dispatch", `{}`},
		"read-job-scaling":      {"GET", "/v1/job/none/scale", ""},
		"list-scaling-policies": {"GET", "/v1/scaling/policies", ""},
		"node:read":             {"GET", "/v1/nodes", ""},
		"agent:read":            {"GET", "/v1/agent/self", ""},
		"operator:read":         {"GET", "/v1/operator/scheduler/configuration", ""},
		"operator:write":        {"PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"binpack"}`},
		"list tuner/a":          {"GET", "/v1/vars?prefix=tuner/a", ""},
		"read tuner/a":          {"GET", "/v1/var/tuner/a", ""},
		"write tuner/a":         {"PUT", "/v1/var/tuner/a", `{"Items":{"k":"v"}}`},
		"destroy tuner/a":       {"DELETE", "/v1/var/tuner/none", ""},
		"read other":            {"GET", "/v1/var/other", ""},
		"read nomad/jobs/j":     {"GET", "/v1/var/nomad/jobs/j", ""},
	}
}

const smallest = `namespace "default" {
  capabilities = ["list-jobs", "read-job", "parse-job", "plan-job", "register-job", "tag-job-version", "deregister-job",
    "read-logs", "read-fs", "read-job-scaling", "list-scaling-policies", "read-scaling-policy", "alloc-lifecycle"]
  variables {
    path "tuner/*" {
      capabilities = ["list", "read", "write", "destroy"]
    }
  }
}
node {
  policy = "read"
}`

// policies are policies with the questions that are answered with yes.
func policies() map[string][2]string {
	jobs := "deregister-job evaluate-job list-jobs parse-job plan-job read-job register-job revert-job tag-job-version"
	return map[string][2]string{
		"the smallest that the controller needs": {smallest, "deregister-job destroy tuner/a,list-jobs,list tuner/a,list-scaling-policies,node:read,parse-job,plan-job,read tuner/a,read-job,read-job-scaling,register-job,tag-job-version,write tuner/a"},
		"the same before 2.0":                    {`namespace "default" { capabilities = ["submit-job", "read-job", "list-jobs", "parse-job"] }`, jobs + " list-scaling-policies read-job-scaling scale-job"},
		"a word for reading":                     {`namespace "default" { policy = "read" }`, "list-jobs list-scaling-policies parse-job read-job read-job-scaling"},
		"a word for writing":                     {`namespace "*" { policy = "write" }`, jobs + " dispatch-job list-scaling-policies read-job-scaling scale-job"},
		"one that denies":                        {"namespace \"*\" { policy = \"write\" }\nnamespace \"default\" { policy = \"deny\" }", ""},
		"the closest pattern":                    {"namespace \"d*\" { policy = \"read\" }\nnamespace \"defa*\" { capabilities = [\"list-jobs\"] }", "list-jobs"},
		"JSON":                                   {`{"namespace":{"default":{"capabilities":["list-jobs"],"variables":{"path":{"tuner/a":{"capabilities":["read"]}}}}},"agent":{"policy":"read"}}`, "agent:read,list tuner/a,list-jobs,read tuner/a"},
		"write brings list along":                {`namespace "default" { variables { path "*" { capabilities = ["write"] } } }`, "list tuner/a,write tuner/a"},
		"the operator":                           {"operator { policy = \"write\" }\nagent { policy = \"write\" }\nnode { policy = \"deny\" }", "agent:read operator:read operator:write"},
	}
}

// wanted is a set of questions; with commas where their names have spaces.
func wanted(text string) map[string]bool {
	out := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		for q := range questions() {
			if part == q {
				out[q] = true
				part = ""
			}
		}
		for word := range strings.FieldsSeq(part) {
			if _, ok := questions()[word]; ok {
				out[word] = true
			}
		}
		for q := range questions() {
			if strings.Contains(q, " ") && strings.Contains(part, q) {
				out[q] = true
			}
		}
	}
	return out
}

func allowed(a *acl.ACL, token, q string) bool {
	if verb, path, ok := strings.Cut(q, " "); ok {
		return a.AllowsVariable(token, "default", path, verb)
	}
	namespace := "default"
	if strings.Contains(q, ":") {
		namespace = ""
	}
	return a.Allows(token, namespace, q)
}

func TestAPolicyAllowsWhatItSays(t *testing.T) {
	t.Parallel()
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := acl.New()
			send := direct(t.Context(), a)
			root := bootstrap(t, send)
			token := grant(t, send, root, "p", p[0])
			got := map[string]bool{}
			for q := range questions() {
				if allowed(a, token, q) {
					got[q] = true
				}
				if !allowed(a, root, q) || allowed(a, "", q) || allowed(a, "unknown", q) {
					t.Errorf("%s: root, nobody or a stranger", q)
				}
			}
			if diff := cmp.Diff(wanted(p[1]), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestARealAgentAllowsTheSame(t *testing.T) {
	t.Parallel()
	send, root := agent(t)
	n := 0
	for name, p := range policies() {
		n++
		t.Run(name, func(t *testing.T) {
			token := grant(t, send, root, fmt.Sprintf("p%d", n), p[0])
			got := map[string]bool{}
			for q, r := range questions() {
				status, text := send(token, r[0], r[1], r[2])
				// A list of variables is only shorter.
				if status != 403 && (q != "list tuner/a" || wanted(p[1])[q]) {
					got[q] = true
				}
				if q == "list tuner/a" && !wanted(p[1])[q] && strings.TrimSpace(text) != "[]" {
					t.Errorf("a list shows %s", text)
				}
			}
			if diff := cmp.Diff(wanted(p[1]), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// exchanges are requests with the status and the beginning of what is said.
func exchange(t *testing.T, send ask, root string) {
	t.Helper()
	client := grant(t, send, root, "reader", `namespace "default" { policy = "read" }`)
	policy := func(rules string) string { return `{"Name":"bad","Rules":` + quote(rules) + `}` }
	for _, c := range []struct {
		token, method, path, body string
		status                    int
		text                      string
	}{
		{"", "PUT", "/v1/acl/bootstrap", "", 400, "ACL bootstrap already done (reset index: "},
		{root, "GET", "/v1/acl/token/self", "", 200, `{"`},
		{"", "GET", "/v1/acl/tokens", "", 403, "Permission denied"},
		{client, "GET", "/v1/acl/tokens", "", 403, "Permission denied"},
		{client, "GET", "/v1/acl/policies", "", 200, `[{"`},
		{client, "GET", "/v1/acl/policy/reader", "", 200, `{"`},
		{client, "GET", "/v1/acl/policy/other", "", 403, "Permission denied"},
		{client, "PUT", "/v1/acl/policy/bad", policy(`node { policy = "read" }`), 403, "Permission denied"},
		{root, "GET", "/v1/acl/policy/other", "", 404, "ACL policy not found"},
		{root, "PUT", "/v1/acl/policy/other", policy(`node { policy = "read" }`), 400, "ACL policy name does not match request path"},
		{root, "PUT", "/v1/acl/policy/bad", policy(`namespace "default" { capabilities = ["fly"] }`), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Invalid namespace capability 'fly': "},
		{root, "PUT", "/v1/acl/policy/bad", policy(``), 200, ""},
		{root, "PUT", "/v1/acl/policy/bad", policy(`namespace "default" { variables {} }`), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Invalid variable policy: no variable paths in namespace default\n\n"},
		{root, "PUT", "/v1/acl/policy/bad", policy("node { policy = \"read\" }\ntuning { policy = \"read\" }"), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Invalid or duplicate policy keys: tuning\n\n"},
		{root, "PUT", "/v1/acl/policy/bad", policy(`node {`), 400, "policy 0 invalid: 1 error occurred:\n\t* failed to parse rules: Failed to parse ACL Policy: "},
		{root, "PUT", "/v1/acl/token", `{"Type":"client"}`, 400, "token 0 invalid: 1 error occurred:\n\t* client token missing policies or roles\n\n"},
		{root, "PUT", "/v1/acl/token", `{"Type":"king"}`, 400, "token 0 invalid: 1 error occurred:\n\t* token type must be client or management\n\n"},
		{root, "GET", "/v1/acl/token/00000000-0000-4000-8000-000000000000", "", 404, "ACL token not found"},
		{root, "GET", "/v1/acl/tokens", "", 200, `[{"`},
		{root, "DELETE", "/v1/acl/policy/reader", "", 200, ""},
		{client, "GET", "/v1/acl/policies", "", 200, "[]"},
		{"00000000-0000-4000-8000-000000000000", "GET", "/v1/acl/policies", "", 403, "Permission denied"},
	} {
		status, text := send(c.token, c.method, c.path, c.body)
		if status != c.status || !strings.HasPrefix(text, c.text) || c.text == "" && text != "" {
			t.Errorf("%s %s %s: %d %q, want %d %q", c.method, c.path, c.body, status, text, c.status, c.text)
		}
	}
}

func TestPoliciesAndTokensAreKeptAsByNomad(t *testing.T) {
	t.Parallel()
	send := direct(t.Context(), acl.New())
	exchange(t, send, bootstrap(t, send))
}

func TestARealAgentKeepsThemTheSame(t *testing.T) {
	t.Parallel()
	send, root := agent(t)
	exchange(t, send, root)
}

func TestAnIdentityMayWhatIsBoundToItsTask(t *testing.T) {
	t.Parallel()
	a := acl.New()
	send := direct(t.Context(), a)
	root := bootstrap(t, send)
	bind := func(name, to, rules string) {
		body := `{"Name":` + quote(name) + `,"Rules":` + quote(rules) + `,"JobACL":` + to + `}`
		if status, text := send(root, "PUT", "/v1/acl/policy/"+name, body); status != 200 {
			t.Fatal(status, text)
		}
	}
	bind("job", `{"Namespace":"default","JobID":"ctl"}`, smallest)
	bind("group", `{"Namespace":"default","JobID":"ctl","Group":"g"}`, `namespace "default" { capabilities = ["scale-job"] }`)
	bind("task", `{"Namespace":"default","JobID":"ctl","Group":"g","Task":"t"}`, `agent { policy = "read" }`)
	bind("other", `{"Namespace":"default","JobID":"other"}`, `operator { policy = "write" }`)
	for _, c := range []struct {
		claim acl.Claim
		may   string
		not   string
	}{
		{acl.Claim{Namespace: "default", Job: "ctl", Group: "g", Task: "t"}, "register-job,scale-job,agent:read,read nomad/jobs/ctl,read nomad/jobs/ctl/g/t,write tuner/a", "operator:read,write nomad/jobs/ctl,read nomad/jobs/j"},
		{acl.Claim{Namespace: "default", Job: "ctl", Group: "g", Task: "u"}, "register-job,scale-job", "agent:read,read nomad/jobs/ctl/g/t"},
		{acl.Claim{Namespace: "default", Job: "ctl", Group: "h", Task: "t"}, "register-job", "scale-job,agent:read"},
		{acl.Claim{Namespace: "other", Job: "ctl", Group: "g", Task: "t"}, "", "register-job,read nomad/jobs/ctl"},
		{acl.Claim{Namespace: "default", Job: "j", Group: "g", Task: "t"}, "read nomad/jobs/j,list nomad/jobs", "register-job,read tuner/a"},
	} {
		c.claim.Alloc = "a"
		token := a.Identify(c.claim)
		for q := range strings.SplitSeq(c.may, ",") {
			if q != "" && !allowed(a, token, q) {
				t.Errorf("%+v may not %s", c.claim, q)
			}
		}
		for q := range strings.SplitSeq(c.not, ",") {
			if allowed(a, token, q) {
				t.Errorf("%+v may %s", c.claim, q)
			}
		}
		if a.Management(token) || !a.Known(token) || strings.Count(token, ".") != 2 {
			t.Errorf("token %s", token)
		}
	}
	token := a.Identify(acl.Claim{Namespace: "default", Job: "ctl", Alloc: "ends"})
	a.Forget("ends")
	if a.Known(token) || a.Allows(token, "default", "read-job") {
		t.Error("an allocation that ended may still something")
	}
}

func TestATokenThatExpiredIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := acl.New()
		send := direct(t.Context(), a)
		root := bootstrap(t, send)
		status, text := send(root, "PUT", "/v1/acl/token", `{"Type":"management","ExpirationTTL":60000000000}`)
		var token api.ACLToken
		if err := json.Unmarshal([]byte(text), &token); err != nil || status != 200 {
			t.Fatal(status, text, err)
		}
		if !a.Management(token.SecretID) {
			t.Error("it has no right yet")
		}
		time.Sleep(time.Minute)
		if a.Management(token.SecretID) || a.Known(token.SecretID) {
			t.Error("it has rights still")
		}
	})
}

// TestNoPolicyAllowsWhatAnotherDenies is a property.
func TestNoPolicyAllowsWhatAnotherDenies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a := acl.New()
		send := direct(t.Context(), a)
		root := bootstrap(t, send)
		var names []string
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"read", "write", "scale"}), 0, 3).Draw(r, "words")
		at := rapid.IntRange(0, len(words)).Draw(r, "at")
		words = append(words[:at:at], append([]string{"deny"}, words[at:]...)...)
		for i, w := range words {
			name := fmt.Sprintf("p%d", i)
			names = append(names, quote(name))
			rules := fmt.Sprintf("namespace %q { policy = %q }", "default", w)
			if status, text := send(root, "PUT", "/v1/acl/policy/"+name, `{"Name":`+quote(name)+`,"Rules":`+quote(rules)+`}`); status != 200 {
				r.Fatal(status, text)
			}
		}
		_, text := send(root, "PUT", "/v1/acl/token", `{"Type":"client","Policies":[`+strings.Join(names, ",")+`]}`)
		var token api.ACLToken
		if err := json.Unmarshal([]byte(text), &token); err != nil {
			r.Fatal(err)
		}
		for q := range questions() {
			if allowed(a, token.SecretID, q) {
				r.Fatalf("%v allow %s", words, q)
			}
		}
	})
}

func FuzzPolicy(f *testing.F) {
	for _, p := range policies() {
		f.Add(p[0])
	}
	f.Add(`namespace "default" { variables { path "/x" { capabilities = ["read"] } } }`)
	f.Fuzz(func(t *testing.T, rules string) {
		a := acl.New()
		send := direct(t.Context(), a)
		root := bootstrap(t, send)
		body, err := json.Marshal(map[string]string{"Name": "p", "Rules": rules})
		if err != nil {
			t.Fatal(err)
		}
		if status, text := send(root, "PUT", "/v1/acl/policy/p", string(body)); status != 200 && (status != 400 || text == "") {
			t.Fatalf("%d %q", status, text)
		}
	})
}
