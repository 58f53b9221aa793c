package spec

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// Variable names the variable of a changed task's environment that names its intent.
const Variable = "PITCHPIPE_INTENT"

// OffMeta is in the meta of a job whose owner submitted it to run untuned.
const OffMeta = "pitchpipe_off"

// key is the block of a scaling policy in which a Mark stands.
const key = "pitchpipe"

// made is where a Mark says that the scaling block is not the owner's.
const made = "scaling_added"

// Mark says what a version of a job has instead of its owner's settings, and why.
type Mark struct {
	Intent string // empty: a return of memory
	Cause  driver.Cause
	Change driver.Change

	// Again counts registrations that change nothing but have a job run again that left
	// to save, for an intent that was given up.
	Again int

	// Was is what the owner of a job wrote that he registered with the change himself;
	// nil: the change is another's, whose journal has it. See Begin.
	Was *Was `json:",omitempty"`
}

// Is reports whether two marks are of the same registration.
func (m Mark) Is(o Mark) bool {
	return m.Intent == o.Intent && m.Cause == o.Cause && m.Again == o.Again
}

// word is what the task's environment says of the mark.
func (m Mark) word() string {
	word := m.Intent
	if word == "" {
		word = string(m.Cause)
	}
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
		m.Was = wasOf(text(body["was"]))
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
		disabled := false
		g.Scaling = &api.ScalingPolicy{Min: &count, Max: &count, Enabled: &disabled, Type: "horizontal"}
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
	for {
		switch x := v.(type) {
		case map[string]any:
			return x, true
		case []any:
			if len(x) != 1 {
				return nil, false
			}
			v = x[0]
		case []map[string]any:
			if len(x) != 1 {
				return nil, false
			}
			return x[0], true
		default:
			return nil, false
		}
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
