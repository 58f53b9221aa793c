package tuning

import (
	"math"
	"time"
)

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

	Allotted   Settings    `json:"allotted,omitempty"`   // what it gets among the elastic jobs; nil = it is decided about alone
	Adaptation *Adaptation `json:"adaptation,omitempty"` // nil: the question is not about actions

	Returns *Returns `json:"returns,omitempty"` // of a pending job: what earlier runs of its kind say; nil = unknown
}

// Standing is where the job is, and what it has used up.
type Standing struct {
	Own     Settings `json:"own"`     // what the owner asked for
	Current Settings `json:"current"` // what the present attempt runs under
	Pending bool     `json:"pending"` // not started yet

	EpochsDone   int           `json:"epochs_done"`
	EpochsTotal  int           `json:"epochs_total"`            // 0 = unknown
	EpochsLikely float64       `json:"epochs_likely,omitempty"` // that it still runs, where it may be ended early; 0 = all
	EpochSeconds float64       `json:"epoch_seconds"`           // mean under the owner's settings where measured, else the present ones; 0 = unknown
	Elapsed      time.Duration `json:"elapsed"`                 // over all attempts
	Joules       *Joules       `json:"joules,omitempty"`
	JoulesSource string        `json:"joules_source,omitempty"`
	LimitLeft    time.Duration `json:"limit_left"`              // until the time limit of the attempt, of a pending job all of it; 0 = none
	Restarts     int           `json:"restarts"`                // moves and roll-backs so far
	Probes       int           `json:"probes"`                  // probes so far
	SearchProbes int           `json:"search_probes,omitempty"` // of all trials of its search
	ProbeEpochs  int           `json:"probe_epochs"`            // epochs that ran under probes
	Saved        bool          `json:"saved,omitempty"`         // the present attempt began from a checkpoint
	Observed     string        `json:"observed,omitempty"`      // why its scheduler's driver never changes it; empty: it may
	NoRequeue    bool          `json:"no_requeue,omitempty"`    // its owner forbids restarts
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
	Measured Reason   `json:"measured"`        // ReasonNone when the present attempt is profiled; else what is missing
	Fatal    bool     `json:"fatal,omitempty"` // the signal of its checkpoint would end the job, as its processes are now
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
	PeakRSS     Bytes   `json:"peak_rss,omitempty"`     // largest seen in jobs of this kind; 0 = unknown
	PeakRuns    int     `json:"peak_runs,omitempty"`    // jobs of this kind in which all that they needed was seen
	MemoryHeld  bool    `json:"memory_held,omitempty"`  // it keeps its memory: one of them lately died for lack of memory or under tuned settings, or its scheduler refused less
	RestartsEnd bool    `json:"restarts_end,omitempty"` // a restart by tuning lately ended one of them
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
	EndMemory  End = "memory"  // it was killed for memory under its owner's limit
	EndCut     End = "cut"     // it was cancelled, lost, out of time, or failed by itself
)

// PastRun is one earlier run of a kind of job.
type PastRun struct {
	Job     string   `json:"job"`
	Search  string   `json:"search,omitempty"`  // that it was a trial of; empty: of none
	Machine string   `json:"machine,omitempty"` // kind of machine that it ran on; empty = not known
	Began   Settings `json:"began,omitempty"`   // what its first attempt ran under; empty = not known
	Trying  bool     `json:"trying,omitempty"`  // it began under a setting that was to be tried
	Trials  []Trial  `json:"trials,omitempty"`  // one per setting that it ran under, without disturbed epochs
	Epochs  int      `json:"epochs,omitempty"`  // that it did in all; 0 = not known
	End     End      `json:"end,omitempty"`
	Quality *float64 `json:"quality,omitempty"` // that it ended with; nil = not known
	Reached *Reached `json:"reached,omitempty"` // when it reached its target; nil = it had none
	Age     float64  `json:"age,omitempty"`     // days since it ended
	Adapted *Adapted `json:"adapted,omitempty"` // nil: it could take no actions
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

	// Of a trial of a search: what others try now, and how many more may try, see Policy.Part.
	Underway []Settings `json:"underway,omitempty"`
	Room     float64    `json:"room,omitzero"`

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
	// Between is how much runs under one setting differ, as a standard deviation of logarithms:
	// inputs differ, and neighbours.
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

// Action is what a Decision does.
type Action string

// The actions.
const (
	Hold     Action = "hold"      // leave the job as it is
	Probe    Action = "probe"     // run the next epochs under a setting to learn its effect
	Move     Action = "move"      // run the rest under a better setting
	RollBack Action = "roll-back" // return to the owner's own settings
	Adapt    Action = "adapt"     // make the running job take an action that it offers; Settings counts all that it is to have taken
)

// Evidence is one number or word behind a decision, in the order in which a reader needs them.
type Evidence struct {
	Name  string  `json:"name"` // lower_snake, with the unit as suffix where it has one
	Value float64 `json:"value,omitempty"`
	Text  string  `json:"text,omitempty"`
}

// Decision is what the planner wants, and why.
type Decision struct {
	Action   Action     `json:"action"`
	Reason   Reason     `json:"reason"`
	Settings Settings   `json:"settings,omitempty"` // complete target settings; empty for Hold
	Advice   Settings   `json:"advice,omitempty"`   // what would be better, where the mode or a guard forbids doing it
	Evidence []Evidence `json:"evidence,omitempty"`
	At       time.Time  `json:"at"`
	// Discard ends the attempt without asking it to save: the job goes on from its last
	// checkpoint, and what it did since is done again.
	Discard bool `json:"discard,omitempty"`

	// What was known and considered, in full.
	Class        *Class          `json:"class,omitempty"`
	Forecast     *Forecast       `json:"forecast,omitempty"`
	Prices       *Prices         `json:"prices,omitempty"`
	Alternatives []Alternative   `json:"alternatives,omitempty"`
	Budgets      []BudgetOutlook `json:"budgets,omitempty"`
}

// Trial is one setting and what was measured under it, in one job.
type Trial struct {
	Settings  Settings `json:"settings"`
	Epochs    int      `json:"epochs"`              // epochs measured, warm-up and polluted ones left out
	Disturbed int      `json:"disturbed,omitempty"` // further epochs that make it worse, see TrialsOf
	Seconds   float64  `json:"seconds"`             // mean per epoch
	SDLog     float64  `json:"sd_log"`              // standard deviation of ln(seconds) over its epochs
	Trend     float64  `json:"-"`                   // what the job's own trend made of ln(seconds), which is taken out of Seconds
	TrendSD   float64  `json:"trend_sd,omitempty"`  // of ln(seconds), by what is unknown of the job's own trend since the reference
	Joules    *Joules  `json:"joules,omitempty"`    // mean per epoch; nil: not measured
	Source    string   `json:"source,omitempty"`
	Quality   *float64 `json:"quality,omitempty"`
	QualityOf int      `json:"quality_of,omitempty"` // the number of the last epoch, which Quality is of; 0 = unknown
	Reference bool     `json:"reference,omitempty"`  // the owner's own settings
	Failed    bool     `json:"failed,omitempty"`     // the job could not run under it
}

// Effect is what a setting does compared with the owner's own: paired log ratios per epoch.
type Effect struct {
	Settings Settings `json:"settings"`          // knobs that it speaks about, only
	From     Settings `json:"from,omitempty"`    // what they were compared with; nil: the owner's own
	LogRatio float64  `json:"log_ratio"`         // negative is better
	SD       float64  `json:"sd"`                // standard deviation between runs
	Apart    float64  `json:"apart,omitzero"`    // standard error of its difference here, where the epochs of the runs did other work
	LogTime  float64  `json:"log_time"`          // of the seconds alone, for max_slowdown
	Runs     int      `json:"runs"`              // jobs that it was measured in
	Age      float64  `json:"age"`               // days since the newest
	Between  bool     `json:"between,omitempty"` // only a hint: the epoch times of two runs, which may have done other work
}

// halfLife is how many days it takes until an effect counts as if half of its runs were gone:
// machines, libraries and inputs drift.
const halfLife = 90

// WornOut is after how many days a run counts for nothing, as to Error.
const WornOut = 10 * halfLife

// Fresh is how many runs of today an effect is worth.
func (e Effect) Fresh() float64 { return float64(e.Runs) * Aged(e.Age) }

// Error is the standard error of an effect, for a job that differs from others by so much: more with age.
func (e Effect) Error(between float64) float64 {
	return math.Hypot(math.Hypot(e.SD, between)/math.Sqrt(max(e.Fresh(), 1e-3)), e.Apart)
}

// Aged is what a run counts that ended so many days ago: 1 today.
func Aged(days float64) float64 { return math.Exp2(-max(days, 0) / halfLife) }

// Verdict is what a comparison says.
type Verdict string

// The verdicts.
const (
	Improved     Verdict = "improved"
	Neutral      Verdict = "neutral"
	Regressed    Verdict = "regressed"
	Inconclusive Verdict = "inconclusive"
)

// Outcome is what a change brought, tuned against untuned, at equal work. LogRatio, Low and High
// are natural logs; below 0 is better. The interval holds at whatever time it is looked at.
type Outcome struct {
	Verdict  Verdict   `json:"verdict"`
	Reason   Reason    `json:"reason"`
	Measure  Objective `json:"measure"`
	LogRatio float64   `json:"log_ratio"`
	Low      float64   `json:"low"`
	High     float64   `json:"high"`
	Level    float64   `json:"level"` // such as 0.95
	Pairs    int       `json:"pairs"`
	Runs     int       `json:"runs,omitempty"`   // whole runs under Tuned, this one included, that were compared with those under Baseline; 0: epochs of this job were
	Source   string    `json:"source,omitempty"` // of the joules, where the measure has any
	// NoEnergy: the measure is Cost, and the energy that has a price is left out on both
	// sides, since it was not measured on both.
	NoEnergy bool      `json:"no_energy,omitempty"`
	Baseline Settings  `json:"baseline"`
	Tuned    Settings  `json:"tuned"`
	At       time.Time `json:"at"`
}
