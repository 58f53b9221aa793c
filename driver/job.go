package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
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
