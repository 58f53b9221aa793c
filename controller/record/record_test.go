package record_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/record"
	"pitchpipe/exporter/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted is a meter that has counted the same for every run.
type counted struct {
	mu     sync.Mutex
	source string
	begun  time.Time
	asked  []string
}

func (c *counted) Node(context.Context) (api.Node, error) {
	return api.Node{MachineKind: "drawn×2"}, nil
}

func (c *counted) Window(_ context.Context, id string, _ int, _ uint64) (api.Window, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, id)
	if strings.HasPrefix(id, "unseen") {
		return api.Window{}, fmt.Errorf("%w: %s", api.ErrNotFound, id)
	}
	w := api.Window{Source: c.source, Job: api.Job{Ended: true, Absent: []api.Source{{Name: "perf", Reason: "no cgroup"}}}}
	for i := range 3 {
		n := float64(i + 1)
		w.Samples = append(w.Samples, api.Sample{Time: c.begun.Add(time.Duration(i) * time.Second), Values: map[string]float64{
			api.ColCPUSeconds: 2 * n, api.ColRSS: 100 * n, api.ColJoules: 5 * n, api.ColNodeBusy: 1000 + n, api.PerfEvent("instructions"): 7 * n,
		}})
	}
	return w, nil
}

func shell(t *testing.T, name, script string) record.Workload {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell:", err)
	}
	return record.Workload{Name: name, Command: []string{sh, "-c", script}}
}

func config(dir string, m record.Meter) record.Config {
	return record.Config{Dir: dir, Tag: "1", Meter: m, Environ: os.Environ(), Progress: func(int, int, string) {}, Log: slog.New(slog.DiscardHandler)}
}

func table(t *testing.T, dir string, f evaluate.Format) evaluate.Table {
	t.Helper()
	out, err := evaluate.Read(filepath.Join(dir, string(f)+".csv"), f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func number(t *testing.T, r evaluate.Row, column string) float64 {
	t.Helper()
	v, ok := r.Float(column)
	if !ok {
		t.Errorf("%s of line %d is missing", column, r.Line)
	}
	return v
}

func TestAFactorialBecomesTheTables(t *testing.T) {
	t.Parallel()
	w := shell(t, "learn", `echo "epoch 1/2 loss 0.5 acc 0.8"; echo "epoch 2/2 loss 0.25 acc $HELLO"`)
	w.Env, w.Inputs = map[string]string{"HELLO": "0.{size}{input}"}, []string{"1", "2"}
	p := record.Plan{Workloads: []record.Workload{w}, Knobs: map[string][]string{"size": {"3", "4"}}, Repeats: 2}
	dir := t.TempDir()
	m := &counted{source: "rapl", begun: time.Now()}
	got, err := record.Record(t.Context(), p, config(dir, m))
	if err != nil {
		t.Fatal(err)
	}
	if got.Runs != 8 || got.Made != 8 || got.Failed != 0 || len(got.Files) != 3 {
		t.Errorf("result %+v", got)
	}
	if diff := cmp.Diff([]string{"perf: no cgroup"}, got.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	trials, curves, samples := table(t, dir, evaluate.Trials), table(t, dir, evaluate.Curves), table(t, dir, evaluate.Samples)
	if len(trials.Rows) != 8 || len(curves.Rows) != 16 || len(samples.Rows) != 24 {
		t.Fatalf("%d trials, %d epochs, %d samples", len(trials.Rows), len(curves.Rows), len(samples.Rows))
	}
	for _, r := range trials.Rows {
		want := (number(t, r, "input") + 10*r.Knobs["size"].Float()) / 100
		if q := number(t, r, "quality"); q != want || number(t, r, "loss") != 0.25 || number(t, r, "epochs") != 2 {
			t.Errorf("quality %v of line %d, want %v", q, r.Line, want)
		}
		if number(t, r, "joules") != 15 || number(t, r, "cpu_seconds") != 6 || number(t, r, "seconds") <= 0 || r.Machine != "drawn×2" {
			t.Errorf("line %d is %+v", r.Line, r)
		}
	}
	for i, r := range samples.Rows {
		if number(t, r, "cpu_seconds") != 2 || number(t, r, "instructions") != 7 || number(t, r, api.ColRSS) != float64(100*(i%3+1)) {
			t.Errorf("line %d is %+v", r.Line, r)
		}
		if _, ok := r.Float(api.ColNodeBusy); ok != (i%3 > 0) {
			t.Errorf("the node's counter of line %d is there: %t; it does not begin with the run", r.Line, ok)
		}
	}
}

func TestWhatIsNotMeasuredIsMissingAndTold(t *testing.T) {
	t.Parallel()
	silent := shell(t, "silent", "true")
	for name, c := range map[string]struct {
		meter record.Meter
		plan  record.Plan
		want  string
	}{
		"without an exporter there are no counters": {nil, record.Plan{Workloads: []record.Workload{silent}}, "counters and joules: there is no exporter"},
		"a command that tells no progress":          {nil, record.Plan{Workloads: []record.Workload{silent}}, "epochs: no line of silent's output reports progress"},
		"modelled joules":                           {&counted{source: "modelled"}, record.Plan{Workloads: []record.Workload{silent}}, "joules: they are modelled, which is no measurement"},
		"a run that the exporter did not see": {
			&counted{},
			record.Plan{Workloads: []record.Workload{shell(t, "unseen", "true")}},
			"counters and joules: the exporter did not see a run: it was too short, or its environment is not believed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			got, err := record.Record(t.Context(), c.plan, config(dir, c.meter))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(got.Missing, "\n"), c.want) {
				t.Errorf("%q does not tell %q", got.Missing, c.want)
			}
			trials := table(t, dir, evaluate.Trials)
			if trials.Has("joules") || trials.Has("epochs") || len(trials.Rows) != record.DefaultRepeats {
				t.Errorf("columns %v", trials.Columns)
			}
		})
	}
}

func TestAFailedRunIsNoMeasurementAndEndsNoOther(t *testing.T) {
	t.Parallel()
	p := record.Plan{
		Workloads: []record.Workload{
			shell(t, "fine", "echo epoch 1"), shell(t, "broken", "echo epoch 1; echo sorry >&2; exit 3"),
			shell(t, "stuck", "sleep 1000"),
			{Name: "absent", Command: []string{"/nonexistent/program"}},
		},
		Repeats: 1, Timeout: "300ms",
	}
	dir := t.TempDir()
	got, err := record.Record(t.Context(), p, config(dir, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got.Made != 4 || got.Failed < 3 {
		t.Errorf("result %+v", got)
	}
	for _, r := range table(t, dir, evaluate.Trials).Rows {
		if _, ok := r.Float("seconds"); ok && r.Workload != "fine" {
			t.Errorf("%s has seconds", r.Workload)
		}
	}
}

func TestARunEndsWithItsCommand(t *testing.T) {
	t.Parallel()
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "sleep 1000 & echo epoch 1")}, Repeats: 1, Timeout: "20s"}
	dir := t.TempDir()
	if got, err := record.Record(t.Context(), p, config(dir, nil)); err != nil || got.Failed != 0 || len(table(t, dir, evaluate.Curves).Rows) != 1 {
		t.Errorf("%+v, %v: what the command left behind counts", got, err)
	}
}

func TestAProgramWithARelativePathIsThatOfTheUsersFolder(t *testing.T) {
	w := shell(t, "train", "true")
	t.Chdir(t.TempDir())
	if err := os.Symlink(w.Command[0], "train"); err != nil {
		t.Fatal(err)
	}
	w.Command[0] = "./train"
	if got, err := record.Record(t.Context(), record.Plan{Workloads: []record.Workload{w}}, config(t.TempDir(), nil)); err != nil || got.Made != 2 || got.Failed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARunThatFailedIsMadeAgain(t *testing.T) {
	t.Parallel()
	mended := filepath.Join(t.TempDir(), "mended")
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "test -e "+mended), shell(t, "fine", "true")}, Repeats: 1}
	cfg := config(t.TempDir(), nil)
	if got, err := record.Record(t.Context(), p, cfg); err != nil || got.Made != 2 || got.Failed != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.WriteFile(mended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := record.Record(t.Context(), p, cfg); err != nil || got.Made != 1 || got.Kept != 1 || got.Failed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnInterruptedRecordingGoesOn(t *testing.T) {
	t.Parallel()
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "echo epoch 1")}, Knobs: map[string][]string{"x": {"1", "2", "3"}}, Repeats: 1}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(dir, nil)
	cfg.Progress = func(done, _ int, _ string) {
		if done == 2 {
			cancel()
		}
	}
	got, err := record.Record(ctx, p, cfg)
	if !errors.Is(err, context.Canceled) || got.Made != 2 || len(table(t, dir, evaluate.Trials).Rows) != 2 {
		t.Fatalf("result %+v, %v", got, err)
	}
	got, err = record.Record(t.Context(), p, config(dir, nil))
	if err != nil || got.Made != 1 || got.Kept != 2 || len(table(t, dir, evaluate.Trials).Rows) != 3 {
		t.Errorf("result %+v, %v", got, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	p.Repeats = 2
	if _, err := record.Record(t.Context(), p, config(dir, nil)); !errors.Is(err, record.ErrFolder) {
		t.Errorf("another plan in the same folder: %v", err)
	}
}

// room is one that remembers what was done with it.
type room struct {
	mu     sync.Mutex
	opened []string
	pids   int
	closed int
	full   error
}

func (r *room) Create(_ context.Context, name string, _ []int) (record.Cgroup, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = append(r.opened, name)
	return r, r.full // a careless one: it returns a room that is another's
}

func (r *room) Add(pid int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pid > 0 {
		r.pids++
	}
	return nil
}

func (r *room) Kill(context.Context) error { return nil }

func (r *room) Remove(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

func TestEachRunGetsARoomThatTheMeterKnowsBeforeItBegins(t *testing.T) {
	t.Parallel()
	w := shell(t, "w", `echo "epoch 1/1 loss $1$2"`)
	w.Command, w.Inputs = append(w.Command, "sh", "{input...}"), []string{"0. 5", "0. 25"}
	p := record.Plan{Workloads: []record.Workload{w}, Repeats: 2}
	m, rooms := &counted{source: "rapl", begun: time.Now().Add(-time.Hour)}, &room{}
	cfg := config(t.TempDir(), m)
	cfg.Cgroup, cfg.Tag = rooms.Create, "77"
	got, err := record.Record(t.Context(), p, cfg)
	if err != nil || got.Made != 4 || got.Failed != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(rooms.opened) != 4 || rooms.pids != 4 || rooms.closed != 4 || !strings.HasSuffix(rooms.opened[0], "-77.1") {
		t.Errorf("opened %q, %d processes added, %d closed", rooms.opened, rooms.pids, rooms.closed)
	}
	for _, r := range table(t, cfg.Dir, evaluate.Trials).Rows {
		if want := map[float64]float64{1: 0.5, 2: 0.25}[number(t, r, "input")]; number(t, r, "loss") != want {
			t.Errorf("line %d: want the loss %v: each word of the input is an argument", r.Line, want)
		}
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "samples.csv")); err == nil {
		t.Error("what was counted before the runs began is among the samples")
	}
}

var errFull = errors.New("no room is left")

func TestWithoutARoomARunIsMadeAllTheSameAndItIsTold(t *testing.T) {
	t.Parallel()
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "echo epoch 1")}, Repeats: 1}
	cfg := config(t.TempDir(), &counted{begun: time.Now()})
	full := &room{full: errFull}
	cfg.Cgroup = full.Create
	got, err := record.Record(t.Context(), p, cfg)
	if err != nil || got.Made != 1 || got.Failed != 0 || !strings.Contains(strings.Join(got.Missing, "\n"), "a cgroup for each run: no room is left") {
		t.Errorf("%+v, %v", got, err)
	}
	if full.closed != 0 {
		t.Error("a room that is another's was emptied")
	}
}

// load is a machine of two cores on which others keep so many busy while each of the
// next runs lasts.
func load(others ...float64) func() (record.Load, error) {
	var busy float64
	var last time.Time
	calls := 0
	return func() (record.Load, error) {
		now := time.Now()
		if run := calls / 2; calls%2 == 1 && run < len(others) {
			busy += others[run] * now.Sub(last).Seconds()
		}
		calls++
		last = now
		return record.Load{Busy: busy, Cores: 2}, nil
	}
}

func TestARunThatOthersDisturbedIsMadeAgainAndMarked(t *testing.T) {
	t.Parallel()
	work := shell(t, "w", "sleep 0.2; echo epoch 1; test $PITCHPIPE_ATTEMPT != 4")
	for name, c := range map[string]struct {
		others    []float64
		retries   int
		attempts  float64
		disturbed float64
		least     float64 // others_cores of the one that is kept, about
	}{
		"no one disturbs":              {[]float64{0.1}, 2, 1, 0, 0.1},
		"once, and then no more":       {[]float64{1.5, 0.1}, 2, 2, 0, 0.1},
		"the least disturbed is kept":  {[]float64{1.5, 0.8, 1.9}, 2, 3, 1, 0.8},
		"a repeat that fails is not":   {[]float64{1.5, 1.9, 1.9, 0.1}, 3, 4, 1, 1.5},
		"without retries it is marked": {[]float64{1.5}, 0, 1, 1, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t.TempDir(), nil)
			cfg.Load = load(c.others...)
			got, err := record.Record(t.Context(), record.Plan{Workloads: []record.Workload{work}, Repeats: 1, Retries: c.retries}, cfg)
			if err != nil || float64(got.Noisy) != c.disturbed || (got.Again > 0) != (c.attempts > 1) {
				t.Fatalf("%+v, %v", got, err)
			}
			r := table(t, cfg.Dir, evaluate.Trials).Rows[0]
			if number(t, r, "attempts") != c.attempts || number(t, r, "disturbed") != c.disturbed || number(t, r, "node_cores") != 2 {
				t.Errorf("attempts %v, disturbed %v", number(t, r, "attempts"), number(t, r, "disturbed"))
			}
			// The shell's own CPU seconds, a few ticks, are taken from what others did.
			if v := number(t, r, "others_cores"); v > c.least*1.3 || v < c.least-0.3 {
				t.Errorf("others used %v cores, want about %v", v, c.least)
			}
		})
	}
}

func TestNoRunBeginsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "echo epoch 1")}, Knobs: map[string][]string{"x": {"1", "2"}}, Repeats: 1}
	cfg := config(t.TempDir(), nil)
	cfg.Within = time.Nanosecond
	got, err := record.Record(t.Context(), p, cfg)
	if err != nil || got.Made != 0 || got.Left != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	cfg.Within = time.Hour
	if got, err = record.Record(t.Context(), p, cfg); err != nil || got.Made != 2 || got.Left != 0 {
		t.Errorf("the same plan goes on: %+v, %v", got, err)
	}
}
