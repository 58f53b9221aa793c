package task

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

// Variables are the cluster's, for templates that read them.
type Variables interface {
	// Items are those of a variable, nil where there is none.
	Items(namespace, path string) map[string]string
	// Changed is closed at the next change of anything.
	Changed() <-chan struct{}
}

// settles is how long what a template reads must be quiet before it is rendered again,
// where its author says nothing.
const settles = 5 * time.Second

// item is one of a variable, as a template sees it.
type item struct{ K, V string }

func (i item) String() string { return i.V }

// items are those of a variable, as a template sees them.
type items map[string]item

// Tuples are the items in the order of their names.
func (m items) Tuples() []item {
	var out []item
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// template renders the task's templates before its first start and watches them from then
// on; false means that the task was killed while one waits for its variable.
func (t *Task) template(ctx context.Context) (bool, error) {
	for {
		changed := t.spec.Variables.Changed()
		texts, waits, err := t.render()
		if err != nil {
			return false, err
		}
		if !waits {
			if err := t.write(texts); err != nil {
				return false, err
			}
			t.watchers.Go(func() { t.watch(ctx, texts) })
			return true, nil
		}
		select {
		case <-changed:
		case <-t.kill:
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
	}
}

// render computes the texts of all templates; waits means that one needs a variable that
// does not exist.
func (t *Task) render() (texts []string, waits bool, err error) {
	env := t.spec.environment()
	read := func(path string) items {
		var out items
		for k, v := range t.spec.Variables.Items(env["NOMAD_NAMESPACE"], path) {
			if out == nil {
				out = items{}
			}
			out[k] = item{k, v}
		}
		return out
	}
	functions := template.FuncMap{
		"env":            func(name string) string { return env[name] },
		"nomadVarExists": func(path string) bool { return read(path) != nil },
		"nomadVar": func(path string) items {
			v := read(path)
			waits = waits || v == nil
			return v
		},
	}
	for _, tmpl := range t.spec.Task.Templates {
		parsed, err := template.New("template").Option("missingkey=zero").Funcs(functions).Parse(*tmpl.EmbeddedTmpl)
		var b strings.Builder
		if err == nil {
			err = parsed.Execute(&b, nil)
		}
		if err != nil {
			return nil, false, fmt.Errorf("%w: template: %w", ErrSpec, err)
		}
		texts = append(texts, b.String())
	}
	return texts, waits, nil
}

// write puts the texts in their places, each at once as the agent does, and keeps what
// they say about the environment for the next start.
func (t *Task) write(texts []string) error {
	rendered := map[string]string{}
	for i, tmpl := range t.spec.Task.Templates {
		path := filepath.Join(t.spec.dir(), filepath.Clean("/"+*tmpl.DestPath))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path+".new", []byte(texts[i]), 0o644); err != nil { //nolint:gosec // the task's user reads it
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
		if !*tmpl.Envvars {
			continue
		}
		for line := range strings.Lines(texts[i]) {
			line = strings.TrimSpace(line)
			if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
				rendered[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rendered = rendered
	return nil
}

// watch renders the templates again when what they read has changed and been quiet, and
// restarts the task where one says so. A template that cannot be rendered kills the task.
func (t *Task) watch(ctx context.Context, last []string) {
	quiet := time.Duration(0)
	for _, tmpl := range t.spec.Task.Templates {
		wait := settles
		if tmpl.Wait != nil && tmpl.Wait.Min != nil {
			wait = *tmpl.Wait.Min
		}
		quiet = max(quiet, wait)
	}
	for {
		changed := t.spec.Variables.Changed()
		texts, waits, err := t.render()
		if err == nil && (waits || slices.Equal(texts, last)) {
			select {
			case <-changed:
				continue
			case <-t.over:
				return
			case <-ctx.Done():
				return
			}
		}
		if !pause(quiet, t.over, ctx.Done()) {
			return
		}
		if texts, waits, err = t.render(); waits {
			continue
		}
		if err == nil {
			err = t.write(texts)
		}
		if err != nil {
			t.Kill()
			return
		}
		restart := false
		for i, tmpl := range t.spec.Task.Templates {
			restart = restart || texts[i] != last[i] && *tmpl.ChangeMode != "noop"
		}
		last = texts
		if restart {
			_ = t.restartFor("Template with change_mode restart re-rendered") // without a process its start reads the file
		}
	}
}
