package searcher

import (
	"pitchpipe/controller/tuning"
)

// State is where a trial is.
type State string

// The states. A trial that is not Running may still be Busy: its job goes on.
const (
	Running  State = "running"  // its job waits or runs
	Paused   State = "paused"   // ended at a rung; its checkpoint is kept, since it may go on
	Stopped  State = "stopped"  // ended early for good
	Done     State = "done"     // it did all of its epochs, or reached the target
	Failed   State = "failed"   // its job failed, by lack of memory too
	Diverged State = "diverged" // it reported a number that is not finite
)

// States lists the states.
func States() []State { return []State{Running, Paused, Stopped, Done, Failed, Diverged} }

// Report is what a trial had after an epoch. Amounts are those of the trial up to then, all of its jobs
// included.
type Report struct {
	Seq       int      `json:"seq"` // place among all events of the search
	Epoch     int      `json:"epoch"`
	Value     float64  `json:"value"`             // the quality, or the loss of a job that reports no quality
	At        float64  `json:"at"`                // seconds since the search began
	Seconds   float64  `json:"seconds"`           // of running
	Joules    *float64 `json:"joules,omitempty"`  // nil: not measured throughout
	Metered   float64  `json:"metered,omitempty"` // joules of the epochs that were measured, where not all were
	CoreHours float64  `json:"core_hours"`        //
	Source    string   `json:"source,omitempty"`  // of the joules: modelled where a part is
	Cores     float64  `json:"cores,omitempty"`   // that the epoch ran on
	Threads   float64  `json:"threads,omitempty"` // 0: unknown
}

// Measured are the joules of the epochs that were measured: a lower bound where Joules is nil.
func (r Report) Measured() float64 {
	if r.Joules != nil {
		return *r.Joules
	}
	return r.Metered
}

// Trial is one run of the job file with its own hyperparameters.
type Trial struct {
	Number    int             `json:"number"` // from 1
	Candidate int             `json:"candidate"`
	Settings  tuning.Settings `json:"settings"`
	Bracket   int             `json:"bracket,omitempty"` // of Hyperband: the rungs that it leaves out
	State     State           `json:"state"`
	Busy      bool            `json:"busy,omitempty"`    // its job has not ended
	Attempt   int             `json:"attempt"`           // jobs that it had
	Passed    int             `json:"passed,omitempty"`  // rungs
	Retries   int             `json:"retries,omitempty"` // jobs that were lost since its last report
	Cut       bool            `json:"cut,omitempty"`     // paused by the end of the search, and not at a rung
	Spared    bool            `json:"spared,omitempty"`  // somebody else cancelled its job: its checkpoint is theirs to delete
	Reason    string          `json:"reason,omitempty"`  // of its end, in words
	Reports   []Report        `json:"reports,omitempty"` // by epoch, each once
	Counted   int             `json:"counted,omitempty"` // of them, those that decisions depend on
	Began     int             `json:"began"`             // Seq
	Ended     int             `json:"ended,omitempty"`   // Seq of the end of its last job
	Log       []Event         `json:"log,omitempty"`     // its events other than reports
}

// Last is the newest report; the zero Report where there is none.
func (t *Trial) Last() Report { return tuning.Last(t.Reports) }

// Used is the newest report with what all of the trial's jobs used, also before its first epoch, in epochs without a
// value, and after the last one.
func (t *Trial) Used() Report {
	out := t.Last()
	for _, e := range t.Log {
		r := e.Report
		out.Seconds, out.CoreHours = max(out.Seconds, r.Seconds), max(out.CoreHours, r.CoreHours)
		if m := r.Measured(); m > 0 && m >= out.Measured() { // equal: of what followed nothing is known
			out.Joules, out.Metered, out.Source = r.Joules, r.Metered, r.Source
		}
	}
	return out
}

// counted are the reports that decisions depend on. What a trial reports between the decision to end its job and the
// end depends on the machine, so that it counts only when the trial goes on.
func (t *Trial) counted() []Report { return t.Reports[:t.Counted] }

// Decisive is the newest report that counts; the zero Report where there is none.
func (t *Trial) Decisive() Report { return tuning.Last(t.counted()) }

// Plan is what a search is. It never changes.
type Plan struct {
	tuning.Search
	Minimize  bool              `json:"minimize"`             // of the reported value
	Target    *float64          `json:"target,omitempty"`     // nil: none
	Objective tuning.Objective  `json:"objective,omitempty"`  // of the way to the target
	Weight    *float64          `json:"weight,omitempty"`     // share of energy in Blend; nil: 1
	Total     int               `json:"total,omitempty"`      // epochs that the job file runs; 0: Search.Epochs
	Resumes   bool              `json:"resumes"`              // a trial that was stopped can go on from its checkpoint
	Settings  []tuning.Settings `json:"candidates,omitempty"` // that may be tried
	First     []int             `json:"first,omitempty"`      // of them, those that begin before all others
	History   [][]float64       `json:"history,omitempty"`    // losses that earlier searches let expect of each; nil: there are none

	EnforceModel bool `json:"enforce_model,omitempty"` // modelled joules count towards the budget, as the site said
}

// Snapshot is what a Searcher knows.
type Snapshot struct {
	Head

	Trials []Trial `json:"trials"`
}

// Head is what it knows besides the trials.
type Head struct {
	Seq     int     `json:"seq"`               // events so far
	Closing string  `json:"closing,omitempty"` // why no trial begins any more; empty: some may
	Over    bool    `json:"over,omitempty"`
	Restart float64 `json:"restart,omitempty"` // seconds that queue and restart of a job cost, as last said
	Log     []Event `json:"log,omitempty"`     // events of no trial
}

// EventKind says what happened.
type EventKind string

// The events.
const (
	Opened   EventKind = "opened"   // the search begins, or goes on after its end
	Waited   EventKind = "waited"   // time went by
	Reported EventKind = "reported" // an epoch ended
	Broke    EventKind = "broke"    // an epoch ended with a number that is not finite
	Ended    EventKind = "ended"    // the trial's job is over
	Closed   EventKind = "closed"   // the owner ends the search
)

// End is how a job of a trial ended.
type End string

// The ends.
const (
	Succeeded End = "succeeded"
	Broken    End = "failed"
	NoMemory  End = "out-of-memory"
	NoTime    End = "time-limit" // resumed where it has a checkpoint
	Lost      End = "lost"       // its node failed; it is run again
	Cancelled End = "cancelled"  // by somebody else
)

// Unseen begins the reason of a trial whose job succeeded without an epoch that was seen.
const Unseen = "no epoch of it was seen"

// Unvalued begins that of one whose epochs had no number that trials can be ranked by.
const Unvalued = "none of its lines had a number for "

// Event is something that happened.
type Event struct {
	Kind   EventKind      `json:"kind"`
	Seq    int            `json:"seq"`              // its place; Handle counts
	Trial  int            `json:"trial,omitempty"`  // number
	Report Report         `json:"report,omitzero"`  // of Reported; of all its At, and of a trial what it used
	End    End            `json:"end,omitempty"`    // of Ended
	Reason string         `json:"reason,omitempty"` // of Ended and Closed
	Cost   float64        `json:"cost,omitempty"`   // of Opened: seconds that queue and restart of a job cost
	Search *tuning.Search `json:"search,omitempty"` // of Opened: what is searched from now on; nil: what the plan says
}

// ActionKind says what to do.
type ActionKind string

// The actions.
const (
	Create ActionKind = "create"
	Resume ActionKind = "resume" // a new job goes on from the trial's checkpoint
	Pause  ActionKind = "pause"  // end the job and keep its checkpoint
	Stop   ActionKind = "stop"   // end the job
	Finish ActionKind = "finish" // nothing is left to do
)

// Action is something to do.
type Action struct {
	Kind  ActionKind
	Trial int // number; 0 of Finish
}
