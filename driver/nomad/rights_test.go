package nomad_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/nomad/view"
	"pitchpipe/test/nomadagent"
)

// rules are those of scripts/nomad/policy.hcl for a namespace, without one capability.
func rules(namespace, without string) string {
	all := []string{"list-jobs", "read-job", "parse-job", "plan-job", "register-job", "deregister-job", "alloc-lifecycle", "read-fs"}
	all = slices.DeleteFunc(all, func(c string) bool { return c == without })
	return fmt.Sprintf("namespace %q {\n  capabilities = [\"%s\"]\n}\n", namespace, strings.Join(all, `", "`))
}

// TestADeniedTokenIsToldWhatItLacks: 2.8, each capability left out. The job goes on as
// it is, and another in a namespace where nothing is missing is moved.
func TestADeniedTokenIsToldWhatItLacks(t *testing.T) { // not parallel: a machine has its limits
	move := func(t *testing.T, s *story, id driver.JobID) error {
		t.Helper()
		job := s.started(t, id)
		_, err := s.d.Advance(t.Context(), s.intent(job, "denied", driver.Change{TimeLimit: time.Hour}))
		return err
	}
	nomadagent.Both(t, nomadagent.Options{ACL: true}, func(t *testing.T, a *nomadagent.Agent) {
		for lacks, do := range map[string]func(t *testing.T, s *story, id driver.JobID) error{
			"register-job": move, "plan-job": move, "alloc-lifecycle": move,
			"read-job": func(t *testing.T, s *story, id driver.JobID) error {
				t.Helper()
				_, err := s.d.Get(t.Context(), id)
				return err
			},
			"read-fs": func(t *testing.T, s *story, id driver.JobID) error {
				t.Helper()
				s.wait(t, id, "it runs", running)
				for _, p := range []driver.Progress{{}, {File: "local/progress"}} {
					if err := s.d.Listen(t.Context(), id, 1, p); !errors.Is(err, driver.ErrDenied) {
						t.Errorf("listen to %q: %v, want %v", p.File, err, driver.ErrDenied)
					}
				}
				_, err := s.d.Logs(t.Context(), id, 0)
				return err
			},
			"parse-job": func(t *testing.T, s *story, _ driver.JobID) error {
				t.Helper()
				_, err := s.d.Start(t.Context(), "probe", s.job(t, mover(1)))
				return err
			},
			"deregister-job": func(t *testing.T, s *story, id driver.JobID) error {
				t.Helper()
				return s.d.Stop(t.Context(), id)
			},
			"list-jobs": func(t *testing.T, s *story, _ driver.JobID) error {
				t.Helper()
				cfg := s.cfg
				cfg.Namespaces = []string{s.ns}
				alone, err := nomad.New(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				_, err = alone.Watch(t.Context())
				return errors.Join(err, alone.Close())
			},
		} {
			t.Run("2.8 without "+lacks, func(t *testing.T) {
				t.Parallel()
				s, other := limited(t, a, lacks)
				id := s.register(t, mover(long), nil)
				good := other.register(t, mover(long), nil)
				eventually(t, "it runs", func() bool { list := s.allocs(t, id); return len(list) == 1 && list[0].ClientStatus == "running" })
				err := do(t, s, id)
				if !errors.Is(err, driver.ErrDenied) || !strings.Contains(fmt.Sprint(err), "the token lacks the capability "+lacks) || !strings.Contains(fmt.Sprint(err), s.ns) {
					t.Errorf("%v, want %v that names %s and the namespace", err, driver.ErrDenied, lacks)
				}
				untouched(t, s, id)
				other.epochs(t, good, 1)
				seen := other.wait(t, good, "the other runs", running)
				if step := other.drive(t, other.intent(seen, "moved", driver.Change{TimeLimit: time.Hour})); step.Kind != driver.StepStarted {
					t.Errorf("the other job: %+v", step)
				}
				eventually(t, "the other job is listed", func() bool {
					jobs, err := s.d.List(t.Context())
					return err == nil && slices.ContainsFunc(jobs, func(j driver.Job) bool { return j.ID == good })
				})
				untouched(t, s, id)
			})
		}
	})
}

// 2.4 with rights: a task reads its own variable without a policy, and where the
// controller may not a change is registered.
func TestWithoutTheVariableAChangeIsRegistered(t *testing.T) { // not parallel: a machine has its limits
	nomadagent.Both(t, nomadagent.Options{ACL: true}, func(t *testing.T, a *nomadagent.Agent) {
		for _, tt := range []struct {
			name, capabilities string
			version            uint64
		}{
			{"2.4 with the right to its variable it is written", `"read", "write", "destroy"`, 0},
			{"2.4 without the right to write it a change is registered", `"read"`, 1},
			{"2.4 without any right to it a change is registered", "", 1},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s, _ := limited(t, a, "")
				if tt.capabilities != "" {
					name := "policy-" + s.ns
					more := strings.TrimSuffix(rules(s.ns, ""), "}\n") + "  variables {\n    path \"nomad/jobs/*/*/*\" {\n      capabilities = [" + tt.capabilities + "]\n    }\n  }\n}\n"
					if _, err := s.clean.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: more}, nil); err != nil {
						t.Fatal(err)
					}
				}
				id := s.templated(t, mover(long), soon, nil)
				job := s.started(t, id)
				s.drives(t, s.intent(job, "more", batch("64")), driver.StepStarted)
				got := s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
				if v := *s.nomadJob(t, id).Version; v != tt.version || got.Attempts[1].Intent != "more" {
					t.Errorf("version %d, %+v; want version %d", v, got.Attempts[1], tt.version)
				}
				eventually(t, "it has the variable", func() bool { env := s.environments(t, id); return len(env) > 1 && env[len(env)-1] == "64" })
			})
		}
	})
}

// untouched fails the test unless the job runs as its owner registered it, and no one
// asked it to save who could not restart it.
func untouched(t *testing.T, s *story, id driver.JobID) {
	t.Helper()
	list := s.allocs(t, id)
	if v := *s.nomadJob(t, id).Version; v != 0 || len(list) != 1 || list[0].DesiredStatus != "run" || list[0].ClientStatus != "running" {
		t.Fatalf("version %d, %d allocations, want the first to go on", v, len(list))
	}
	if view.Signaled(list[0], "main", 0) {
		t.Error("it was asked to save")
	}
}

// limited is a driver of two namespaces, whose token lacks a capability in the first.
func limited(t *testing.T, a *nomadagent.Agent, lacks string) (first, second *story) {
	t.Helper()
	clean := a.Client(t)
	p := &proxy{}
	var namespace string
	b := newBench(t, clean, func(cfg *nomad.Config) {
		namespace = cfg.Namespaces[0] + "-b"
		if _, err := clean.Namespaces().Register(&api.Namespace{Name: namespace}, nil); err != nil {
			t.Fatal(err)
		}
		name := "policy-" + cfg.Namespaces[0]
		if _, err := clean.ACLPolicies().Upsert(&api.ACLPolicy{Name: name, Rules: rules(cfg.Namespaces[0], lacks) + rules(namespace, "")}, nil); err != nil {
			t.Fatal(err)
		}
		token, _, err := clean.ACLTokens().Create(&api.ACLToken{Name: name, Type: "client", Policies: []string{name}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Namespaces = append(cfg.Namespaces, namespace)
		cfg.Listen = func(context.Context, string, string, driver.Progress, io.Reader) error { return nil }
		cfg.Client = p.client(t, clean)
		cfg.Client.SetSecretID(token.SecretID)
	})
	other := *b
	other.ns, other.dir = namespace, t.TempDir()
	other.client = clean
	t.Cleanup(func() { other.deregister(t) })
	return &story{bench: b, proxy: p, agent: a, clean: clean}, &story{bench: &other, proxy: p, agent: a, clean: clean}
}
