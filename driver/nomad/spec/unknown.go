package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// Read reads a job as a server shows it. Unknown names what of it this program does not
// know, empty where it knows all: a Nomad that is newer than this program's library may
// have more settings, and drops without a word what a registration does not bring along.
func Read(data []byte) (job *api.Job, unknown string, err error) {
	var have any
	if err := json.Unmarshal(data, &have); err != nil {
		return nil, "", fmt.Errorf("reading a job: %w: %w", driver.ErrInvalid, err)
	}
	if job, err = Decode(data); err != nil {
		return nil, "", err
	}
	known, err := tree(job)
	return job, lost(prune(have), known, ""), err
}

// tree is a job as the JSON that says it, without what is empty.
func tree(job *api.Job) (any, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("encoding a job: %w: %w", driver.ErrInvalid, err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("encoding a job: %w: %w", driver.ErrInvalid, err)
	}
	return prune(out), nil
}

// lost finds something that is in a tree and not in another, empty where all is.
func lost(have, know any, at string) string {
	switch x := have.(type) {
	case map[string]any:
		known, _ := know.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(x)) {
			there, ok := find(known, name)
			if !ok {
				return strings.TrimPrefix(at+"."+name, ".")
			}
			if found := lost(x[name], there, at+"."+name); found != "" {
				return found
			}
		}
	case []any:
		list, _ := know.([]any)
		for i, v := range x {
			if i < len(list) {
				if found := lost(v, list[i], at); found != "" {
					return found
				}
			}
		}
	}
	return ""
}

// find looks for a name as the decoder of JSON does, whatever its case.
func find(known map[string]any, name string) (any, bool) {
	if v, ok := known[name]; ok {
		return v, true
	}
	for k, v := range known {
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	return nil, false
}
