package nomadjson

import (
	"cmp"
	"maps"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
	"pitchpipe/driver/jobfile/once"
)

// Fix rewrites a job. The error, if any, is of type jobfile.Errors.
func Fix(filename string, src []byte, f jobfile.Fix) ([]byte, error) {
	p := newParser(filename)
	j, ok := p.decode(src)
	if ok {
		p.read(j)
	}
	if ok && p.main == nil {
		p.fail("", "a job without a main task", "want one group with one task that is no helper")
	}
	if ok && p.main != nil && !Set(p.main, f.Cores, f.Env, f.Args) {
		p.fail("", "a task without a command line", "want knobs that variables carry")
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
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

// Set gives a task variables, flags, and whole cores instead of a share of them, since Nomad
// refuses both; 0 leaves its cores. False: there are flags, and it has no command line.
func Set(t *api.Task, cores int, env, args map[string]string) bool {
	if cores > 0 {
		t.Resources = cmp.Or(t.Resources, &api.Resources{})
		t.Resources.CPU, t.Resources.Cores = nil, &cores
	}
	if t.Env == nil {
		t.Env = map[string]string{}
	}
	maps.Copy(t.Env, env)
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
