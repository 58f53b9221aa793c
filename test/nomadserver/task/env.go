package task

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// environment is what the process finds in its environment: Nomad's own names, the
// combined meta, the agent's environment, the task's env and the caller's.
func (s Spec) environment() map[string]string {
	env := s.nomad()
	for k, v := range s.meta() {
		env[replace(k, s.Node, env)] = replace(v, s.Node, env)
	}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if _, mine := env[k]; !mine && !denied(k) {
			env[k] = replace(v, s.Node, env)
		}
	}
	for k, v := range s.Task.Env {
		env[k] = replace(v, s.Node, env)
	}
	maps.Copy(env, s.Env)
	out := make(map[string]string, len(env))
	for k, v := range env {
		if slices.ContainsFunc([]string{"NOMAD_ADDR_", "NOMAD_IP_", "NOMAD_PORT_", "NOMAD_HOST_PORT_", "NOMAD_META_"}, func(p string) bool { return strings.HasPrefix(k, p) }) {
			k = clean(k)
		}
		out[k] = v
	}
	return out
}

// nomad are the names that Nomad gives.
func (s Spec) nomad() map[string]string {
	alloc := s.Alloc
	env := map[string]string{
		"NOMAD_ALLOC_DIR": filepath.Join(s.Dir, "alloc"), "NOMAD_TASK_DIR": filepath.Join(s.taskDir(), "local"),
		"NOMAD_SECRETS_DIR": filepath.Join(s.taskDir(), "secrets"),
		"NOMAD_ALLOC_ID":    s.AllocID, "NOMAD_SHORT_ALLOC_ID": s.AllocID[:min(8, len(s.AllocID))],
		"NOMAD_TASK_NAME": s.Task.Name, "NOMAD_PARENT_CGROUP": "nomad.slice", "NOMAD_DC": "dc1", "NOMAD_REGION": "global",
	}
	given := func(name, value string) {
		if value != "" {
			env[name] = value
		}
	}
	text := func(name string, value *string) {
		if value != nil {
			given(name, *value)
		}
	}
	number := func(name string, n int64) {
		if n != 0 {
			env[name] = strconv.FormatInt(n, 10)
		}
	}
	text("NOMAD_GROUP_NAME", s.Group.Name)
	if s.Job != nil {
		text("NOMAD_JOB_ID", s.Job.ID)
		text("NOMAD_JOB_NAME", s.Job.Name)
		text("NOMAD_JOB_PARENT_ID", s.Job.ParentID)
		text("NOMAD_NAMESPACE", s.Job.Namespace)
		text("NOMAD_REGION", s.Job.Region)
	}
	if alloc != nil {
		given("NOMAD_ALLOC_NAME", alloc.Name)
		given("NOMAD_ALLOC_INDEX", index(alloc.Name))
	}
	given("NOMAD_DC", s.Node["node.datacenter"])
	r := s.resources()
	number("NOMAD_CPU_LIMIT", r.Cpu.CpuShares)
	number("NOMAD_MEMORY_LIMIT", r.Memory.MemoryMB)
	number("NOMAD_MEMORY_MAX_LIMIT", r.Memory.MemoryMaxMB)
	given("NOMAD_CPU_CORES", orElse(ranges(s.CPUs), " ")) // no core is one space
	return env
}

// resources are what the allocation has for the task, or what the task asks for.
func (s Spec) resources() api.AllocatedTaskResources {
	if s.Alloc != nil && s.Alloc.AllocatedResources != nil {
		if r := s.Alloc.AllocatedResources.Tasks[s.Task.Name]; r != nil {
			return *r
		}
	}
	var out api.AllocatedTaskResources
	if r := s.Task.Resources; r != nil {
		for _, f := range []struct {
			to   *int64
			from *int
		}{{&out.Cpu.CpuShares, r.CPU}, {&out.Memory.MemoryMB, r.MemoryMB}, {&out.Memory.MemoryMaxMB, r.MemoryMaxMB}} {
			if f.from != nil {
				*f.to = int64(*f.from)
			}
		}
	}
	return out
}

// index is the number in the name JOB.GROUP[INDEX].
func index(name string) string {
	open := strings.LastIndexByte(name, '[')
	if open < 0 || !strings.HasSuffix(name, "]") {
		return ""
	}
	return name[open+1 : len(name)-1]
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

// meta is that of the job, the group and the task under the names of variables, each
// key as it is written and in capitals.
func (s Spec) meta() map[string]string {
	all := map[string]string{}
	if s.Job != nil {
		if s.Job.Dispatched && s.Job.ParameterizedJob != nil {
			for _, k := range s.Job.ParameterizedJob.MetaOptional {
				all[k] = ""
			}
		}
		maps.Copy(all, s.Job.Meta)
	}
	maps.Copy(all, s.Group.Meta)
	maps.Copy(all, s.Task.Meta)
	out := map[string]string{}
	for k, v := range all {
		out["NOMAD_META_"+strings.ToUpper(k)] = v
	}
	for k, v := range all {
		out["NOMAD_META_"+k] = v
	}
	return out
}

// denied are names of the agent's environment that tasks do not get.
func denied(name string) bool {
	return slices.Contains([]string{
		"CONSUL_TOKEN", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE", "NOMAD_TOKEN", "VAULT_TOKEN", "CONSUL_LICENSE", "VAULT_LICENSE", "NOMAD_LICENSE",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
	}, name)
}

var interpolated = regexp.MustCompile(`\$\{[a-zA-Z0-9_\-\.]+\}`)

// replace puts values in the place of ${NAME}, and leaves names that nobody knows.
func replace(text string, known ...map[string]string) string {
	return interpolated.ReplaceAllStringFunc(text, func(m string) string {
		for _, names := range known {
			if v, ok := names[m[2:len(m)-1]]; ok {
				return v
			}
		}
		return m
	})
}

// clean makes a name that a shell can say, but for dots, which stay.
func clean(name string) string {
	b := []byte(name)
	for i, c := range b {
		ok := c == '_' || c == '.' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9'
		if !ok {
			b[i] = '_'
		}
	}
	return string(b)
}
