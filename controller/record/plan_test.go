package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/record"
)

const plan = `workloads:
  - name: train
    command: [./train, --data, "{input}", --batch, "{batch_size}"]
    env: {THREADS: "{cores}"}
    inputs: [small, large]
knobs: {cores: [1, 2], batch_size: [8, 64]}
repeats: 3
progress: 'step (?P<epoch>\d+)'
timeout: 90s
seed: 7
`

func TestAPlanIsRead(t *testing.T) {
	t.Parallel()
	got, err := record.Parse("plan.yaml", []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	want := record.Plan{
		Workloads: []record.Workload{{
			Name: "train", Command: []string{"./train", "--data", "{input}", "--batch", "{batch_size}"},
			Env: map[string]string{"THREADS": "{cores}"}, Inputs: []string{"small", "large"},
		}},
		Knobs:   map[string][]string{"cores": {"1", "2"}, "batch_size": {"8", "64"}},
		Repeats: 3, Progress: `step (?P<epoch>\d+)`, Timeout: "90s", Seed: 7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlansThatCannotBeRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"a word that is unknown":       {"repeats: 3", "repeat: 3", "plan.yaml:7:1"},
		"words where a number belongs": {"repeats: 3", "repeats: three", "plan.yaml:7:1"},
		"no workloads":                 {plan, "repeats: 1\n", "no workloads"},
		"an empty plan":                {plan, "", "plan.yaml:1:1"},
		"no command":                   {`command: [./train, --data, "{input}", --batch, "{batch_size}"]`, "command: []", "no command"},
		"a hole that nothing fills":    {"{cores}", "{gpus}", "{gpus}"},
		"an input that is none":        {"    inputs: [small, large]\n", "", "{input}"},
		"a knob without values":        {"[8, 64]", "[]", "batch_size"},
		"a value twice":                {"[8, 64]", "[8, 8]", "twice"},
		"a part of a core":             {"cores: [1, 2]", "cores: [0.5]", "whole numbers"},
		"a knob named as an input":     {"batch_size: [8, 64]}", "batch_size: [8], input: [1]}", "not input or dir"},
		"a negative repeat":            {"repeats: 3", "repeats: -1", "repeats"},
		"no duration":                  {"90s", "soon", "timeout"},
		"a pattern without an epoch":   {`(?P<epoch>\d+)`, `\d+`, "epoch"},
		"no pattern":                   {`(?P<epoch>\d+)`, `(`, "progress"},
		"too many retries":             {"repeats: 3", "retries: 11", "retries"},
		"words within a word":          {`"{input}"`, `"x{input...}"`, "{input...}"},
		"words of no input":            {`"{input}", --batch, "{batch_size}"]` + "\n    env: {THREADS: \"{cores}\"}\n    inputs: [small, large]", `"{input...}"]`, "{input...}"},
		"two documents":                {"seed: 7\n", "seed: 7\n---\nseed: 8\n", "one document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(plan, c.old, c.new, 1)
			_, err := record.Parse("plan.yaml", []byte(text))
			if !errors.Is(err, record.ErrPlan) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

func TestEachRepeatHasEveryRunInAnOrderOfItsOwn(t *testing.T) {
	t.Parallel()
	p, err := record.Parse("plan.yaml", []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	cells := p.Cells()
	if len(cells) != 2*4*3 {
		t.Fatalf("%d runs", len(cells))
	}
	ids, orders := map[string]bool{}, map[string]bool{}
	for repeat := range 3 {
		order := ""
		for _, c := range cells[repeat*8 : (repeat+1)*8] {
			if c.Repeat != repeat {
				t.Errorf("%s is among repeat %d", c.ID, repeat)
			}
			ids[c.ID] = true
			order += strings.TrimSuffix(c.ID, "r"+string(rune('0'+repeat)))
		}
		orders[order] = true
	}
	if len(ids) != len(cells) || len(orders) < 2 {
		t.Errorf("%d names, %d orders", len(ids), len(orders))
	}
	if diff := cmp.Diff(cells, p.Cells()); diff != "" {
		t.Errorf("the same seed gives another order:\n%s", diff)
	}
	p.Knobs = map[string][]string{"x": {"a/b", "a b"}}
	a, b := p.Cells()[0].ID, p.Cells()[1].ID
	if a == b || strings.ContainsAny(a+b, "/ ") {
		t.Errorf("names %q and %q", a, b)
	}
}

// All settings of an input are run one after the other, each once.
func TestAnInputIsABlockOfItsSettings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inputs, repeats := rapid.IntRange(1, 4).Draw(t, "inputs"), rapid.IntRange(1, 3).Draw(t, "repeats")
		p := record.Plan{
			Workloads: []record.Workload{{Name: "a", Command: []string{"a"}}, {Name: "b", Command: []string{"b"}}},
			Knobs:     map[string][]string{"x": {"1", "2", "3"}, "y": {"1", "2"}}, Repeats: repeats, Seed: rapid.Uint64().Draw(t, "seed"),
		}
		for i := range p.Workloads {
			for n := range inputs {
				p.Workloads[i].Inputs = append(p.Workloads[i].Inputs, strings.Repeat("i", n+1))
			}
		}
		cells := p.Cells()
		if len(cells) != 2*inputs*6*repeats {
			t.Fatalf("%d runs", len(cells))
		}
		for at := 0; at < len(cells); at += 6 {
			settings := map[string]bool{}
			for _, c := range cells[at : at+6] {
				if f := cells[at]; c.Workload != f.Workload || c.Input != f.Input || c.Repeat != f.Repeat || c.Repeat != at/(12*inputs) {
					t.Fatalf("%s is among the runs of %s", c.ID, f.ID)
				}
				settings[c.Knobs["x"]+c.Knobs["y"]] = true
			}
			if len(settings) != 6 {
				t.Fatalf("%d settings of %s", len(settings), cells[at].ID)
			}
		}
	})
}

func TestCoresThatTheMachineLacksAreRefusedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	p := record.Plan{Workloads: []record.Workload{shell(t, "w", "true")}, Knobs: map[string][]string{"cores": {"1", "3"}}}
	cfg := config(filepath.Join(t.TempDir(), "new"), nil)
	cfg.CPUs = []int{0, 1}
	if _, err := record.Record(t.Context(), p, cfg); !errors.Is(err, record.ErrPlan) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(cfg.Dir); err == nil {
		t.Error("the folder was made")
	}
}

func TestTheMachineHasALoad(t *testing.T) {
	t.Parallel()
	if got, err := record.ReadLoad(); err != nil || got.Cores < 1 || got.Busy <= 0 || got.Steal < 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(plan)
	f.Add("workloads: [{name: a, command: [b]}]")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := record.Parse("p", []byte(text))
		if err != nil && !errors.Is(err, record.ErrPlan) {
			t.Fatalf("%v is no ErrPlan", err)
		}
		if err == nil && p.Check() != nil {
			t.Fatalf("what was read does not check: %v", p.Check())
		}
	})
}
