package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// config is what a driver is told.
type config struct {
	command string
	args    []string
	workDir string
	// of mock_driver
	runFor     time.Duration
	exitCode   int
	startError string
}

// config reads the task's driver config, with ${} replaced in it.
func (s Spec) config(env map[string]string) (config, error) {
	known := []string{"command", "args", "cgroup_v2_override", "cgroup_v1_override", "oom_score_adj", "work_dir", "denied_envvars"}
	switch s.Task.Driver {
	case "exec":
		known = []string{"command", "args", "pid_mode", "ipc_mode", "cap_add", "cap_drop", "work_dir"}
	case "mock_driver":
		known = []string{"run_for", "exit_code", "exit_signal", "start_error", "kill_after", "signal_error", "stdout_string"}
	}
	values, errs := expand(s.Task.Config, s.scope(env))
	for _, name := range slices.Sorted(maps.Keys(s.Task.Config)) {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("Invalid label: No argument or block type is named %q.", name)) //nolint:staticcheck,revive // the agent's words
		}
	}
	if _, ok := s.Task.Config["command"]; !ok && s.Task.Driver != "mock_driver" {
		errs = append(errs, errors.New(`Missing required argument: The argument "command" is required, but no definition was found.`)) //nolint:staticcheck,revive // the agent's words
	}
	if len(errs) > 0 {
		return config{}, listed(append([]error{errors.New("failed to parse config: ")}, errs...))
	}
	c := config{command: str(values["command"]), workDir: str(values["work_dir"]), startError: str(values["start_error"])}
	list, ok := values["args"].([]any)
	if !ok {
		list = nil
	}
	for _, a := range list {
		c.args = append(c.args, str(a))
	}
	if d, err := time.ParseDuration(str(values["run_for"])); err == nil {
		c.runFor = d
	}
	if _, err := fmt.Sscan(str(values["exit_code"]), &c.exitCode); err != nil {
		c.exitCode = 0
	}
	if c.workDir != "" && !filepath.IsAbs(c.workDir) {
		return c, errors.New("failed driver config validation: work_dir must be an absolute path")
	}
	return c, nil
}

// listed writes errors as the agent's library does.
func listed(errs []error) error {
	if len(errs) == 1 {
		return fmt.Errorf("1 error occurred:\n\t* %w\n\n", errs[0]) //nolint:staticcheck,revive // as above
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d errors occurred:\n", len(errs))
	for _, e := range errs {
		fmt.Fprintf(&b, "\t* %s\n", e)
	}
	return errors.New(b.String() + "\n")
}

func str(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// expand computes the texts of a config. It goes by way of JSON, so that what a file
// says and what the API says are the same.
func expand(c map[string]any, scope *hcl.EvalContext) (map[string]any, []error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, []error{err}
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, []error{err}
	}
	var errs []error
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			s, err := interpolate(v, scope)
			if err != nil {
				errs = append(errs, err)
			}
			return s
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				v[k] = walk(v[k])
			}
		}
		return v
	}
	walk(out)
	return out, errs
}

func interpolate(text string, scope *hcl.EvalContext) (string, error) {
	if !strings.Contains(text, "${") && !strings.Contains(text, "%{") {
		return strings.ReplaceAll(strings.ReplaceAll(text, "$${", "${"), "%%{", "%{"), nil
	}
	e, diags := hclsyntax.ParseTemplate([]byte(text), "", hcl.InitialPos)
	if diags.HasErrors() {
		return text, said(diags)
	}
	v, diags := e.Value(scope)
	if diags.HasErrors() {
		return text, said(diags)
	}
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return text, nil
	}
	return v.AsString(), nil
}

func said(diags hcl.Diagnostics) error {
	return fmt.Errorf("%s: %s", diags[0].Summary, diags[0].Detail)
}

// scope are the names that a config may use: those of the environment by themselves
// and below env, and those of the node.
func (s Spec) scope(env map[string]string) *hcl.EvalContext {
	all := &names{}
	flat := map[string]cty.Value{}
	for k, v := range env {
		all.put(strings.Split(k, "."), v)
		flat[k] = cty.StringVal(v)
	}
	for k, v := range s.Node {
		all.put(strings.Split(k, "."), v)
	}
	vars := map[string]cty.Value{}
	for k, n := range all.below {
		vars[k] = n.value()
	}
	vars["env"] = cty.MapVal(flat)
	return &hcl.EvalContext{Variables: vars}
}

// names are nested: attr.cpu.arch stands in cpu, which stands in attr.
type names struct {
	text  string
	below map[string]*names
}

// put adds a name. One that is a text and has names below it too stays a text: so does
// the agent's.
func (n *names) put(path []string, value string) {
	for _, p := range path {
		if n.below == nil {
			n.below = map[string]*names{}
		}
		if n.below[p] == nil {
			n.below[p] = &names{}
		}
		n = n.below[p]
	}
	n.text = value
}

func (n *names) value() cty.Value {
	if n.below == nil || n.text != "" {
		return cty.StringVal(n.text)
	}
	out := map[string]cty.Value{}
	for k, b := range n.below {
		out[k] = b.value()
	}
	return cty.ObjectVal(out)
}
