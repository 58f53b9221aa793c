package spec

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// Template is the text of a template that lets a job's environment be changed without a
// registration: it renders the items of a variable at the task's own path where they are
// meant for the very allocation. What an allocation before it was given says nothing to it.
const Template = `{{ $path := printf "nomad/jobs/%s/%s/%s" (or (env "NOMAD_JOB_PARENT_ID") (env "NOMAD_JOB_ID")) (env "NOMAD_GROUP_NAME") (env "NOMAD_TASK_NAME") }}
{{ if nomadVarExists $path }}{{ with nomadVar $path }}{{ if eq (print .PITCHPIPE_ALLOC) (env "NOMAD_ALLOC_ID") }}
{{ range .Tuples }}
{{ .K }}={{ .V }}
{{ end }}
{{ end }}{{ end }}{{ end }}`

// AllocVariable names the item, and the variable of the environment, that says which
// allocation the items of a variable are meant for.
const AllocVariable = "PITCHPIPE_ALLOC"

// InPlace is the place of a job whose environment can be changed in place.
type InPlace struct {
	Path string        // of the variable
	File string        // that the template renders, from the allocation's folder on
	Tmpl *api.Template // as its author wrote it
}

// pathOf is what Nomad takes as the path of a variable.
var pathOf = regexp.MustCompile(`^[a-zA-Z0-9-_~/]{1,128}$`)

// MayRestart finds where the environment of a job can be changed in place: its main task has
// the Template, exactly, with env = true and change_mode = "restart", rendered to a file
// below local/, its command is wrapped so that finished work is not done again, and the
// id of the job, which is that of its variable, is one that Nomad takes in a path.
func MayRestart(job *api.Job, id string) (InPlace, bool) {
	g, t := Main(job)
	if t == nil || ObservedOnly(job) != "" || !Wrapped(job) || strings.Contains(id, "/") {
		return InPlace{}, false
	}
	found := slices.DeleteFunc(slices.Clone(t.Templates), func(tmpl *api.Template) bool {
		return tmpl == nil || lines(Deref(tmpl.EmbeddedTmpl)) != lines(Template)
	})
	if len(found) != 1 {
		return InPlace{}, false
	}
	tmpl := found[0]
	file := path.Clean(Deref(tmpl.DestPath))
	at := strings.Join([]string{"nomad/jobs", id, Deref(g.Name), t.Name}, "/")
	switch {
	case !Deref(tmpl.Envvars), Deref(tmpl.Once), Deref(tmpl.SourcePath) != "",
		!slices.Contains([]string{"", "restart"}, Deref(tmpl.ChangeMode)),
		!slices.Contains([]string{"", "{{"}, Deref(tmpl.LeftDelim)), !slices.Contains([]string{"", "}}"}, Deref(tmpl.RightDelim)),
		!strings.HasPrefix(file, "local/"),
		!pathOf.MatchString(at) || strings.Count(at, "/") != 4:
		return InPlace{}, false
	}
	return InPlace{Path: at, File: path.Join(t.Name, file), Tmpl: tmpl}, true
}

// Slack is how long Nomad may take on its author's word: for the template to settle and
// to be acted on, and for the task to end.
func (t InPlace) Slack(job *api.Job) time.Duration {
	_, task := Main(job)
	return task.ShutdownDelay + Deref(t.Tmpl.Splay) + Deref(task.KillTimeout) + Deref(Deref(t.Tmpl.Wait).Max)
}

// lines is a text without the blanks around its lines, and without empty ones: a job file
// indents.
func lines(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// plain is what a file of variables says without quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.:/,@%+=-]+$`)

// Items are those of the variable for an allocation that is to have the change of a mark
// and was registered with another; false where the change is not one of the environment
// alone, takes back a variable that was registered, or has a value that the file of
// variables would need quotes for.
func Items(alloc string, registered driver.Change, m Mark) (map[string]string, bool) {
	if move.JudgeChange(m.Change) != nil || !same(m.Change, registered) || !plain.MatchString(m.Intent) {
		return nil, false
	}
	for name := range registered.Env {
		if _, ok := m.Change.Env[name]; !ok {
			return nil, false
		}
	}
	out := map[string]string{AllocVariable: alloc, Variable: m.Intent}
	for name, value := range m.Change.Env {
		if !plain.MatchString(value) {
			return nil, false
		}
		out[name] = value
	}
	return out, true
}

// same reports whether two changes are equal apart from their variables.
func same(a, b driver.Change) bool {
	return maps.Equal(a.Args, b.Args) && maps.Equal(a.Live, b.Live) &&
		a.Cores == b.Cores && a.MemoryBytes == b.MemoryBytes && a.TimeLimit == b.TimeLimit
}
