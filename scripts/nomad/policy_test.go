package nomad_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

// request is something that a controller asks of Nomad.
type request struct {
	name, method, path string
	body               any
}

// requests are all kinds of them, about a job with a running allocation, in an order in
// which each has what it needs.
func requests(job *api.Job, alloc string) []request {
	whole := map[string]any{"Job": job}
	return []request{
		{"list the jobs", "GET", "/v1/jobs?meta=true", nil},
		{"read a job", "GET", "/v1/job/sleeper", nil},
		{"read its allocations", "GET", "/v1/job/sleeper/allocations", nil},
		{"read its evaluations", "GET", "/v1/job/sleeper/evaluations", nil},
		{"read its submission", "GET", "/v1/job/sleeper/submission?version=0", nil},
		{"read an allocation", "GET", "/v1/allocation/" + alloc, nil},
		{"parse a job file", "POST", "/v1/jobs/parse", map[string]any{"JobHCL": `job "x" {}`}},
		{"validate a job", "POST", "/v1/validate/job", whole},
		{"plan a job", "POST", "/v1/job/sleeper/plan", whole},
		{"register a job", "POST", "/v1/jobs", whole},
		{"signal a task", "POST", "/v1/client/allocation/" + alloc + "/signal", map[string]any{"Signal": "SIGCONT", "Task": "t"}},
		{"read the output", "GET", "/v1/client/fs/logs/" + alloc + "?task=t&type=stdout&plain=true&origin=start&offset=0", nil},
		{"list files", "GET", "/v1/client/fs/ls/" + alloc + "?path=alloc/logs", nil},
		{"read a file", "GET", "/v1/client/fs/readat/" + alloc + "?path=alloc/logs/t.stdout.0&offset=0&limit=9", nil},
		{"list the nodes", "GET", "/v1/nodes?resources=true", nil},
		{"write a variable", "PUT", "/v1/var/pitchpipe/x", map[string]any{"Items": map[string]string{"a": "b"}}},
		{"read a variable", "GET", "/v1/var/pitchpipe/x", nil},
		{"list the variables", "GET", "/v1/vars?prefix=pitchpipe/", nil},
		{"remove a variable", "DELETE", "/v1/var/pitchpipe/x", nil},
		{"write a task's variable", "PUT", "/v1/var/nomad/jobs/sleeper/g/t", map[string]any{"Items": map[string]string{"a": "b"}}},
		{"read a task's variable", "GET", "/v1/var/nomad/jobs/sleeper/g/t", nil},
		{"remove a task's variable", "DELETE", "/v1/var/nomad/jobs/sleeper/g/t", nil},
		{"stop a job", "DELETE", "/v1/job/gone", nil},
	}
}

// needs says which requests fail without a capability.
func needs() map[string][]string {
	return map[string][]string{
		"list-jobs": {"list the jobs"},
		"read-job": {
			"read a job", "read its allocations", "read its evaluations", "read its submission", "read an allocation", "validate a job",
		},
		"parse-job":       {"parse a job file"},
		"plan-job":        {"plan a job"},
		"register-job":    {"register a job"},
		"deregister-job":  {"stop a job"},
		"alloc-lifecycle": {"signal a task"},
		"read-fs":         {"read the output", "list files", "read a file"},
		"read":            {"read a variable", "list the variables"},
		"write":           {"write a variable"},
		"destroy":         {"remove a variable"},
		"tasks-read":      {"read a task's variable"},
		"tasks-write":     {"write a task's variable"},
		"tasks-destroy":   {"remove a task's variable"},
		"node":            {"list the nodes"},
	}
}

// tasksPath begins the rule for the variables of tasks, and tasks is before the names of
// its capabilities.
const (
	tasksPath = `path "nomad/jobs/*/*/*"`
	tasks     = "tasks-"
)

// policy is a policy file without one of its capabilities.
func policy(t *testing.T, file, without string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if without == "node" {
		text, _, _ = strings.Cut(text, "\nnode {")
		return text
	}
	if c, ok := strings.CutPrefix(without, tasks); ok {
		head, tail, _ := strings.Cut(text, tasksPath)
		for _, form := range []string{"\"" + c + "\", ", ", \"" + c + "\"]"} {
			end := ""
			if strings.HasSuffix(form, "]") {
				end = "]"
			}
			if rest := strings.Replace(tail, form, end, 1); rest != tail {
				return head + tasksPath + rest
			}
		}
		t.Fatalf("%s: no capability %q", file, without)
	}
	before := text
	for _, form := range []string{"    \"" + without + "\",\n", "\"" + without + "\", ", ", \"" + without + "\"]"} {
		end := ""
		if strings.HasSuffix(form, "]") {
			end = "]"
		}
		text = strings.Replace(text, form, end, 1)
		if text != before {
			break
		}
	}
	if without != "" && text == before {
		t.Fatalf("%s: no capability %q", file, without)
	}
	return text
}

// capabilities lists those that a policy file names.
func capabilities(t *testing.T, file string) []string {
	t.Helper()
	var out []string
	of := ""
	for line := range strings.Lines(policy(t, file, "")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, tasksPath) {
			of = tasks
		}
		if rest, ok := strings.CutPrefix(line, "capabilities = ["); ok && strings.HasSuffix(rest, "]") {
			for c := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), ", ") {
				out = append(out, of+strings.Trim(c, `"`))
			}
		} else if strings.HasPrefix(line, `"`) {
			out = append(out, strings.Trim(line, `",`))
		}
	}
	return append(out, "node")
}

func sleeper(id string) *api.Job {
	g := api.NewTaskGroup("g", 1)
	t := api.NewTask("t", "raw_exec")
	t.SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", "echo said; exec sleep 3600"})
	cpu, memory := 20, 20
	t.Resources = &api.Resources{CPU: &cpu, MemoryMB: &memory}
	return api.NewBatchJob(id, id, "global", 50).AddDatacenter("*").AddTaskGroup(g.AddTask(t))
}

type cluster struct {
	*nomadagent.Agent
	client *api.Client
	job    *api.Job
	alloc  string
}

func start(t *testing.T) cluster {
	t.Helper()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real, ACL: true})
	c := cluster{Agent: a, client: a.Client(t), job: sleeper("sleeper")}
	if _, _, err := c.client.Jobs().RegisterOpts(c.job, &api.RegisterOptions{Submission: &api.JobSubmission{Source: "x", Format: "hcl2"}}, nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); c.alloc == ""; time.Sleep(100 * time.Millisecond) {
		all, _, err := c.client.Jobs().Allocations("sleeper", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			switch a.ClientStatus {
			case api.AllocClientStatusRunning:
				c.alloc = a.ID
			case api.AllocClientStatusFailed:
				t.Skipf("the node could not start a task, as beside other agents of one machine: %+v", a.TaskStates["t"])
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing runs")
		}
	}
	return c
}

// token is one with a policy.
func (c cluster) token(t *testing.T, name, rules string) string {
	t.Helper()
	if _, err := c.client.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: rules}, nil); err != nil {
		t.Fatal(err)
	}
	token, _, err := c.client.ACLTokens().Create(&api.ACLToken{Name: name, Type: "client", Policies: []string{name}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.SecretID
}

// denied are the requests that a token may not make. Whatever is not denied has to
// succeed, so that no request fails for another reason.
func (c cluster) denied(t *testing.T, token string) []string {
	t.Helper()
	var out []string
	for _, r := range requests(c.job, c.alloc) {
		if r.name == "stop a job" {
			if _, _, err := c.client.Jobs().Register(sleeper("gone"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(r.name, "variable") && r.name != "write a variable" || r.name == "list the variables" {
			if _, _, err := c.client.Variables().Update(&api.Variable{Path: "pitchpipe/x", Items: map[string]string{"a": "b"}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(r.name, "a task's variable") && r.method != http.MethodPut {
			if _, _, err := c.client.Variables().Update(&api.Variable{Path: "nomad/jobs/sleeper/g/t", Items: map[string]string{"a": "b"}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		status, said := c.ask(t, token, r)
		switch status {
		case http.StatusOK, http.StatusNoContent:
			// Some answer, and leave out what is not for everybody.
			want := map[string]string{"list the variables": "pitchpipe/x", "read a file": "said", "read the output": "said"}[r.name]
			if !strings.Contains(said, want) {
				out = append(out, r.name)
			}
		case http.StatusForbidden:
			out = append(out, r.name)
		default:
			if status == http.StatusNotFound && r.name == "read its submission" { // it was registered again without one
				continue
			}
			if strings.Contains(said, "Unknown allocation") || strings.Contains(said, "Permission denied") {
				out = append(out, r.name) // so some requests say it
				continue
			}
			t.Errorf("%s: status %d %s", r.name, status, said)
		}
	}
	return out
}

func (c cluster) ask(t *testing.T, token string, r request) (status int, said string) {
	t.Helper()
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, c.Addr+r.path, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Nomad-Token", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestThePolicyIsEnoughAndNothingOfItCanBeLeftOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	if got := c.denied(t, c.token(t, "whole", policy(t, "policy.hcl", ""))); len(got) > 0 {
		t.Errorf("the whole policy does not allow to %s", strings.Join(got, ", "))
	}
	if got := c.denied(t, c.token(t, "old", policy(t, "policy-1.hcl", ""))); len(got) > 0 {
		t.Errorf("the policy for 1.x does not allow to %s", strings.Join(got, ", "))
	}
	if got, all := c.denied(t, c.token(t, "nothing", `agent { policy = "read" }`)), requests(c.job, c.alloc); len(got) != len(all) {
		t.Errorf("without any capability only %q are denied", got)
	}
	for i, capability := range capabilities(t, "policy.hcl") {
		got := c.denied(t, c.token(t, fmt.Sprintf("without-%d", i), policy(t, "policy.hcl", capability)))
		if diff := cmp.Diff(needs()[capability], got); diff != "" {
			t.Errorf("without %s (-said +denied):\n%s", capability, diff)
		}
	}
}

// What people keep in the variables of a job or a group is not the controller's to read.
func TestThePolicyDoesNotReachTheVariablesOfJobsAndGroups(t *testing.T) {
	t.Parallel()
	c := start(t)
	token := c.token(t, "whole", policy(t, "policy.hcl", ""))
	for path, want := range map[string]int{
		"nomad/jobs": http.StatusForbidden, "nomad/jobs/sleeper": http.StatusForbidden, "nomad/jobs/sleeper/g": http.StatusForbidden,
		"nomad/jobs/sleeper/g/t": http.StatusOK, "else": http.StatusForbidden,
	} {
		if _, _, err := c.client.Variables().Update(&api.Variable{Path: path, Items: map[string]string{"a": "b"}}, nil); err != nil {
			t.Fatal(err)
		}
		for _, r := range []request{{"", http.MethodGet, "/v1/var/" + path, nil}, {"", http.MethodPut, "/v1/var/" + path, map[string]any{"Items": map[string]string{"a": "c"}}}} {
			if status, said := c.ask(t, token, r); status != want {
				t.Errorf("%s %s: status %d %s, want %d", r.method, path, status, said, want)
			}
		}
	}
}

func TestEveryCapabilityIsExplained(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"policy.hcl", "policy-1.hcl"} {
		all := capabilities(t, file)
		if len(all) < 10 {
			t.Fatalf("%s: capabilities %v", file, all)
		}
		for _, c := range all {
			if !strings.Contains(string(data), "`"+strings.TrimPrefix(c, tasks)+"`") {
				t.Errorf("README.md does not say what %s is for", c)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(needs())), capabilities(t, "policy.hcl"); len(got) != len(want) {
		t.Errorf("needed are %v, the policy has %v", got, want)
	}
}
