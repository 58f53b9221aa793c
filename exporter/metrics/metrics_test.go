package metrics_test

import (
	"compress/gzip"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
	"pitchpipe/test/fixtures"
)

var update = flag.Bool("update", false, "rewrite exporter/metrics.md and exporter/rules/compat.scrape.yml")

func TestThePagesAreThoseOfTheTables(t *testing.T) {
	for path, got := range map[string]string{"../metrics.md": reference(), "../rules/compat.scrape.yml": relabelling()} {
		fixtures.Golden(t, *update, path, got)
	}
}

func TestTheIndexOfAPackageIsReadOffEveryPath(t *testing.T) {
	t.Parallel()
	rules := regexp.MustCompile(`source_labels: \[path\], regex: '([^']*)', target_label: index`).FindAllStringSubmatch(relabelling(), -1)
	if len(rules) != 2 {
		t.Fatalf("%d rules, want one for each of the others", len(rules))
	}
	for _, rule := range rules {
		anchored := regexp.MustCompile("^(?:" + rule[1] + ")$")
		for path, want := range map[string]string{"intel-rapl:1:0": "1", "intel-rapl-mmio:0": "0", "power:0:package": "0", "power:12:dram": "12", "power:psys": "", "energy": ""} {
			got := ""
			if m := anchored.FindStringSubmatch(path); m != nil {
				got = m[1]
			}
			if got != want {
				t.Errorf("%s: index %q of %s, want %q", rule[1], got, path, want)
			}
		}
	}
}

func TestOtherNamesAreOfMetricsThatExist(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range elsewhere() {
		if !slices.ContainsFunc(metrics.Table(), func(m metrics.Metric) bool { return m.Name == o.Name }) {
			t.Errorf("%s is no metric", o.Name)
		}
		for _, other := range []string{o.NodeExporter, o.CEEMS} {
			if seen[other] && other != "" {
				t.Errorf("%s is the name of two", other)
			}
			seen[other] = true
		}
	}
}

// full is a page whose job has every column.
func full(t *testing.T) metrics.Config {
	t.Helper()
	c, _, _ := measured(t)
	return c
}

// measured is full with the store, and what takes the next sample.
func measured(t testing.TB) (c metrics.Config, store *window.Store, sample func()) {
	t.Helper()
	store = window.New(window.Config{})
	key := attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 2}
	job := api.Job{Manager: attrib.Local, ID: "7", Attempt: 2, UID: 1000, Cgroup: "/c", Started: time.Unix(100, 0), First: time.Unix(90, 0)}
	if err := store.Begin(window.Attempt{Job: job, Schema: api.SchemaSoftware, Source: energy.RAPL}); err != nil {
		t.Fatal(err)
	}
	store.Charge(key, energy.Joules{Active: 9, Idle: 18, DRAMActive: 2, DRAMIdle: 3, GPU: 7})
	values := map[string]float64{}
	for i, c := range columns() {
		values[c] = float64(i + 1)
	}
	store.Append(key, time.Unix(101, 0), values, nil)
	store.Allow(key, api.ByOwner, api.Budget{Joules: 2e6, Used: 5, Seconds: 60})
	snap := &sampler.Snapshot{
		At: time.Unix(101, 0), Users: []sampler.UserJoules{{UID: 1000, Joules: energy.Joules{Active: 9, Idle: 18}}},
		Source: energy.RAPL, Base: energy.Package, IdleBasis: "calibrated", IdleWatts: 30, Running: 1,
		Idle:  []energy.Calibration{{ID: "intel-rapl:0", Watts: 30, At: time.Unix(50, 0)}},
		Zones: []energy.Zone{{ID: "intel-rapl:0", Name: "package-0", Counted: true, Joules: 30}},
		Book:  energy.Book{Node: energy.Joules{Active: 10, Idle: 20, GPU: 8}, System: energy.Joules{Active: 1, Idle: 2}},
	}
	node := api.Node{CPUModel: "x", MachineKind: "x×2", EnergySource: energy.RAPL, Cores: 2, MemoryBytes: 4, Sources: []api.Source{
		{Name: "perf/task-clock", Support: api.Denied, Reason: "a \"b\\c\"\nd", Group: "cpu-1"},
	}}
	c = metrics.Config{Version: "test", Node: func() api.Node { return node }, Store: store, Snapshot: func() *sampler.Snapshot { return snap }, GPUs: twoGPUs}
	return c, store, func() { next := *snap; snap = &next }
}

// scrape is the page as one who sees all gets it, or as a user does.
func scrape(t *testing.T, h http.Handler, users ...uint32) string {
	t.Helper()
	rec, ctx := httptest.NewRecorder(), t.Context()
	if len(users) > 0 {
		ctx = metrics.For(ctx, users[0])
	}
	h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// page is one of a node without jobs.
func page(node func() api.Node, snapshot func() *sampler.Snapshot) metrics.Config {
	return metrics.Config{Version: "test", Node: node, Store: window.New(window.Config{}), Snapshot: snapshot}
}

func parse(t *testing.T, page string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	return families
}

func TestEveryFamilyIsShownAndPassesLint(t *testing.T) {
	t.Parallel()
	page := scrape(t, metrics.Handler(full(t)))
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	var got, want []string
	for name, f := range parse(t, page) {
		got = append(got, name)
		i := slices.IndexFunc(metrics.Table(), func(m metrics.Metric) bool { return m.Name == name })
		if i < 0 {
			continue
		}
		m := metrics.Table()[i]
		if strings.ToLower(f.GetType().String()) != m.Kind || f.GetHelp() != m.Help {
			t.Errorf("%s is shown as %s %q", name, f.GetType(), f.GetHelp())
		}
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if diff := cmp.Diff(m.Labels, labels); diff != "" && len(m.Labels)+len(labels) > 0 || slices.Contains(labels, "job") {
				t.Errorf("labels of %s (-table +shown):\n%s", name, diff)
			}
		}
	}
	for _, m := range metrics.Table() {
		want = append(want, m.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-table +shown):\n%s", diff)
	}
}

func TestValuesAreShownWithTheirLabels(t *testing.T) {
	t.Parallel()
	page := scrape(t, metrics.Handler(full(t)))
	for _, want := range []string{
		"# HELP pitchpipe_job_energy_joules_total Energy attributed to the attempt: active, idle and that of its GPUs. The source is modelled where any part is.\n# TYPE pitchpipe_job_energy_joules_total counter\n" +
			`pitchpipe_job_energy_joules_total{manager="local",job_id="7",attempt="2",source="rapl"} 34` + "\n",
		`pitchpipe_job_gpu_energy_joules_total{manager="local",job_id="7",attempt="2"} 7` + "\n",
		`pitchpipe_source_up{source="perf/task-clock",support="denied",reason="a \"b\\c\"\nd"} 0` + "\n",
		`pitchpipe_job_energy_budget_joules{manager="local",job_id="7",attempt="2",by="owner",counts="measured"} 2e+06` + "\n",
		`pitchpipe_job_energy_budget_used_joules{manager="local",job_id="7",attempt="2"} 5` + "\n",
		`pitchpipe_job_time_budget_seconds{manager="local",job_id="7",attempt="2"} 60` + "\n",
		`pitchpipe_job_start_time_seconds{manager="local",job_id="7",attempt="2"} 90` + "\n",
		`pitchpipe_user_energy_joules_total{uid="1000",source="rapl",kind="idle"} 18` + "\n",
		`pitchpipe_user_energy_joules_total{uid="1000",source="gpu",kind="gpu"} 0` + "\n",
		`pitchpipe_node_energy_joules_total{source="gpu",kind="gpu"} 8` + "\n",
		`pitchpipe_job_energy_component_joules_total{manager="local",job_id="7",attempt="2",component="package",kind="active",source="rapl"} 7` + "\n" +
			`pitchpipe_job_energy_component_joules_total{manager="local",job_id="7",attempt="2",component="package",kind="idle",source="rapl"} 15` + "\n" +
			`pitchpipe_job_energy_component_joules_total{manager="local",job_id="7",attempt="2",component="dram",kind="active",source="rapl"} 2` + "\n" +
			`pitchpipe_job_energy_component_joules_total{manager="local",job_id="7",attempt="2",component="dram",kind="idle",source="rapl"} 3` + "\n" +
			`pitchpipe_job_energy_component_joules_total{manager="local",job_id="7",attempt="2",component="gpu",kind="gpu",source="gpu"} 7` + "\n",
		`pitchpipe_node_idle_calibration_watts{path="intel-rapl:0"} 30` + "\n",
		`pitchpipe_node_idle_calibration_time_seconds{path="intel-rapl:0"} 50` + "\n",
		"pitchpipe_exporter_sample_time_seconds 101\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
}

// The joules on a mark are extrapolated: a page that showed them would be set back by a restart.
func TestThePageHasTheJoulesThatTheNextExporterGoesOnFrom(t *testing.T) {
	t.Parallel()
	c, store, _ := measured(t)
	store.Append(attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 2}, time.Unix(102, 0), map[string]float64{api.ColJoules: 5000, api.ColGPUJoules: 3000}, &api.Report{Epoch: 1})
	families := parse(t, scrape(t, metrics.Handler(c)))
	sum := func(name string) (joules float64) {
		for _, m := range families[name].GetMetric() {
			joules += m.GetCounter().GetValue()
		}
		return joules
	}
	if all, parts, gpu := sum("pitchpipe_job_energy_joules_total"), sum("pitchpipe_job_energy_component_joules_total"), sum("pitchpipe_job_gpu_energy_joules_total"); all != 34 || parts != 34 || gpu != 7 {
		t.Errorf("%v J, whose parts are %v, GPUs %v; want 34 and 7", all, parts, gpu)
	}
}

func TestThePageIsEncodedOncePerSample(t *testing.T) {
	t.Parallel()
	c, store, sample := measured(t)
	h := metrics.Handler(c)
	before := scrape(t, h)
	key := attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 2}
	store.Charge(key, energy.Joules{Active: 500})
	store.Append(key, time.Unix(102, 0), map[string]float64{api.ColJoules: 500}, nil)
	if scrape(t, h) != before {
		t.Error("the page changed between two samples")
	}
	sample()
	if after := scrape(t, h); !strings.Contains(after, "} 500\n") {
		t.Errorf("the next sample is not shown:\n%s", after)
	}
}

func TestACompressedPageIsTheSame(t *testing.T) {
	t.Parallel()
	c := full(t)
	c.Others = []prometheus.Collector{collectors.NewGoCollector()}
	h := metrics.Handler(c)
	plain := scrape(t, h)
	if !strings.Contains(plain, "go_goroutines ") {
		t.Error("the metrics of the runtime are missing")
	}
	for accept, zipped := range map[string]bool{
		"gzip": true, "deflate, gzip;q=1.0": true, "br, gzip": true, "gzip;q=0": false, "": false, "identity": false,
	} {
		rec, req := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		req.Header.Set("Accept-Encoding", accept)
		h.ServeHTTP(rec, req)
		var body io.Reader = rec.Body
		if (rec.Header().Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("%q: %v", accept, rec.Header())
		}
		if zipped {
			unzipped, err := gzip.NewReader(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = unzipped
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != plain {
			t.Errorf("%q: another page, %v", accept, err)
		}
	}
}

func TestEachSeesHisOwnPage(t *testing.T) {
	t.Parallel()
	h := metrics.Handler(full(t))
	for _, tc := range []struct {
		name string
		user []uint32
		job  bool
	}{
		{"everybody unless it is said", nil, true},
		{"the job's user", []uint32{1000}, true},
		{"another user", []uint32{1001}, false},
		{"a user with the number of root", []uint32{0}, false},
		{"who is not known", []uint32{peercred.Nobody}, false},
	} {
		text := scrape(t, h, tc.user...)
		if strings.Contains(text, `job_id="7"`) != tc.job || strings.Contains(text, `uid="1000"`) != tc.job ||
			!strings.Contains(text, "pitchpipe_node_cores 2") || !strings.Contains(text, "pitchpipe_jobs_running 1") {
			t.Errorf("%s:\n%s", tc.name, text)
		}
	}
}

// Whatever labels hold, the page can be read and says the same.
func TestAnyTextSurvivesThePage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		reason := rapid.String().Draw(rt, "reason")
		node := api.Node{Sources: []api.Source{{Name: "x", Support: api.Denied, Reason: reason}}}
		c := page(func() api.Node { return node }, func() *sampler.Snapshot { return &sampler.Snapshot{} })
		f := parse(t, scrape(t, metrics.Handler(c)))["pitchpipe_source_up"]
		for _, l := range f.GetMetric()[0].GetLabel() {
			if l.GetName() == "reason" && l.GetValue() != reason {
				rt.Errorf("%q became %q", reason, l.GetValue())
			}
		}
	})
}

func BenchmarkScrape(b *testing.B) {
	c, _, sample := measured(b)
	h := metrics.Handler(c)
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
	b.Run("from memory", func(b *testing.B) {
		for b.Loop() {
			h.ServeHTTP(httptest.NewRecorder(), req)
		}
	})
	b.Run("of a new sample", func(b *testing.B) {
		for b.Loop() {
			sample()
			h.ServeHTTP(httptest.NewRecorder(), req)
		}
	})
}
