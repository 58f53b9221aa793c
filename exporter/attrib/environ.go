package attrib

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
	// TrustOwn believes processes of the exporter's own user, setuid programs
	// excepted: whoever can write those environments can do all that the exporter
	// can. It is the zero value.
	TrustOwn Trust = iota
	// TrustAny believes all, so that any user can name any job: he who is seen in a
	// job first has it, and others' processes do not count. For nodes without
	// cgroups whose users are trusted not to spoil each other's measurements.
	TrustAny
	// TrustNone believes no environment.
	TrustNone
)

// ErrTrust means that a text names no Trust.
var ErrTrust = errors.New("want own, any or off")

// ParseTrust reads "own", "any" or "off".
func ParseTrust(text string) (Trust, error) {
	switch text {
	case "own":
		return TrustOwn, nil
	case "any":
		return TrustAny, nil
	case "off":
		return TrustNone, nil
	}
	return TrustNone, fmt.Errorf("%w, not %q", ErrTrust, text)
}

// named reports which job a process's environment names, where it is believed.
func (e *procs) named(pid int, uid uint32) (Key, bool) {
	switch e.trust {
	case TrustAny:
	case TrustOwn:
		if uid != e.self {
			return Key{}, false
		}
	case TrustNone:
		return Key{}, false
	}
	data, err := hostfs.ReadInto(e.buf, e.root.Pid(pid, "environ"))
	if err != nil {
		return Key{}, false
	}
	e.buf = data
	key, ok := ParseEnviron(data)
	// The environment of a setuid program was written by whoever started it.
	if !ok || e.trust == TrustOwn && e.setuid(pid) {
		return Key{}, false
	}
	return key, true
}

// setuid reports whether the process runs a file that gives its starter another's
// rights. A process whose file is unknown is none: it has no environment that
// could be read either.
func (e *procs) setuid(pid int) bool {
	st, err := os.Stat(e.root.Pid(pid, "exe"))
	return err == nil && st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
}

// ParseEnviron reads the job's name off /proc/<pid>/environ. A missing attempt is
// the first.
func ParseEnviron(data []byte) (Key, bool) {
	if !bytes.Contains(data, []byte(EnvJob+"=")) {
		return Key{}, false // nearly all
	}
	env := hostfs.Env(data, EnvJob, EnvAttempt)
	key := Key{Manager: Local, ID: env[EnvJob], Attempt: 1}
	if text, ok := env[EnvAttempt]; ok {
		if key.Attempt, ok = attemptNumber(text); !ok {
			return Key{}, false
		}
	}
	if key.ID == "" || len(key.ID) > 200 || strings.ContainsAny(key.ID, "/\n") {
		return Key{}, false
	}
	return key, true
}
