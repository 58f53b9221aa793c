package nomadjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/jobfile/once"
)

// Decode reads the JSON of a job: the job itself, or an object whose Job it is, as
// `nomad job inspect` prints it.
func Decode(data []byte) (*api.Job, error) {
	var wrapped struct{ Job *api.Job }
	if err := json.Unmarshal(data, &wrapped); err != nil {
		return nil, err
	}
	job := wrapped.Job
	if job == nil {
		job = &api.Job{}
		if err := json.Unmarshal(data, job); err != nil {
			return nil, err
		}
	}
	for _, g := range job.TaskGroups {
		if g == nil || slices.Contains(g.Tasks, nil) {
			return nil, errors.New("a group or task that is null")
		}
	}
	return job, nil
}

// Misread says what is wrong with a job's id that Nomad takes for a query about another job, since
// its query paths for a job end so; empty: nothing.
func Misread(id string) string {
	for _, q := range []string{
		"/action", "/actions", "/allocations", "/deployment", "/deployments", "/dispatch", "/dispatch/payload", "/evaluate",
		"/evaluations", "/periodic/force", "/plan", "/revert", "/scale", "/services", "/stable", "/submission", "/summary",
		"/tag", "/versions",
	} {
		if strings.HasSuffix(id, q) {
			return fmt.Sprintf("its id ends in %s, which Nomad's API reads as a request about another job, so it could not be stopped", q)
		}
	}
	return ""
}

// Drivers are those of the tasks that are tuned.
func Drivers() []string { return []string{"raw_exec", "exec", "docker"} }

// Argv is the command line of a task as its owner wrote it, nil where it has none.
func Argv(t *api.Task) []string {
	_, given := t.Config["command"].(string)
	_, command, args, _ := Unwrap(t)
	switch {
	case given:
		return append([]string{command}, args...)
	case len(args) > 0: // an image's own entry point
		return append([]string{text(t.Config["image"])}, args...)
	}
	return nil
}

// Unwrap is the command of a task and its arguments as its owner wrote them, and the name
// of the run where it is wrapped to be done once.
func Unwrap(t *api.Task) (run, command string, args []string, wrapped bool) {
	return once.Unwrap(text(t.Config["command"]), Words(t.Config["args"]))
}

// Size is how many cores a task asks for, and its limit of memory: memory_max where that is
// set. A task that asks for MHz has one core: they are a share, not a number of cores.
func Size(r *api.Resources) (cores int, memory int64) {
	const largest = 1 << 40 // MiB
	most := Deref(r.MemoryMaxMB)
	if memory = int64(min(max(Deref(r.MemoryMB), most, 0), largest)) << 20; most < 0 {
		memory = 0
	}
	return min(max(Deref(r.Cores), 1), 1<<20), memory
}

// Words reads a list of texts as JSON and HCL leave it.
func Words(v any) []string {
	var out []string
	switch list := v.(type) {
	case []string:
		return slices.Clone(list)
	case []any:
		for _, w := range list {
			out = append(out, fmt.Sprint(w))
		}
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Deref is the value of a pointer, or none.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
