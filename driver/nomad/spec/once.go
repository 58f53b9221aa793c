package spec

import (
	"fmt"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/once"
)

// Once wraps the main task's command so that a finished run is not done again, and lets
// the allocation's data follow a replacement to another node where the author says
// nothing of the ephemeral disk. That is right for raw_exec and exec with a command; an
// image of docker need not have a shell, and its entry point is unknown. A wrapped job stays as it is except for the name of
// its run. The warnings say where the mark is not seen; they are for the owner. The error is driver.ErrInvalid: the run has
// no usable name.
func Once(job *api.Job, run string) (warnings []string, err error) {
	if !once.Run(run) {
		return nil, fmt.Errorf("the name %q of a run: %w", run, driver.ErrInvalid)
	}
	g, t := Main(job)
	if t == nil {
		return []string{"a job of several groups or main tasks gets no completion marker: a changed registration runs finished work again"}, nil
	}
	Unwrap(t)
	command, ok := t.Config["command"].(string)
	if t.Driver != "raw_exec" && t.Driver != "exec" || !ok {
		return []string{fmt.Sprintf("a task of the driver %q gets no completion marker: if it ends during a change, it runs again until the controller stops it", t.Driver)}, nil
	}
	var args []string
	command, args = once.Wrap(run, command, nomadjson.Words(t.Config["args"]))
	t.Config["command"], t.Config["args"] = command, args
	if g.EphemeralDisk == nil {
		g.EphemeralDisk = &api.EphemeralDisk{Sticky: new(true), Migrate: new(true)}
	}
	if t.Env[once.Variable] == "" && t.Driver == "exec" {
		warnings = append(warnings, "a task of the driver exec sees no other allocation: set "+once.Variable+
			" to a directory of a mounted volume, or a task that ends during a change runs again until the controller stops it")
	}
	return warnings, nil
}

// Wrapped reports whether the main task's command runs once, by the wrapper that writes
// completion markers.
func Wrapped(job *api.Job) bool {
	_, t := Main(job)
	if t == nil {
		return false
	}
	_, _, _, ok := nomadjson.Unwrap(t)
	return ok
}

// Unwrap takes the wrapper off a task's command.
func Unwrap(t *api.Task) {
	if _, inner, args, ok := nomadjson.Unwrap(t); ok {
		t.Config["command"], t.Config["args"] = inner, args
	}
}
