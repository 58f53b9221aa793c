package reconcile

import (
	"context"
	"errors"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ErrNoRecord means that the job has not been seen before.
var ErrNoRecord = errors.New("no record of this job")

// Records is where the stories are kept. Save is durable when it returns.
type Records interface {
	Load(ctx context.Context, id driver.JobID) (*Record, error) // ErrNoRecord
	Save(ctx context.Context, r *Record) error
	// All are for what is counted and told across jobs: their epochs and profiles
	// may be left out, and nobody may change them.
	All(ctx context.Context) ([]*Record, error)
}

// Reading is what a job file says to the tuner.
type Reading struct {
	Policy tuning.Policy
	Own    tuning.Settings
	Kind   tuning.JobKind
	Reason tuning.Reason // ReasonNoStanza or ReasonBadStanza where there is no policy
	Detail string        // the errors of a bad stanza
}

// Measurement is what the exporter knows of one attempt.
type Measurement struct {
	Epochs  []tuning.Epoch
	Total   int            // epochs in all, as the job says; 0 unknown
	Profile tuning.Profile // of its early epochs
	Peak    tuning.Bytes   // largest resident memory of the whole attempt; 0 unknown
	Reason  tuning.Reason  // ReasonNone: the profile can be used
	Ended   bool           // the exporter has seen its end: no more epochs come
}

// MeasureRequest names what to measure.
type MeasureRequest struct {
	Job     driver.JobID
	Attempt int
	Alias   string // by which exporters know the job; empty = by its id
	Unit    string // by which exporters know the attempt, as the first of that id; empty = by job and number
	Node    string // where the attempt runs or ran; empty = not known
	// From and To bound an attempt that shares its unit with the one before or behind it,
	// by the node's clock; zero: nothing does.
	From, To time.Time
	Still    []tuning.Span // in which its scheduler had it stand still
	Settings tuning.Settings
	Policy   tuning.Policy
	Allowed  Allowance
}

// Question is what the knowledge is asked.
type Question struct {
	Kind   tuning.JobKind
	Class  *tuning.Class // nil = not classified
	Own    tuning.Settings
	Policy tuning.Policy
	Site   tuning.Site
	Node   string          // where the job runs; empty = that is open
	Live   *tuning.Profile // of a run of the kind that goes on, under its owner's settings; nil: none
}

// Recollection is what the knowledge says about a job.
type Recollection struct {
	KindEffects  []tuning.Effect
	Carried      []tuning.Effect // of the kind, against other settings of its owner
	ClassEffects []tuning.Effect
	Regressed    []tuning.Settings
	PeakRSS      tuning.Bytes
	PeakRuns     int
	MemoryHeld   bool            // a job of the kind died lately under tuned settings, memory among them
	Profile      *tuning.Profile // the newest of the kind under its owner's settings; nil: none
	RestartCost  time.Duration   // mean of those measured; 0 = none yet
	Reference    *tuning.Trial   // what the newest untuned job of the kind measured; nil: none did

	// KindSeconds is the median of the seconds per epoch of earlier jobs of the kind
	// under the very settings Own, over KindRuns of them.
	KindSeconds float64
	KindRuns    int
}

// Final is the quality that a job reached in the end.
type Final struct {
	Settings tuning.Settings // the hyperparameters, the same in all attempts
	Epochs   int             // in all
	Quality  float64
}

// Lesson is what a job taught.
type Lesson struct {
	Job         string
	Submitted   time.Time // tells jobs of one id apart where a scheduler counts anew
	Owner       string
	Kind        tuning.JobKind
	Profiles    []tuning.Profile // one per setting that was profiled
	Trials      []tuning.Trial
	Outcome     *tuning.Outcome
	Regressed   []tuning.Settings
	Peak        tuning.Bytes
	RestartCost []time.Duration
	Final       *Final               // nil: it did not end well, or its hyperparameters changed on the way
	Reached     *tuning.Reached      // when it reached the target of its quality; nil: it had none, or it is unknown
	Curve       []tuning.CurveLesson // what forecasts of its loss or quality were worth; empty where Final would be nil
	Polluted    bool                 // others disturbed most of its epochs
	Node        string               // where its last attempt ran; empty = not known
	At          time.Time

	Began  tuning.Settings // what its first attempt ran under; empty = it did not run
	Trying bool            // to see what that brings
	Epochs int             // that it did in all; 0 = not known
	End    tuning.End
	Toll   *tuning.Toll // nil: it was not tuned, or that is unknown
}

// ProposeRequest is what the search is asked.
type ProposeRequest struct {
	Policy tuning.Policy
	Own    tuning.Settings
	Trials []tuning.Trial
	Avoid  []tuning.Settings // that made this job or its kind worse
}

// Proposal is what the search would do with a job.
type Proposal struct {
	Next   tuning.Settings
	All    []tuning.Settings // that may be tried
	Reason tuning.Reason     // ReasonNone: Next is to be tried
	Best   *tuning.Trial
	Gain   float64 // its log ratio to the owner's own, shrunk for the choice among many
	GainSE float64
}

// Comparison is what the verifier compares.
type Comparison struct {
	Policy     tuning.Policy
	Site       tuning.Site
	Before     []tuning.Epoch // under the owner's own settings
	After      []tuning.Epoch // under the tuned ones, none of which chose them
	Own, Tuned tuning.Settings
	Tried      int // settings that were compared with Before when this one was chosen
	Now        time.Time
}

// Stages are the rooms on the way, as far as the loop knows them.
type Stages struct {
	Read    func(ctx context.Context, job driver.Job) Reading
	Site    func(job driver.Job) tuning.Site
	Measure func(ctx context.Context, r MeasureRequest) (Measurement, error)
	// Listen starts the listener inside a running attempt, where the scheduler does
	// not do so by itself; nil where it does. driver.ErrUnsupported: never.
	Listen   func(ctx context.Context, id driver.JobID, attempt int, p tuning.Progress) error
	Classify func(p tuning.Profile) tuning.Class
	Recall   func(ctx context.Context, q Question) (Recollection, error)
	Propose  func(q ProposeRequest) Proposal
	// Past and Return are asked for a job that has not started; nil: it is given what its
	// kind is known for and nothing is tried.
	Past   func(ctx context.Context, kind tuning.JobKind) ([]tuning.PastRun, error)
	Return func(q ReturnRequest) tuning.Returns
	// Breaks reports whether the past runs show that what such jobs end with under the
	// hyperparameters of s is worse than the guard allows; nil: not checked.
	Breaks func(q ReturnRequest, s tuning.Settings) bool
	// Stands compares the past runs under the settings s with those under the owner's; false:
	// there are none of both. Nil: not checked.
	Stands func(q ReturnRequest, s tuning.Settings) (tuning.Outcome, bool)

	Forecast func(q ForecastRequest) tuning.Forecast // nil: what is left has no interval
	// Curves are what forecasts of ended jobs of a kind were worth, and Teach is what
	// those of a job that has ended were; nil: nothing is learned about forecasts.
	Curves   func(ctx context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error)
	Teach    func(q ForecastRequest) []tuning.CurveLesson
	Refused  func(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason
	Choose   func(s tuning.State) tuning.Decision // Decide without all that was considered
	Decide   func(s tuning.State) tuning.Decision
	Unlikely func(s tuning.State) func(tuning.Settings) bool // nil: nothing is
	Waits    func(r tuning.Reason) bool
	Intent   func(id string, job driver.Job, p tuning.Policy, own, target tuning.Settings, note string) (driver.Intent, error)
	Settings func(p tuning.Policy, own tuning.Settings, c driver.Change) tuning.Settings
	Step     func(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error)
	Compare  func(c Comparison) tuning.Outcome
	Learn    func(ctx context.Context, l Lesson) error
	Gate     func(job driver.Job) tuning.Reason // paused, and by whom it may be asked
	// Outlook is asked only when a running job is about to be acted upon.
	Outlook func(ctx context.Context, id driver.JobID) (driver.Outlook, error)
	Pause   func(ctx context.Context, why string) error
	// Cleared is when the tuner last paused itself, or when that pause was lifted:
	// regressions before it count no more. Zero: never.
	Cleared func() time.Time
	Audit   func(ctx context.Context, a Audit) error
	// Offers keeps what jobs may begin with that are about to be submitted; nil: they
	// begin as their owners wrote them.
	Offers Offers
}

// Audit is one line of the append-only audit.
type Audit struct {
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"` // tuner, or the user who asked
	Job    string          `json:"job"`
	Action string          `json:"action"`
	Before tuning.Settings `json:"before,omitempty"`
	After  tuning.Settings `json:"after,omitempty"`
	Reason tuning.Reason   `json:"reason,omitempty"`
	Intent string          `json:"intent,omitempty"`
}
