package jobcheck

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/nomad/api"
)

// Changed tells whether a canonical job says anything that the registered one does
// not; what the server sets counts for nothing, a version's tag counts.
func Changed(old, job *api.Job) bool {
	return old == nil || Spec(old) != Spec(job)
}

// Spec is what a job says, as a text: equal texts, equal jobs. Fields that the server
// sets are left out, and so are those that say nothing.
func Spec(j *api.Job) string {
	c := *j
	c.Status, c.StatusDescription, c.Stable, c.Version = nil, nil, nil, nil
	c.CreateIndex, c.ModifyIndex, c.JobModifyIndex, c.SubmitTime = nil, nil, nil, nil
	text, err := json.Marshal(&c)
	if err != nil {
		return fmt.Sprintf("%p: %v", j, err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return fmt.Sprintf("%p: %v", j, err)
	}
	text, err = json.Marshal(prune(tree))
	if err != nil {
		return fmt.Sprintf("%p: %v", j, err)
	}
	return string(text)
}

// prune leaves out what says nothing: null, empty lists and empty maps.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if p := prune(e); p != nil && k != "CreateIndex" && k != "ModifyIndex" {
				out[k] = p
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, prune(e))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	default:
		return v
	}
}
