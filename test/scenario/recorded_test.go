package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/config"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/test/sim"
)

// recorded are jobs of the table in testdata: one that saves joules on fewer cores, one
// that does not, and one that runs faster on fewer.
func recorded(t *testing.T, objective tuning.Objective, epochs ...int) []replay.Job {
	t.Helper()
	return drawn(t, replay.PlanInput{
		Set: evaluate.Set{
			Trials: loaded(t, evaluate.Trials, filepath.Join("testdata", "recorded", "trials.csv")),
			Curves: loaded(t, evaluate.Curves, filepath.Join("testdata", "recorded", "curves.csv")),
		},
		Measure: tuning.Measure{Objective: objective, Weight: tuning.DefaultWeight}, Probes: tuning.DefaultProbes, MaxSlowdown: 1.5,
		Restart: 500 * time.Millisecond, Epochs: epochs, Seeds: 1,
	})
}

func drawn(t *testing.T, in replay.PlanInput) []replay.Job {
	t.Helper()
	jobs, _, err := in.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	return tuning.Each(jobs, func(j replay.Job) replay.Job { return j.Drawn(0) })
}

func loaded(t *testing.T, format evaluate.Format, file string) []evaluate.Table {
	t.Helper()
	table, err := evaluate.Read(file, format)
	if err != nil {
		t.Fatal(err)
	}
	return []evaluate.Table{table}
}

// TestTheReplayAndTheControllerDecideAlike plays each recorded job twice: through the
// replay of `evaluate plan`, and through the whole controller (its daemon, its durable
// state, profiles made of an exporter's samples) on the simulated cluster.
func TestTheReplayAndTheControllerDecideAlike(t *testing.T) {
	t.Parallel()
	moved := 0
	for _, job := range slices.Concat(recorded(t, tuning.Energy, 5), recorded(t, tuning.Cost, 60), recorded(t, tuning.Time, 30)) {
		job.Busy = 1 // as the simulated cluster has it
		if c, err := replay.Replay(t.Context(), job); err == nil && c.Restarts > 0 {
			moved++
		}
		t.Run(fmt.Sprintf("%s of %d epochs for %s", job.Workload, job.Epochs, job.Policy.Objective), func(t *testing.T) {
			t.Parallel()
			alike(t, job)
		})
	}
	if moved < 2 {
		t.Errorf("%d of the jobs are moved: there is too little to compare", moved)
	}
}

// TestSharedRecordedJobsAreDecidedAboutAlike is the same on published runs, where they are.
func TestSharedRecordedJobsAreDecidedAboutAlike(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("PITCHPIPE_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	file := filepath.Join(folder, "multicores", "trials.csv")
	if _, err := os.Stat(file); err != nil || testing.Short() {
		t.Skipf("recorded runs are absent, or it is to be short: %v; PITCHPIPE_DATA names their folder", err)
	}
	for _, job := range drawn(t, replay.PlanInput{
		Set: evaluate.Set{Trials: loaded(t, evaluate.Trials, file)}, Measure: tuning.Measure{Objective: tuning.Energy}, Probes: tuning.DefaultProbes, MaxSlowdown: 1.05,
		Restart: time.Second, Epochs: []int{20}, Seeds: 1,
	}) {
		own, _ := job.Expected(job.Own)
		if job.Machine == "tx2" || own.Seconds > 10 || own.Seconds < 3 {
			continue // the seconds of the others are too many to be sampled in a test
		}
		t.Run(job.Workload, func(t *testing.T) {
			t.Parallel()
			alike(t, job)
		})
	}
}

// TestTheComparisonWouldShowADifference: a controller whose site asks for more before it
// moves does not decide as the replay does.
func TestTheComparisonWouldShowADifference(t *testing.T) {
	t.Parallel()
	jobs := recorded(t, tuning.Cost, 60)
	jobs[0].Busy = 1
	course, err := replay.Replay(t.Context(), jobs[0])
	if err != nil || course.Restarts == 0 {
		t.Fatalf("%v: the job is not moved: %+v", err, choicesOf(course.Record))
	}
	if diff := cmp.Diff(lines(choicesOf(course.Record)), controlled(t, jobs[0], "  margin: 1000\n")); diff == "" {
		t.Error("a margin that stops every move makes no difference")
	}
}

// choice is one decision of the controller, or one verdict on what it did.
type choice struct {
	Done     int           // epochs that had ended then
	Action   tuning.Action // empty: a verdict
	Reason   tuning.Reason
	Settings tuning.Settings
	Verdict  tuning.Verdict
}

// choicesOf are those of a job's record.
func choicesOf(r *reconcile.Record) []choice {
	var out []choice
	for _, e := range r.History {
		c := choice{}
		for _, x := range r.Epochs {
			if !x.End.After(e.At) {
				c.Done = max(c.Done, x.Number)
			}
		}
		switch {
		case e.Decision != nil:
			c.Action, c.Reason, c.Settings = e.Decision.Action, e.Decision.Reason, e.Decision.Settings
		case e.Outcome != nil && e.Trigger == reconcile.OutcomeKnown:
			c.Reason, c.Settings, c.Verdict = e.Outcome.Reason, e.Outcome.Tuned, e.Outcome.Verdict
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// alike fails the test where both decide differently.
func alike(t *testing.T, job replay.Job) {
	t.Helper()
	job.Busy = 1 // as the simulated cluster has it
	course, err := replay.Replay(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("decided: %q", lines(choicesOf(course.Record)))
	if diff := cmp.Diff(lines(choicesOf(course.Record)), controlled(t, job, "")); diff != "" {
		t.Errorf("the controller decides otherwise than the replay (-replay +controller):\n%s", diff)
	}
}

// lines prints choices, a line for each. The moments within its epochs when a job is looked
// at differ between the two, so a stop-loss strikes after another number of epochs and the
// setting before gets another comment.
func lines(choices []choice) []string {
	var out []string
	for i, c := range choices {
		stopped := func(c choice) bool {
			worse := []tuning.Reason{tuning.ReasonStopLoss, tuning.ReasonSlower, tuning.ReasonRegressed}
			return c.Action == tuning.RollBack && slices.Contains(worse, c.Reason)
		}
		if stopped(c) {
			out = append(out, fmt.Sprintf("%s %s", c.Action, c.Settings))
			continue
		}
		if c.Verdict != "" && slices.ContainsFunc(choices[i+1:], stopped) {
			continue
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("after %d: %s%s %s %s", c.Done, c.Action, c.Verdict, c.Reason, c.Settings)))
	}
	return out
}

// controlled is what the whole controller decided about the job.
func controlled(t *testing.T, job replay.Job, site string) []string {
	t.Helper()
	state := t.TempDir()
	path := filepath.Join(state, "site.yaml")
	rules := "default:\n  max_mode: apply\n" + site
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := config.LoadSite(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, map[string][]byte{"job.sbatch": jobFile(job)}, state, policy, sim.Config{
			EnergySource: "replayed", Recorded: replayed(job),
			Nodes: []sim.NodeSpec{{Name: "node-1", Cores: 64, MemoryBytes: 64 << 30, Kind: job.Machine}},
		})
		p.look, p.restart = time.Second, job.Restart
		p.start()
		defer p.leave()
		p.submit(submission{file: "job.sbatch", job: "a", user: "alice"})
		p.wait("a", "")
		cast, _ := p.collect()
		if cast[0].job.State != driver.Succeeded {
			t.Fatalf("the job is %s: %s", cast[0].job.State, cast[0].job.Detail)
		}
		out = lines(known(job, cast[0].rec))
	})
	return out
}

// known are the choices with the settings that the table has.
func known(job replay.Job, r *reconcile.Record) []choice {
	out := choicesOf(r)
	for i := range out {
		out[i].Settings = out[i].Settings.Only(func(name string) bool { _, ok := job.Own[name]; return ok })
	}
	return out
}

// replayed answers for the cluster what an epoch of the job took.
func replayed(job replay.Job) func(sim.Work) (sim.Measured, bool) {
	return func(w sim.Work) (sim.Measured, bool) {
		s := job.Own.Clone()
		for _, k := range job.Policy.Knobs {
			if v, ok := w.Env[k.Env]; ok {
				s[k.Name] = tuning.ParseValue(v)
			}
			if k.Name == tuning.Cores {
				s[k.Name] = tuning.Number(float64(w.Cores))
			}
		}
		e, ok := job.Epoch(w.Attempt, w.Epoch, s)
		m := sim.Measured{Length: e.End.Sub(e.Start), Loss: e.Loss, Quality: e.Quality}
		if e.Joules != nil {
			m.Joules = float64(*e.Joules)
		}
		return m, ok
	}
}

// jobFile is the job as its owner would submit it.
func jobFile(job replay.Job) []byte {
	var b strings.Builder
	p := job.Policy
	cores := max(1, job.Own[tuning.Cores].Int())
	fmt.Fprintf(&b, "#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=%d\n", job.Workload, cores)
	fmt.Fprintf(&b, "#TUNE mode=%s objective=%s", p.Mode, p.Objective)
	if p.MaxSlowdown > 0 {
		fmt.Fprintf(&b, " max_slowdown=%g", p.MaxSlowdown)
	}
	b.WriteByte('\n')
	b.WriteString("#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n") // as tables were recorded
	for _, k := range p.Knobs {
		var values []string
		for _, v := range k.Values {
			values = append(values, v.String())
		}
		fmt.Fprintf(&b, "#TUNE knob %s values=%s", k.Name, strings.Join(values, ","))
		if k.Env != "" {
			fmt.Fprintf(&b, " env=%s default=%s", k.Env, job.Own[k.Name])
		}
		if k.Quality != "" {
			b.WriteString(" quality=" + k.Quality)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "#TUNE progress pattern='%s'\n", p.Progress.Pattern)
	fmt.Fprintf(&b, "#TUNE checkpoint signal=%s grace=%s exit=%d\n", p.Checkpoint.Signal, p.Checkpoint.Grace, p.Checkpoint.Exit)
	fmt.Fprintf(&b, "#TUNE budget restarts=%s probes=%s\n", strconv.Itoa(p.Budget.Restarts), strconv.Itoa(p.Budget.Probes))
	fmt.Fprintf(&b, "#SIM epochs=%d seconds=1 checkpoint=%s\nexec ./job\n", job.Epochs, job.Restart)
	return []byte(b.String())
}

// TestTheStanzaOfARecordedJobIsItsPolicy: both play by the same rules.
func TestTheStanzaOfARecordedJobIsItsPolicy(t *testing.T) {
	t.Parallel()
	job := recorded(t, tuning.Energy, 5)[0]
	file, err := detect.Parse("job.sbatch", jobFile(job), nil)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := stanza.Policy(file)
	if err != nil {
		t.Fatal(err)
	}
	policy.Tariff = job.Site.Tariff // which no stanza has
	policy.Knobs = policy.Knobs[1:] // of the threads, which tables take as the cores
	if diff := cmp.Diff(job.Policy, policy); diff != "" {
		t.Errorf("the stanza says something else (-replay +stanza):\n%s", diff)
	}
}
