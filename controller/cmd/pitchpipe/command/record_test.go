package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/record"
	"pitchpipe/exporter/api"
)

func TestACommandIsRecordedUnderEverySetting(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "recorded")
	args := []string{
		"record", "--out", dir, "--exporter", "none", "--knob", "size=1,2", "--input", "a", "--input", "b,", "--repeats", "1", "--workload", "said",
		"--", "sh", "-c", `echo "epoch 1/1 loss 0.{size}"; test {input} != c`,
	}
	r := pitchpipe(t, args...)
	if r.code != command.ExitOK || !strings.Contains(r.out, "4 of 4 runs: 4 made now, 0 kept, 0 failed") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.errors)
	}
	if !strings.Contains(r.out, "not measured: counters and joules: there is no exporter") {
		t.Errorf("it does not say what is missing: %s", r.out)
	}
	trials, err := evaluate.Read(filepath.Join(dir, "trials.csv"), evaluate.Trials)
	if err != nil || len(trials.Rows) != 4 {
		t.Fatalf("%d trials, %v", len(trials.Rows), err)
	}
	for _, row := range trials.Rows {
		if loss, ok := row.Float("loss"); !ok || loss != row.Knobs["size"].Float()/10 {
			t.Errorf("loss %v of %v", loss, row.Knobs)
		}
	}
	r = pitchpipe(t, append([]string{"--json"}, args...)...)
	var again record.Result
	if err := json.Unmarshal([]byte(r.out), &again); err != nil || again.Kept != 4 || again.Made != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestARecordingWhoseRunsAllFailFails(t *testing.T) {
	t.Parallel()
	r := pitchpipe(t, "record", "--out", t.TempDir(), "--exporter", "none", "--", "false")
	if r.code != command.ExitFailed || !strings.Contains(r.out, "2 made now, 0 kept, 2 failed") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errors)
	}
}

func TestRecordingsThatCannotBegin(t *testing.T) {
	t.Parallel()
	plan := write(t, "plan.yaml", "workloads: []\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":           {[]string{"--out", "x"}, "a command behind --"},
		"no folder":            {[]string{"--", "true"}, "--out DIR"},
		"a knob without value": {[]string{"--out", "x", "--knob", "cores", "--", "true"}, "NAME=VALUE"},
		"a knob twice":         {[]string{"--out", "x", "--knob", "a=1", "--knob", "a=2", "--", "true"}, "once"},
		"a hole":               {[]string{"--out", "x", "--", "echo", "{size}"}, "{size}"},
		"an empty variable":    {[]string{"--out", "x", "--env", "THREADS", "--", "true"}, "name=value"},
		"an empty plan":        {[]string{"--out", "x", "--plan", plan}, "no workloads"},
		"no such plan":         {[]string{"--out", "x", "--plan", plan + "x"}, "read the plan"},
		"a plan and a command": {[]string{"--out", "x", "--plan", plan, "--", "true"}, "exclude each other"},
		"a plan and a number":  {[]string{"--out", "x", "--plan", plan, "--repeats", "5"}, "none of the others can be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pitchpipe(t, append([]string{"record"}, c.args...)...)
			if r.code != command.ExitInvalid || !strings.Contains(r.errors, c.want) {
				t.Errorf("exit %d, errors %q, want %q", r.code, r.errors, c.want)
			}
			if _, err := os.Stat("x"); err == nil {
				t.Error("a folder was made")
			}
		})
	}
}

func TestARecordingUnderTheExporterCanBeEvaluated(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the exporter and runs for some seconds")
	}
	if runtime.NumCPU() < 2 {
		t.Skip("the factorial needs two CPUs")
	}
	built, err := programs.folder()
	if err != nil {
		t.Skipf("the exporter cannot be built here: %v", err)
	}
	exporter := filepath.Join(built, "pitchpipe-exporter")
	plan := write(t, "plan.yaml", `workloads:
  - {name: busy, command: [sh, -c, "for e in 1 2 3 4; do timeout 0.25 sh -c 'while :; do :; done'; echo epoch $e/4; done"], inputs: [1, 2]}
  - {name: idle, command: [sh, -c, "for e in 1 2 3 4; do sleep 0.25; echo epoch $e/4; done"], inputs: [1, 2]}
knobs: {cores: [1, 2]}
repeats: 2
timeout: 5m
`)
	dir := filepath.Join(t.TempDir(), "recorded")
	r := pitchpipe(t, "record", "--out", dir, "--plan", plan, "--exporter", exporter, "--interval", "100ms")
	if r.code != command.ExitOK || !strings.Contains(r.out, "16 made now, 0 kept, 0 failed") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.errors)
	}
	trialsFile, samplesFile := filepath.Join(dir, "trials.csv"), filepath.Join(dir, "samples.csv")
	r2 := pitchpipe(t, "evaluate", "classifier", "--samples", samplesFile, "--trials", trialsFile, "--objective", "time", "--resamples", "2", "--json")
	var report struct {
		Summary struct {
			Runs, Programs int
			Recognised     *float64
			Regret         *struct{ Inputs int }
		}
	}
	if err := json.Unmarshal([]byte(r2.out), &report); r2.code != command.ExitOK || err != nil {
		t.Fatalf("exit %d, %v: %s%s", r2.code, err, r2.out, r2.errors)
	}
	s := report.Summary
	if s.Runs != 16 || s.Programs != 2 || s.Recognised == nil || s.Regret == nil || s.Regret.Inputs != 4 {
		t.Errorf("summary %+v", s)
	}
	r2 = pitchpipe(t, "evaluate", "regret", "--samples", samplesFile, "--trials", trialsFile, "--curves", filepath.Join(dir, "curves.csv"), "--json")
	var found struct {
		Summary struct {
			Inputs, Settings, Repeats, Questions int
			Regret                               *float64 `json:"regret_mean"`
			Default                              string
		}
	}
	if err := json.Unmarshal([]byte(r2.out), &found); r2.code != command.ExitOK || err != nil {
		t.Fatalf("exit %d, %v: %s%s", r2.code, err, r2.out, r2.errors)
	}
	if f := found.Summary; f.Inputs != 4 || f.Settings != 2 || f.Repeats != 2 || f.Questions != 8 || f.Regret == nil || f.Default != "cores=2" {
		t.Errorf("summary %+v", f)
	}
	samples, err := evaluate.Read(samplesFile, evaluate.Samples)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := evaluate.Read(trialsFile, evaluate.Trials)
	if err != nil || !trials.Has("others_cores") || !trials.Has("steal_share") || !trials.Has("disturbed") {
		t.Errorf("columns %v, %v: what others did is not told", trials.Columns, err)
	}
	if strings.Contains(r.out, "a cgroup for each run") {
		t.Skip("the rest needs a cgroup for each run:", r.out)
	}
	for _, c := range []string{api.ColCPUSeconds, api.ColAllocatedCores, api.ColNodeBusy, api.ColThreads} {
		if !samples.Has(c) {
			t.Errorf("the samples have no %s: %v", c, samples.Columns)
		}
	}
	if !samples.Has(api.ColContextSwitch) {
		t.Skip("the rest needs software perf events:", r.out)
	}
	for _, row := range samples.Rows {
		if cores, ok := row.Float(api.ColAllocatedCores); ok && cores != row.Knobs["cores"].Float() {
			t.Errorf("line %d: %v cores of %v", row.Line, cores, row.Knobs)
		}
		if at, _ := row.Float("t_seconds"); at <= 0 {
			t.Errorf("line %d begins before its run", row.Line)
		}
	}
}
