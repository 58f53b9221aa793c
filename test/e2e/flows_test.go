package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/sandbox"
)

// ticking is a job file of short epochs in which nothing is computed.
func (s *stage) ticking(name string, epochs int) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, "work", name)
	return s.write(name+".sbatch", fmt.Sprintf(script, name, s.progs.path("workload"), epochs,
		filepath.Join(dir, "journal"), filepath.Join(dir, "state")))
}

func (s *stage) journal(name string) []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "work", name, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func TestJobFilesThatShipRunToSuccess(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	metrics := sandbox.Address(t)
	s.argv[len(s.argv)-1] = metrics
	s.open()
	const epochs = 8
	work := t.TempDir()
	workload := s.progs.path("workload")

	for _, file := range []string{"slurm/jacobi.sbatch", "nomad/jacobi.nomad.hcl"} {
		if text := s.ok("validate", jobspec(t, file)); !strings.Contains(text, "apply") || !strings.Contains(text, "THREADS") {
			t.Errorf("validate %s: %s", file, text)
		}
	}
	batch := strings.TrimSpace(s.ok("run", jobspec(t, "slurm/jacobi.sbatch"), "--dir", work,
		"--env", "PITCHPIPE_WORKLOAD="+workload, "--env", fmt.Sprintf("EPOCHS=%d", epochs)))
	first := s.until(batch, "to reach an epoch", func(j api.Job) bool { return j.Epoch > 0 || j.Ended })
	if first.State != "running" || first.Policy == nil || first.Policy.Mode != "apply" || first.Owner == "" {
		t.Errorf("the job that runs: %+v", first)
	}

	// What Prometheus sees while a job runs.
	exporter := s.scrape(s.metrics)
	for _, name := range []string{"pitchpipe_job_energy_joules_total", "pitchpipe_job_cpu_seconds_total"} {
		series := exporter[name][batch]
		if series["attempt"] != "1" || series["manager"] != "local" || (series["source"] == "") == strings.Contains(name, "joules") {
			t.Errorf("the exporter's %s of %s has the labels %v; all: %v", name, batch, series, exporter[name])
		}
	}
	if controller := s.scrape(metrics); len(controller["pitchpipe_controller_jobs"]) == 0 {
		t.Errorf("the controller's metrics have no jobs: %v", controller)
	}

	waited := told[api.Job](s, "run", "--wait", jobspec(t, "nomad/jacobi.nomad.hcl"), "--dir", work,
		"--var", "workload="+workload, "--var", "state_dir="+work, "--var", fmt.Sprintf("epochs=%d", epochs))
	s.until(batch, "to end", ended)
	s.whole(batch, epochs)
	s.whole(waited.ID, epochs)
	if waited.State != "succeeded" || waited.Name != "jacobi" || waited.Joules == nil || *waited.Joules <= 0 || waited.Source == "" {
		t.Errorf("run --wait --json: %+v", waited)
	}

	text := s.ok("explain", "-v", batch)
	for _, want := range []string{`submitted "jacobi", asking for`, "It finished its work after ", fmt.Sprintf("%d epochs", epochs)} {
		if !strings.Contains(text, want) {
			t.Errorf("explain does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "%!") || strings.Contains(text, "\x1b") {
		t.Errorf("explain is not plain text:\n%q", text)
	}
	story := told[api.Story](s, "explain", batch)
	if story.Job != batch || len(story.Lines) < 3 || !slices.IsSortedFunc(story.Lines, func(a, b api.Line) int { return a.At.Compare(b.At) }) {
		t.Errorf("the story is not in order: %+v", story)
	}
	of := map[string]int{}
	for _, e := range told[[]api.Event](s, "history") {
		of[e.Job]++
	}
	if of[batch] == 0 || of[waited.ID] == 0 || len(of) != 2 {
		t.Errorf("history tells of %v, want both jobs", of)
	}
	known := told[api.Knowledge](s, "knowledge")
	runs := 0
	for _, k := range known.Kinds {
		runs += k.Runs
	}
	if runs != 2 {
		t.Errorf("knowledge of %d runs, want both: %+v", runs, known)
	}
	if table := s.ok("status"); strings.Count(table, "succeeded") != 2 || !strings.Contains(table, fmt.Sprintf("%d/%d", epochs, epochs)) {
		t.Errorf("status:\n%s", table)
	}
	if left, err := filepath.Glob(filepath.Join(work, "*.ckpt")); err != nil || len(left) > 0 {
		t.Errorf("checkpoints left behind: %v, %v", left, err)
	}
}

// scrape fetches /metrics over TCP, checks them as Prometheus would, and returns
// the labels of each metric's series by the job that the series is of.
func (s *stage) scrape(address string) map[string]map[string]map[string]string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("/metrics: %s, %v", resp.Status, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatalf("/metrics of %s: %v", address, err)
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil || len(problems) > 0 {
		s.t.Errorf("/metrics of %s: %v %v", address, problems, err)
	}
	out := map[string]map[string]map[string]string{}
	for name, family := range families {
		out[name] = map[string]map[string]string{}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[name][labels["job_id"]] = labels
		}
	}
	return out
}

func TestEachBadEndHasItsName(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	workload := s.progs.path("workload")
	head := "#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=1\n#SBATCH --mem=%s\n" +
		"#TUNE mode=apply\n#TUNE knob memory min=64MiB max=1GiB\n#TUNE progress pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+)'\n"
	grows := s.write("grows.sbatch", fmt.Sprintf(head, "grows", "128M")+
		"exec "+workload+" tick --epochs 100 --epoch-seconds 0.1 --grow 32\n")
	late := s.write("late.sbatch", fmt.Sprintf(head, "late", "128M")+"#SBATCH --time=0:02\n"+
		"exec "+workload+" tick --epochs 600 --epoch-seconds 0.1\n")
	fails := s.write("fails.sbatch", fmt.Sprintf(head, "fails", "128M")+
		workload+" tick --epochs 3 --epoch-seconds 0.5\nexit 7\n")
	missing := s.write("missing.nomad.hcl", `job "missing" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/no/such/program"
      }
    }
  }
}
`)
	ids := map[string]string{}
	for _, file := range []string{grows, late, missing} {
		ids[filepath.Base(file)] = strings.TrimSpace(s.ok("run", file))
	}
	a := s.pitchpipe("run", "--wait", fails)
	if a.code != command.ExitFailed || !strings.Contains(a.errors, "ended as failed (exit status 7)") || !strings.Contains(a.errors, "3/3") {
		t.Errorf("run --wait of a job that fails: exit %d, %q, %q", a.code, a.out, a.errors)
	}
	for _, j := range told[[]api.Job](s, "status") {
		if j.Name == "fails" {
			ids["fails.sbatch"] = j.ID
		}
	}
	for _, c := range []struct{ file, state, tells string }{
		{"grows.sbatch", "memory-exceeded", "memory limit"},
		{"late.sbatch", "time-exceeded", "time limit"},
		{"missing.nomad.hcl", "not-started", "could not be started"},
		{"fails.sbatch", "failed", "It failed"},
	} {
		j := s.until(ids[c.file], "to end", ended)
		if j.State != c.state {
			t.Errorf("%s ended as %s (%s), want %s", c.file, j.State, j.Detail, c.state)
		}
		if j.Attempt != 1 {
			t.Errorf("%s had %d attempts", c.file, j.Attempt)
		}
		if text := s.ok("explain", "-v", j.ID); !strings.Contains(text, c.tells) {
			t.Errorf("explain %s does not say %q:\n%s", c.file, c.tells, text)
		}
	}
	if j := s.job(ids["missing.nomad.hcl"]); !strings.Contains(j.Detail, "/no/such/program") {
		t.Errorf("the job that could not start does not say what is missing: %q", j.Detail)
	}
}

func TestWhatIsRefusedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	for _, c := range []struct {
		name, text string
		args       []string
		says       []string
	}{
		{
			name: "stanza.sbatch", text: "#!/bin/sh\n#TUNE mode=applly\n#TUNE knob cores values=0\ntrue\n",
			says: []string{"stanza.sbatch:2:", "stanza.sbatch:3:", "apply"},
		},
		{name: "array.sbatch", text: "#!/bin/sh\n#SBATCH --array=1-4\ntrue\n", says: []string{"array.sbatch:2:", "arrays are not run by the local scheduler"}},
		{name: "huge.sbatch", text: "#!/bin/sh\n#SBATCH --cpus-per-task=9999\ntrue\n", says: []string{"9999"}},
		{name: "plain.txt", text: "hello\n", says: []string{"plain.txt:1:1"}},
		{name: "broken.nomad.hcl", text: "job \"x\" {\n", says: []string{"broken.nomad.hcl:"}},
		{name: "var.sbatch", text: "#!/bin/sh\ntrue\n", args: []string{"--var", "x=1"}, says: []string{"variable"}},
	} {
		file := s.write(c.name, c.text)
		a := s.pitchpipe(append([]string{"run", "--wait", file}, c.args...)...)
		if a.code != command.ExitInvalid || a.out != "" {
			t.Errorf("run %s: exit %d, printed %q; want %d and nothing", c.name, a.code, a.out, command.ExitInvalid)
		}
		for _, want := range c.says {
			if !strings.Contains(a.errors, want) {
				t.Errorf("run %s does not say %q: %s", c.name, want, a.errors)
			}
		}
	}
	if a := s.pitchpipe("run", filepath.Join(s.dir, "absent.sbatch")); a.code != command.ExitInvalid || !strings.Contains(a.errors, "absent.sbatch") {
		t.Errorf("a file that is not there: exit %d, %s", a.code, a.errors)
	}
	if jobs := told[[]api.Job](s, "status"); len(jobs) != 0 {
		t.Errorf("there are jobs: %+v", jobs)
	}
	if events := told[[]api.Event](s, "history"); len(events) != 0 {
		t.Errorf("there is a history: %+v", events)
	}
	if a := s.pitchpipe("validate", filepath.Join(s.dir, "work", "stanza", "stanza.sbatch")); a.code != command.ExitInvalid || !strings.Contains(a.out+a.errors, "stanza.sbatch:2:") {
		t.Errorf("validate: exit %d, %q, %q", a.code, a.out, a.errors)
	}
}

func TestAControllerSaysWhatKeepsItFromStarting(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"more cores than there are", []string{"--local.cores", "4096"}, command.ExitInvalid, "4096 cores"},
		{"a cluster's name that no cgroup can have", []string{"--local.cluster", "a.b"}, command.ExitInvalid, "a.b"},
		{"a site policy that is not there", []string{"--site", filepath.Join(s.dir, "absent.yaml")}, command.ExitInvalid, "absent.yaml"},
		{"metrics for everybody", []string{"--listen", "0.0.0.0:9821"}, command.ExitInvalid, "loopback"},
		{"state that another controller has", nil, command.ExitFailed, "another process"},
	} {
		a := s.pitchpipe(append(slices.Clone(s.argv[1:]), c.args...)...)
		if a.code != c.code || a.out != "" || !strings.Contains(a.errors, c.says) {
			t.Errorf("%s: exit %d, %q; want %d and %q", c.name, a.code, a.errors, c.code, c.says)
		}
	}
	s.ok("status") // the one that runs was not disturbed
}

func TestJobsGoOnWithoutAController(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	const epochs = 100 // on a busy machine the short job starts late
	id := strings.TrimSpace(s.ok("run", s.ticking("goes-on", epochs)))
	s.until(id, "to run", func(j api.Job) bool { return j.Epoch >= 2 })
	short := strings.TrimSpace(s.ok("run", s.ticking("ends-alone", 5)))
	s.until(short, "to run", func(j api.Job) bool { return j.State == "running" })
	s.quit()
	if a := s.pitchpipe("status"); a.code != command.ExitUnavailable || !strings.Contains(a.errors, "pitchpipe controller") {
		t.Errorf("without a controller: exit %d, %q", a.code, a.errors)
	}
	before := len(s.journal("goes-on"))
	s.await("the short job to end alone", func() error {
		if n := len(s.journal("ends-alone")); n < 5 {
			return fmt.Errorf("%d epochs", n)
		}
		return nil
	})
	s.await("the long job to go on", func() error {
		if n := len(s.journal("goes-on")); n < before+5 {
			return fmt.Errorf("%d epochs, were %d", n, before)
		}
		return nil
	})
	s.start()
	s.ready()
	s.until(id, "to end", ended)
	s.until(short, "to end", ended)
	s.whole(id, epochs)
	s.whole(short, 5)
	for _, id := range []string{id, short} {
		if text := s.ok("explain", "-v", id); !strings.Contains(text, "It finished its work") || strings.Count(text, " submitted ") != 1 {
			t.Errorf("the story of %s was not finished:\n%s", id, text)
		}
	}
}

func TestTheDigitsLearnUnderTheController(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a network: make check runs it")
	}
	t.Parallel()
	const python = "/usr/bin/python3"
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import torch, sklearn.datasets").CombinedOutput(); err != nil {
		t.Skipf("%s lacks torch or scikit-learn (%v): %.200s", python, err, out)
	}
	s := newFlow(t)
	s.open()
	const epochs = 5
	work := t.TempDir()
	job := told[api.Job](s, "run", "--wait", jobspec(t, "slurm/digits-torch.sbatch"), "--dir", work,
		"--env", "PITCHPIPE_DIGITS="+jobspec(t, "slurm/digits.py"), "--env", fmt.Sprintf("EPOCHS=%d", epochs), "--env", "BATCH_SIZE=64")
	s.whole(job.ID, epochs)
	if job.Quality == nil || *job.Quality < 0.3 || *job.Quality > 1 {
		t.Errorf("quality %v after %d epochs", job.Quality, epochs)
	}
}

func TestAJobThatItsSignalWouldEndIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newFlow(t)
	s.open()
	const epochs = 12
	text, err := os.ReadFile(s.ticking("shell", epochs))
	if err != nil {
		t.Fatal(err)
	}
	file := s.write("shell.sbatch", strings.Replace(string(text), "\nexec ", "\n", 1))
	if told := s.ok("validate", file); !strings.Contains(told, "shell.sbatch:8:7: warning: its signal ends the shell") {
		t.Errorf("no warning: %s", told)
	}
	job := told[api.Job](s, "run", "--wait", file)
	s.whole(job.ID, epochs)
	if job.State != "succeeded" || job.Attempt != 1 || job.Reason != tuning.ReasonFatalSignal && job.Reason != tuning.ReasonPolluted { // by the other tests
		t.Errorf("%s, attempt %d, reason %s; want success in one attempt, and %s\n%s", job.State, job.Attempt, job.Reason, tuning.ReasonFatalSignal, s.ok("explain", "-v", job.ID))
	}
}

// TestAProbeThatIsNinefoldSlowerCostsAJobLittle needs a job that is probed although the machine
// is busy with others, so its controller is the one that does not see those. Its epochs wait,
// so one core seems to suffice; on one they are ninefold longer.
func TestAProbeThatIsNinefoldSlowerCostsAJobLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("its job takes five minutes: make check runs it")
	}
	t.Parallel()
	s := newStage(t, build(t))
	s.open()
	const epochs, seconds, most = 300, 1.0, 1.05 // the stops and starts of a loaded machine are part of what it held
	file := s.ticking("ninefold", epochs)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(
		"--cpus-per-task=1", "--cpus-per-task=2", "objective=time", "objective=cost",
		"#TUNE knob threads env=THREADS values=1,2,3", "#TUNE knob cores values=1,2\n#TUNE knob threads env=THREADS follows=cores",
		"#TUNE profile warmup_epochs=0 epochs=2\n#TUNE budget restarts=4 probes=2\n", "", // the defaults
		"THREADS:-1", "THREADS:-2", "0.4 / $THREADS ^ 2", fmt.Sprintf("$THREADS < 2 ? 9 * %g : %[1]g", seconds),
	).Replace(string(text))
	job := told[api.Job](s, "run", "--wait", s.write("ninefold.sbatch", changed))
	s.whole(job.ID, epochs)
	story := s.ok("explain", "-v", job.ID)
	if job.Probes != 1 || !job.Current.Equal(job.Own) {
		t.Fatalf("%d probes, it ended with %s; want 1, and its owner's\n%s", job.Probes, job.Current, story)
	}
	if job.CoreHours == nil {
		t.Fatal("what its attempts held is unknown")
	}
	cost := *job.CoreHours * 3600 / (2 * epochs * seconds)
	t.Logf("it held %.3f of its untuned core-hours", cost)
	if cost > most {
		t.Errorf("want at most %g\n%s", most, story)
	}
}
