package tuning

// Estimate is a number with an interval that holds it four times out of five.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Exactly is an Estimate without doubt.
func Exactly(v float64) Estimate { return Estimate{v, v, v} }

// Times is the estimate of so many times as much; factor is at least 0.
func (e Estimate) Times(factor float64) Estimate {
	return Estimate{e.Value * factor, e.Low * factor, e.High * factor}
}

// IsFinite reports whether all three are numbers that can be stored.
func (e Estimate) IsFinite() bool {
	return Finite(e.Value) && Finite(e.Low) && Finite(e.High)
}

// Basis says what a forecast rests on.
type Basis string

// The bases.
const (
	BasisOwn     Basis = "own-epochs"     // epochs of this job under its owner's settings
	BasisPresent Basis = "present-epochs" // epochs of this job under the present settings
	BasisKind    Basis = "kind"           // the newest untuned job of its kind
)

// Forecast is what is left of a job, were it done under Settings. nil: unknown, which is not zero.
type Forecast struct {
	Reason   Reason   `json:"reason,omitempty"` // why nothing is known; ReasonNone: it is
	Basis    Basis    `json:"basis,omitempty"`
	Measured int      `json:"measured,omitempty"` // epochs that it rests on
	Settings Settings `json:"settings,omitempty"`

	Epochs  *Estimate `json:"epochs,omitempty"`
	Seconds *Estimate `json:"seconds,omitempty"`
	Joules  *Estimate `json:"joules,omitempty"`

	// Spent are the joules of the epochs that ended: at least those measured, and at
	// most those that the epochs without a measurement may have used besides.
	Spent        *Estimate `json:"spent_joules,omitempty"`
	JoulesSource string    `json:"joules_source,omitempty"` // of Joules and Spent

	Final   *Estimate `json:"final,omitempty"`    // the loss or quality (FinalOf) that its curve leads to in its last epoch
	FinalOf string    `json:"final_of,omitempty"` // loss or quality
}

// IsKnown reports whether the forecast says how long the job will take.
func (f *Forecast) IsKnown() bool {
	return f != nil && f.Reason == ReasonNone && f.Epochs != nil && f.Seconds != nil
}

// Alternative is one setting that was considered, and why it was not taken.
type Alternative struct {
	Settings Settings `json:"settings"`
	From     Origin   `json:"from"`
	Taken    bool     `json:"taken,omitempty"`
	Reason   Reason   `json:"reason"` // why it was taken, or why not

	// Rest is what the rest of the job would cost under it, and Saving how much less
	// that is than under the present setting, in Prices.Unit; nil: not known.
	Rest   *Estimate `json:"rest,omitempty"`
	Saving *Estimate `json:"saving,omitempty"`
}

// Origin says where a setting that is considered comes from.
type Origin string

// The origins.
const (
	OriginPresent Origin = "present" // what the job runs under
	OriginOwner   Origin = "owner"   // what its owner asked for
	OriginTried   Origin = "tried"   // this job tried it
	OriginKind    Origin = "kind"    // jobs of its kind taught it
	OriginClass   Origin = "class"   // jobs of its class taught it
	OriginSearch  Origin = "search"  // unknown yet: it would be probed
)

// Prices are what a change of a running job is held against.
type Prices struct {
	Unit    string  `json:"unit"`              // of all: seconds, joules, epochs (under the owner's settings), or that of the tariff
	Restart float64 `json:"restart"`           // of one restart: checkpoint, stop, start
	Queue   float64 `json:"queue,omitempty"`   // of the wait for it
	Explore float64 `json:"explore,omitempty"` // what the epochs of a probe are expected to lose
	Margin  float64 `json:"margin"`            // the saving must be this many times the price
}

// BudgetOutlook compares a budget with what the job is forecast to use over all its attempts.
type BudgetOutlook struct {
	Of       string    `json:"of"`                 // energy (joules) or time (seconds)
	Limit    float64   `json:"limit"`              // that its owner set
	Own      *Estimate `json:"own"`                // in all, where the rest is done under its owner's settings; nil: not known
	Change   *Estimate `json:"change"`             // in all, after the change that was considered; nil: none was, or not known
	Overruns bool      `json:"overruns,omitempty"` // also under its owner's settings it may use more than the budget
	// Unenforced says why the budget forbids nothing: ReasonModelled, ReasonNoSamples.
	Unenforced Reason `json:"unenforced,omitempty"`
}

// CurveLesson is what a forecast of a job's curve was worth, known once the job has ended.
// Values are in the units of the curve.
type CurveLesson struct {
	Of    string    `json:"of,omitempty"` // loss or quality; empty: there is but one
	Seen  float64   `json:"seen"`         // epoch at which the forecast was made
	Total float64   `json:"total"`        // epoch it was about: the end
	Last  float64   `json:"last"`         // value at Seen
	Told  []float64 `json:"told"`         // by each model of package forecast, in its order
	Blend float64   `json:"blend"`        // by the ensemble, without lessons
	Value float64   `json:"value"`        // what was forecast
	Unit  float64   `json:"unit"`         // the width that its interval was a multiple of
	Truth float64   `json:"truth"`        // value at Total
}
