package spec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// turner is a job with the template, after a change of it.
func turner(t *testing.T, change func(*api.Job, *api.Template)) *api.Job {
	t.Helper()
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/train")
	tmpl := &api.Template{EmbeddedTmpl: new("  " + strings.ReplaceAll(spec.Template, "\n", "\n    ") + "\n"), DestPath: new("local/tuned.env"), Envvars: new(true), ChangeMode: new("restart")}
	task.Templates = []*api.Template{tmpl}
	job := api.NewBatchJob("train", "train", "global", 50).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	if _, err := spec.Once(job, "run-1"); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(job, tmpl)
	}
	return job
}

func TestATemplateIsRecognisedByItsContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		id     string
		change func(*api.Job, *api.Template)
		want   bool
	}{
		{"as it is documented, with other blanks around its lines", "train", nil, true},
		{"with nothing said of its mode, which is restart", "train", func(_ *api.Job, x *api.Template) { x.ChangeMode = nil }, true},
		{"beside another template", "train", func(j *api.Job, _ *api.Template) {
			task := j.TaskGroups[0].Tasks[0]
			task.Templates = append(task.Templates, &api.Template{EmbeddedTmpl: new("x"), DestPath: new("local/x")})
		}, true},
		{"no environment", "train", func(_ *api.Job, x *api.Template) { x.Envvars = new(false) }, false},
		{"nothing said of the environment", "train", func(_ *api.Job, x *api.Template) { x.Envvars = nil }, false},
		{"another mode", "train", func(_ *api.Job, x *api.Template) { x.ChangeMode = new("noop") }, false},
		{"rendered once", "train", func(_ *api.Job, x *api.Template) { x.Once = new(true) }, false},
		{"other delimiters", "train", func(_ *api.Job, x *api.Template) { x.LeftDelim = new("[[") }, false},
		{"a place that no one may read", "train", func(_ *api.Job, x *api.Template) { x.DestPath = new("secrets/tuned.env") }, false},
		{"a place outside of its folder", "train", func(_ *api.Job, x *api.Template) { x.DestPath = new("local/../secrets/tuned.env") }, false},
		{"another word in its text", "train", func(_ *api.Job, x *api.Template) {
			x.EmbeddedTmpl = new(strings.Replace(spec.Template, "NOMAD_ALLOC_ID", "NOMAD_JOB_ID", 1))
		}, false},
		{"twice", "train", func(j *api.Job, x *api.Template) {
			task := j.TaskGroups[0].Tasks[0]
			task.Templates = append(task.Templates, x)
		}, false},
		{"a command that could be run again", "train", func(j *api.Job, _ *api.Template) { spec.Unwrap(j.TaskGroups[0].Tasks[0]) }, false},
		{"an id that is no path of a variable", "train.big", nil, false},
		{"an id that is two", "train/big", nil, false},
		{"a job that is only observed", "train", func(j *api.Job, _ *api.Template) { j.TaskGroups[0].Count = new(2) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := spec.MayRestart(turner(t, tt.change), tt.id)
			if ok != tt.want {
				t.Fatalf("%v, want %v", ok, tt.want)
			}
			if ok && (got.Path != "nomad/jobs/train/g/main" || got.File != "main/local/tuned.env") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTheSlackIsWhatItsAuthorAllows(t *testing.T) {
	t.Parallel()
	job := turner(t, func(j *api.Job, x *api.Template) {
		x.Splay, x.Wait = new(time.Second), &api.WaitConfig{Max: new(2 * time.Second)}
		j.TaskGroups[0].Tasks[0].KillTimeout, j.TaskGroups[0].Tasks[0].ShutdownDelay = new(4*time.Second), 8*time.Second
	})
	at, ok := spec.MayRestart(job, "train")
	if got := at.Slack(job); !ok || got != 15*time.Second {
		t.Errorf("%v, want 15s", got)
	}
}

func TestAChangeOfTheEnvironmentAloneIsItems(t *testing.T) {
	t.Parallel()
	env := func(kv ...string) driver.Change {
		c := driver.Change{Env: map[string]string{}}
		for i := 0; i < len(kv); i += 2 {
			c.Env[kv[i]] = kv[i+1]
		}
		return c
	}
	with := func(c driver.Change, cores int) driver.Change { c.Cores = cores; return c }
	for _, tt := range []struct {
		name             string
		registered, want driver.Change
		intent           string
		items            map[string]string
	}{
		{"a variable", driver.Change{}, env("A", "1"), "i", map[string]string{"A": "1", spec.AllocVariable: "alloc", spec.Variable: "i"}},
		{"back to what is registered", env("A", "1"), env("A", "1"), "i", map[string]string{"A": "1", spec.AllocVariable: "alloc", spec.Variable: "i"}},
		{"beside cores that are registered", with(env(), 2), with(env("A", "1"), 2), "i", map[string]string{"A": "1", spec.AllocVariable: "alloc", spec.Variable: "i"}},
		{"cores too", driver.Change{}, with(env("A", "1"), 2), "i", nil},
		{"cores that are registered are taken back", with(env(), 2), env("A", "1"), "i", nil},
		{"a variable that is registered is taken back", env("A", "1"), env("B", "1"), "i", nil},
		{"a flag", driver.Change{}, driver.Change{Args: map[string]string{"--lr": "1"}}, "i", nil},
		{"a value in quotes", driver.Change{}, env("A", "1 2"), "i", nil},
		{"a value of two lines", driver.Change{}, env("A", "1\nB=2"), "i", nil},
		{"no value", driver.Change{}, env("A", ""), "i", nil},
		{"a name that is none", driver.Change{}, env("A-B", "1"), "i", nil},
		{"a name of ours", driver.Change{}, env(spec.AllocVariable, "1"), "i", nil},
		{"an intent in quotes", driver.Change{}, env("A", "1"), "an intent", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := spec.Items("alloc", tt.registered, spec.Mark{Intent: tt.intent, Change: tt.want})
			if diff := cmp.Diff(tt.items, got); diff != "" || ok != (tt.items != nil) {
				t.Errorf("%v (-want +got):\n%s", ok, diff)
			}
		})
	}
}
