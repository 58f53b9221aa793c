package driver

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"pitchpipe/driver/jobfile"
)

// Validate refuses a change that no job may be given, whatever its scheduler. The error is
// ErrInvalid.
func (c Change) Validate() error {
	if c.Cores < 0 || c.MemoryBytes < 0 || c.TimeLimit < 0 {
		return fmt.Errorf("a change to less than nothing: %w", ErrInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || jobfile.IsDenied(name) {
			return fmt.Errorf("variable %q is not the tuner's to set: %w", name, ErrInvalid)
		}
	}
	for _, values := range []map[string]string{c.Env, c.Args, c.Live} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !jobfile.IsPlain(values[name]) {
				return fmt.Errorf("%s=%q: want only %s in a value: %w", name, values[name], jobfile.ValueBytes, ErrInvalid)
			}
		}
	}
	return nil
}
