package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/once"
)

// Variable names the variable of a changed task's environment that names its intent.
const Variable = "PITCHPIPE_INTENT"

// OffMeta is in the meta of a job whose owner submitted it to run untuned.
const OffMeta = "pitchpipe_off"

// key is the block of a scaling policy that holds a Mark.
const key = "pitchpipe"

// made is where a Mark says that the scaling block is not the owner's.
const made = "scaling_added"

// Mark says what a version of a job has instead of its owner's settings, and why.
type Mark struct {
	Intent string // empty: a return of memory
	Cause  driver.Cause
	Change driver.Change

	// Again counts registrations that change nothing but run a job again that left to save
	// for an abandoned intent.
	Again int

	// Was is what the owner of a job wrote that he registered with the change himself;
	// nil: the change is another's, whose journal has it. See Begin.
	Was *Was `json:",omitempty"`
}

// Is reports whether two marks are of the same registration.
func (m Mark) Is(o Mark) bool {
	return m.Intent == o.Intent && m.Cause == o.Cause && m.Again == o.Again
}

// word is what the task's environment says about the mark.
func (m Mark) word() string {
	word := cmp.Or(m.Intent, string(m.Cause))
	if m.Again > 0 {
		word += "+" + strconv.Itoa(m.Again)
	}
	return word
}

// Marked returns the mark of a job, false where it has none.
func Marked(job *api.Job) (Mark, bool) {
	for _, g := range job.TaskGroups {
		if g.Scaling == nil {
			continue
		}
		body, ok := unwrap(g.Scaling.Policy[key])
		if !ok {
			continue
		}
		m := Mark{Intent: text(body["intent"]), Cause: driver.Cause(text(body["cause"]))}
		if err := json.Unmarshal([]byte(text(body["change"])), &m.Change); err != nil {
			return Mark{}, false
		}
		m.Again, _ = strconv.Atoi(text(body["again"]))
		if err := json.Unmarshal([]byte(text(body["was"])), &m.Was); err != nil {
			m.Was = nil // it has none, or none that can be read
		}
		return m, true
	}
	return Mark{}, false
}

// write writes the mark into the group's scaling policy, which the owner may not have.
func write(g *api.TaskGroup, m Mark) error {
	change, err := json.Marshal(m.Change)
	if err != nil {
		return fmt.Errorf("encoding a change: %w", err)
	}
	body := map[string]any{"intent": m.Intent, "cause": string(m.Cause), "change": string(change)}
	if m.Again > 0 {
		body["again"] = strconv.Itoa(m.Again)
	}
	if m.Was != nil {
		was, err := json.Marshal(m.Was)
		if err != nil {
			return fmt.Errorf("encoding what a change replaces: %w", err)
		}
		body["was"] = string(was)
	}
	if g.Scaling == nil {
		body[made] = "yes"
	}
	block(g, key, body)
	return nil
}

// block writes a block into the group's scaling policy, which is made where there is none:
// the cluster's autoscaler leaves it alone.
func block(g *api.TaskGroup, name string, body map[string]any) {
	if g.Scaling == nil {
		count := int64(1)
		if g.Count != nil {
			count = int64(*g.Count)
		}
		g.Scaling = &api.ScalingPolicy{Min: &count, Max: &count, Enabled: new(false), Type: "horizontal"}
	}
	if g.Scaling.Policy == nil {
		g.Scaling.Policy = map[string]any{}
	}
	g.Scaling.Policy[name] = []any{body} // as a block of a job file is stored
}

// unmark takes the mark away, and the scaling block where it was made for it.
func unmark(g *api.TaskGroup) {
	if g.Scaling == nil {
		return
	}
	body, ok := unwrap(g.Scaling.Policy[key])
	if !ok {
		return
	}
	if body[made] != nil {
		g.Scaling = nil
		return
	}
	delete(g.Scaling.Policy, key)
}

// unwrap reads a block as Nomad stores it: a map, mostly in a list of one.
func unwrap(v any) (map[string]any, bool) {
	if list, ok := v.([]any); ok && len(list) == 1 {
		return unwrap(list[0])
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Was is what the owner wrote in place of the change that the job was first registered
// with, so that no journal is needed to know it.
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
	m.Was = was
	job, err := marked(own, m)
	if err != nil {
		return nil, err
	}
	if back, err := Owner(job); err != nil || !Same(back, own) {
		return nil, fmt.Errorf("what its owner wrote would not come back: %w", driver.ErrUnsupported)
	}
	return job, nil
}

// Begun is the mark of a job that was registered with a change by its owner himself,
// where the change is still as it was written. False: it has none, or its owner has
// registered other settings over it, which are his own then.
func Begun(job *api.Job) (Mark, bool) {
	m, ok := Marked(job)
	if !ok || m.Was == nil || ObservedOnly(job) != "" {
		return Mark{}, false
	}
	_, t := Main(job)
	for name := range m.Change.Env {
		if _, ok := t.Env[name]; !ok { // the trees below have no empty values
			return Mark{}, false
		}
	}
	own, err := Clone(job)
	if err == nil {
		err = Set(own, m.Change) // what restore needs is there then
	}
	if err != nil {
		return Mark{}, false
	}
	restore(own, m)
	err = Set(own, m.Change)
	was, failed := tree(own)
	is, wrong := tree(job)
	return m, errors.Join(err, failed, wrong) == nil && reflect.DeepEqual(was, is)
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
