package worlds

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// played is the outcome of a run.
type played struct {
	job   driver.Job
	cost  cost
	story []api.Line
}

// policy is the site's: everything else is at its default.
const policy = "default:\n  max_mode: apply\n"

// asker asks a controller as a user does.
type asker func(method, path string, body, answer any)

// control starts a controller of a cluster and returns how to ask it and how to end it.
func control(t *testing.T, cluster *sim.Cluster, state, policy string, tick time.Duration) (ask asker, end func()) {
	t.Helper()
	path := filepath.Join(state, "site.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	site, err := config.LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{State: filepath.Join(state, "controller"), Resync: 10 * time.Minute},
		Site:   site, Driver: cluster, Meter: cluster, Log: slog.New(slog.DiscardHandler), Tick: tick,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- d.Tune(ctx) }()
	handler := d.Handler()
	ask = func(method, path string, body, answer any) {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		as := peer.NewContext(t.Context(), peer.Peer{UID: 4242, Name: "alice"})
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, httptest.NewRequestWithContext(as, method, path, bytes.NewReader(raw)))
		if rec.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
		}
		if err := json.Unmarshal(rec.Body.Bytes(), answer); err != nil {
			t.Fatal(err)
		}
	}
	return ask, func() {
		cancel()
		if err := <-gone; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// play lets a controller tune the runs of the world, one after the other.
func (w world) play(t *testing.T, state string) []played {
	t.Helper()
	// Long jobs are sampled and looked at as often in an epoch as shorter ones, which changes
	// nothing but how long it takes to play them.
	cluster := w.cluster(t, max(time.Second, w.runs[0].epoch/4))
	defer cluster.Close()
	ask, end := control(t, cluster, state, policy, min(30*time.Second, max(500*time.Millisecond, w.runs[0].epoch/10)))
	defer end()
	out := make([]played, len(w.runs))
	for i, j := range w.runs {
		var seen api.Job
		ask(http.MethodPost, api.PathJobs, api.Submission{Filename: "job.sbatch", Source: []byte(j.source)}, &seen)
		for !seen.Ended {
			time.Sleep(20 * time.Second)
			got, err := cluster.Get(t.Context(), driver.JobID(seen.ID))
			if err != nil {
				t.Fatal(err)
			}
			if out[i].job = got; got.State.Ended() {
				ask(http.MethodGet, "/v1/jobs/"+seen.ID, nil, &seen)
			}
		}
		out[i].cost = w.measure(t, cluster, out[i].job)
		var told api.Story
		ask(http.MethodGet, "/v1/explain/"+seen.ID, nil, &told)
		out[i].story = told.Lines
		time.Sleep(time.Hour)
	}
	return out
}
