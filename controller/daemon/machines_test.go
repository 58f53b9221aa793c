package daemon

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
)

// anExporter answers on a socket: what machine it is, and an empty window of any job
// whose id is the node's name.
func anExporter(t *testing.T, dir, node string, about api.Node) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", filepath.Join(dir, node))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathNode, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(about) })
	mux.HandleFunc("GET "+api.PathSamples, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != (listing{}).Name()+"/"+node {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(api.Window{Job: api.Job{ID: node, Attempt: 1}})
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
}

func TestWhatCountsOfMachinesIsThatOfTheJobsNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	anExporter(t, dir, "measured", api.Node{MachineKind: "a", Cores: 4, EnergySource: "rapl"})
	anExporter(t, dir, "computed", api.Node{MachineKind: "b", Cores: 8, EnergySource: tuning.Modelled})
	exporters, err := nodes.New(nodes.Config{Pattern: "unix:" + filepath.Join(dir, nodes.Placeholder)})
	if err != nil {
		t.Fatal(err)
	}
	defer exporters.Close()
	store := openStore(t, t.TempDir())
	defer store.Close() //nolint:errcheck // the test is over
	r := &services{driver: listing{}, nodes: exporters, store: store, log: slog.New(slog.DiscardHandler)}

	// 1. Each job is asked for where it ran.
	for _, q := range []struct {
		job  driver.JobID
		node string
		want error
	}{
		{"measured", "measured", nil},
		{"computed", "computed", nil},
		{"measured", "computed", api.ErrNotFound},
		{"measured", "dead", api.ErrUnavailable},
		{"measured", "../measured", nodes.ErrNode},
		{"measured", "", nodes.ErrNode},
	} {
		_, err := r.measure(t.Context(), reconcile.MeasureRequest{Job: q.job, Attempt: 1, Node: q.node})
		if !errors.Is(err, q.want) {
			t.Errorf("job %s on %q: %v, want %v", q.job, q.node, err, q.want)
		}
	}

	// 2. What a job taught is kept with the machine that it ran on last.
	own := tuning.Settings{tuning.Cores: tuning.Number(1)}
	faster := tuning.Settings{tuning.Cores: tuning.Number(2)}
	kind := tuning.JobKind{Owner: "alice", Name: "train", Fingerprint: "f"}
	joules, fewer := tuning.Joules(100), tuning.Joules(50)
	lesson := knowledge.Observation{
		User: "alice", Kind: kind, At: time.Now(),
		Trials: []tuning.Trial{
			{Settings: own, Epochs: 3, Seconds: 2, Joules: &joules, Reference: true},
			{Settings: faster, Epochs: 3, Seconds: 1, Joules: &fewer},
		},
	}
	for i, node := range []string{"measured", "computed", "dead", ""} {
		lesson.ID, lesson.Job = "on "+node, string(rune('1'+i))
		if err := r.learn(t.Context(), lesson, node); err != nil {
			t.Errorf("learned on %q: %v", node, err)
		}
	}
	all, err := store.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		want := knowledge.Target{}
		switch o.Job {
		case "1":
			want = knowledge.Target{Machine: "a", Cores: 4}
		case "2":
			want = knowledge.Target{Machine: "b", Cores: 8}
		}
		if got := (knowledge.Target{Machine: o.Machine, Cores: o.Cores}); got != want {
			t.Errorf("job %s was learned from %+v, want %+v", o.Job, got, want)
		}
	}

	// 3. Joules count where the job's node measures them. A job that waits, in a
	// cluster of several kinds of machines, is not moved by them, and does not fail.
	policy := tuning.DefaultPolicy()
	policy.Knobs = []tuning.Knob{{Name: tuning.Cores}}
	for _, c := range []struct {
		objective tuning.Objective
		node      string
		effects   bool
	}{
		{tuning.Energy, "measured", true},
		{tuning.Energy, "computed", false},
		{tuning.Energy, "dead", false},
		{tuning.Energy, "", false},
		{tuning.Time, "dead", true},
		{tuning.Time, "", true},
	} {
		policy.Objective = c.objective
		got, err := r.recall(t.Context(), reconcile.Question{Kind: kind, Own: own, Policy: policy, Node: c.node})
		if err != nil || (len(got.KindEffects) > 0) != c.effects {
			t.Errorf("%s on %q: effects %+v, %v; want some: %v", c.objective, c.node, got.KindEffects, err, c.effects)
		}
	}
}
