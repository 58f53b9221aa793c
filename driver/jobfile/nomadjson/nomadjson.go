package nomadjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/identity"
	"pitchpipe/driver/jobfile/jsontree"
	"pitchpipe/driver/jobfile/once"
)

// maxSize bounds the JSON, of which the servers take a few MiB at most.
const maxSize = 16 << 20

// The part of a job that is read.
type (
	job struct {
		ID, Name, Namespace, Type *string
		Meta                      map[string]string
		TaskGroups                []group
	}
	group struct {
		Name    *string
		Count   *int
		Meta    map[string]string
		Scaling *struct{ Policy map[string]json.RawMessage }
		Tasks   []task
	}
	task struct {
		Name      string
		Leader    bool
		Lifecycle *struct{ Hook string }
		Config    map[string]any
		Env, Meta map[string]string
		Resources *struct{ Cores, MemoryMB, MemoryMaxMB *int64 }
	}
)

// Parse reads a registered job. Such a job has no variables: they were replaced when
// it was submitted. The error, if any, is of type jobfile.Errors.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	p := &parser{filename: filename, job: &jobfile.Job{
		Format: jobfile.NomadJSON, Cores: 1, Env: map[string]string{}, Meta: map[string]string{},
	}}
	if names := slices.Sorted(maps.Keys(vars)); len(names) > 0 {
		p.fail("", fmt.Sprintf("a value for the variable %q", names[0]), "want none: the variables of a registered job are replaced")
	} else if j, ok := p.decode(src); ok {
		p.read(j)
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	p.job.Command = identity.Argv(p.job.Argv)
	return p.job, nil
}

type parser struct {
	filename string
	job      *jobfile.Job
	errs     jobfile.Errors
	stanza   string // the path of the stanza, empty before one was found
}

// at is the place of a path in the job.
func (p *parser) at(path string) jobfile.Pos {
	return jobfile.Pos{Filename: strings.TrimSpace(p.filename + " " + path), Line: 1, Column: 1}
}

func (p *parser) fail(path, found, want string) {
	if path != "" {
		found = path + ": " + found
	}
	p.errs = append(p.errs, jobfile.Error{Pos: p.at(""), Found: found, Want: want})
}

func (p *parser) decode(src []byte) (job, bool) {
	if len(src) > maxSize {
		p.fail("", "a job of more than 16 MiB", "want a smaller one")
		return job{}, false
	}
	var wrapped struct{ Job *job }
	err := json.Unmarshal(src, &wrapped)
	if err == nil && wrapped.Job != nil {
		return *wrapped.Job, true
	}
	var j job
	if err == nil {
		err = json.Unmarshal(src, &j)
	}
	if err != nil {
		p.fail("", "broken JSON: "+err.Error(), "want a job as Nomad's API shows it")
	}
	return j, err == nil
}

func (p *parser) read(j job) {
	p.job.Name, p.job.Partition = or(j.Name, or(j.ID, "")), or(j.Namespace, "")
	p.meta("meta", j.Meta)
	tuned := -1
	for i, g := range j.TaskGroups {
		before := p.stanza
		path := fmt.Sprintf("group %q ", or(g.Name, ""))
		if g.Scaling != nil {
			if body, ok := g.Scaling.Policy["tuning"]; ok {
				p.tuning(path+"scaling.policy.tuning", body)
			}
		}
		p.meta(path+"meta", g.Meta)
		for _, t := range g.Tasks {
			p.meta(fmt.Sprintf("%stask %q meta", path, t.Name), t.Meta)
		}
		if before == "" && p.stanza != "" {
			tuned = i
		}
	}
	if p.stanza != "" && or(j.Type, "service") != "batch" {
		p.fail(p.stanza, fmt.Sprintf("a tuning stanza of a job of the type %q", or(j.Type, "service")), `want type = "batch": only batch jobs are tuned`)
	}
	if tuned < 0 {
		if len(j.TaskGroups) != 1 {
			if p.stanza != "" {
				p.fail(p.stanza, fmt.Sprintf("a tuning stanza of a job of %d groups", len(j.TaskGroups)), "want it in the group that it is meant for")
			}
			maps.Copy(p.job.Meta, j.Meta)
			return
		}
		tuned = 0
	}
	g := j.TaskGroups[tuned]
	main := mainTask(g.Tasks)
	maps.Copy(p.job.Meta, j.Meta)
	maps.Copy(p.job.Meta, g.Meta)
	if main != nil {
		p.task(*main)
	} else if p.stanza != "" {
		p.fail(p.stanza, fmt.Sprintf("a tuning stanza of a group of %d main tasks", len(g.Tasks)),
			"want one main task: the others have a lifecycle block, or the main one has leader = true")
	}
}

func or(text *string, other string) string {
	if text == nil || *text == "" {
		return other
	}
	return *text
}

// mainTask is the task whose end is the end of its group's work.
func mainTask(tasks []task) *task {
	var main []int
	for i, t := range tasks {
		if t.Leader {
			return &tasks[i]
		}
		if t.Lifecycle == nil || t.Lifecycle.Hook == "" {
			main = append(main, i)
		}
	}
	if len(main) != 1 {
		return nil
	}
	return &tasks[main[0]]
}

func (p *parser) task(t task) {
	maps.Copy(p.job.Meta, t.Meta)
	maps.Copy(p.job.Env, t.Env)
	command, given := t.Config["command"].(string)
	args := words(t.Config["args"])
	if !given {
		command, _ = t.Config["image"].(string)
	}
	_, command, args, _ = once.Unwrap(command, args)
	p.job.Argv = append([]string{command}, args...)
	p.job.Dir, _ = t.Config["work_dir"].(string)
	if r := t.Resources; r != nil {
		p.job.Cores = int(min(max(number(r.Cores), 1), 1<<20))
		p.job.MemoryBytes = min(max(number(r.MemoryMB), number(r.MemoryMaxMB), 0), 1<<40) << 20
		if number(r.MemoryMaxMB) < 0 {
			p.job.MemoryBytes = 0
		}
	}
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, w := range list {
		out = append(out, fmt.Sprint(w))
	}
	return out
}

func (p *parser) meta(path string, meta map[string]string) {
	if text, ok := meta["tuning"]; ok {
		p.tuning(path+".tuning", []byte(text))
	}
}

// tuning reads a stanza, and refuses a second one.
func (p *parser) tuning(path string, src []byte) {
	if p.stanza != "" {
		p.fail(path, "a second tuning stanza", "want one; the first is at "+p.stanza)
		return
	}
	p.stanza = path
	block, err := jsontree.ParseAt(p.at(path), src)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, f := range faults {
			p.fail(path, f.Found, f.Want)
		}
		return
	}
	p.locate(block, path)
	p.job.Stanza = block
}

// locate gives every block and key of a stanza its path.
func (p *parser) locate(b *jobfile.Block, path string) {
	b.Pos = p.at(path)
	if b.Label != "" {
		b.LabelPos = b.Pos
	}
	for i := range b.Attrs {
		a := &b.Attrs[i]
		a.Pos = p.at(path + "." + a.Name)
		a.ValuePos = a.Pos
		items(a.Value, a.Pos)
	}
	for _, inner := range b.Blocks {
		at := path + "." + inner.Type
		if inner.Label != "" {
			at += "." + inner.Label
		}
		p.locate(inner, at)
	}
}

func items(v jobfile.Value, at jobfile.Pos) {
	for i := range v.List {
		v.List[i].Pos = at
		items(v.List[i].Value, at)
	}
}
