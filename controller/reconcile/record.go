package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Record is the durable story of one job.
type Record struct {
	Identity
	Phase  Phase         `json:"phase"`
	Reason tuning.Reason `json:"reason"` // of the latest decision or of the end
	Detail string        `json:"detail,omitempty"`

	Request
	Course
	Tuning
	Story

	Learned bool `json:"learned,omitempty"` // the knowledge has what it taught
	Pruned  bool `json:"pruned,omitempty"`  // nothing is left but that the job was seen and is over
}

// Identity is which job it is.
type Identity struct {
	Job         driver.JobID   `json:"job"`
	Name        string         `json:"name"`
	Owner       string         `json:"owner"`
	Kind        tuning.JobKind `json:"kind"`
	Fingerprint string         `json:"fingerprint"`     // of the owner's spec when it was read
	Alias       string         `json:"alias,omitempty"` // its name for exporters, where not its id
	Submitted   time.Time      `json:"submitted"`
	// Requested is the request that made it; empty: unknown, or its owner submitted it himself.
	Requested driver.RequestID `json:"requested,omitempty"`
}

// Request is what the owner asked for.
type Request struct {
	Policy  tuning.Policy   `json:"policy"` // the stanza's, before the site narrowed it
	Own     tuning.Settings `json:"own"`
	Asked   *Asked          `json:"asked,omitempty"`   // of the scheduler, when Own was read
	Control bool            `json:"control,omitempty"` // drawn into the untuned share
}

// Course is the history of the job so far.
type Course struct {
	State       driver.State `json:"state"` // when last seen
	Started     time.Time    `json:"started,omitzero"`
	Ended       time.Time    `json:"ended,omitzero"`
	Limit       time.Time    `json:"limit,omitzero"`        // when its scheduler ends the present attempt; zero: never
	Held        string       `json:"held,omitempty"`        // why its scheduler holds it; see driver.Job
	Unreachable bool         `json:"unreachable,omitempty"` // its scheduler did not answer when the job was last looked at
	Unheard     string       `json:"unheard,omitempty"`     // why its scheduler does not show its output

	Attempts []driver.Attempt `json:"attempts,omitempty"` // once it has ended, since its scheduler forgets them

	Runs    []Run `json:"runs,omitempty"`    // one per attempt
	Queued  *Run  `json:"queued,omitempty"`  // carried out, and its attempt has not begun
	Counted int   `json:"counted,omitempty"` // the last attempt before its owner changed the job
	Total   int   `json:"total"`             // epochs in all, 0 unknown

	Epochs       []tuning.Epoch            `json:"epochs,omitempty"`   // measured, over all attempts, each number once
	Earlier      []tuning.Epoch            `json:"earlier,omitempty"`  // of an earlier job file: they used joules, and are no evidence
	Cut          []tuning.Epoch            `json:"cut,omitempty"`      // that were cut off by the end of their attempts
	Profiles     map[string]tuning.Profile `json:"profiles,omitempty"` // by the key of the settings
	Class        *tuning.Class             `json:"class,omitempty"`
	Peak         tuning.Bytes              `json:"peak,omitempty"`
	RestartCosts []time.Duration           `json:"restart_costs,omitempty"`
}

// Tuning is what the tuner did to the job, and what came of it.
type Tuning struct {
	Move    *Intent         `json:"move,omitempty"`    // under way
	Settle  time.Time       `json:"settle,omitzero"`   // epochs that began later may judge the setting
	Outcome *tuning.Outcome `json:"outcome,omitempty"` // of the last move
	Looked  int             `json:"looked,omitempty"`  // epochs of the present attempt when the planner was last asked for something better
	// Toll is what tuning cost or saved in all, once the job has ended; nil: it was not
	// tuned, or the cost of an untuned epoch is unknown.
	Toll *tuning.Toll `json:"toll,omitempty"`
	// Harmed are settings under which the job could not run, or that the stop-loss left.
	Harmed   []tuning.Settings `json:"hurt,omitempty"`
	Restarts []time.Time       `json:"restarts,omitempty"` // moves and roll-backs carried out
	Probed   []time.Time       `json:"probed,omitempty"`
	Expired  int               `json:"expired,omitempty"` // changes abandoned because it did not save in time, or refused while it ran

	Taken     []tuning.Taken `json:"taken,omitempty"`     // actions, the one that is being handed over included
	Handing   bool           `json:"handing,omitempty"`   // the settings file may lack them
	Unadapted tuning.Reason  `json:"unadapted,omitempty"` // of the latest decision about actions

	// What its scheduler refused.
	NoRoom     bool            `json:"no_room,omitempty"`     // while it waits: it gets no more than its owner asked for
	RoomAt     time.Time       `json:"room_at,omitzero"`      // when to ask again for more room while it runs
	RoomFor    tuning.Settings `json:"room_for,omitempty"`    // the settings that found no room
	KeepMemory bool            `json:"keep_memory,omitempty"` // to lower its memory
}

// Story is what happened, in order.
type Story struct {
	History []Entry `json:"history,omitempty"`
	// Decided are the newest decisions with their states; Dropped counts the older ones.
	Decided []Decided `json:"decided,omitempty"`
	Dropped *Dropped  `json:"dropped,omitempty"`
}

// Run is one attempt as the tuner sees it.
type Run struct {
	Attempt  int             `json:"attempt"`
	Settings tuning.Settings `json:"settings"`
	Action   tuning.Action   `json:"action"`         // hold: the owner's own submission
	Node     string          `json:"node,omitempty"` // where it runs or ran, if the scheduler said so
	Unit     string          `json:"unit,omitempty"` // its id at the exporters; see driver.Attempt.Unit
	Intent   string          `json:"intent,omitempty"`
	Wait     time.Duration   `json:"wait,omitempty"` // the wait in the queue that the scheduler announced
	Read     bool            `json:"read,omitempty"` // its epochs are complete, and the exporter is not asked again
	// Joules are the most that its exporter counted for it, epochs or not; nil: unknown.
	Joules *tuning.Joules `json:"joules,omitempty"`
	Source string         `json:"source,omitempty"` // of Joules
	// CPU is the CPU time that its exporter counted, and CPUOver for how long, both in seconds.
	CPU     float64 `json:"cpu,omitempty"`
	CPUOver float64 `json:"cpu_over,omitempty"`
	// Suspended is how long the scheduler had it suspended, and Still are the spans of that time.
	// They never change in place.
	Suspended time.Duration `json:"stood,omitempty"`
	Still     []tuning.Span `json:"still,omitempty"`
}

// Intent is a decision on its way to the scheduler. It is durable before its
// first step, and after every step.
type Intent struct {
	Driver   driver.Intent   `json:"driver"`
	Decision tuning.Decision `json:"decision"`
	Step     driver.StepKind `json:"step,omitempty"`  // the last one; empty = none yet
	Tried    bool            `json:"tried,omitempty"` // the driver was called: there may be an effect
	Made     time.Time       `json:"made"`
	Wait     time.Duration   `json:"wait,omitempty"` // in the queue, as announced then
}

// AtStart reports whether the intent is for a job that has not begun.
func (i *Intent) AtStart() bool { return i.Driver.Attempt == 0 }

// Entry is one line of a job's history.
type Entry struct {
	At       time.Time        `json:"at"`
	From     Phase            `json:"from,omitempty"`
	To       Phase            `json:"to,omitempty"`
	Trigger  Trigger          `json:"trigger,omitempty"`
	Reason   tuning.Reason    `json:"reason,omitempty"`
	Detail   string           `json:"detail,omitempty"`
	Attempt  int              `json:"attempt,omitempty"`
	Decision *tuning.Decision `json:"decision,omitempty"`
	Class    *tuning.Class    `json:"class,omitempty"`
	Outcome  *tuning.Outcome  `json:"outcome,omitempty"`
}

// Clone is a copy with its own lists, maps and pointers. The copies share what these hold in
// turn, such as the settings of an epoch, since that is never written to.
func (r *Record) Clone() *Record {
	out := *r
	out.Policy.Knobs, out.Policy.Limits, out.Policy.Sources = slices.Clone(r.Policy.Knobs), slices.Clone(r.Policy.Limits), maps.Clone(r.Policy.Sources)
	out.Policy.Quality, out.Policy.Checkpoint = copied(r.Policy.Quality), copied(r.Policy.Checkpoint)
	out.Policy.Search, out.Policy.TrialOf = copied(r.Policy.Search), copied(r.Policy.TrialOf)
	out.Own, out.RoomFor = maps.Clone(r.Own), maps.Clone(r.RoomFor) // nil stays nil
	out.Attempts, out.Runs, out.Queued = slices.Clone(r.Attempts), slices.Clone(r.Runs), copied(r.Queued)
	out.Epochs, out.Profiles = slices.Clone(r.Epochs), maps.Clone(r.Profiles)
	out.Asked = copied(r.Asked)
	out.Class, out.Move, out.Outcome, out.Toll = copied(r.Class), copied(r.Move), copied(r.Outcome), copied(r.Toll)
	out.Cut, out.Earlier = slices.Clone(r.Cut), slices.Clone(r.Earlier)
	out.Harmed, out.Restarts, out.Probed = slices.Clone(r.Harmed), slices.Clone(r.Restarts), slices.Clone(r.Probed)
	out.Taken, out.Policy.Actions = slices.Clone(r.Taken), slices.Clone(r.Policy.Actions)
	out.RestartCosts, out.History = slices.Clone(r.RestartCosts), slices.Clone(r.History)
	out.Decided, out.Dropped = slices.Clone(r.Decided), copied(r.Dropped)
	return &out
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	out := *p
	return &out
}

// Settings are what the given attempt runs under.
func (r *Record) Settings(attempt int) tuning.Settings {
	for _, v := range slices.Backward(r.Runs) {
		if v.Attempt <= attempt || attempt == 0 {
			return v.Settings
		}
	}
	return r.Own
}

// Advice is the better setting that the newest decision named, or nil.
func (r *Record) Advice() tuning.Settings {
	for _, e := range slices.Backward(r.History) {
		if e.Decision != nil {
			return e.Decision.Advice
		}
	}
	return nil
}

// Node is where the given attempt runs or ran; empty = unknown.
func (r *Record) Node(attempt int) string { return r.run(attempt).Node }

func (r *Record) run(attempt int) Run {
	run, _ := tuning.First(r.Runs, func(run Run) bool { return run.Attempt == attempt })
	return run
}

// runOf points into the record until another attempt is added.
func (r *Record) runOf(attempt int) *Run {
	i := slices.IndexFunc(r.Runs, func(run Run) bool { return run.Attempt == attempt })
	if i < 0 {
		return nil
	}
	return &r.Runs[i]
}

// starved reports whether an attempt began since the one before ran out of memory under a tuned limit.
func (r *Record) starved(attempt int) bool {
	return slices.ContainsFunc(r.History, func(e Entry) bool {
		return e.Reason == tuning.ReasonOutOfMemory && e.Attempt == attempt
	})
}

// Restarted counts the restarts that tuning caused: moves, roll-backs and returns of memory.
// Only Restarts count towards budgets and caps.
func (r *Record) Restarted() int {
	return len(r.Restarts) + tuning.Count(r.Runs, func(x Run) bool { return r.starved(x.Attempt) })
}

func (r *Record) touched() bool {
	return slices.ContainsFunc(r.Runs, func(x Run) bool { return x.Action != tuning.Hold })
}

// Done is the number of epochs that ended, over all attempts.
func (r *Record) Done() int { return tuning.Done(r.Epochs) }

// used are the joules of its epochs and those outside them.
func (r *Record) used() []tuning.Epoch { return slices.Concat(r.Epochs, r.Outside()) }

// Outside has the joules that it used outside its Epochs, as when it started or saved its results: those of
// the earlier job file, and of each attempt what its exporter counted beyond its epochs.
func (r *Record) Outside() []tuning.Epoch {
	out, within := slices.Clone(r.Earlier), map[int]tuning.Joules{}
	for _, e := range slices.Concat(r.Earlier, r.Epochs) {
		if e.Joules != nil {
			within[e.Attempt] += *e.Joules
		}
	}
	for _, run := range r.Runs {
		if run.Joules != nil && *run.Joules > within[run.Attempt] {
			out = append(out, tuning.Epoch{Attempt: run.Attempt, Joules: new(*run.Joules - within[run.Attempt]), Source: run.Source})
		}
	}
	return out
}

// Joules is what its attempts used, as far as their exporters counted it, and at least the sum over the
// measured epochs; nil if any epoch lacks joules, or is missing. The source is modelled if that of any part is.
func (r *Record) Joules() (*tuning.Joules, string) {
	var sum tuning.Joules
	source := ""
	for _, e := range r.used() {
		if e.Joules == nil {
			return nil, ""
		}
		sum += *e.Joules
		if !tuning.IsModelled(source) {
			source = e.Source
		}
	}
	if len(r.Epochs) == 0 || !tuning.Unbroken(r.Epochs) {
		return nil, ""
	}
	return &sum, source
}

// SpentJoules is a lower bound of what the job has used, for its budget: as Joules, without the
// epochs that have none. Modelled joules are added to measured ones only if modelled is
// true; without measured ones they are returned with their source. Nil: there are none.
func (r *Record) SpentJoules(modelled bool) (*tuning.Joules, string) {
	sums, sources := map[bool]tuning.Joules{}, map[bool]string{} // by whether they are modelled
	for _, e := range r.used() {
		if e.Joules != nil {
			modelled := tuning.IsModelled(e.Source)
			sums[modelled] += *e.Joules
			sources[modelled] = e.Source
		}
	}
	only := sources[false] == "" // modelled ones
	switch {
	case only && sources[true] == "":
		return nil, ""
	case !only && modelled:
		sums[false] += sums[true]
	}
	return new(sums[only]), sources[only]
}

// Recalled reports whether the job started under another setting than its owner's. Memory
// alone does not count: it changes only what is reserved.
func (r *Record) Recalled() bool {
	first := r.runOf(1)
	if first == nil || first.Action == tuning.Hold {
		return false
	}
	return slices.ContainsFunc(r.Own.Diff(first.Settings), func(knob string) bool { return knob != tuning.Memory })
}

func (r *Record) regressed() bool { return r.Outcome != nil && r.Outcome.Verdict == tuning.Regressed }

// harmful reports whether a move that was expected to help made the job worse. A try may turn
// out worse, and its loss is bounded. A job that was worse than other runs may have had
// another input.
func (r *Record) harmful() bool {
	if !r.regressed() || r.Trying() || r.Outcome.Runs > 0 {
		return false
	}
	tried := slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Action == tuning.Probe && run.Settings.Equal(r.Outcome.Tuned)
	})
	return !tried || r.Outcome.Reason != tuning.ReasonStopLoss && r.Outcome.Reason != tuning.ReasonSlower
}

// Because is why the job is left as it is now.
func (r *Record) Because() tuning.Reason {
	if r.Unreachable && !r.Phase.Over() {
		return tuning.ReasonUnreachable
	}
	if (!r.Phase.Over() || r.State == driver.Succeeded) && r.starved(tuning.Last(r.Runs).Attempt) {
		return tuning.ReasonOutOfMemory
	}
	return r.Reason
}

// NeedsAttention reports whether our handling of the job failed, or its scheduler does not
// answer.
func (r *Record) NeedsAttention() bool {
	if r.Phase != Settled {
		return r.Unreachable
	}
	for _, e := range slices.Backward(r.History) {
		if e.To != "" && e.To != Settled {
			break
		}
		if e.Trigger == OurFailure {
			return true
		}
	}
	return r.Unreachable
}

// Rest returns the part of an old record that is kept.
func (r *Record) Rest() *Record {
	return &Record{
		Identity: Identity{Job: r.Job, Name: r.Name, Owner: r.Owner, Kind: r.Kind, Fingerprint: r.Fingerprint, Submitted: r.Submitted, Requested: r.Requested},
		Phase:    r.Phase,
		Reason:   r.Reason,
		Learned:  r.Learned,
		Pruned:   true,
		Course:   Course{State: r.State, Started: r.Started, Ended: r.OverAt()},
		Request:  Request{Control: r.Control},
	}
}

// OverAt is the time of the newest entry of the history.
func (r *Record) OverAt() time.Time {
	if n := len(r.History); n > 0 {
		return r.History[n-1].At
	}
	return r.Ended
}

func (r *Record) to(at time.Time, to Phase, by Trigger, e Entry) error {
	if !slices.Contains(Arrows(), Arrow{r.Phase, to, by}) {
		return fmt.Errorf("%s → %s by %q: %w", r.Phase, to, by, ErrTransition)
	}
	e.At, e.From, e.To, e.Trigger = at, r.Phase, to, by
	r.Phase = to
	if e.Reason != tuning.ReasonNone {
		r.Reason = e.Reason
	}
	if e.Detail != "" {
		r.Detail = e.Detail
	}
	r.History = append(r.History, e)
	return nil
}
