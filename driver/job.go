package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Attempt is one run of a job.
type Attempt struct {
	Number   int       `json:"number"` // from 1
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
	ExitCode int       `json:"exit_code"` // -1 while it runs or unknown
	Change   Change    `json:"change"`
	Cause    Cause     `json:"cause,omitempty"` // why it was started

	// Intent is the intent whose whole Change the attempt has; empty where it has
	// none, as after a return of memory, which takes back part of the Change or all.
	Intent string `json:"intent,omitempty"`

	// Unit is the id under which the scheduler's processes and exporters know only this attempt,
	// as their first attempt of it, where each attempt has its own id: ALLOCATION.TASK under
	// Nomad.
	Unit string `json:"unit,omitempty"`

	// CPUs are those that the scheduler gave it in all, over its nodes and tasks; 0 = not
	// known. They may be more than it asked for, as where it has whole nodes.
	CPUs int `json:"cpus,omitempty"`

	// Suspended is how long of its time the scheduler kept it suspended, as far as that is
	// known.
	Suspended time.Duration `json:"suspended,omitempty"`

	// Crashes is how often it failed and its scheduler began it again in place, as far as that is known.
	Crashes int `json:"crashes,omitempty"`

	// Peak is the most memory that it held, in bytes and without page cache, where the scheduler
	// knows that at its end; 0 = not known.
	Peak int64 `json:"peak,omitempty"`
}

// Cause says why an attempt was started.
type Cause string

// The causes.
const (
	CauseSubmitted Cause = "submitted" // its owner's submission
	CauseIntent    Cause = "intent"    // a change
	// CauseLate: the attempt before saved after its intent was given up, or the tuner did
	// not come back to it.
	CauseLate Cause = "intent-late"
	// CauseMemory: the attempt before was killed for memory under a change,
	// whatever the change was of: more threads or a larger batch need more memory
	// too. Where the change had less memory than the owner asked for, the owner's
	// memory returns first and the rest of the change is kept; else, and when that
	// was not enough, all of the owner's settings return.
	CauseMemory Cause = "memory-return"
)

// Clone copies the job except its Source, which no one changes.
func (j Job) Clone() Job {
	j.Attempts = slices.Clone(j.Attempts)
	for i := range j.Attempts {
		j.Attempts[i].Change = j.Attempts[i].Change.Clone()
	}
	j.Change, j.Variables = j.Change.Clone(), maps.Clone(j.Variables)
	j.Resources.Env, j.Resources.Args = maps.Clone(j.Resources.Env), slices.Clone(j.Resources.Args)
	return j
}

// Clone copies the change, its maps included.
func (c Change) Clone() Change {
	c.Env, c.Args, c.Live = maps.Clone(c.Env), maps.Clone(c.Args), maps.Clone(c.Live)
	return c
}

// Empty reports whether the change leaves everything as the owner has it.
func (c Change) Empty() bool {
	return c.Cores == 0 && c.MemoryBytes == 0 && c.TimeLimit == 0 &&
		len(c.Env) == 0 && len(c.Args) == 0 && len(c.Live) == 0
}

// Under is what an attempt asks for that has a change.
func (r Resources) Under(c Change) Resources {
	if c.Cores > 0 {
		r.Cores = c.Cores
	}
	if c.MemoryBytes > 0 {
		r.MemoryBytes = c.MemoryBytes
	}
	if c.TimeLimit > 0 {
		r.TimeLimit = c.TimeLimit
	}
	return r
}

// Room is what they take of a node.
func (r Resources) Room() Room { return Room{r.Cores, r.MemoryBytes} }

// Fingerprint is equal for equal job files with equal variables.
func Fingerprint(source []byte, variables map[string]string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n%s", len(source), source)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		_, _ = fmt.Fprintf(h, "%q=%q\n", name, variables[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Digest names a text by a number in 64 hexadecimal digits.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Environ is an environment as the kernel takes it, sorted by name.
func Environ(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// Merge is what both set, the second over the first; nil where neither does.
func Merge(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	out := map[string]string{}
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}
