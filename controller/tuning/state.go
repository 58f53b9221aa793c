package tuning

import "time"

// State is everything the planner may look at. The same State gives the same Decision.
type State struct {
	Now    time.Time `json:"now"`
	Policy Policy    `json:"policy"` // already narrowed by the site
	Site   Site      `json:"site"`
	Gate   Reason    `json:"gate"` // why nothing may be done now (paused, off, a cap, …); ReasonNone = open

	Standing
	RestartOutlook
	Findings
	Knowledge
	Proposal

	Returns *Returns `json:"returns,omitempty"` // of a pending job: what earlier runs of its kind say; nil = unknown
}

// Standing is where the job is, and what it has used up.
type Standing struct {
	Own     Settings `json:"own"`     // what the owner asked for
	Current Settings `json:"current"` // what the present attempt runs under
	Pending bool     `json:"pending"` // not started yet

	EpochsDone   int           `json:"epochs_done"`
	EpochsTotal  int           `json:"epochs_total"`  // 0 = unknown
	EpochSeconds float64       `json:"epoch_seconds"` // mean under the owner's settings where measured, else the present ones; 0 = unknown
	Elapsed      time.Duration `json:"elapsed"`       // over all attempts
	Joules       *Joules       `json:"joules,omitempty"`
	JoulesSource string        `json:"joules_source,omitempty"`
	LimitLeft    time.Duration `json:"limit_left"`      // until the time limit of the attempt, of a pending job all of it; 0 = none
	Restarts     int           `json:"restarts"`        // moves and roll-backs so far
	Probes       int           `json:"probes"`          // probes so far
	ProbeEpochs  int           `json:"probe_epochs"`    // epochs that ran under probes
	Saved        bool          `json:"saved,omitempty"` // the present attempt began from a checkpoint
}

// RestartOutlook is what a restart would cost now.
type RestartOutlook struct {
	RestartCost time.Duration `json:"restart_cost"`        // measured, else estimated; without the wait in the queue
	Wait        time.Duration `json:"wait,omitempty"`      // in the queue; 0 = none, or unknown
	Crowded     string        `json:"crowded,omitempty"`   // why the wait is unknown although others queue; empty = none is known to
	ClosedIn    time.Duration `json:"closed_in,omitempty"` // until a reservation or maintenance takes the job's nodes; 0 = none planned
	ClosedBy    string        `json:"closed_by,omitempty"`
}

// Findings are what the job itself has shown.
type Findings struct {
	Measured Reason   `json:"measured"` // ReasonNone when the present attempt is profiled; else what is missing
	Class    *Class   `json:"class,omitempty"`
	Trials   []Trial  `json:"trials,omitempty"`
	Profile  *Profile `json:"profile,omitempty"` // of its first epochs, of its kind's where it was not measured untuned; nil: none

	// Refused is why the owner would not accept the present setting, as far as
	// its trial shows: ReasonQualityLost, ReasonSlower, or ReasonNone.
	Refused Reason   `json:"refused,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"` // of the last move, as far as measured

	// Toll is what tuning cost so far; nil: nothing, or what an epoch takes untuned is
	// unknown.
	Toll *Toll `json:"toll,omitempty"`

	// Forecast is what is left of it. Nil: none was made, and what is left is Remaining,
	// without an interval.
	Forecast *Forecast `json:"forecast,omitempty"`
}

// Knowledge is what earlier jobs taught.
type Knowledge struct {
	KindEffects  []Effect   `json:"kind_effects,omitempty"`  // of jobs of the same kind
	ClassEffects []Effect   `json:"class_effects,omitempty"` // of jobs of the same class, system knobs only
	Carried      []Effect   `json:"carried,omitempty"`       // of the same kind, whose owner asked for other cores then
	Regressed    []Settings `json:"regressed,omitempty"`     // remembered to have made this kind worse

	// KindSeconds is the median of the seconds per epoch that jobs of this kind took
	// under the very settings Own, over KindRuns runs; 0 = none ran so. Another input
	// may be larger, so it raises a doubt and supports no verdict.
	KindSeconds float64 `json:"kind_seconds,omitempty"`
	KindRuns    int     `json:"kind_runs,omitempty"`
	PeakRSS     Bytes   `json:"peak_rss,omitempty"`    // largest seen in jobs of this kind; 0 = unknown
	PeakRuns    int     `json:"peak_runs,omitempty"`   // jobs of this kind in which it was seen
	MemoryHeld  bool    `json:"memory_held,omitempty"` // it keeps its memory: one of them died lately under tuned settings, or its scheduler refused less
}

// Proposal is what the search would do with the job.
type Proposal struct {
	Next       Settings   `json:"next,omitempty"`        // to be tried, where NextReason is ReasonNone
	NextReason Reason     `json:"next_reason,omitempty"` // why nothing is
	Candidates []Settings `json:"candidates,omitempty"`  // that may be tried
	Best       *Trial     `json:"best,omitempty"`        // the best trial of this job, the owner's own included; nil: none was measured
	BestGain   float64    `json:"best_gain"`             // its log ratio to the owner's own, shrunk for selection
	BestError  float64    `json:"best_error"`            // standard error of BestGain
}

// Remaining is the work that is left, in seconds; 0: unknown.
func (s State) Remaining() float64 {
	return max(0, float64(s.EpochsTotal-s.EpochsDone)*s.EpochSeconds)
}

// End is how a run of a job came to its end.
type End string

// The ends. Records of older versions have none, which is EndUnknown.
const (
	EndUnknown End = ""        // not recorded
	EndReached End = "reached" // it did all of its work
	EndFailed  End = "failed"  // it could not run under its settings
	EndCut     End = "cut"     // it was cancelled, lost, out of time, or failed by itself
)

// PastRun is one earlier run of a kind of job.
type PastRun struct {
	Job     string   `json:"job"`
	Machine string   `json:"machine,omitempty"` // kind of machine that it ran on; empty = not known
	Began   Settings `json:"began,omitempty"`   // what its first attempt ran under; empty = not known
	Trying  bool     `json:"trying,omitempty"`  // it began under a setting that was to be tried
	Trials  []Trial  `json:"trials,omitempty"`  // one per setting that it ran under, without disturbed epochs
	Epochs  int      `json:"epochs,omitempty"`  // that it did in all; 0 = not known
	End     End      `json:"end,omitempty"`
	Quality *float64 `json:"quality,omitempty"` // that it ended with; nil = not known
	Reached *Reached `json:"reached,omitempty"` // when it reached its target; nil = it had none
	Age     float64  `json:"age,omitempty"`     // days since it ended
}

// Reached is when a run reached the target of its quality.
type Reached struct {
	Target float64 `json:"target"`
	Epochs int     `json:"epochs"` // after which it was first reached; 0 = it never was
}

// Returns is what the earlier runs of a kind of job say about the next one.
type Returns struct {
	Runs  int `json:"runs"`  // earlier runs that were measured
	Spent int `json:"spent"` // returns that tried a setting so far, those under way included

	// Next is the setting that this return would try, complete, and Reason
	// ReasonNone; or none, and why.
	Next   Settings `json:"next,omitempty"`
	Reason Reason   `json:"reason,omitempty"`
	// Again is how many earlier runs had the setting: it looks better, and is not
	// known to be.
	Again int `json:"again,omitempty"`
	// Expected and Error are the mean and the standard error of its log ratio to the
	// owner's own settings, per run.
	Expected float64 `json:"expected"`
	Error    float64 `json:"error"`
	// Between is by how much runs under one setting differ, as a standard deviation of
	// logarithms: inputs differ, and neighbours.
	Between float64 `json:"between,omitempty"`

	// Ends are the earlier runs under the owner's own hyperparameters that showed the quality
	// which they end with, and EndsNeeded is how many it takes before others are tried; 0:
	// no hyperparameter is searched.
	Ends       int `json:"ends,omitempty"`
	EndsNeeded int `json:"ends_needed,omitempty"`

	Best *Effect `json:"best,omitempty"` // the setting that is known to be better than the owner's own; nil: none

	// Seen is what whole runs showed of the settings of system knobs that they ran under,
	// clear or not, and Longest is how many seconds the epochs of the longest run under the
	// owner's own took; 0 = unknown.
	Seen    []Effect `json:"seen,omitempty"`
	Longest float64  `json:"longest,omitempty"`
}
