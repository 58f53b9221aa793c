package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
)

// remember writes observations of two kinds and a model into a state directory.
func remember(t *testing.T, state string, model json.RawMessage) {
	t.Helper()
	daemontest.New(t, daemontest.Options{State: state}).Stop(t) // makes the directory
	store, err := knowledge.Open(filepath.Join(state, "knowledge.db"), knowledge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		id := fmt.Sprintf("job-%d", i)
		o := knowledge.Observation{
			ID: id, Job: id, Kind: tuning.JobKind{Owner: "alice", Name: fmt.Sprintf("kind%d", i%2), Fingerprint: "f"},
			At: time.Date(2024, 5, 1, 12, i, 0, 0, time.UTC),
			Profiles: []tuning.Profile{{
				Schema: "sw/1", Machine: "m", Epochs: 2, Samples: 9, Seconds: 9, Settings: tuning.Settings{"cores": tuning.Number(1)},
				Features: map[string]float64{"a": float64(i%2)*10 + float64(i)*0.01, "b": float64(i%2)*-7 + float64(i)*0.01},
			}},
		}
		if err := store.Update(func(tx *knowledge.Tx) error { _, err := tx.Put(o); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Update(func(tx *knowledge.Tx) error { return tx.SaveModel(model) }); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAModelThatCannotBeReadIsFittedAnew(t *testing.T) {
	t.Parallel()
	for _, garbage := range []string{`{}`, `"nonsense"`, `{"version":99,"classes":[]}`, `[1,2,3]`} {
		t.Run(garbage, func(t *testing.T) {
			t.Parallel()
			state := filepath.Join(t.TempDir(), "state")
			remember(t, state, json.RawMessage(garbage))
			daemontest.New(t, daemontest.Options{State: state}).Stop(t)
			store, err := knowledge.Open(filepath.Join(state, "knowledge.db"), knowledge.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close() //nolint:errcheck // it was only read
			raw, err := store.LoadModel()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := classify.Decode(raw); err != nil {
				t.Errorf("the model is still %.80s: %v", raw, err)
			}
		})
	}
}

func TestKnowledgeOfOthersIsNotShown(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	remember(t, state, json.RawMessage(`{}`))
	c := daemontest.New(t, daemontest.Options{State: state})
	for _, x := range []struct {
		who  peer.Peer
		want int
	}{{peer.Peer{UID: 4242, Name: "alice"}, 2}, {peer.Peer{UID: 4243, Name: "bob"}, 0}, {peer.Peer{Name: "root"}, 2}} {
		var k api.Knowledge
		w := as(t, c, x.who, "GET", "/v1/knowledge", "")
		if err := json.Unmarshal(w.Body.Bytes(), &k); err != nil || len(k.Kinds) != x.want || k.Kinds == nil {
			t.Errorf("%s sees %s (%v), want %d kinds", x.who.Name, w.Body, err, x.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{JobLabels: true})
	job := submit(t, c, api.Submission{Source: daemontest.Script("train", 3, 0.03, daemontest.Tuned("observe")...)})
	plain := submit(t, c, api.Submission{Source: daemontest.Script("plain\xff", 1000, 1)}) // no UTF-8
	c.Until(t, job.ID, daemontest.Ended)
	if err := c.Client.Pause(t.Context(), api.Pause{Scope: "cluster"}); err != nil {
		t.Fatal(err)
	}
	scrape := func() string {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
		w := httptest.NewRecorder()
		c.Daemon.Handler().ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		text, missing := scrape(), ""
		for _, line := range []string{
			`pitchpipe_controller_jobs{phase="ended"} 1`, `pitchpipe_controller_jobs{phase="ignored"} 1`, `pitchpipe_controller_jobs{phase="settled"} 0`,
			`pitchpipe_controller_jobs_attention 0`, `pitchpipe_controller_pauses 1`, `pitchpipe_controller_observations 1`,
			`pitchpipe_controller_restarts_total 0`, `pitchpipe_controller_probes_total 0`, `pitchpipe_controller_records_readable 1`,
			`pitchpipe_controller_outcomes_total{verdict="improved"} 0`, `pitchpipe_controller_holds{reason="no-stanza"} 1`,
			fmt.Sprintf(`pitchpipe_controller_job_info{account="",job_id=%q,manager="sim",name="plain�",user=%q} 1`, plain.ID, plain.Owner),
		} {
			if !strings.Contains(text, line+"\n") {
				missing += line + "\n"
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the metrics lack\n%sin\n%s", missing, text)
		}
	}
	problems, err := promlint.New(strings.NewReader(scrape())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsAreServedOnLoopbackAndNothingElseIs(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	c := daemontest.Start(t, daemontest.Options{Listen: address})
	for path, want := range map[string]int{"/metrics": 200, "/v1/jobs": 404, "/v1/pauses": 404, "/": 404} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+c.Config.Listen+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close() != nil || err != nil || resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d: %.200s", path, resp.StatusCode, want, body)
		}
	}
}
