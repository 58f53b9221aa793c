package mark

import (
	"fmt"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/mark"
	"pitchpipe/driver/nomad/spec"
)

// Add wraps the main task's command so that a finished run is not done again, and lets
// the allocation's data follow a replacement to another node where the author says
// nothing of the ephemeral disk. A wrapped job stays as it is but for the name of its
// run. The warnings say where the mark is not seen; they are for the owner. The error
// is driver.ErrInvalid: the run has no usable name.
func Add(job *api.Job, run string) (warnings []string, err error) {
	if !mark.Run(run) {
		return nil, fmt.Errorf("the name %q of a run: %w", run, driver.ErrInvalid)
	}
	Remove(job)
	g, t := spec.Main(job)
	if t == nil {
		return []string{"a job of several groups or main tasks gets no completion marker: a changed registration runs finished work again"}, nil
	}
	command, ok := t.Config["command"].(string)
	if t.Driver != "raw_exec" && t.Driver != "exec" || !ok {
		return []string{fmt.Sprintf("a task of the driver %q gets no completion marker: a changed registration that meets its end runs it again until that is seen", t.Driver)}, nil
	}
	var args []string
	command, args = mark.Wrap(run, command, words(t.Config["args"]))
	t.Config["command"], t.Config["args"] = command, args
	if g.EphemeralDisk == nil {
		yes := true
		g.EphemeralDisk = &api.EphemeralDisk{Sticky: &yes, Migrate: &yes}
	}
	if t.Env[mark.Variable] == "" && t.Driver == "exec" {
		warnings = append(warnings, "a task of the driver exec sees no other allocation: set "+mark.Variable+
			" to a directory of a mounted volume, or a changed registration that meets its end runs it again until that is seen")
	}
	return warnings, nil
}

// Of is the name of a job's run, false where it has no completion marker.
func Of(job *api.Job) (run string, ok bool) {
	_, t := spec.Main(job)
	if t == nil {
		return "", false
	}
	command, _ := t.Config["command"].(string)
	run, _, _, ok = mark.Unwrap(command, words(t.Config["args"]))
	return run, ok
}

// Remove takes the wrapper off.
func Remove(job *api.Job) {
	_, t := spec.Main(job)
	if t == nil {
		return
	}
	command, _ := t.Config["command"].(string)
	if _, inner, args, ok := mark.Unwrap(command, words(t.Config["args"])); ok {
		t.Config["command"], t.Config["args"] = inner, args
	}
}

// nomadsKill is the kill_timeout that Nomad fills in.
const nomadsKill = 5 * time.Second

// Saves lets Nomad's own end of a task be the request to save, where the author says
// nothing else: the signal and the time of the checkpoint.
func Saves(job *api.Job, c driver.Checkpoint) {
	_, t := spec.Main(job)
	if t == nil {
		return
	}
	if t.KillSignal == "" {
		t.KillSignal = c.SignalName()
	}
	if t.KillTimeout == nil || *t.KillTimeout == nomadsKill {
		t.KillTimeout = &c.Grace
	}
}

// words reads a list of texts as JSON and Go have it.
func words(v any) []string {
	switch list := v.(type) {
	case []string:
		return list
	case []any:
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = fmt.Sprint(w)
		}
		return out
	}
	return nil
}
