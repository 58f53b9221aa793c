package task

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Variables are the cluster's, for templates that read them.
type Variables interface {
	// Items are those of a variable, nil where there is none.
	Items(namespace, path string) map[string]string
	// Changed is closed at the next change of any variable.
	Changed() <-chan struct{}
}

// settles is for how long what a template reads must be quiet before it is rendered
// again, where its author says nothing.
const settles = 5 * time.Second

// item is one of a variable, as a template sees it.
type item struct{ K, V string }

func (i item) String() string { return i.V }

// items are those of a variable, as a template sees them.
type items map[string]item

// Tuples are the items in the order of their names.
func (m items) Tuples() []item {
	out := make([]item, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// templates are those of a task. What their files say is in the environment from the next
// start on.
type templates struct {
	task *Task
	all  []*api.Template
	last []string // what they were rendered to
}

// template renders them before the first start and watched from then on; false: the task
// is killed while one waits for its variable.
func (t *Task) template(ctx context.Context) (bool, error) {
	if t.spec.Variables == nil || len(t.spec.Task.Templates) == 0 {
		return true, nil
	}
	m := &templates{task: t, all: t.spec.Task.Templates, last: make([]string, len(t.spec.Task.Templates))}
	for {
		changed := t.spec.Variables.Changed()
		waits, _, err := m.render(true)
		if err != nil {
			return false, err
		}
		if !waits {
			break
		}
		select {
		case <-changed:
		case <-t.kill:
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
	}
	t.watchers.Go(func() { m.watch(ctx) })
	return true, nil
}

// render renders all of them and tells whether one waits for a variable that is not
// there, and which have changed.
func (m *templates) render(first bool) (waits bool, changed []*api.Template, err error) {
	env := m.task.spec.environment()
	texts := make([]string, len(m.all))
	for i, tmpl := range m.all {
		text, missing, err := m.text(tmpl, env)
		if err != nil {
			return false, nil, err
		}
		if missing {
			return true, nil, nil
		}
		texts[i] = text
	}
	given := map[string]string{}
	for i, tmpl := range m.all {
		if first || texts[i] != m.last[i] {
			changed = append(changed, tmpl)
			if err := m.write(tmpl, texts[i]); err != nil {
				return false, nil, err
			}
			m.last[i] = texts[i]
		}
		if tmpl.Envvars != nil && *tmpl.Envvars {
			maps.Copy(given, variables(texts[i]))
		}
	}
	m.task.mu.Lock()
	m.task.given = given
	m.task.mu.Unlock()
	return false, changed, nil
}

// text is what one of them says now.
func (m *templates) text(tmpl *api.Template, env map[string]string) (text string, missing bool, err error) {
	namespace := env["NOMAD_NAMESPACE"]
	read := func(path string) items {
		found := m.task.spec.Variables.Items(namespace, path)
		if found == nil {
			return nil
		}
		out := items{}
		for k, v := range found {
			out[k] = item{k, v}
		}
		return out
	}
	parsed, err := template.New("template").Option("missingkey=zero").Funcs(template.FuncMap{
		"env":            func(name string) string { return env[name] },
		"nomadVarExists": func(path string) bool { return read(path) != nil },
		"nomadVar": func(path string) items {
			v := read(path)
			missing = missing || v == nil
			return v
		},
	}).Parse(data(tmpl))
	if err != nil {
		return "", false, fmt.Errorf("%w: template: %w", ErrSpec, err)
	}
	var b strings.Builder
	if err := parsed.Execute(&b, nil); err != nil {
		return "", false, fmt.Errorf("%w: template: %w", ErrSpec, err)
	}
	return b.String(), missing, nil
}

// write puts the text in its place at once, as the agent does.
func (m *templates) write(tmpl *api.Template, text string) error {
	if tmpl.DestPath == nil {
		return fmt.Errorf("%w: a template without a destination", ErrSpec)
	}
	path := filepath.Join(m.task.spec.taskDir(), filepath.Clean("/"+*tmpl.DestPath))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil { //nolint:gosec // the task's user reads it
		return err
	}
	return os.Rename(path+".new", path)
}

// watch renders them again when what they read has changed and been quiet, and has the
// task restarted where one says so. The task dies of one that cannot be rendered.
func (m *templates) watch(ctx context.Context) {
	t := m.task
	for {
		changed := t.spec.Variables.Changed()
		if !m.stale() {
			select {
			case <-changed:
			case <-t.over:
				return
			case <-ctx.Done():
				return
			}
			continue
		}
		if !m.pause(ctx, m.quiet()) {
			return
		}
		_, news, err := m.render(false)
		if err != nil {
			t.Kill()
			return
		}
		restart, splay := false, time.Duration(0)
		for _, tmpl := range news {
			if mode := tmpl.ChangeMode; mode == nil || *mode == "" || *mode == "restart" {
				restart = true
			}
			if tmpl.Splay != nil {
				splay = max(splay, *tmpl.Splay)
			}
		}
		if !restart {
			continue
		}
		if splay > 0 && !m.pause(ctx, rand.N(splay)) { //nolint:gosec // a jitter
			return
		}
		_ = t.restartFor("Template with change_mode restart re-rendered") // one that does not run has it at its start
	}
}

// stale tells whether one of them says something else now.
func (m *templates) stale() bool {
	env := m.task.spec.environment()
	for i, tmpl := range m.all {
		text, missing, err := m.text(tmpl, env)
		if err != nil || !missing && text != m.last[i] {
			return true
		}
	}
	return false
}

// quiet is for how long they wait before they are rendered again.
func (m *templates) quiet() time.Duration {
	out := time.Duration(0)
	for _, tmpl := range m.all {
		wait := settles
		if w := tmpl.Wait; w != nil && w.Min != nil {
			wait = *w.Min
		}
		out = max(out, wait)
	}
	return out
}

func (m *templates) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-m.task.over:
		return false
	case <-ctx.Done():
		return false
	}
}

func data(tmpl *api.Template) string {
	if tmpl.EmbeddedTmpl == nil {
		return ""
	}
	return *tmpl.EmbeddedTmpl
}

// variables are those of a file: NAME=VALUE in lines, others and remarks left out.
func variables(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return out
}
