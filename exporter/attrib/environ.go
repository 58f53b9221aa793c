package attrib

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"pitchpipe/exporter/hostfs"
)

// The variables that name the job of a process.
const (
	EnvJob     = "PITCHPIPE_JOB_ID"
	EnvAttempt = "PITCHPIPE_ATTEMPT"
)

// Trust says whose environments may name a job. It matters only for processes that
// are in no job's cgroup and below no step daemon of Slurm.
type Trust int

const (
	// TrustOwn believes processes of the exporter's own user, except setuid programs:
	// a user who can write those environments can do all that the exporter can.
	TrustOwn Trust = iota
	// TrustAny believes all, so any user can name any job: a job belongs to the first user
	// seen in it, and others' processes do not count. It is for nodes without cgroups
	// whose users trust each other with their measurements.
	TrustAny
	// TrustNone believes no environment.
	TrustNone
)

// ParseTrust reads "own", "any" or "off".
func ParseTrust(text string) (Trust, error) {
	i := slices.Index([]string{TrustOwn: "own", TrustAny: "any", TrustNone: "off"}, text)
	if i < 0 {
		return TrustNone, fmt.Errorf("want own, any or off, not %q", text)
	}
	return Trust(i), nil
}

// named reports which job a process's environment names, if it is believed.
func (s *Scanner) named(pid int, uid uint32) (Key, bool) {
	if s.trust == TrustNone || s.trust == TrustOwn && uid != s.self {
		return Key{}, false
	}
	data, err := s.buf.Read(s.root.Pid(pid, "environ"))
	if err != nil {
		return Key{}, false
	}
	key, ok := ParseEnviron(data)
	if ok && s.trust == TrustOwn {
		// The environment of a setuid program was written by its starter.
		exe, err := os.Stat(s.root.Pid(pid, "exe"))
		ok = err != nil || exe.Mode()&(os.ModeSetuid|os.ModeSetgid) == 0
	}
	return key, ok
}

// ParseEnviron reads the job's name off /proc/<pid>/environ. A missing attempt is
// the first.
func ParseEnviron(data []byte) (Key, bool) {
	if !bytes.Contains(data, []byte(EnvJob+"=")) {
		return Key{}, false // nearly all
	}
	env := hostfs.Env(data, EnvJob, EnvAttempt)
	key := Key{Manager: Local, ID: env[EnvJob], Attempt: 1}
	ok := true
	if text, set := env[EnvAttempt]; set {
		key.Attempt, ok = attemptNumber(text)
	}
	return key, ok && isName(key.ID)
}

// ParseTask reads from /proc/<pid>/environ the allocation and the task that Nomad started
// the process for, in the form in which Nomad names a task's cgroup.
func ParseTask(data []byte) (id string, ok bool) {
	env := hostfs.Env(data, "NOMAD_ALLOC_ID", "NOMAD_TASK_NAME")
	if !isName(env["NOMAD_TASK_NAME"]) || len(env["NOMAD_ALLOC_ID"]) != uuid {
		return "", false
	}
	owner, ok := ParsePath("nomad/" + env["NOMAD_ALLOC_ID"] + "." + env["NOMAD_TASK_NAME"])
	return owner.Key.ID, ok && owner.Key.Manager == Nomad
}

// isName reports whether a text from an environment can be a name.
func isName(text string) bool {
	return text != "" && len(text) <= 200 && !strings.ContainsAny(text, "/\n")
}
