package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/doctor"
	"pitchpipe/test/sandbox"
)

// node plants a node of one core with a RAPL counter.
func plantNode(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	sandbox.Plant(t, dir, map[string]string{
		"proc/stat":                                           "cpu  1 0 1 1 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n",
		"proc/loadavg":                                        "0 0 0 1/1 1\n",
		"sys/class/powercap/intel-rapl:0/name":                "package-0\n",
		"sys/class/powercap/intel-rapl:0/energy_uj":           "5\n",
		"sys/class/powercap/intel-rapl:0/max_energy_range_uj": "65532610987\n",
	})
	return dir
}

func consultDoctor(t *testing.T, args ...string) ([]doctor.Finding, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := command()
	cmd.SetArgs(append([]string{"doctor", "--json"}, args...))
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	var findings []doctor.Finding
	if jsonErr := json.Unmarshal(out.Bytes(), &findings); jsonErr != nil {
		t.Fatalf("%v; %s", errors.Join(err, jsonErr), &out)
	}
	return findings, err
}

func TestTheDoctorExaminesTheNodeThatTheFlagsName(t *testing.T) {
	findings, err := consultDoctor(t, "--path.rootfs", plantNode(t), "--socket", filepath.Join(t.TempDir(), "s"))
	states := map[string]doctor.State{}
	for _, f := range findings {
		states[f.Name] = f.State
	}
	for name, want := range map[string]doctor.State{
		"energy/rapl": doctor.Works, "energy": doctor.Works, "attrib/cgroup": doctor.Absent, "perf/task-clock": doctor.Absent, "exporter": doctor.Limited, "state": doctor.Limited,
	} {
		if states[name] != want {
			t.Errorf("%s is %q, want %q", name, states[name], want)
		}
	}
	if v, ok := errors.AsType[doctor.Verdict](err); !ok || v != doctor.Mendable {
		t.Errorf("got %v, want the verdict that something can be mended", err)
	}
}

func TestTheDoctorKnowsAnExporterThatRunsAndOneThatCannot(t *testing.T) {
	_, socket := exporter(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]doctor.State{socket: doctor.Works, filepath.Join(file, "s"): doctor.Broken} {
		findings, err := consultDoctor(t, "--socket", path)
		for _, f := range findings {
			if f.Name == "exporter" && f.State != want {
				t.Errorf("%s: %+v, want %s", path, f, want)
			}
		}
		if v, ok := errors.AsType[doctor.Verdict](err); want == doctor.Broken && (!ok || v != doctor.Ill) {
			t.Errorf("%s: got %v, want the verdict that it cannot work", path, err)
		}
	}
}

func TestTheDoctorSaysWhetherBudgetsOutliveTheExporter(t *testing.T) {
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.json")
	if err := os.WriteFile(cut, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]doctor.State{
		"": doctor.Limited, filepath.Join(dir, "state.json"): doctor.Works, filepath.Join(dir, "made", "state.json"): doctor.Works, cut: doctor.Limited,
		filepath.Join(cut, "below", "state.json"): doctor.Limited,
	} {
		findings, _ := consultDoctor(t, "--state.file", path, "--socket", filepath.Join(dir, "s")) // the verdict is of more than that
		i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == "state" })
		if i < 0 || findings[i].State != want || want != doctor.Works && !strings.Contains(findings[i].Mend, "--state.file") {
			t.Errorf("%q: %+v, want %s", path, findings, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("the doctor made a directory")
	}
}

// The rights, flags and sources that matter are those of the exporter that runs.
func TestTheDoctorExaminesTheExporterThatRuns(t *testing.T) {
	dir := plantNode(t)
	kept := filepath.Join(t.TempDir(), "state.json")
	_, socket := exporter(t, "--path.rootfs", dir, "--state.file", kept)
	state := func(findings []doctor.Finding, name string) doctor.Finding {
		i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == name })
		if i < 0 {
			t.Fatalf("nothing of %s in %+v", name, findings)
		}
		return findings[i]
	}
	findings, _ := consultDoctor(t, "--socket", socket) // the verdict is of more than that
	if f := state(findings, "state"); f.State != doctor.Works || !strings.Contains(f.Why, kept) {
		t.Errorf("%+v, want the file of the exporter", f)
	}
	if f := state(findings, "energy/rapl"); f.State != doctor.Works {
		t.Errorf("%+v, want the counter of the exporter's node", f)
	}
	var page bytes.Buffer
	cmd := command()
	cmd.SetArgs([]string{"doctor", "--socket", socket})
	cmd.SetOut(&page)
	_ = cmd.ExecuteContext(t.Context()) // the verdict
	if want := "The exporter that answers on " + socket; !strings.Contains(page.String(), want) {
		t.Errorf("%s does not say %q", &page, want)
	}
	// With flags it is another one that is asked about.
	findings, _ = consultDoctor(t, "--socket", socket, "--perf.events=software")
	if f := state(findings, "state"); f.State != doctor.Limited {
		t.Errorf("%+v, want an exporter that keeps nothing", f)
	}
	// Without an exporter it is this shell's.
	findings, _ = consultDoctor(t, "--socket", filepath.Join(t.TempDir(), "s"))
	if f := state(findings, "exporter"); !strings.Contains(f.Why, "judged with this shell's rights") {
		t.Errorf("%+v does not say whose rights these are", f)
	}
}

func TestJobsThatPerfDoesNotCountAreNamed(t *testing.T) {
	t.Parallel()
	absent := []api.Source{{Name: "perf", Support: api.Unsupported, Reason: "no cgroup in perf_event"}}
	var f doctor.Facts
	count(&f, []api.Job{
		{Manager: "slurm", ID: "1", Cgroup: "/c", Absent: absent},
		{Manager: "slurm", ID: "2", Cgroup: "/c"},
		{Manager: "nomad", ID: "3", Cgroup: "/c", Ended: true, Absent: absent},
		{Manager: "local", ID: "4", Absent: absent}, // by its environment
	})
	if !slices.Equal(f.Uncounted, []string{"slurm/1"}) || !slices.Equal(f.Managers, []string{"slurm", "local"}) {
		t.Errorf("%v of %v", f.Uncounted, f.Managers)
	}
}

// A recorded host of RHEL 8's kind: perf has its own tree, in which Slurm makes nothing.
func TestTheDoctorComparesTheCgroupsOfJobsWithPerfsTree(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("cgroups of schedulers are believed where root owns them")
	}
	dir := plantNode(t)
	for _, file := range []string{"perf_event/cgroup.procs", "freezer/cgroup.procs", "freezer/slurm/uid_1000/job_42/cgroup.procs"} {
		plantFile(t, filepath.Join(dir, "sys/fs/cgroup", file), "")
	}
	var o options
	o.root, o.environ = o.root.Below(dir), "off"
	facts, err := consult(t.Context(), o, true)
	if err != nil {
		t.Fatal(err)
	}
	if !facts.Hybrid || !slices.Equal(facts.Uncounted, []string{"slurm/42"}) {
		t.Errorf("leaves are of use: %v; not counted: %v", facts.Hybrid, facts.Uncounted)
	}
	facts.Node.Schema = api.SchemaSoftware
	for _, f := range doctor.Examine(facts) {
		if strings.HasPrefix(f.Name, "perf for") && (f.State != doctor.Limited || f.Mend != "--perf.leaf" || !strings.Contains(f.Why, "slurm/42")) {
			t.Errorf("%+v", f)
		}
	}
}

func TestAStateThatIsCutShortStopsNoSampling(t *testing.T) {
	const cut = `{"version":1,"jobs":[{"job`
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("exporter", func(t *testing.T) { // which ends with it
		client, _ := exporter(t, "--state.file", path)
		if _, err := client.Jobs(t.Context()); err != nil {
			t.Error(err)
		}
	})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Errorf("the state that was left is %q", data)
	}
	if kept, err := os.ReadFile(path + ".broken"); err != nil || string(kept) != cut {
		t.Errorf("%q is kept aside, %v; want what was there", kept, err)
	}
}
