package spec_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// read is a job as it is read back from Nomad.
func read(t interface {
	Helper()
	Fatal(...any)
}, job *api.Job,
) *api.Job {
	t.Helper()
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	back, err := spec.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	back.Canonicalize()
	return back
}

// What an owner wrote comes back from a job that he registered with any change, without
// anybody's journal, and so does the change.
func TestWhatAnOwnerWroteComesBackFromAJobThatBeganWithAChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		own := batch()
		task := own.TaskGroups[0].Tasks[0]
		if rapid.Bool().Draw(t, "wrapped") {
			if _, err := spec.Once(own, "run1"); err != nil {
				t.Fatal(err)
			}
		}
		if rapid.Bool().Draw(t, "cores") {
			task.Resources.CPU, task.Resources.Cores = nil, new(rapid.IntRange(1, 8).Draw(t, "own cores"))
		}
		if limit := rapid.SampledFrom([]int{0, -1, 300, 4096}).Draw(t, "memory_max"); limit != 0 {
			task.Resources.MemoryMaxMB = new(limit)
		}
		if rapid.Bool().Draw(t, "scaling") {
			own.TaskGroups[0].Scaling = &api.ScalingPolicy{Min: new(int64(1)), Max: new(int64(1)), Enabled: new(false), Type: "horizontal", Policy: map[string]any{"tuning": []any{map[string]any{"mode": "apply"}}}}
		}
		word := rapid.StringMatching(`[a-z0-9%={}]{0,6}`)
		c := driver.Change{
			Cores:       rapid.IntRange(0, 4).Draw(t, "cores"),
			MemoryBytes: rapid.SampledFrom([]int64{0, 64 << 20, 512<<20 + 1}).Draw(t, "memory"),
			TimeLimit:   rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "limit"),
			Env:         rapid.MapOfN(rapid.SampledFrom([]string{"OMP_NUM_THREADS", "BATCH", "LR"}), word, 0, 3).Draw(t, "env"),
			Args:        rapid.MapOfN(rapid.SampledFrom([]string{"--lr", "--epochs", "--new"}), word, 0, 3).Draw(t, "args"),
		}
		m := spec.Mark{Intent: "train/1", Cause: driver.CauseIntent, Change: c}
		begun, err := spec.Begin(own, m)
		if err != nil {
			t.Fatal(err)
		}
		begun = read(t, begun)
		got, ok := spec.Begun(begun)
		if diff := cmp.Diff(c, got.Change, cmp.Comparer(func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 || cmp.Equal(a, b) })); !ok || got.Intent != "train/1" || diff != "" {
			t.Fatalf("begun: %v, intent %q, change (-want +got)\n%s", ok, got.Intent, diff)
		}
		back, err := spec.Owner(begun)
		if err != nil {
			t.Fatal(err)
		}
		if !spec.Same(back, own) {
			a, _ := json.Marshal(own)
			b, _ := json.Marshal(back)
			t.Fatalf("its owner wrote\n%s\nand back came\n%s", a, b)
		}
		// A change of it goes from the owner's, and says nothing of how it began.
		next, err := spec.Apply(begun, spec.Mark{Intent: "train/2", Cause: driver.CauseIntent})
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := spec.Marked(next); !ok || m.Was != nil || !spec.Same(next, own) {
			t.Fatalf("taken back it has the mark %+v, and is its owner's: %v", m, spec.Same(next, own))
		}
	})
}

// Anyone who may register a job may write such a mark.
func TestAMarkOfAVariableThatTheJobDoesNotHaveIsNotBelieved(t *testing.T) {
	t.Parallel()
	job := batch()
	job.TaskGroups[0].Tasks[0].Env = nil
	job.TaskGroups[0].Scaling = &api.ScalingPolicy{Policy: map[string]any{"pitchpipe": []any{map[string]any{
		"intent": "i", "cause": "intent", "change": `{"env": {"A": ""}}`, "was": `{"env": {"A": "x"}}`,
	}}}}
	own, err := spec.Owner(job)
	if _, ok := spec.Begun(job); ok || err != nil || own.TaskGroups[0].Tasks[0].Env != nil {
		t.Errorf("it counts as begun: %v, its owner's is %+v (%v)", ok, own, err)
	}
}

func TestWhatAnOwnerWritesOverABeginningIsHisOwn(t *testing.T) {
	t.Parallel()
	c := driver.Change{Cores: 2, MemoryBytes: 512 << 20, TimeLimit: time.Hour, Env: map[string]string{"BATCH": "2"}, Args: map[string]string{"--lr": "0.5"}}
	for name, write := range map[string]func(*api.TaskGroup, *api.Task){
		"other cores":                     func(_ *api.TaskGroup, t *api.Task) { t.Resources.Cores = new(3) },
		"MHz in place of cores":           func(_ *api.TaskGroup, t *api.Task) { t.Resources.CPU, t.Resources.Cores = new(100), nil },
		"other memory":                    func(_ *api.TaskGroup, t *api.Task) { t.Resources.MemoryMB = new(64) },
		"another time limit":              func(g *api.TaskGroup, _ *api.Task) { g.MaxRunDuration = new(time.Minute) },
		"no time limit":                   func(g *api.TaskGroup, _ *api.Task) { g.MaxRunDuration = nil },
		"another value of the variable":   func(_ *api.TaskGroup, t *api.Task) { t.Env["BATCH"] = "3" },
		"no such variable":                func(_ *api.TaskGroup, t *api.Task) { delete(t.Env, "BATCH") },
		"another value of the argument":   func(_ *api.TaskGroup, t *api.Task) { t.Config["args"] = []string{"--lr", "0.7", "--epochs=5"} },
		"another argument than the tuned": func(_ *api.TaskGroup, t *api.Task) { t.Config["args"] = []string{"--lr", "0.5", "--epochs=6"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, err := spec.Begin(batch(), spec.Mark{Intent: "i", Cause: driver.CauseIntent, Change: c})
			if err != nil {
				t.Fatal(err)
			}
			g, task := spec.Main(job)
			write(g, task)
			if m, ok := spec.Begun(job); ok {
				t.Errorf("it still counts as begun with %+v", m.Change)
			}
			want, _ := json.Marshal(task.Resources)
			own, err := spec.Owner(job)
			if err != nil {
				t.Fatal(err)
			}
			_, kept := spec.Main(own)
			if got, _ := json.Marshal(kept.Resources); string(got) != string(want) {
				t.Errorf("his resources are %s, want what he wrote, %s", got, want)
			}
			if _, ok := spec.Marked(own); ok {
				t.Error("the mark stays")
			}
		})
	}
}
