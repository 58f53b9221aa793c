package dashboards_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"pitchpipe/exporter/metrics"
)

// dashboard is what of Grafana's model has to hold.
type dashboard struct {
	UID        string
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func load(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v; want the dashboards of node, job, budget and tuner", files, err)
	}
	out := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[file] = d
	}
	return out
}

// recorded are the names that the shipped rules record.
func recorded(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../rules/*.rules.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct{ Record string }
			}
		}
		if err := yaml.Unmarshal(text, &rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				names = append(names, r.Record)
			}
		}
	}
	return names
}

// queries are all expressions of a dashboard, those of its variables included, with
// values for what Grafana puts in.
func (d dashboard) queries() (out []string) {
	fill := strings.NewReplacer("$__rate_interval", "5m", "$__range", "3h", "$instance", "n1", "$manager", "slurm", "$job_id", "42")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			out = append(out, fill.Replace(q.Expr))
		}
	}
	variable := regexp.MustCompile(`^label_values\((.*), \w+\)$`)
	for _, v := range d.Templating.List {
		if m := variable.FindStringSubmatch(v.Query); m != nil {
			out = append(out, fill.Replace(m[1]))
		}
	}
	return out
}

func TestTheDashboardsAreWhole(t *testing.T) {
	t.Parallel()
	uids := map[string]bool{}
	for file, d := range load(t) {
		if d.UID == "" || uids[d.UID] || d.Title == "" || len(d.Panels) == 0 || len(d.Templating.List) == 0 {
			t.Errorf("%s: uid %q, title %q, %d panels", file, d.UID, d.Title, len(d.Panels))
		}
		uids[d.UID] = true
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] || p.Title == "" || p.Type == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q of type %q with %d queries", file, p.ID, p.Title, p.Type, len(p.Targets))
			}
			ids[p.ID] = true
			if g := p.GridPos; g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
				t.Errorf("%s: panel %q is at %+v", file, p.Title, g)
			}
			for _, o := range d.Panels[:i] {
				a, b := p.GridPos, o.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: %q lies on %q", file, p.Title, o.Title)
				}
			}
		}
	}
}

func TestEveryMetricOfADashboardOrRuleExists(t *testing.T) {
	t.Parallel()
	known := append(recorded(t), "pitchpipe_period_budget_joules", "pitchpipe_project_member") // which a site writes
	for _, m := range metrics.Table() {
		known = append(known, m.Name)
	}
	// The controller's are not to be known here: test/layout forbids to import it.
	for _, name := range []string{
		"jobs", "jobs_attention", "holds", "job_info", "pauses", "observations", "exporters", "restarts_total", "probes_total",
		"outcomes_total", "saved_seconds_total", "lost_seconds_total",
	} {
		known = append(known, "pitchpipe_controller_"+name)
	}
	known = append(known, "pitchpipe_leader")
	name := regexp.MustCompile(`\bpitchpipe(?:_\w+|:[\w:]+)`)
	look := func(where, text string) {
		for _, found := range name.FindAllString(text, -1) {
			if !slices.Contains(known, found) {
				t.Errorf("%s: there is no metric %s", where, found)
			}
		}
	}
	n := 0
	for file, d := range load(t) {
		for _, q := range d.queries() {
			look(file, q)
			n++
			if !strings.Contains(q, "pitchpipe") && !strings.HasPrefix(q, "ALERTS{") {
				t.Errorf("%s: %q asks for nothing of ours", file, q)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d queries were found", n)
	}
	files, err := filepath.Glob("../rules/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		look(file, string(text))
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		program = filepath.Join("..", "..", ".build", "tools", "promtool")
		if _, err := os.Stat(program); err != nil {
			t.Skip("promtool is missing; scripts/setup-test fetches it")
		}
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// Each query is made a rule, which promtool reads.
func TestPrometheusUnderstandsEveryQuery(t *testing.T) {
	t.Parallel()
	type rule struct {
		Record string            `yaml:"record"`
		Expr   string            `yaml:"expr"`
		Labels map[string]string `yaml:"labels"`
	}
	var rules []rule
	for file, d := range load(t) {
		for _, q := range d.queries() {
			rules = append(rules, rule{"query", q, map[string]string{"of": file}})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

// The pages' own examples, and the scrape jobs for other dashboards.
func TestPrometheusAcceptsTheConfigurations(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../rules/README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := []string{"../rules/compat.scrape.yml"}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Errorf("the page has %d examples, want 3", len(blocks))
	}
	for i, b := range blocks {
		file := filepath.Join(dir, string(rune('a'+i))+".yml")
		if err := os.WriteFile(file, b[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(b[1]), "groups:") {
			promtool(t, "check", "rules", file)
			continue
		}
		files = append(files, file)
	}
	for _, file := range files {
		promtool(t, "check", "config", "--syntax-only", file)
	}
}
