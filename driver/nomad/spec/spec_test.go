package spec_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/once"
	"pitchpipe/driver/nomad/spec"
)

// batch is a job of one group and one task.
func batch() *api.Job {
	job := &api.Job{
		ID: new("train"), Name: new("train"), Type: new("batch"),
		TaskGroups: []*api.TaskGroup{{
			Name: new("g"), Count: new(1),
			Tasks: []*api.Task{{
				Name: "main", Driver: "raw_exec",
				Config:    map[string]any{"command": "/bin/train", "args": []any{"--lr", "0.1", "--epochs=5"}},
				Env:       map[string]string{"OMP_NUM_THREADS": "2"},
				Resources: &api.Resources{CPU: new(500), MemoryMB: new(256)}, KillSignal: "SIGTERM",
			}},
		}},
	}
	job.Canonicalize()
	return job
}

func apply(t *testing.T, own *api.Job, c driver.Change) *api.Job {
	t.Helper()
	job, err := spec.Apply(own, spec.Mark{Intent: "i", Cause: driver.CauseIntent, Change: c})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestWhereCoresAreGivenCPUIsLeftOut(t *testing.T) {
	t.Parallel()
	r := apply(t, batch(), driver.Change{Cores: 2}).TaskGroups[0].Tasks[0].Resources
	if r.CPU != nil || r.Cores == nil || *r.Cores != 2 {
		t.Errorf("resources cpu %v, cores %v; want cores alone: Nomad refuses both", r.CPU, r.Cores)
	}
}

func TestMemoryMaxIsTheLimitThatChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                   string
		memory, limit          int
		bytes                  int64
		wantMemory, wantMemMax int
	}{
		{"where it is not set it stays so", 256, 0, 512 << 20, 512, 0},
		{"where it would be less it is raised", 256, 300, 512 << 20, 512, 512},
		{"where it is more it is lowered, and no more is reserved", 256, 1024, 512 << 20, 256, 512},
		{"less than is reserved is less of both", 256, 1024, 128 << 20, 128, 128},
		{"a part of a MiB is a whole one", 256, 0, 100<<20 + 1, 101, 0},
		{"no limit stays none", 256, -1, 512 << 20, 512, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			own := batch()
			own.TaskGroups[0].Tasks[0].Resources.MemoryMB = new(tt.memory)
			own.TaskGroups[0].Tasks[0].Resources.MemoryMaxMB = new(tt.limit)
			r := apply(t, own, driver.Change{MemoryBytes: tt.bytes}).TaskGroups[0].Tasks[0].Resources
			if *r.MemoryMB != tt.wantMemory || *r.MemoryMaxMB != tt.wantMemMax {
				t.Errorf("memory %d, memory_max %d; want %d and %d", *r.MemoryMB, *r.MemoryMaxMB, tt.wantMemory, tt.wantMemMax)
			}
		})
	}
}

func TestAChangeLeavesWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	job := apply(t, batch(), driver.Change{
		TimeLimit: time.Hour, Env: map[string]string{"BATCH": "64"}, Args: map[string]string{"--lr": "0.5"},
	})
	task := job.TaskGroups[0].Tasks[0]
	want := map[string]string{"OMP_NUM_THREADS": "2", "BATCH": "64", spec.Variable: "i"}
	if diff := cmp.Diff(want, task.Env); diff != "" {
		t.Errorf("environment: %s", diff)
	}
	if diff := cmp.Diff([]string{"/bin/train", "--lr", "0.5", "--epochs=5"}, nomadjson.Argv(task)); diff != "" {
		t.Errorf("command line: %s", diff)
	}
	if d := job.TaskGroups[0].MaxRunDuration; d == nil || *d != time.Hour {
		t.Errorf("time limit %v, want an hour", d)
	}
	if *task.Resources.CPU != 500 || *task.Resources.MemoryMB != 256 {
		t.Errorf("resources %d MHz and %d MiB, want the owner's", *task.Resources.CPU, *task.Resources.MemoryMB)
	}
}

func TestAFlagBehindTheWrapperIsChangedAndTheWrapperStays(t *testing.T) {
	t.Parallel()
	own := batch()
	task := own.TaskGroups[0].Tasks[0]
	command, args := once.Wrap("run", "/bin/train", []string{"-c", "1"})
	task.Config["command"], task.Config["args"] = command, args
	changed := apply(t, own, driver.Change{Args: map[string]string{"-c": "2"}}).TaskGroups[0].Tasks[0]
	if diff := cmp.Diff([]string{"/bin/train", "-c", "2"}, nomadjson.Argv(changed)); diff != "" {
		t.Errorf("command line: %s", diff)
	}
	list, _ := changed.Config["args"].([]string)
	run, _, _, ok := once.Unwrap(changed.Config["command"].(string), list) //nolint:forcetypeassert // made above
	if !ok || run != "run" {
		t.Errorf("wrapped %v as run %q, want the run of before", ok, run)
	}
}

func TestWhatNoJobCanBeGivenIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change driver.Change
		want   error
	}{
		"less than no cores":            {driver.Change{Cores: -1}, driver.ErrInvalid},
		"less than no memory":           {driver.Change{MemoryBytes: -1}, driver.ErrInvalid},
		"a time limit of a moment":      {driver.Change{TimeLimit: time.Millisecond}, driver.ErrInvalid},
		"a variable without a name":     {driver.Change{Env: map[string]string{"": "x"}}, driver.ErrInvalid},
		"a variable of Nomad's":         {driver.Change{Env: map[string]string{"NOMAD_TOKEN": "x"}}, driver.ErrInvalid},
		"a variable of ours":            {driver.Change{Env: map[string]string{spec.Variable: "x"}}, driver.ErrInvalid},
		"a flag that is a command":      {driver.Change{Args: map[string]string{"rm": "-rf"}}, driver.ErrInvalid},
		"settings that travel in files": {driver.Change{Live: map[string]string{"lr": "1"}}, driver.ErrUnsupported},
	} {
		if _, err := spec.Apply(batch(), spec.Mark{Intent: "i", Change: tt.change}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestJobsThatAreOnlyObserved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*api.Job){
		"count 2: Nomad would run finished indexes again": func(j *api.Job) { j.TaskGroups[0].Count = new(2) },
		"two groups":             func(j *api.Job) { j.TaskGroups = append(j.TaskGroups, j.TaskGroups[0]) },
		"a service":              func(j *api.Job) { j.Type = new("service") },
		"a system job":           func(j *api.Job) { j.Type = new("system") },
		"a sysbatch job":         func(j *api.Job) { j.Type = new("sysbatch") },
		"a parameterized parent": func(j *api.Job) { j.ParameterizedJob = &api.ParameterizedJobConfig{} },
		"a dispatched child":     func(j *api.Job) { j.Dispatched = true },
		"a periodic parent":      func(j *api.Job) { j.Periodic = &api.PeriodicConfig{} },
		"another task driver":    func(j *api.Job) { j.TaskGroups[0].Tasks[0].Driver = "java" },
		"a task that chooses its cgroups": func(j *api.Job) {
			j.TaskGroups[0].Tasks[0].Config["cgroup_v2_override"] = "mine.slice/app.scope"
		},
		"an id that Nomad takes for a question": func(j *api.Job) { j.ID = new("x/plan") },
		"two tasks that are main":               func(j *api.Job) { g := j.TaskGroups[0]; g.Tasks = append(g.Tasks, g.Tasks[0]) },
	} {
		job := batch()
		change(job)
		if spec.ObservedOnly(job) == "" {
			t.Errorf("%s: it would be changed", name)
		}
		if _, err := spec.Apply(job, spec.Mark{}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: %v, want %v", name, err, driver.ErrUnsupported)
		}
	}
	job := batch()
	job.ParentID = new("nightly") // what a periodic job has started is its own job
	job.TaskGroups[0].Tasks = append(job.TaskGroups[0].Tasks, &api.Task{Name: "fetch", Lifecycle: &api.TaskLifecycle{Hook: "prestart"}})
	if why := spec.ObservedOnly(job); why != "" {
		t.Errorf("a periodic child with a prestart task: %s", why)
	}
	job.TaskGroups[0].Tasks = append(job.TaskGroups[0].Tasks, &api.Task{Name: "leads", Driver: "exec", Leader: true})
	if _, main := spec.Main(job); spec.ObservedOnly(job) != "" || main.Name != "leads" {
		t.Errorf("of a group with a leader %+v is tuned (%s)", main, spec.ObservedOnly(job))
	}
}

// registered is what Nomad shows of a job: its own additions are there.
func registered(t testing.TB, job *api.Job) *api.Job {
	t.Helper()
	out, err := spec.Clone(job)
	if err != nil {
		t.Fatal(err)
	}
	version, index, at := uint64(3), uint64(17), time.Now().UnixNano()
	stop, stable := false, false
	out.Version, out.ModifyIndex, out.JobModifyIndex, out.CreateIndex, out.SubmitTime = &version, &index, &index, &index, &at
	out.Status, out.Stop, out.Stable, out.NodePool, out.Datacenters = new("running"), &stop, &stable, new("default"), []string{"*"}
	out.NomadTokenID = new("somebody")
	out.VersionTag = &api.JobVersionTag{Name: "orig"}
	g := out.TaskGroups[0]
	g.Constraints = append(g.Constraints, &api.Constraint{LTarget: "${attr.os.signals}", RTarget: "SIGTERM", Operand: "set_contains"})
	if g.Scaling != nil {
		g.Scaling.ID, g.Scaling.Namespace, g.Scaling.Target = "x", "default", map[string]string{"Group": "g"}
		g.Scaling.CreateIndex, g.Scaling.ModifyIndex = 1, 2
	}
	g.Tasks[0].Identity = &api.WorkloadIdentity{Name: "default", Audience: []string{"nomadproject.io"}}
	g.Tasks[0].Resources.DiskMB, g.Tasks[0].Resources.SecretsMB = new(0), new(0)
	return out
}

func TestARegisteredJobHasTheFingerprintOfItsFile(t *testing.T) {
	t.Parallel()
	want, err := spec.Fingerprint(batch())
	if err != nil {
		t.Fatal(err)
	}
	for name, job := range map[string]*api.Job{
		"as Nomad shows it":                  registered(t, batch()),
		"changed by us":                      registered(t, apply(t, batch(), driver.Change{})),
		"under another id":                   func() *api.Job { j := registered(t, batch()); j.ID, j.Name = new("x"), new("y"); return j }(),
		"with the wrapper of its completion": wrapped(),
	} {
		got, err := spec.Fingerprint(job)
		if err != nil || got != want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, want)
		}
	}
	other := batch()
	other.TaskGroups[0].Tasks[0].Env["OMP_NUM_THREADS"] = "3"
	if spec.Same(batch(), other) {
		t.Error("another environment has the same fingerprint")
	}
}

func wrapped() *api.Job {
	job := batch()
	task := job.TaskGroups[0].Tasks[0]
	command, args := once.Wrap("run", "/bin/train", []string{"--lr", "0.1", "--epochs=5"})
	task.Config["command"], task.Config["args"] = command, args
	return job
}

func TestAMarkIsReadBackAndTakenAway(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]*api.Job{"without a scaling block": batch(), "with the stanza in it": withStanza()} {
		c := driver.Change{Cores: 2, Env: map[string]string{"A": "b"}}
		job := registered(t, apply(t, own, c))
		m, ok := spec.Marked(job)
		if !ok || m.Intent != "i" || m.Cause != driver.CauseIntent {
			t.Errorf("%s: mark %+v (%v)", name, m, ok)
		}
		if diff := cmp.Diff(c, m.Change); diff != "" {
			t.Errorf("%s: change of the mark: %s", name, diff)
		}
		back, err := spec.Owner(job)
		if err != nil {
			t.Fatal(err)
		}
		if _, still := spec.Marked(back); still || spec.Stanza(back) != spec.Stanza(own) {
			t.Errorf("%s: marked %v, stanza %v", name, still, spec.Stanza(back))
		}
		if (back.TaskGroups[0].Scaling == nil) != (own.TaskGroups[0].Scaling == nil) {
			t.Errorf("%s: a scaling block that the owner did not write", name)
		}
	}
}

func withStanza() *api.Job {
	job := batch()
	one, no := int64(1), false
	job.TaskGroups[0].Scaling = &api.ScalingPolicy{
		Min: &one, Max: &one, Enabled: &no, Type: "horizontal",
		Policy: map[string]any{"tuning": []any{map[string]any{"mode": "apply"}}},
	}
	return job
}

func TestAStanzaIsSeenWhereverItStands(t *testing.T) {
	t.Parallel()
	meta := map[string]string{"tuning": "{}"}
	for name, change := range map[string]func(*api.Job){
		"in meta of the job":   func(j *api.Job) { j.Meta = meta },
		"in meta of the group": func(j *api.Job) { j.TaskGroups[0].Meta = meta },
		"in meta of the task":  func(j *api.Job) { j.TaskGroups[0].Tasks[0].Meta = meta },
	} {
		job := batch()
		if spec.Stanza(job) {
			t.Errorf("%s: it is seen before it is there", name)
		}
		if change(job); !spec.Stanza(job) {
			t.Errorf("%s: it is not seen", name)
		}
	}
	if !spec.Stanza(withStanza()) {
		t.Error("in the scaling policy: it is not seen")
	}
}

// What is changed from the owner's is always the same, whatever was changed before.
func TestAChangeStartsFromTheOwners(t *testing.T) {
	t.Parallel()
	change := rapid.Custom(func(t *rapid.T) driver.Change {
		word := rapid.StringMatching(`X[A-Z]{1,3}`)
		value := rapid.StringMatching(`[A-Za-z0-9_.,:+%/@{}=-]{0,6}`)
		flag := rapid.StringMatching(`--[a-z]{1,3}`)
		return driver.Change{
			Cores: rapid.IntRange(0, 4).Draw(t, "cores"), MemoryBytes: rapid.Int64Range(0, 1<<31).Draw(t, "memory"),
			TimeLimit: time.Duration(rapid.IntRange(0, 9).Draw(t, "limit")) * time.Hour,
			Env:       rapid.MapOfN(word, value, 0, 3).Draw(t, "env"), Args: rapid.MapOfN(flag, value, 0, 3).Draw(t, "args"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		own := batch()
		if rapid.Bool().Draw(t, "stanza") {
			own = withStanza()
		}
		first := spec.Mark{Intent: "first", Cause: driver.CauseIntent, Change: change.Draw(t, "first")}
		second := spec.Mark{Intent: "second", Cause: driver.CauseIntent, Change: change.Draw(t, "second")}
		once, err := spec.Apply(own, second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Apply(own, first); err != nil {
			t.Fatal(err)
		}
		again, err := spec.Apply(own, second)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(once)  //nolint:errchkjson // plain values
		b, _ := json.Marshal(again) //nolint:errchkjson // plain values
		if string(a) != string(b) {
			t.Errorf("the owner's was changed: %s", cmp.Diff(string(a), string(b)))
		}
		if m, ok := spec.Marked(once); !ok || !m.Is(second) {
			t.Errorf("mark %+v", m)
		}
		back, err := spec.Apply(own, spec.Mark{Intent: "back", Cause: driver.CauseIntent})
		if err != nil || !spec.Same(back, own) {
			t.Errorf("the empty change is not the owner's (%v)", err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, job := range []*api.Job{batch(), withStanza(), wrapped()} {
		data, err := json.Marshal(map[string]any{"Job": job})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"TaskGroups":[{"Tasks":[{}],"Scaling":{"Policy":{"pitchpipe":[{"change":"{"}]}}}]}`))
	f.Add([]byte(`{"TaskGroups":[null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := spec.Decode(data)
		if err != nil {
			return
		}
		// Whatever was registered, looking at it must not panic.
		spec.Stanza(job)
		spec.Marked(job)
		spec.Resources(job)
		if spec.ObservedOnly(job) != "" {
			return
		}
		if _, err := spec.Fingerprint(job); err != nil {
			t.Errorf("a job that can be changed has no fingerprint: %v", err)
		}
	})
}
