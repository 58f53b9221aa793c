package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/doctor"
)

func TestTheEventsThatAnAdministratorChoseReachSamplesAndMetrics(t *testing.T) {
	client, socket := exporter(t, "--perf.events", "page-faults,msr/tsc/,cpu/no-such-event/")
	n, err := client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]api.Source{}
	for _, s := range n.Sources {
		answers[s.Name] = s
	}
	if s := answers["perf/cpu/no-such-event/"]; s.Support != api.Unsupported || s.Reason == "" {
		t.Errorf("%+v, want unsupported with a reason", s)
	}
	if s := answers["perf/page-faults"]; s.Support != api.Supported {
		t.Skipf("%s is %s: %s", s.Name, s.Support, s.Reason)
	}
	if !strings.HasPrefix(n.Schema, api.SchemaWith([]string{"page-faults"})) && !strings.HasSuffix(n.Schema, ",page-faults") {
		t.Errorf("schema %q does not say that page faults are counted", n.Schema)
	}
	id := fmt.Sprintf("e2e-perf-%d", os.Getpid())
	dirs := leaves(t, id+".1")
	pid, wait := start(t, socket)
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
	w := ended(t, client, id, 1)
	if w.Schema != n.Schema {
		t.Errorf("the job's schema is %s, the node's %s", w.Schema, n.Schema)
	}
	pages := api.PerfEvent("page-faults")
	check(t, w, pages, api.PerfEnabled("software"), api.PerfRunning("software"))
	last := w.Samples[len(w.Samples)-1].Values
	// The three are read one after the other.
	if all, want := last[pages], last[api.ColMinorFaults]+last[api.ColMajorFaults]; math.Abs(all-want) > 1e-3*want || all < 1000 {
		t.Errorf("%v page faults, want %v and at least those of 64 MiB", all, want)
	}
	page := scrape(t, socket)
	for _, family := range []string{"pitchpipe_job_perf_page_faults_total{", "pitchpipe_job_perf_multiplex_ratio{", "pitchpipe_perf_event_info{"} {
		if !slices.ContainsFunc(strings.Split(page, "\n"), func(line string) bool {
			return strings.HasPrefix(line, family) && (strings.Contains(line, strconv.Quote(id)) || strings.Contains(line, "event="))
		}) {
			t.Errorf("no %s in the metrics", family)
		}
	}
}

func TestAnUnknownEventStopsTheExporterWithOneError(t *testing.T) {
	cmd := command()
	cmd.SetArgs([]string{"--socket", filepath.Join(t.TempDir(), "s"), "--web.listen-address", "", "--perf.events", "basic,cycels"})
	err := cmd.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), `--perf.events: unknown perf event "cycels"`) || !strings.Contains(err.Error(), "pipetune") {
		t.Errorf("%v, want the unknown name and what there is", err)
	}
}

func TestTheDoctorNamesEachChosenEvent(t *testing.T) {
	findings, err := consultDoctor(t, "--perf.events", "memory,nosuch:tracepoint", "--socket", filepath.Join(t.TempDir(), "s"))
	if err == nil {
		t.Log("everything is in use")
	}
	for _, name := range []string{"perf/cycles", "perf/LLC-load-misses", "perf/nosuch:tracepoint"} {
		i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == name })
		if i < 0 || findings[i].Why == "" {
			t.Errorf("nothing of %s in %+v", name, findings)
			continue
		}
		if name == "perf/nosuch:tracepoint" && findings[i].State == doctor.Works {
			t.Errorf("%+v works", findings[i])
		}
	}
}
