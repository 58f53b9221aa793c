package nomadjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
)

// maxSize bounds the JSON; the servers take a few MiB at most.
const maxSize = 16 << 20

// Parse reads a registered job. Such a job has no variables: they were replaced when
// it was submitted. The error, if any, is of type jobfile.Errors.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	p := newParser(filename)
	if names := slices.Sorted(maps.Keys(vars)); len(names) > 0 {
		p.fail("", fmt.Sprintf("a value for the variable %q", names[0]), "want none: the variables of a registered job are replaced")
	} else if j, ok := p.decode(src); ok {
		p.read(j)
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	p.job.Command = jobfile.CommandIdentity(p.job.Argv)
	return p.job, nil
}

type parser struct {
	filename string
	job      *jobfile.Job
	main     *api.Task // nil: none
	errs     jobfile.Errors
	stanza   string // the path of the stanza, empty before one was found
}

func newParser(filename string) *parser {
	return &parser{filename: filename, job: &jobfile.Job{
		Format: jobfile.NomadJSON, Cores: 1, Env: map[string]string{}, Meta: map[string]string{},
	}}
}

func (p *parser) at(path string) jobfile.Pos {
	return jobfile.Pos{Filename: strings.TrimSpace(p.filename + " " + path), Line: 1, Column: 1}
}

func (p *parser) fail(path, found, want string) {
	if path != "" {
		found = path + ": " + found
	}
	p.errs = append(p.errs, jobfile.Fault(strings.TrimSpace(p.filename), found, want)...)
}

func (p *parser) decode(src []byte) (*api.Job, bool) {
	if len(src) > maxSize {
		p.fail("", "a job of more than 16 MiB", "want a smaller one")
		return nil, false
	}
	j, err := Decode(src)
	if err != nil {
		p.fail("", "broken JSON: "+err.Error(), "want a job as Nomad's API shows it")
	}
	return j, err == nil
}

func (p *parser) read(j *api.Job) {
	p.job.Name, p.job.Partition = cmp.Or(Deref(j.Name), Deref(j.ID)), Deref(j.Namespace)
	p.meta("meta", j.Meta)
	tuned := -1
	for i, g := range j.TaskGroups {
		before := p.stanza
		path := fmt.Sprintf("group %q ", Deref(g.Name))
		if g.Scaling != nil && g.Scaling.Policy["tuning"] != nil {
			if body, err := json.Marshal(g.Scaling.Policy["tuning"]); err == nil {
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
	refuse := func(found, want string) {
		if p.stanza != "" {
			p.fail(p.stanza, "a tuning stanza of "+found, want)
		}
	}
	if kind := cmp.Or(Deref(j.Type), "service"); kind != "batch" {
		refuse(fmt.Sprintf("a job of the type %q", kind), `want type = "batch": only batch jobs are tuned`)
	}
	maps.Copy(p.job.Meta, j.Meta)
	if tuned < 0 && len(j.TaskGroups) != 1 {
		refuse(fmt.Sprintf("a job of %d groups", len(j.TaskGroups)), "want it in the group that it is meant for")
		return
	}
	g := j.TaskGroups[max(tuned, 0)]
	maps.Copy(p.job.Meta, g.Meta)
	if mains := Mains(g.Tasks); len(mains) == 1 {
		p.main = mains[0]
		p.task(p.main)
	} else {
		refuse(fmt.Sprintf("a group of %d main tasks", len(g.Tasks)), "want one main task: the others have a lifecycle block, or the main one has leader = true")
	}
}

// Mains are the tasks whose end is the end of their group's work: its leader, or else those
// that are not helpers of others.
func Mains(tasks []*api.Task) (mains []*api.Task) {
	for _, t := range tasks {
		if t.Leader {
			return []*api.Task{t}
		}
		if t.Lifecycle == nil || t.Lifecycle.Hook == "" {
			mains = append(mains, t)
		}
	}
	return mains
}

func (p *parser) task(t *api.Task) {
	maps.Copy(p.job.Meta, t.Meta)
	maps.Copy(p.job.Env, t.Env)
	if p.job.Argv = Argv(t); p.job.Argv == nil {
		p.job.Argv = []string{text(t.Config["image"])}
	}
	p.job.Dir = text(t.Config["work_dir"])
	if t.Resources != nil {
		p.job.Cores, p.job.MemoryBytes = Size(t.Resources)
	}
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
	block, err := jsontree.Parse(src, func(_ int, inside string) jobfile.Pos { return p.at(path + inside) })
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, f := range faults {
			p.fail(path, f.Found, f.Want)
		}
		return
	}
	p.job.Stanza = block
}
