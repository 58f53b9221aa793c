package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/once"
)

// Was is what the owner of a job wrote where a change stands with which the job was
// registered first, so that no journal is needed to know it.
type Was struct {
	CPU       *int               `json:"cpu,omitempty"`
	Cores     *int               `json:"cores,omitempty"`
	Memory    *int               `json:"memory,omitempty"`
	MemoryMax *int               `json:"memory_max,omitempty"`
	TimeLimit *time.Duration     `json:"time_limit,omitempty"`
	Env       map[string]*string `json:"env,omitempty"` // nil: he has no such variable
	Args      []string           `json:"args,omitempty"`
}

// Begin is the owner's job with the change of the mark, to be registered as a new job or
// as another run of one: Owner gives back what he wrote.
func Begin(own *api.Job, m Mark) (*api.Job, error) {
	if why := ObservedOnly(own); why != "" {
		return nil, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	_, t := Main(own)
	was := &Was{}
	if r := t.Resources; r != nil {
		was.CPU, was.Cores, was.Memory, was.MemoryMax = r.CPU, r.Cores, r.MemoryMB, r.MemoryMaxMB
	}
	was.TimeLimit = own.TaskGroups[0].MaxRunDuration
	for name := range m.Change.Env {
		if was.Env == nil {
			was.Env = map[string]*string{}
		}
		was.Env[name] = nil
		if v, ok := t.Env[name]; ok {
			was.Env[name] = &v
		}
	}
	if len(m.Change.Args) > 0 {
		_, _, was.Args, _ = nomadjson.Unwrap(t)
	}
	job, err := Owner(own)
	if err != nil {
		return nil, err
	}
	if err := Set(job, m.Change); err != nil {
		return nil, err
	}
	m.Was = was
	g, t := Main(job)
	t.Env[Variable] = m.word()
	if err := write(g, m); err != nil {
		return nil, err
	}
	if back, err := Owner(job); err != nil || !Same(back, own) {
		return nil, fmt.Errorf("what its owner wrote would not come back: %w", driver.ErrUnsupported)
	}
	return job, nil
}

// Begun is the mark of a job that was registered with a change by its owner himself,
// where the change still stands as it was written; false: it has none, or its owner has
// registered other settings over it, which are his own then.
func Begun(job *api.Job) (Mark, bool) {
	m, ok := Marked(job)
	if !ok || m.Was == nil || ObservedOnly(job) != "" {
		return Mark{}, false
	}
	own, err := Clone(job)
	if err != nil {
		return Mark{}, false
	}
	if err := Set(own, m.Change); err != nil { // what restore needs is there then
		return Mark{}, false
	}
	restore(own, m)
	if err := Set(own, m.Change); err != nil {
		return Mark{}, false
	}
	was, err := tree(own)
	is, failed := tree(job)
	return m, errors.Join(err, failed) == nil && reflect.DeepEqual(was, is)
}

// restore gives a job what its owner wrote under the change of a mark.
func restore(job *api.Job, m Mark) {
	g, t := Main(job)
	c, was := m.Change, m.Was
	if c.Cores > 0 {
		t.Resources.CPU, t.Resources.Cores = was.CPU, was.Cores
	}
	if c.MemoryBytes > 0 {
		t.Resources.MemoryMB, t.Resources.MemoryMaxMB = was.Memory, was.MemoryMax
	}
	if c.TimeLimit > 0 {
		g.MaxRunDuration = was.TimeLimit
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if v := was.Env[name]; v != nil {
			t.Env[name] = *v
		} else {
			delete(t.Env, name)
		}
	}
	if len(c.Args) > 0 {
		argv := nomadjson.Words(t.Config["args"])
		args := slices.Clone(was.Args)
		if _, _, _, wrapped := nomadjson.Unwrap(t); wrapped {
			args = once.Rewrap(argv, args)
		}
		t.Config["args"] = args
	}
}

// wasOf reads what the owner wrote out of a mark's text, nil where it has none.
func wasOf(body string) *Was {
	var w *Was
	if body == "" || json.Unmarshal([]byte(body), &w) != nil {
		return nil
	}
	return w
}

func mebibytes(bytes int64) int { return int((bytes + mebibyte - 1) / mebibyte) }
