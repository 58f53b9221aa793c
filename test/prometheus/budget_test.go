package prometheus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/powercapsim"
	"pitchpipe/test/sandbox"
)

// job burns one core until it finds the file, and tells that an epoch ended as often as
// it can. Its budget is what it takes within some seconds.
const job = `#!/bin/sh
#SBATCH --job-name=hungry
#SBATCH --cpus-per-task=1
#SBATCH --mem=128M
#TUNE mode=observe
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+)'
#TUNE budget energy=60J time=1h
epoch=0
while [ ! -e %s ] && [ $epoch -lt 100000 ]; do
	epoch=$((epoch + 1)) i=0
	while [ $i -lt 200000 ]; do i=$((i + 1)); done
	echo "epoch $epoch/100000"
done
`

const config = `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["%s/*.rules.yml"]
scrape_configs:
  - job_name: pitchpipe-exporter
    static_configs: [{targets: ["%s"]}]
`

func TestABudgetThatIsOverrunIsReportedByPrometheus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prometheus := w.tool("prometheus")
	sys := filepath.Join(w.dir, "sys")
	joules, err := powercapsim.Follow(powercapsim.Config{Dir: sys, Packages: 1, DRAM: true})
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Beside(t, "what takes joules", joules)
	metrics, api, socket := sandbox.Address(t), sandbox.Address(t), filepath.Join(w.dir, "exporter.sock")
	exporter := []string{
		"exporter", w.program("pitchpipe-exporter"), "--socket", socket, "--web.listen-address", metrics, "--path.sysfs", sys, "--path.cgroupfs", "/sys/fs/cgroup",
		"--state.file", filepath.Join(w.dir, "exporter.json"), "--budget.dir=", "--sampling.interval=250ms", "--log.level=warn",
	}
	stop := w.start(exporter...)
	w.await("the exporter", func() error { _, err := w.get("http://" + metrics + "/metrics"); return err })

	// The rules as they ship, but for how often they are looked at.
	rules := filepath.Join(w.dir, "rules")
	w.copyRules(rules)
	compat, err := os.ReadFile(filepath.Join("..", "..", "exporter", "rules", "compat.scrape.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, others, _ := strings.Cut(string(compat), "scrape_configs:\n")
	w.write("prometheus.yml", fmt.Sprintf(config, rules, metrics)+strings.ReplaceAll(others, "127.0.0.1:9820", metrics))
	w.start("prometheus", prometheus, "--config.file="+filepath.Join(w.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(w.dir, "tsdb"), "--web.listen-address="+api, "--log.level=warn")
	p := client{w, "http://" + api}
	w.await("Prometheus to scrape the exporter", func() error {
		_, err := p.one(`up{job="pitchpipe-exporter"} == 1`)
		return err
	})

	w.controller(socket)
	done := filepath.Join(w.dir, "done")
	t.Cleanup(func() { _ = os.WriteFile(done, nil, 0o600) })
	id := strings.TrimSpace(w.pitchpipe("run", w.write("hungry.sbatch", fmt.Sprintf(job, done))))

	of := fmt.Sprintf(`{manager="local", job_id=%q}`, id)
	w.await("the controller to push the budget", func() error {
		budget, err := p.one("pitchpipe_job_energy_budget_joules" + of)
		if err == nil && (budget.value != 60 || budget.labels["by"] != "controller" || budget.labels["counts"] != "measured") {
			return fmt.Errorf("the budget is %+v", budget)
		}
		return err
	})
	firing := func() error { return p.firing("PitchpipeJobEnergyBudgetExceeded", id) }
	w.await("the alert to fire", firing)
	ratio, err := p.one("pitchpipe:job_energy_budget:ratio" + of)
	if err != nil || ratio.value < 1 {
		t.Errorf("the alert fires at %+v, %v", ratio, err)
	}

	stop() // at once: what was shown is kept
	w.start(exporter...)
	w.await("the exporter to have its budget again", func() error {
		page, err := w.get("http://" + metrics + "/metrics")
		if err == nil && !strings.Contains(page, fmt.Sprintf(`pitchpipe_job_energy_budget_joules{manager="local",job_id=%q,attempt="1",by="controller",counts="measured"} 60`, id)) {
			err = fmt.Errorf("it is not on the page")
		}
		return err
	})
	again, err := p.one("time()")
	if err != nil {
		t.Fatal(err)
	}
	w.await("Prometheus to scrape the exporter after its restart", func() error {
		_, err := p.one(fmt.Sprintf("timestamp(pitchpipe_job_energy_budget_joules%s) > %f", of, again.value))
		return err
	})
	if err := firing(); err != nil {
		t.Errorf("after a restart of the exporter: %v", err)
	}

	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.await("the alert to be resolved after the job's end", func() error {
		if firing() == nil {
			return fmt.Errorf("it fires still")
		}
		return nil
	})
	if n, err := p.one("count(count_over_time(ALERTS" + strings.Replace(of, "}", `, alertname="PitchpipeJobEnergyBudgetExceeded", alertstate="firing"}`, 1) + "[10m]))"); err != nil || n.value != 1 {
		t.Errorf("it fired as %+v, %v", n, err)
	}
	for _, q := range []string{"node_rapl_package_joules_total{index=\"0\", path=\"/sys/class/powercap/intel-rapl:0\"} > 0", "ceems_rapl_dram_joules_total{index=\"0\"}", fmt.Sprintf("ceems_compute_unit_cpu_user_seconds_total{uuid=%q}", id)} {
		w.await("what dashboards of others ask for: "+q, func() error { // a scrape may come too late
			_, err := p.one(q)
			return err
		})
	}
	p.healthy()
	w.acceptedByPromtool("http://" + metrics + "/metrics")
}

func TestModelledJoulesRaiseNoAlertAboutABudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prometheus := w.tool("prometheus")
	metrics, api := sandbox.Address(t), sandbox.Address(t)
	// No powercap tree: what is shown is a model.
	budgets := filepath.Join(w.dir, "budgets")
	if err := os.MkdirAll(filepath.Join(budgets, "local"), 0o755); err != nil { //nolint:gosec // as an administrator makes it
		t.Fatal(err)
	}
	for name, counts := range map[string]string{"strict": "measured", "lenient": "modelled"} {
		w.write(filepath.Join("budgets", "local", name), "joules=1 counts="+counts+"\n")
	}
	empty := filepath.Join(w.dir, "sys", "devices", "system", "cpu")
	if err := os.MkdirAll(empty, 0o755); err != nil { //nolint:gosec // as the kernel's is
		t.Fatal(err)
	}
	w.start("exporter", w.program("pitchpipe-exporter"), "--socket", filepath.Join(w.dir, "exporter.sock"), "--web.listen-address", metrics,
		"--path.sysfs", filepath.Join(w.dir, "sys"), "--path.cgroupfs", "/sys/fs/cgroup", "--budget.dir", budgets, "--sampling.interval=250ms", "--log.level=warn")
	w.await("the exporter", func() error { _, err := w.get("http://" + metrics + "/metrics"); return err })
	rules := filepath.Join(w.dir, "rules")
	w.copyRules(rules)
	w.write("prometheus.yml", fmt.Sprintf(config, rules, metrics))
	w.start("prometheus", prometheus, "--config.file="+filepath.Join(w.dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(w.dir, "tsdb"), "--web.listen-address="+api, "--log.level=warn")
	p := client{w, "http://" + api}
	for _, name := range []string{"strict", "lenient"} {
		c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do :; done")
		c.Env = append(os.Environ(), "PITCHPIPE_JOB_ID="+name)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	w.await("the alert about the one that lets modelled joules count", func() error {
		return p.firing("PitchpipeJobEnergyBudgetExceeded", "lenient")
	})
	w.await("the joules of the other one to be as many", func() error {
		_, err := p.one(`pitchpipe_job_energy_joules_total{job_id="strict", source="modelled"} > 5`)
		return err
	})
	if err := p.firing("PitchpipeJobEnergyBudgetExceeded", "strict"); err == nil {
		t.Error("modelled joules raised an alert about a budget of measured ones")
	}
	if r, err := p.one(`pitchpipe:job_energy_budget:ratio{job_id="strict"}`); err == nil {
		t.Errorf("modelled joules count: %+v", r)
	}
	w.await("it to be named that nothing measures the other one's budget", func() error {
		return p.state("PitchpipeBudgetNotMeasured", "strict", "pending", "firing") // for five minutes it is pending
	})
}

// client asks a Prometheus.
type client struct {
	w    *world
	base string
}

type sample struct {
	labels map[string]string
	value  float64
}

// one is the only sample of a query; anything else is an error.
func (c client) one(query string) (sample, error) {
	text, err := c.w.get(c.base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return sample{}, err
	}
	var answer struct {
		Data struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return sample{}, err
	}
	var pair [2]any
	var out sample
	if answer.Data.ResultType == "scalar" {
		err = json.Unmarshal(answer.Data.Result, &pair)
	} else {
		var all []struct {
			Metric map[string]string
			Value  [2]any
		}
		if err = json.Unmarshal(answer.Data.Result, &all); err == nil && len(all) != 1 {
			err = fmt.Errorf("%s: %d series", query, len(all))
		}
		if err == nil {
			out.labels, pair = all[0].Metric, all[0].Value
		}
	}
	if err != nil {
		return sample{}, err
	}
	_, err = fmt.Sscan(fmt.Sprint(pair[1]), &out.value)
	return out, err
}

func (c client) firing(alert, id string) error { return c.state(alert, id, "firing") }

func (c client) state(alert, id string, states ...string) error {
	text, err := c.w.get(c.base + "/api/v1/alerts")
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return err
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == alert && a.Labels["job_id"] == id && slices.Contains(states, a.State) {
			return nil
		}
	}
	return fmt.Errorf("no %s of %s is %v: %.2000s", alert, id, states, text)
}

// healthy tells of rules that Prometheus could not evaluate.
func (c client) healthy() {
	c.w.t.Helper()
	text, err := c.w.get(c.base + "/api/v1/rules")
	if err != nil {
		c.w.t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		c.w.t.Fatal(err)
	}
	n := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			n++
			if r.Health == "err" {
				c.w.t.Errorf("the rule %s: %s", r.Name, r.LastError)
			}
		}
	}
	if n < 50 {
		c.w.t.Errorf("%d rules are loaded", n)
	}
}

// copyRules copies the rules that ship, evaluated each second.
func (w *world) copyRules(to string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "exporter", "rules", "*.rules.yml"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no rules: %v", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // Prometheus reads it
		w.t.Fatal(err)
	}
	interval := regexp.MustCompile(`(?m)^    interval: \S+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		w.write(filepath.Join(filepath.Base(to), filepath.Base(file)), interval.ReplaceAllString(string(text), "    interval: 1s"))
	}
}

func (w *world) acceptedByPromtool(page string) {
	w.t.Helper()
	text, err := w.get(page)
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.CommandContext(w.t.Context(), w.tool("promtool"), "check", "metrics")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func (w *world) get(from string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, res.Body); err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %d: %.300s", from, res.StatusCode, b.String())
	}
	return b.String(), nil
}
