package nomadjson

import (
	"maps"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
	"pitchpipe/driver/jobfile/once"
)

// Fix writes a job anew. The error, if any, is of type jobfile.Errors.
func Fix(filename string, src []byte, f jobfile.Fix) ([]byte, error) {
	p := newParser(filename)
	j, ok := p.decode(src)
	if ok {
		p.read(j)
	}
	if ok && p.main == nil {
		p.fail("", "a job without a main task", "want one group with one task that is no helper")
	}
	if ok && p.main != nil && !SetArgs(p.main, f.Args) {
		p.fail("", "a task without a command line", "want knobs that variables carry")
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	if p.main.Env == nil {
		p.main.Env = map[string]string{}
	}
	maps.Copy(p.main.Env, f.Env)
	if f.Cores > 0 {
		SetCores(p.main, f.Cores)
	}
	leave := func(meta map[string]string) {
		if text, ok := meta["tuning"]; ok {
			meta["tuning"] = jsontree.WithoutIn(text, f)
		}
	}
	leave(j.Meta)
	for _, g := range j.TaskGroups {
		leave(g.Meta)
		for _, t := range g.Tasks {
			leave(t.Meta)
		}
		if g.Scaling != nil && g.Scaling.Policy["tuning"] != nil {
			g.Scaling.Policy["tuning"] = jsontree.Without(g.Scaling.Policy["tuning"], f)
		}
	}
	return jsontree.Encode(map[string]*api.Job{"Job": j}, "  "), nil
}

// SetCores gives a task whole cores instead of a share of them: Nomad refuses both.
func SetCores(t *api.Task, cores int) {
	if t.Resources == nil {
		t.Resources = &api.Resources{}
	}
	t.Resources.CPU, t.Resources.Cores = nil, &cores
}

// SetArgs changes flags of a task's command line; false: it has none.
func SetArgs(t *api.Task, args map[string]string) bool {
	if len(args) == 0 {
		return true
	}
	if Argv(t) == nil && t.Driver != "docker" {
		return false
	}
	if t.Config == nil {
		t.Config = map[string]any{}
	}
	argv := Words(t.Config["args"])
	_, _, list, wrapped := Unwrap(t)
	list = driver.WithFlags(list, args)
	if wrapped {
		list = once.Rewrap(argv, list)
	}
	t.Config["args"] = list
	return true
}
