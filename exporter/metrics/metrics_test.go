package metrics_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

var update = flag.Bool("update", false, "rewrite exporter/metrics.md")

const page = "../metrics.md"

func TestThePageIsThatOfTheTable(t *testing.T) {
	got := metrics.Page()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is old; run with -update (-want +got):\n%s", page, diff)
	}
}

// full is a collector whose job has every column.
func full(t *testing.T) *metrics.Collector {
	t.Helper()
	store := window.New(window.Config{})
	key := attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 2}
	job := api.Job{Manager: attrib.Local, ID: "7", Attempt: 2, UID: 1000, Cgroup: "/c", Started: time.Unix(100, 0)}
	if err := store.Begin(key, job, api.SchemaSoftware, energy.RAPL); err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for i, c := range window.Columns() {
		values[c.Name] = float64(i + 1)
	}
	store.Append(key, time.Unix(101, 0), values, nil)
	snap := &sampler.Snapshot{
		Source: energy.RAPL, IdleBasis: "observed", IdleWatts: 30, Running: 1,
		Zones:     []energy.Zone{{ID: "intel-rapl:0", Name: "package-0", Counted: true, Joules: 30}},
		Book:      energy.Book{Node: energy.Joules{Active: 10, Idle: 20}, System: energy.Joules{Active: 1, Idle: 2}},
		JobJoules: map[attrib.Key]energy.Joules{key: {Active: 9, Idle: 18}},
	}
	node := api.Node{CPUModel: "x", MachineKind: "x×2", EnergySource: energy.RAPL, Cores: 2, MemoryBytes: 4, Sources: []api.Source{
		{Name: "perf/task-clock", Support: api.Denied, Reason: "because"},
	}}
	return metrics.New("test", node, store, func() *sampler.Snapshot { return snap })
}

func TestEveryFamilyIsShownAndPassesLint(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(full(t)); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range families {
		got = append(got, f.GetName())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "job" {
					t.Errorf("%s has a label called job", f.GetName())
				}
			}
		}
	}
	for _, m := range metrics.Table() {
		want = append(want, m.Name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-table +shown):\n%s", diff)
	}
}

func TestValuesAreShownWithTheirLabels(t *testing.T) {
	t.Parallel()
	const want = `# HELP pitchpipe_job_energy_joules_total Energy attributed to the attempt, active and idle.
# TYPE pitchpipe_job_energy_joules_total counter
pitchpipe_job_energy_joules_total{attempt="2",job_id="7",manager="local",source="rapl"} 23
# HELP pitchpipe_source_up 1 where a source can be measured, 0 where it is unsupported or denied; the reason says by what means or why not.
# TYPE pitchpipe_source_up gauge
pitchpipe_source_up{reason="because",source="perf/task-clock",support="denied"} 0
`
	if err := testutil.CollectAndCompare(full(t), strings.NewReader(want), "pitchpipe_job_energy_joules_total", "pitchpipe_source_up"); err != nil {
		t.Error(err)
	}
}

func TestWhoMaySeeNoJobSeesTheNodeAlone(t *testing.T) {
	t.Parallel()
	h, err := metrics.Handler(full(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		uid  uint32 // 0 = nothing is said of the caller
		job  bool
	}{
		{"everybody unless it is said", 0, true}, {"the job's user", 1000, true}, {"another user", 1001, false},
	} {
		rec, ctx := httptest.NewRecorder(), t.Context()
		if tc.uid > 0 {
			ctx = metrics.For(ctx, func(j api.Job) bool { return j.UID == tc.uid })
		}
		h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		text := rec.Body.String()
		if strings.Contains(text, `job_id="7"`) != tc.job || !strings.Contains(text, "pitchpipe_node_cores 2") || !strings.Contains(text, "pitchpipe_jobs_running 1") {
			t.Errorf("%s: %d\n%s", tc.name, rec.Code, text)
		}
	}
}
