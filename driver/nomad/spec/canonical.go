package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
)

// Clone copies a job.
func Clone(job *api.Job) (*api.Job, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("copying a job: %w: %w", driver.ErrInvalid, err)
	}
	return Decode(data)
}

// Decode reads the JSON of a job.
func Decode(data []byte) (*api.Job, error) {
	job, err := nomadjson.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading a job: %w: %w", driver.ErrInvalid, err)
	}
	return job, nil
}

// Owner is what the owner of a job wrote: a copy without what servers add to a
// registered job and without what a change leaves in it, and with his settings where he
// registered it with a change himself. It can be registered.
func Owner(job *api.Job) (*api.Job, error) {
	own, err := Clone(job)
	if err != nil {
		return nil, err
	}
	servers(own)
	if m, ok := Begun(own); ok {
		restore(own, m)
	}
	for _, g := range own.TaskGroups {
		unmark(g)
		// Servers add some at each registration; one kind is added each time.
		var each []*api.Constraint
		for _, c := range g.Constraints {
			if !slices.ContainsFunc(each, func(other *api.Constraint) bool { return reflect.DeepEqual(c, other) }) {
				each = append(each, c)
			}
		}
		g.Constraints = each
		for _, t := range g.Tasks {
			delete(t.Env, Variable)
			if len(t.Env) == 0 {
				t.Env = nil
			}
		}
	}
	return own, nil
}

// servers removes from a job what servers add to a registered one.
func servers(job *api.Job) {
	job.Stop, job.Status, job.StatusDescription, job.Stable = nil, nil, nil, nil
	job.Version, job.SubmitTime, job.CreateIndex, job.ModifyIndex, job.JobModifyIndex = nil, nil, nil, nil, nil
	job.NomadTokenID, job.VersionTag = nil, nil
	for _, g := range job.TaskGroups {
		if s := g.Scaling; s != nil {
			s.ID, s.Namespace, s.Target, s.CreateIndex, s.ModifyIndex = "", "", nil, 0, 0
		}
	}
}

// Fingerprint identifies what the owner wrote, whatever the job's id: equal for a job
// file and for the job that Nomad made of it.
func Fingerprint(job *api.Job) (string, error) {
	written, err := normal(job)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(written)
	if err != nil {
		return "", fmt.Errorf("encoding a job: %w: %w", driver.ErrInvalid, err)
	}
	return driver.Digest(string(data))[:32], nil
}

// Same reports whether two jobs were written alike.
func Same(a, b *api.Job) bool {
	of, err := Fingerprint(a)
	other, failed := Fingerprint(b)
	return errors.Join(err, failed) == nil && of == other
}

// normal is the owner's job with Nomad's defaults, without what names it or says when
// it begins, and without what is empty: servers write out what a file leaves out.
func normal(job *api.Job) (any, error) {
	own, err := Owner(job)
	if err != nil {
		return nil, err
	}
	if len(own.Datacenters) == 0 {
		own.Datacenters = []string{"*"}
	}
	if Deref(own.Type) == api.JobTypeBatch { // which are never updated in steps, and servers write some out
		own.Update = nil
		for _, g := range own.TaskGroups {
			g.Update = nil
		}
	}
	own.Canonicalize()
	own.ID, own.Name, own.ParentID, own.Region, own.Namespace, own.Periodic = nil, nil, nil, nil, nil, nil
	own.ConsulNamespace, own.VaultNamespace = nil, nil
	servers(own)
	if Deref(own.NodePool) == api.NodePoolDefault {
		own.NodePool = nil
	}
	if slices.Equal(own.Datacenters, []string{"*"}) {
		own.Datacenters = nil
	}
	for _, g := range own.TaskGroups {
		g.Constraints = slices.DeleteFunc(g.Constraints, implied)
		for _, t := range g.Tasks {
			t.Constraints = slices.DeleteFunc(t.Constraints, implied)
			Unwrap(t) // it has the name of one run
			if id := t.Identity; id != nil && id.Name == "default" && !id.Env && !id.File && id.ChangeMode == "" && id.TTL == 0 {
				t.Identity = nil // each task has it
			}
		}
	}
	return tree(own)
}

// implied reports whether servers may have added a constraint, for what a task uses: signals,
// Vault, Consul, services, identities, a bridge. They stay in a job, and do not count when
// jobs are compared.
func implied(c *api.Constraint) bool {
	return c != nil && serversConstraint.MatchString(c.LTarget)
}

var serversConstraint = regexp.MustCompile(`^\$\{attr\.(vault|consul|nomad|os\.signals|plugins)\b`)

// prune leaves out what is empty, nil where nothing is left.
func prune(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			if v = prune(v); v != nil {
				out[k] = v
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(x) == 0 {
			return nil
		}
		out := make([]any, len(x)) // its elements keep their places
		for i, v := range x {
			out[i] = prune(v)
		}
		return out
	case nil:
		return nil
	}
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return v
}

// Read reads a job as a server or `nomad job inspect` shows it. Unknown names what of it this program does not
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
	outer, _ := have.(map[string]any)
	if inner, ok := find(outer, "Job"); ok { // see Decode
		have = inner
	}
	known, err := tree(job)
	return job, lost(prune(have), known, ""), err
}

// tree returns a job as decoded JSON, without empty values.
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
