package local

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/local/cgroup"
)

// nomad sets what Nomad promises a task, as far as it means something on one
// machine.
func (r *record) nomad(env map[string]string, s store) {
	want := r.want(r.Job.Change)
	env["NOMAD_JOB_ID"] = string(r.Job.ID)
	env["NOMAD_JOB_NAME"] = r.Job.Name
	// Both are the job's name: a job here has one group of one task.
	env["NOMAD_GROUP_NAME"] = r.Job.Name
	env["NOMAD_TASK_NAME"] = r.Job.Name
	env["NOMAD_NAMESPACE"] = cmp.Or(r.Job.Partition, "default")
	id := allocation(r)
	env["NOMAD_ALLOC_ID"], env["NOMAD_SHORT_ALLOC_ID"] = id, id[:8]
	env["NOMAD_ALLOC_NAME"] = r.Job.Name + "." + r.Job.Name + "[0]"
	env["NOMAD_ALLOC_INDEX"] = "0"
	for key, value := range r.File.Meta {
		env["NOMAD_META_"+key] = value
	}
	for name, dir := range map[string]string{"NOMAD_ALLOC_DIR": "alloc", "NOMAD_TASK_DIR": "local", "NOMAD_SECRETS_DIR": "secrets"} {
		env[name] = filepath.Join(s.job(r.Job.ID), dir)
	}
	env["NOMAD_CPU_CORES"] = cgroup.FormatList(r.CPUs)
	if want.Memory > 0 {
		env["NOMAD_MEMORY_LIMIT"] = strconv.FormatInt(want.Memory>>20, 10)
	}
}

// allocation is an id of the attempt in the shape of Nomad's allocation ids: each
// attempt is its own allocation, as a changed job's is there.
func allocation(r *record) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", r.Job.Submitted.UTC(), r.Job.ID, r.Job.Attempt))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// reference is one ${...} that Nomad would interpolate: a name, or env["NAME"].
var reference = regexp.MustCompile(`\$\{(?:env\["([^"\]]+)"\]|([A-Za-z0-9_.-]+))\}`)

// foreign is a reference that can only be meant for Nomad.
var foreign = regexp.MustCompile(`^\$\{(env\[|NOMAD_|env\.|attr\.|node\.|meta\.|device\.)`)

// resolve finds what a reference stands for.
func resolve(reference []string, env map[string]string, node string) (string, bool) {
	name := cmp.Or(reference[1], strings.TrimPrefix(reference[2], "env."))
	if value, ok := env[name]; ok {
		return value, true
	}
	value, ok := map[string]string{
		"node.unique.name": node, "attr.unique.hostname": node, "attr.kernel.name": runtime.GOOS, "attr.cpu.arch": runtime.GOARCH,
	}[reference[2]]
	return value, ok
}

// interpolate replaces the references in a text. What is none of Nomad's stays, as
// it does there: it may be a shell's.
func interpolate(text string, env map[string]string, node string) string {
	return reference.ReplaceAllStringFunc(text, func(whole string) string {
		if value, ok := resolve(reference.FindStringSubmatch(whole), env, node); ok {
			return value
		}
		return whole
	})
}

// argv is the command line of the attempt, before a change of it.
func (r *record) argv(env map[string]string) []string {
	if r.File.Format != jobfile.NomadHCL {
		return r.File.Argv
	}
	out := make([]string, len(r.File.Argv))
	for i, text := range r.File.Argv {
		out[i] = interpolate(text, env, r.Job.Node)
	}
	return out
}

// workDir is where the attempt begins.
func (r *record) workDir(env map[string]string) string {
	if r.File.Dir == "" {
		return r.Dir
	}
	if dir := interpolate(r.File.Dir, env, r.Job.Node); filepath.IsAbs(dir) {
		return dir
	}
	return interpolate(r.Dir, env, r.Job.Node)
}

// interpolates refuses a Nomad job file whose references mean nothing here, before
// the job would run with them as text. A variable of the task's own environment is
// looked for when it runs, in an environment that a change may add to.
func (d *Driver) interpolates(r *record, dir string) error {
	if r.File.Format != jobfile.NomadHCL {
		return nil
	}
	if strings.Contains(dir, "${") {
		r.File.Dir = dir
	}
	env := environment(r, d.env, d.store)
	texts := append([]string{dir}, r.File.Argv...)
	for _, name := range slices.Sorted(maps.Keys(r.File.Env)) {
		texts = append(texts, r.File.Env[name])
	}
	for _, text := range texts {
		for _, found := range reference.FindAllStringSubmatch(text, -1) {
			if _, ok := resolve(found, env, d.node); !ok && foreign.MatchString(found[0]) {
				return fmt.Errorf("%s means nothing to the local scheduler, which knows NOMAD_{JOB,ALLOC}_{ID,NAME}, NOMAD_{ALLOC,TASK,SECRETS}_DIR and the like, "+
					"variables of the task, node.unique.name, attr.unique.hostname, attr.kernel.name and attr.cpu.arch: %w", found[0], driver.ErrInvalid)
			}
		}
	}
	return nil
}
