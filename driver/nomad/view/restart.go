package view

import (
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Restart is a restart in place after which a task has other variables in its environment:
// another attempt in the same allocation. Times are of the node's clock, in nanoseconds.
type Restart struct {
	Alloc string    `json:"alloc"`
	At    int64     `json:"at"`             // it began
	Left  int64     `json:"left,omitempty"` // the run before it had ended then; 0: unknown
	Exit  int       `json:"exit"`           // with this status, -1 unknown
	Mark  spec.Mark `json:"mark"`           // what the run has instead of its owner's settings
}

// runs are the attempts of one allocation: one, and another for each of its restarts.
func runs(in Input, a *api.AllocationListStub, t Task, known map[attemptID]Known) []Known {
	first := Known{Alloc: a.ID, Index: a.CreateIndex, Version: a.JobVersion, Attempt: driver.Attempt{Unit: a.ID + "." + in.Task}}
	if m, changed := in.Marks[a.JobVersion]; changed {
		first.Attempt.Change, first.Attempt.Intent, first.Attempt.Cause = m.Change.Clone(), m.Intent, m.Cause
	}
	if k, ok := known[first.id()]; ok {
		first = k
	}
	if first.Attempt.Started.IsZero() || t.Began.Before(first.Attempt.Started) && !t.Began.IsZero() {
		first.Attempt.Started = t.Began
	}
	out := []Known{first}
	for _, restart := range in.Restarts {
		if restart.Alloc != a.ID {
			continue
		}
		before := &out[len(out)-1].Attempt
		before.Ended, before.ExitCode = moment(max(restart.Left, before.Started.UnixNano())), restart.Exit
		if restart.Left == 0 {
			before.Ended = moment(restart.At)
		}
		out = append(out, Known{
			Alloc: a.ID, Index: a.CreateIndex, Version: a.JobVersion, Restart: restart.At,
			Attempt: driver.Attempt{
				Unit: first.Attempt.Unit, Started: moment(restart.At), Change: restart.Mark.Change.Clone(),
				Intent: restart.Mark.Intent, Cause: restart.Mark.Cause,
			},
		})
	}
	for i := range out {
		out[i].Node = a.NodeName
	}
	last := &out[len(out)-1].Attempt
	last.ExitCode, last.Ended, last.Crashes = -1, time.Time{}, max(last.Crashes, crashes(a, in.Task, last.Started))
	if Over(a) {
		last.Ended, last.ExitCode = t.Finished, t.Exit
		if last.Ended.IsZero() {
			last.Ended = time.Unix(0, a.ModifyTime).UTC()
		}
	}
	return out
}

// crashes is how often a task failed since then and was to begin again in place. What ran out of memory is another matter.
func crashes(a *api.AllocationListStub, name string, since time.Time) (n int) {
	killing, failed := false, false
	for e := range events(a, name) {
		switch e.Type {
		case api.TaskKilling, api.TaskRestartSignal:
			killing = true
		case api.TaskTerminated:
			code := exitCode(e)
			failed = !killing && code != 0 && code != oomStatus && moment(e.Time).After(since)
		case api.TaskRestarting:
			if failed {
				n++
			}
			killing, failed = false, false
		}
	}
	return n
}

func moment(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

// ready is how long Nomad's client may take from a file that a template has rendered to
// the variables of the next start.
const ready = time.Second

// Has is the start with which the task certainly has the variables of a file that a
// template rendered at the time. Nomad's client makes up the
// environment of a run a moment before it says "Started", and a template that is rendered
// in that moment is not in the environment and does not restart the task. So a start
// counts where the task was ended for it after the file was there, or was to wait until
// then. Doubtful: it runs, and nothing says what it has.
func Has(a *api.AllocationListStub, name string, rendered int64) (restart Restart, certain, doubtful bool) {
	restart = Restart{Alloc: a.ID, Exit: -1}
	armed := false
	for e := range events(a, name) {
		switch e.Type {
		case api.TaskTerminated:
			restart.Left, restart.Exit = e.Time, exitCode(e)
		case api.TaskRestartSignal:
			armed = armed || e.Time >= rendered
		case api.TaskRestarting:
			armed = armed || e.Time+delay(e) >= rendered+int64(ready)
		case api.TaskStarted:
			if armed {
				restart.At = e.Time
				return restart, true, false
			}
			doubtful = e.Time > rendered
		}
	}
	return restart, false, doubtful && TaskOf(a, name).State == "running"
}

// delay is how long a task waits before it is started again, in nanoseconds.
func delay(e *api.TaskEvent) int64 {
	if n, err := strconv.ParseInt(e.Details["start_delay"], 10, 64); err == nil {
		return n
	}
	return e.StartDelay
}
