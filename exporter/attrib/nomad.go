package attrib

import (
	"bytes"
	"os"
	"time"

	"pitchpipe/exporter/hostfs"
)

// passing is for how long after its making a task's cgroup may hold Nomad's executor.
const passing = 30 * time.Second

// young tells whether a cgroup was made lately.
func (s *Scanner) young(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && time.Since(st.ModTime()) < passing
}

// executor tells whether a process is the one of Nomad's that starts a task. Under v1 it
// goes into the task's cgroups, starts the task there and leaves them again: what it
// took is not the task's, and a leaf that it was put into it would never leave. It is the
// administrator's and "nomad executor" by its command line.
func (e *procs) executor(pid int) bool {
	admin, ok := e.owner(e.root.Proc())
	if !ok {
		return false
	}
	if uid, ok := e.owner(e.root.Pid(pid)); !ok || uid != admin {
		return false
	}
	data, err := hostfs.Read(e.root.Pid(pid, "cmdline"))
	if err != nil {
		return false
	}
	words := bytes.SplitN(data, []byte{0}, 3)
	return len(words) == 3 && string(words[1]) == "executor" && (bytes.HasSuffix(words[0], []byte("/nomad")) || string(words[0]) == "nomad")
}
