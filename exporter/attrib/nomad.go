package attrib

import (
	"bytes"

	"pitchpipe/exporter/hostfs"
)

// executor reports whether a process is the one of Nomad's that starts a task. Under v1 it
// goes into the task's cgroups, starts the task there and leaves them again: what it
// took is not the task's, and a leaf that it was put into it would never leave. It is the
// administrator's and "nomad executor" by its command line.
func (e *procs) executor(pid int) bool {
	admin, ok := e.owner.of(e.root.Proc())
	if !ok {
		return false
	}
	if uid, ok := e.owner.of(e.root.Pid(pid)); !ok || uid != admin {
		return false
	}
	data, err := hostfs.Read(e.root.Pid(pid, "cmdline"))
	if err != nil {
		return false
	}
	words := bytes.SplitN(data, []byte{0}, 3)
	return len(words) == 3 && string(words[1]) == "executor" && (bytes.HasSuffix(words[0], []byte("/nomad")) || string(words[0]) == "nomad")
}
