package spec

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/move"
)

// Apply is the owner's job with the change of the mark. It is the job to register
// whatever was changed before: a change is always one from the owner's own.
func Apply(own *api.Job, m Mark) (*api.Job, error) {
	m.Was = nil // the journal has all of it
	return marked(own, m)
}

// marked is the owner's job with the change of the mark, and the mark.
func marked(own *api.Job, m Mark) (*api.Job, error) {
	job, err := Owner(own)
	if err != nil {
		return nil, err
	}
	if err := Set(job, m.Change); err != nil {
		return nil, err
	}
	g, t := Main(job)
	t.Env[Variable] = m.word()
	return job, write(g, m)
}

// Set writes a change into a job as its owner would have written it: no mark is left.
func Set(job *api.Job, c driver.Change) error {
	if why := ObservedOnly(job); why != "" {
		return fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	if err := judge(c); err != nil {
		return err
	}
	g, t := Main(job)
	if !nomadjson.Set(t, c.Cores, c.Env, c.Args) {
		return fmt.Errorf("the task has no command line: %w", driver.ErrUnsupported)
	}
	t.Resources = cmp.Or(t.Resources, &api.Resources{})
	if c.MemoryBytes > 0 {
		mib := int((c.MemoryBytes + mebibyte - 1) / mebibyte)
		reserved := mib
		if limit := Deref(t.Resources.MemoryMaxMB); limit > 0 {
			t.Resources.MemoryMaxMB = &mib
			if mib <= limit { // else a saving would reserve more than its owner did
				reserved = min(mib, cmp.Or(Deref(t.Resources.MemoryMB), mib))
			}
		}
		t.Resources.MemoryMB = &reserved
	}
	if c.TimeLimit > 0 {
		g.MaxRunDuration = &c.TimeLimit
	}
	return nil
}

// judge refuses what no job can be given.
func judge(c driver.Change) error {
	const largest = 1 << 20
	if err := move.JudgeChange(c); err != nil {
		return err
	}
	switch {
	case c.Cores > largest || c.MemoryBytes/mebibyte > 1<<40:
		return fmt.Errorf("more than any node has: %w", driver.ErrInvalid)
	case c.TimeLimit > 0 && c.TimeLimit < time.Second:
		return fmt.Errorf("a time limit of %v: %w", c.TimeLimit, driver.ErrInvalid)
	case len(c.Live) > 0:
		return fmt.Errorf("an allocation of Nomad gets no settings file: %w", driver.ErrUnsupported)
	}
	for flag := range c.Args {
		if !strings.HasPrefix(flag, "-") {
			return fmt.Errorf("flag %q: want one that begins with -: %w", flag, driver.ErrInvalid)
		}
	}
	return nil
}
