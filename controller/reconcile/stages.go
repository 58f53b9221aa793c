package reconcile

import (
	"context"
	"errors"
	"time"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
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
	tuning.Knowledge
	Profile     *tuning.Profile // the newest of the kind under its owner's settings; nil: none
	RestartCost time.Duration   // mean of those measured; 0 = none yet
	Reference   *tuning.Trial   // what the newest untuned job of the kind measured; nil: none did
}

// Services are what the loop asks of the world outside the pure stages: job files,
// exporters, the knowledge, the scheduler and the audit.
type Services struct {
	Read    func(ctx context.Context, job driver.Job) Reading
	Site    func(job driver.Job) tuning.Site
	Measure func(ctx context.Context, r MeasureRequest) (Measurement, error)
	// Listen starts the listener inside a running attempt; nil: the scheduler does so
	// itself. driver.ErrUnsupported: it never can.
	Listen   func(ctx context.Context, id driver.JobID, attempt int, p tuning.Progress) error
	Classify func(p tuning.Profile) tuning.Class
	Recall   func(ctx context.Context, q Question) (Recollection, error)
	// Past are the earlier runs of a kind; nil: no setting is tried as a whole run.
	Past func(ctx context.Context, kind tuning.JobKind) ([]tuning.PastRun, error)
	// Curves are what forecasts of ended jobs of a kind were worth; nil: unknown.
	Curves func(ctx context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error)
	Step   func(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error)
	// Learn keeps what a job taught that last ran on a node; empty = unknown.
	Learn func(ctx context.Context, o knowledge.Observation, node string) error
	// Gate is why nothing may be done to a job now, such as a pause.
	Gate func(job driver.Job) tuning.Reason
	// Outlook is asked only when a running job is about to be changed.
	Outlook func(ctx context.Context, id driver.JobID) (driver.Outlook, error)
	Pause   func(ctx context.Context, why string) error
	// Cleared is when the tuner last paused itself or was resumed: regressions before it
	// no longer count. Zero: never.
	Cleared func() time.Time
	Audit   func(ctx context.Context, a Audit) error
	// Offers keeps what jobs may begin with that are about to be submitted; nil: they
	// begin as their owners wrote them.
	Offers Offers
}

// Stages are the pure stages that propose, forecast, judge and decide. DefaultStages are
// the product's.
type Stages struct {
	Propose  func(s search.Study) tuning.Proposal
	Refused  func(p tuning.Policy, trials []tuning.Trial, s tuning.Settings) tuning.Reason
	Return   func(r search.Returning) tuning.Returns
	Breaks   func(r search.Returning, s tuning.Settings) bool
	Stands   func(r search.Returning, s tuning.Settings) (tuning.Outcome, bool)
	Forecast func(w forecast.Work) tuning.Forecast
	Teach    func(w forecast.Work) []tuning.CurveLesson
	Choose   func(s tuning.State) tuning.Decision
	Explain  func(s tuning.State, d tuning.Decision) tuning.Decision
	Compare  func(in verify.Input) tuning.Outcome
}

// DefaultStages are those of the packages that they are named after.
func DefaultStages() Stages {
	return Stages{
		Propose: search.Study.Propose, Refused: search.Refused,
		Return: search.Returning.Propose, Breaks: search.Returning.Breaks, Stands: search.Returning.Stands,
		Forecast: forecast.Left, Teach: forecast.Work.Teach,
		Choose: plan.Choose, Explain: plan.Explain,
		Compare: verify.Compare,
	}
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
