package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/reconcile"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// site lets everything be tuned that can be.
const site = "default:\n  max_mode: apply\n  above_request: true\n  control: 0\n"

// advances remembers every Advance, and what the audit held when it came.
type advances struct {
	mu    sync.Mutex
	audit string
	seen  [][]byte
}

func (a *advances) faults(op string, _ driver.JobID) error {
	if op != sim.OpAdvance {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	text, err := os.ReadFile(a.audit)
	if err != nil {
		return err
	}
	a.seen = append(a.seen, text)
	return nil
}

func (a *advances) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// tune runs a controller in virtual time for as long as f takes; nothing is
// served, f asks the handler.
func tune(t *testing.T, text string, f func(t *testing.T, c *daemontest.Controller, a *advances)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(t.TempDir(), "state")
		a := &advances{audit: filepath.Join(state, "audit.jsonl")}
		c := daemontest.New(t, daemontest.Options{
			State: state, Site: text, Sim: sim.Config{Faults: a.faults}, Tick: 4 * time.Second,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Daemon.Tune(ctx) }()
		f(t, c, a)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.Stop(t)
	})
}

func entries(t *testing.T, text []byte) []reconcile.Audit {
	t.Helper()
	var out []reconcile.Audit
	for line := range bytes.Lines(text) {
		var e reconcile.Audit
		if err := json.Unmarshal(line, &e); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
			t.Fatalf("audit line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func submitAs(t *testing.T, c *daemontest.Controller, who peer.Peer, s api.Submission) api.Job {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var job api.Job
	if w := as(t, c, who, "POST", "/v1/jobs", string(body)); json.Unmarshal(w.Body.Bytes(), &job) != nil || job.ID == "" {
		t.Fatalf("submit: %d %s", w.Code, w.Body)
	}
	return job
}

func ask(t *testing.T, c *daemontest.Controller, id string) api.Job {
	t.Helper()
	var job api.Job
	w := as(t, c, peer.Peer{Name: "root"}, "GET", "/v1/jobs/"+id, "")
	if err := json.Unmarshal(w.Body.Bytes(), &job); err != nil {
		t.Fatalf("job %s: %s", id, w.Body)
	}
	return job
}

// epochs is how many epochs a tunable job has: enough for what a probe could cost.
const epochs = 60

func tunable(name string) []byte {
	return daemontest.Script(name, epochs, 3.6, daemontest.Tuned("apply")...)
}

func TestEachEffectIsInTheAuditBeforeItHappens(t *testing.T) {
	t.Parallel()
	tune(t, site, func(t *testing.T, c *daemontest.Controller, a *advances) {
		job := submitAs(t, c, peer.Peer{UID: 4242, Name: "alice"}, api.Submission{Filename: "job.sh", Source: tunable("work")})
		time.Sleep(5 * time.Minute)
		if got := ask(t, c, job.ID); !got.Ended || got.State != "succeeded" || got.Probes+got.Restarts == 0 || got.Epoch != epochs {
			t.Fatalf("the job is not one that was tuned: %+v", got)
		}
		whole, err := os.ReadFile(a.audit)
		if err != nil {
			t.Fatal(err)
		}
		all := entries(t, whole)
		for i, e := range all {
			if e.Actor != "tuner" || e.Job != job.ID || e.Reason == "" || e.Intent == "" || e.Before.Equal(e.After) || e.At.IsZero() {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		// Each attempt after the first was announced before the scheduler was asked.
		inside, err := c.Cluster.Get(t.Context(), driver.JobID(job.ID))
		if err != nil {
			t.Fatal(err)
		}
		intents := map[string]bool{}
		for _, e := range all {
			intents[e.Intent] = true
		}
		for _, attempt := range inside.Attempts[1:] {
			if !intents[attempt.Intent] {
				t.Errorf("attempt %d by the intent %q is not in the audit", attempt.Number, attempt.Intent)
			}
		}
		for i, before := range a.seen {
			if len(before) == 0 || !bytes.HasPrefix(whole, before) {
				t.Errorf("at the step %d the audit held %q, which is not the beginning of what it holds now", i, before)
			}
		}
		if n := len(entries(t, a.seen[0])); n != 1 {
			t.Errorf("%d entries at the first step, want 1", n)
		}
	})
}

func TestAJobSubmittedAsOffIsNeverAdvanced(t *testing.T) {
	t.Parallel()
	tune(t, site, func(t *testing.T, c *daemontest.Controller, a *advances) {
		alice := peer.Peer{UID: 4242, Name: "alice"}
		job := submitAs(t, c, alice, api.Submission{Request: "r", Filename: "job.sh", Source: tunable("work"), Off: true})
		time.Sleep(5 * time.Minute)
		got := ask(t, c, job.ID)
		if a.count() != 0 || !got.Ended || got.Attempt != 1 || got.Reason != "off" {
			t.Errorf("%d steps; the job %+v", a.count(), got)
		}
		// A request of another user under the same id is not off.
		other := submitAs(t, c, peer.Peer{UID: 4243, Name: "bob"}, api.Submission{Request: "r", Filename: "job.sh", Source: tunable("work")})
		time.Sleep(5 * time.Minute)
		if got := ask(t, c, other.ID); got.Attempt == 1 {
			t.Errorf("bob's job was not tuned: %+v", got)
		}
	})
}

func TestAPausedControllerTakesNoStep(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{`{"scope":"cluster"}`, `{"scope":"user","name":"alice"}`, `{"scope":"partition","name":"batch"}`} {
		tune(t, site, func(t *testing.T, c *daemontest.Controller, a *advances) {
			if w := as(t, c, peer.Peer{Name: "root"}, "POST", "/v1/pauses", scope); w.Code != 204 {
				t.Fatalf("pause: %d %s", w.Code, w.Body)
			}
			source := bytes.Replace(tunable("work"), []byte("#SBATCH --mem"), []byte("#SBATCH --partition=batch\n#SBATCH --mem"), 1)
			job := submitAs(t, c, peer.Peer{UID: 4242, Name: "alice"}, api.Submission{Filename: "job.sh", Source: source})
			time.Sleep(5 * time.Minute)
			got := ask(t, c, job.ID)
			if a.count() != 0 || !got.Ended || got.Attempt != 1 || got.State != "succeeded" {
				t.Errorf("%s: %d steps; the job %+v", scope, a.count(), got)
			}
			text, err := os.ReadFile(a.audit)
			if err != nil {
				t.Fatal(err)
			}
			if all := entries(t, text); len(all) != 1 || all[0].Action != "pause" || all[0].Actor != "root" {
				t.Errorf("%s: audit %s", scope, text)
			}
		})
	}
}

func TestASiteThatWroteNoPolicyOnlyRecommends(t *testing.T) {
	t.Parallel()
	tune(t, "", func(t *testing.T, c *daemontest.Controller, a *advances) {
		job := submitAs(t, c, peer.Peer{UID: 4242, Name: "alice"}, api.Submission{Filename: "job.sh", Source: tunable("work")})
		time.Sleep(5 * time.Minute)
		if got := ask(t, c, job.ID); a.count() != 0 || !got.Ended || got.Attempt != 1 {
			t.Errorf("%d steps; the job %+v", a.count(), got)
		}
	})
}
