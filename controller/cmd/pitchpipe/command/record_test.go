package command_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/evaluate/classifier"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/record"
)

func TestACommandIsRecordedUnderEverySetting(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "recorded")
	args := []string{
		"record", "--out", dir, "--exporter", "none", "--knob", "size=1,2", "--input", "a,b", "--repeats", "1", "--workload", "said",
		"--", "sh", "-c", `echo "epoch 1/1 loss 0.{size}"; test {input} != c`,
	}
	r := pitchpipe(t, args...)
	if r.code != command.ExitOK || !strings.Contains(r.out, "4 of 4 runs: 4 made now, 0 kept, 0 failed") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.errors)
	}
	if !strings.Contains(r.out, "not measured: counters and joules: there is no exporter") {
		t.Errorf("it does not say what is missing: %s", r.out)
	}
	trials, err := records.Read(filepath.Join(dir, "trials.csv"), records.Trials)
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
		"an empty variable":    {[]string{"--out", "x", "--env", "THREADS", "--", "true"}, "NAME=VALUE"},
		"an empty plan":        {[]string{"--out", "x", "--plan", plan}, "no workloads"},
		"no such plan":         {[]string{"--out", "x", "--plan", plan + "x"}, "read the plan"},
		"a plan and a command": {[]string{"--out", "x", "--plan", plan, "--", "true"}, "exclude each other"},
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
	exporter := filepath.Join(t.TempDir(), "pitchpipe-exporter")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", exporter, "pitchpipe/exporter/cmd/pitchpipe-exporter").CombinedOutput(); err != nil {
		t.Skipf("the exporter cannot be built here: %v: %s", err, text)
	}
	plan := write(t, "plan.yaml", `workloads:
  - {name: busy, command: [sh, -c, "for e in 1 2 3 4; do timeout 0.4 sh -c 'while :; do :; done'; echo epoch $e/4; done"], inputs: [1, 2]}
  - {name: idle, command: [sh, -c, "for e in 1 2 3 4; do sleep 0.4; echo epoch $e/4; done"], inputs: [1, 2]}
knobs: {cores: [1]}
repeats: 2
timeout: 5m
`)
	dir := filepath.Join(t.TempDir(), "recorded")
	r := pitchpipe(t, "record", "--out", dir, "--plan", plan, "--exporter", exporter, "--interval", "200ms")
	if r.code != command.ExitOK || !strings.Contains(r.out, "8 made now, 0 kept, 0 failed") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.errors)
	}
	r = pitchpipe(t, "evaluate", "classifier", "--samples", filepath.Join(dir, "samples.csv"),
		"--trials", filepath.Join(dir, "trials.csv"), "--objective", "time", "--resamples", "2", "--json")
	var report classifier.Report
	if err := json.Unmarshal([]byte(r.out), &report); r.code != command.ExitOK || err != nil {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.errors)
	}
	s := report.Summary
	if s.Runs != 8 || s.Programs != 2 || s.Recognised == nil || s.Regret == nil || s.Regret.Inputs != 4 {
		t.Errorf("summary %+v", s)
	}
}

func TestTheClassifierIsEvaluatedOnSamplesAlone(t *testing.T) {
	t.Parallel()
	r := pitchpipe(t, "evaluate", "classifier", "--samples", write(t, "samples.csv", "workload,run,machine,t_seconds\na,b,c,soon\n"))
	if r.code != command.ExitInvalid || !strings.Contains(r.errors, "samples.csv:2:7") {
		t.Errorf("exit %d, errors %q", r.code, r.errors)
	}
	if r := pitchpipe(t, "evaluate", "classifier"); r.code != command.ExitInvalid {
		t.Errorf("without samples: exit %d, errors %q", r.code, r.errors)
	}
}
