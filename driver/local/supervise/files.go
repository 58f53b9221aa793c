package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
)

// Files of an attempt's directory.
const (
	PlanFile    = "plan.json"
	StartedFile = "started.json"
	ProcessFile = "process.json"
	ExitFile    = "exit.json"
	SignalFile  = "signal.json"
	StopFile    = "stop.json"
	VoidFile    = "void"
)

// The environment variables that name the job and its attempt to its processes, and to an exporter where there are no
// cgroups.
const (
	JobVariable     = "PITCHPIPE_JOB_ID"
	AttemptVariable = "PITCHPIPE_ATTEMPT"
)

// Plan is what an attempt runs.
type Plan struct {
	Job     string   `json:"job"`
	Attempt int      `json:"attempt"`
	Self    []string `json:"self"` // argv prefix that starts this package's Main

	Argv  []string `json:"argv"`
	Dir   string   `json:"dir"`
	Env   []string `json:"env"`
	User  *User    `json:"user,omitempty"` // nil = the supervisor's own
	Notes []string `json:"notes,omitempty"`

	Output string `json:"output"`
	// Own: the output lies in the scheduler's own directory and is made for the
	// user. Otherwise the user's own rights must do.
	Own      bool `json:"own"`
	Truncate bool `json:"truncate"` // the first attempt starts an empty output, unless its job file appends

	Tree        cgroup.Tree   `json:"tree"`
	Leaf        string        `json:"leaf"`
	CPUs        []int         `json:"cpus"`
	MemoryBytes int64         `json:"memory_bytes"` // 0 = no limit
	TimeLimit   time.Duration `json:"time_limit"`   // 0 = none

	Listener []string `json:"listener,omitempty"` // argv prefix; empty = none
	Pattern  string   `json:"pattern,omitempty"`
	File     string   `json:"file,omitempty"` // progress; empty = Output
	Total    int      `json:"total,omitempty"`
}

// User is whom the job runs as.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// Process names a process for as long as the machine runs.
type Process struct {
	PID   int       `json:"pid"`
	Start uint64    `json:"start"` // field starttime of /proc/PID/stat
	Boot  string    `json:"boot"`  // the machine's boot id: after another boot the pid says nothing
	At    time.Time `json:"at"`
}

// Signal asks the job to save.
type Signal struct {
	ID     string    `json:"id"` // each id is sent once
	Signal string    `json:"signal"`
	At     time.Time `json:"at"`
}

// StopReason says why an attempt is ended on request.
type StopReason string

// The reasons.
const (
	StopCancelled StopReason = "cancelled" // its job is no longer wanted
	StopSaved     StopReason = "saved"     // it saved and is to leave
	StopDiscarded StopReason = "discarded" // it is to leave unsaved; killed at once, see attempt.exit
)

// Stop asks the supervisor to end the attempt.
type Stop struct {
	Reason StopReason `json:"reason"`
}

// Reason says how an attempt ended.
type Reason string

// The reasons.
const (
	Exited     Reason = "exited"      // by itself, with Code
	Signalled  Reason = "signalled"   // by its own signal
	Memory     Reason = "memory"      // killed for memory
	TimeUp     Reason = "time"        // killed at the time limit
	NotStarted Reason = "not-started" // nothing was executed; Code is 127 or 126 as a shell has it
	Stopped    Reason = "stopped"     // on request; Stop says why
)

// Exit is how an attempt ended.
type Exit struct {
	Reason  Reason     `json:"reason"`
	Code    int        `json:"code"` // 128 + signal for a killed process
	Stop    StopReason `json:"stop,omitempty"`
	Detail  string     `json:"detail,omitempty"`
	Started time.Time  `json:"started"`
	Ended   time.Time  `json:"ended"`
	Peak    int64      `json:"peak,omitempty"` // see driver.Attempt
}

// Status is what the files of an attempt say.
type Status string

// The statuses.
const (
	Alive Status = "alive" // the supervisor starts or runs
	Ended Status = "ended" // exit.json says how
	Void  Status = "void"  // it was never started and never will be
	Died  Status = "died"  // it was started, and its supervisor died
)

// Resolve says where an attempt is, and fills in how one ended. One that was not started is
// made void under the lock, so that no one starts it afterwards.
func Resolve(dir string, exit *Exit) (status Status, err error) {
	path := filepath.Join(dir, ExitFile)
	if durable.ReadJSON(path, exit) == nil {
		return Ended, nil
	}
	lock, err := durable.Lock(dir)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return Alive, nil
	case errors.Is(err, os.ErrNotExist):
		return Void, nil // not even the directory was made
	case err != nil:
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	// Again: it may have ended between the first look and the lock.
	switch err := durable.ReadJSON(path, exit); {
	case err == nil:
		return Ended, nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	case Has(dir, StartedFile):
		return Died, nil
	}
	return Void, durable.Write(filepath.Join(dir, VoidFile), nil, 0o600)
}

// Has reports whether an attempt's directory has a file, or may have one where that cannot be
// read.
func Has(dir, file string) bool {
	_, err := os.Lstat(filepath.Join(dir, file))
	return !errors.Is(err, os.ErrNotExist)
}
