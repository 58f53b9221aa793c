package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// environment is that of the process: Nomad's own names, the combined meta, the agent's
// environment and the task's env.
func (s Spec) environment() map[string]string {
	env := s.nomad()
	for k, v := range s.meta() {
		env[replace(k, s.Node, env)] = replace(v, s.Node, env)
	}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if _, mine := env[k]; !mine && k != "NOMAD_TOKEN" {
			env[k] = replace(v, s.Node, env)
		}
	}
	for k, v := range s.Task.Env {
		env[k] = replace(v, s.Node, env)
	}
	out := make(map[string]string, len(env))
	for k, v := range env {
		if strings.HasPrefix(k, "NOMAD_META_") {
			k = unclean.ReplaceAllString(k, "_")
		}
		out[k] = v
	}
	return out
}

// unclean is what no name of a variable holds; dots stay.
var unclean = regexp.MustCompile(`[^A-Za-z0-9_.]`)

// nomad are the names that Nomad gives.
func (s Spec) nomad() map[string]string {
	job, alloc, r := s.Alloc.Job, s.Alloc, s.resources()
	_, index, _ := strings.Cut(strings.TrimSuffix(alloc.Name, "]"), "[")
	cores := ranges(s.CPUs)
	if cores == "" {
		cores = " " // no core is one space
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	env := map[string]string{
		"NOMAD_ALLOC_DIR": filepath.Join(s.Dir, "alloc"), "NOMAD_TASK_DIR": filepath.Join(s.dir(), "local"), "NOMAD_SECRETS_DIR": filepath.Join(s.dir(), "secrets"),
		"NOMAD_ALLOC_ID": alloc.ID, "NOMAD_SHORT_ALLOC_ID": alloc.ID[:8], "NOMAD_ALLOC_NAME": alloc.Name, "NOMAD_ALLOC_INDEX": index,
		"NOMAD_TASK_NAME": s.Task.Name, "NOMAD_GROUP_NAME": *s.Group.Name, "NOMAD_JOB_ID": *job.ID, "NOMAD_JOB_NAME": *job.Name,
		"NOMAD_JOB_PARENT_ID": *job.ParentID, "NOMAD_NAMESPACE": *job.Namespace, "NOMAD_PARENT_CGROUP": "nomad.slice", "NOMAD_DC": "dc1", "NOMAD_REGION": "global",
		"NOMAD_CPU_LIMIT": number(r.Cpu.CpuShares), "NOMAD_CPU_CORES": cores, "NOMAD_MEMORY_LIMIT": number(r.Memory.MemoryMB),
		"NOMAD_MEMORY_MAX_LIMIT": number(r.Memory.MemoryMaxMB),
	}
	maps.DeleteFunc(env, func(_, v string) bool { return v == "" })
	return env
}

// ranges writes cores as "0-2,5".
func ranges(ids []int) string {
	ids = slices.Sorted(slices.Values(ids))
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.Itoa(ids[i])
		if j > i {
			part += "-" + strconv.Itoa(ids[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// meta is that of the job, the group and the task, each key as it is written and in
// capitals.
func (s Spec) meta() map[string]string {
	job, all := s.Alloc.Job, map[string]string{}
	if job.Dispatched {
		for _, k := range job.ParameterizedJob.MetaOptional {
			all[k] = ""
		}
	}
	for _, m := range []map[string]string{job.Meta, s.Group.Meta, s.Task.Meta} {
		maps.Copy(all, m)
	}
	out := map[string]string{}
	for k, v := range all {
		out["NOMAD_META_"+strings.ToUpper(k)] = v
	}
	for k, v := range all {
		out["NOMAD_META_"+k] = v
	}
	return out
}

var interpolated = regexp.MustCompile(`\$?\$\{[^}]*\}`)

// replace puts values in the place of ${NAME} and leaves unknown names.
func replace(text string, known ...map[string]string) string {
	return interpolated.ReplaceAllStringFunc(text, func(m string) string {
		for _, names := range known {
			if v, ok := names[strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}")]; ok {
				return v
			}
		}
		return m
	})
}

// config is the command of the driver.
type config struct {
	command, workDir string
	args             []string
}

// config reads the task's driver config: ${NAME} and ${env["NAME"]} get their values, and
// an unknown name is an error.
func (s Spec) config(env map[string]string) (config, error) {
	var c config
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(s.Task.Config)) {
		if !slices.Contains([]string{"command", "args", "work_dir", "cgroup_v2_override", "cgroup_v1_override"}, name) {
			wrong = append(wrong, fmt.Sprintf("Invalid label: No argument or block type is named %q.", name))
		}
	}
	if _, ok := s.Task.Config["command"]; !ok {
		wrong = append(wrong, `Missing required argument: The argument "command" is required, but no definition was found.`)
	}
	if len(wrong) > 0 {
		return c, fmt.Errorf("%d errors occurred:\n\t* failed to parse config: \n\t* %s\n\n", len(wrong)+1, strings.Join(wrong, "\n\t* ")) //nolint:staticcheck,revive // the agent's words
	}
	// What a job file says and what the API says are the same by way of JSON.
	var in struct {
		Command string
		Args    []any
		WorkDir string `json:"work_dir"`
	}
	text, err := json.Marshal(s.Task.Config)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&in)
	}
	c.command, c.workDir = s.interpolate(in.Command, env, &err), s.interpolate(in.WorkDir, env, &err)
	for _, a := range in.Args {
		c.args = append(c.args, s.interpolate(fmt.Sprint(a), env, &err))
	}
	return c, err
}

func (s Spec) interpolate(text string, env map[string]string, err *error) string {
	return interpolated.ReplaceAllStringFunc(text, func(m string) string {
		if literal, ok := strings.CutPrefix(m, "$$"); ok {
			return "$" + literal
		}
		name := strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}")
		if quoted, ok := strings.CutPrefix(name, `env["`); ok {
			name = strings.TrimSuffix(quoted, `"]`)
		}
		for _, names := range []map[string]string{env, s.Node} {
			if v, ok := names[name]; ok {
				return v
			}
		}
		*err = fmt.Errorf("Unknown variable: There is no variable named %q.", name) //nolint:staticcheck,revive // the agent's words
		return m
	})
}
