package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

// showsSettings is what a job writes of its settings file: whose it is, who may
// read it, and what it says.
const showsSettings = `if [ -n "$PITCHPIPE_SETTINGS" ]; then stat -c '%U %a' "$PITCHPIPE_SETTINGS"; cat "$PITCHPIPE_SETTINGS"; else echo none; fi`

// change carries the change of a pending job out.
func (b *bench) change(t *testing.T, job driver.Job, id string, c driver.Change) {
	t.Helper()
	in := driver.Intent{ID: id, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: c}
	for _, want := range []driver.StepKind{driver.StepChanged, driver.StepStarted} {
		if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != want {
			t.Fatalf("step %+v, error %v, want %s", step, err, want)
		}
	}
}

func TestTheSettingsFile(t *testing.T) {
	t.Parallel()
	live := map[string]string{"lr": "0.5", "mode": "fast"}
	const declared = "#TUNE knob lr live=true values=0.5,1"
	for _, tt := range []struct {
		name   string
		lines  []string
		change driver.Change
		want   string
	}{
		{"is not there where nothing is live", nil, driver.Change{TimeLimit: time.Hour}, "none\n"},
		{"is there where a change is live", nil, driver.Change{Live: live}, `{"revision":1,"settings":{"lr":0.5,"mode":"fast"}}` + "\n"},
		{"is there where the stanza names a live knob", []string{declared}, driver.Change{}, `{"revision":1,"settings":{}}` + "\n"},
		{"holds the change of a declared knob", []string{declared}, driver.Change{Live: live}, `{"revision":1,"settings":{"lr":0.5,"mode":"fast"}}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			spec := script(append(tt.lines, strings.Replace(showsSettings, "stat -c '%U %a' \"$PITCHPIPE_SETTINGS\";", "", 1))...)
			spec.NotBefore = time.Now().Add(time.Hour)
			spec.Env = map[string]string{driver.SettingsVariable: "/etc/hostname"}
			job := b.start(t, "request", spec)
			b.change(t, job, "intent", tt.change)
			b.ended(t, job.ID, driver.Succeeded)
			if got := output(t, b.d, job.ID); got != tt.want {
				t.Errorf("the job found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheSettingsFileIsItsOwners(t *testing.T) {
	t.Parallel()
	needsRootAndNobody(t)
	b := newBench(t, nil)
	passable(t, b.dir)
	spec := script(showsSettings)
	spec.Owner, spec.Dir, spec.NotBefore = "nobody", "/", time.Now().Add(time.Hour)
	job := b.start(t, "request", spec)
	b.change(t, job, "intent", driver.Change{Live: map[string]string{"lr": "1"}})
	b.ended(t, job.ID, driver.Succeeded)
	if got, want := output(t, b.d, job.ID), "nobody 400\n"+`{"revision":1,"settings":{"lr":1}}`+"\n"; got != want {
		t.Errorf("the job found %q, want %q", got, want)
	}
}

func TestASettingsFileThatCannotBeWrittenKeepsTheJobFromStarting(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	spec := script("#TUNE knob lr live=true values=1,2", `cat "$PITCHPIPE_SETTINGS"`)
	spec.NotBefore = time.Now().Add(3 * time.Second)
	job := b.start(t, "request", spec)
	// A directory cannot be replaced by a file.
	path := filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "settings.json")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.until(t, "it is to run", job.ID, func(j driver.Job) bool { return j.State == driver.Running })
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	b.ended(t, job.ID, driver.Succeeded)
	var got struct {
		Revision int `json:"revision"`
	}
	if text := output(t, b.d, job.ID); json.Unmarshal([]byte(text), &got) != nil || got.Revision != 1 {
		t.Errorf("the job found %q, want revision 1", text)
	}
}

func TestASettingsFileIsAdaptedWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	none := b.start(t, "none", script("sleep 60"))
	b.until(t, "it is to run", none.ID, func(j driver.Job) bool { return j.State == driver.Running })
	if err := b.d.Adapt(t.Context(), none.ID, map[string]string{"widen": "1"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("adapting a job without a settings file: %v", err)
	}
	if err := b.d.Stop(t.Context(), none.ID); err != nil {
		t.Fatal(err)
	}
	job := b.start(t, "request", script("#TUNE action widen",
		`while now=$(cat "$PITCHPIPE_SETTINGS"); do [ "$now" = "$last" ] || echo "$now"; last=$now; case $now in *:2}}) exit;; esac; sleep 0.05; done`))
	shows := func(text string) {
		t.Helper()
		b.until(t, "it is to show "+text, job.ID, func(driver.Job) bool { return strings.Contains(output(t, b.d, job.ID), text) })
	}
	shows(`{"revision":1,"settings":{}}`)
	for range 2 { // the second one changes nothing
		if err := b.d.Adapt(t.Context(), job.ID, map[string]string{"widen": "1"}); err != nil {
			t.Fatal(err)
		}
	}
	shows(`{"revision":2,"settings":{"widen":1}}`)
	b.shut(t)
	b.open(t)
	if err := b.d.Adapt(t.Context(), job.ID, map[string]string{"widen": "2"}); err != nil {
		t.Fatal(err)
	}
	b.ended(t, job.ID, driver.Succeeded)
	shows(`{"revision":3,"settings":{"widen":2}}`)
	for id, want := range map[driver.JobID]error{job.ID: driver.ErrConflict, "99": driver.ErrNotFound} {
		if err := b.d.Adapt(t.Context(), id, map[string]string{"widen": "3"}); !errors.Is(err, want) {
			t.Errorf("adapting %s: %v, want %v", id, err, want)
		}
	}
}

func TestWhatNomadInterpolates(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	work := t.TempDir()
	spec := driver.Spec{Filename: "job.nomad.hcl", Dir: work, Env: map[string]string{"GIVEN": "given"}, Source: []byte(nomadJob(
		`env {
        FROM_FILE = "x-${NOMAD_JOB_NAME}-${attr.kernel.name}"
        TWICE     = "$${FROM_FILE}"
      }`,
		`work_dir = "${NOMAD_TASK_DIR}"
        args    = ["-c", "echo $0 $*; pwd; echo $FROM_FILE $TWICE; env | grep ALLOC_ID", "${NOMAD_JOB_ID}", "${env["GIVEN"]}", "$${FROM_FILE}", "$${GIVEN}", "$${nobody}", "${node.unique.name}", "--lr", "1"]`,
	))}
	spec.NotBefore = time.Now().Add(time.Hour)
	job := b.start(t, "request", spec)
	b.change(t, job, "intent", driver.Change{Args: map[string]string{"--lr": "{NOMAD_JOB_ID}"}})
	job = b.ended(t, job.ID, driver.Succeeded)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "local")
	want := fmt.Sprintf("%s given x-trainer-linux given ${nobody} %s --lr {NOMAD_JOB_ID}\n%s\nx-trainer-linux ${FROM_FILE}\nNOMAD_ALLOC_ID=", job.ID, host, dir)
	if got := output(t, b.d, job.ID); !strings.HasPrefix(got, want) {
		t.Errorf("output:\n%swant it to begin with:\n%s", got, want)
	}
}

// nomadJob is a job file with these parts of its task.
func nomadJob(env, config string) string {
	return `job "trainer" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      ` + env + `
      config {
        command = "/bin/sh"
        ` + config + `
      }
    }
  }
}
`
}

func TestAReferenceThatMeansNothingHereIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, text := range []string{"${NOMAD_PORT_http}", "${attr.driver.docker}", "${meta.rack}", "${env[\"NO_SUCH_VARIABLE\"]}", "${NOMAD_MEMORY_LIMIT}"} {
		for name, source := range map[string]string{
			"an argument":           nomadJob("", `args = ["-c", "`+text+`"]`),
			"the environment":       nomadJob(`env { A = "`+text+`" }`, `args = []`),
			"the working directory": nomadJob("", `work_dir = "`+text+`"`),
		} {
			_, err := b.d.Start(t.Context(), "request", driver.Spec{Filename: "job.nomad.hcl", Dir: "/", Source: []byte(source)})
			wantInvalid(t, text+" in "+name, err, text)
		}
	}
	if jobs, err := b.d.List(t.Context()); err != nil || len(jobs) > 0 {
		t.Errorf("jobs %v (%v), want none", jobs, err)
	}
}

func wantInvalid(t *testing.T, what string, err error, names string) {
	t.Helper()
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), names) {
		t.Errorf("%s: %v, want %v that names it", what, err, driver.ErrInvalid)
	}
}

// Every job file that is shipped means the same here as at its own scheduler.
func TestNoReferenceOfAShippedJobFileIsLeft(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../jobspecs/nomad/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("job files %v: %v", files, err)
	}
	// What only Nomad runs has no state here.
	files = slices.DeleteFunc(files, func(path string) bool {
		source, err := os.ReadFile(path)
		return err == nil && !strings.Contains(string(source), `variable "state_dir"`)
	})
	if len(files) < 4 {
		t.Fatalf("job files %v", files)
	}
	b := newBench(t, nil)
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		job, err := b.d.Start(t.Context(), driver.RequestID(path), driver.Spec{
			Filename: path, Source: source, Dir: t.TempDir(), NotBefore: time.Now().Add(time.Hour),
			Variables: map[string]string{"state_dir": t.TempDir()},
		})
		if errors.Is(err, driver.ErrInvalid) && strings.Contains(err.Error(), "this machine has") {
			continue // too large for it
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if strings.Contains(string(source), "NOMAD_JOB_ID") && !slices.ContainsFunc(job.Resources.Args, func(a string) bool { return strings.Contains(a, "${NOMAD_JOB_ID}") }) {
			t.Errorf("%s: arguments %q, want one that is interpolated", path, job.Resources.Args)
		}
	}
}
