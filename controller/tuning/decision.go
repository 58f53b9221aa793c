package tuning

import (
	"math"
	"time"
)

// Action is what a Decision does.
type Action string

// The actions.
const (
	Hold     Action = "hold"      // leave the job as it is
	Probe    Action = "probe"     // run the next epochs under a setting to learn its effect
	Move     Action = "move"      // run the rest under a better setting
	RollBack Action = "roll-back" // return to the owner's own settings
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
	Joules    *Joules  `json:"joules,omitempty"`    // mean per epoch; nil: not measured
	Source    string   `json:"source,omitempty"`
	Quality   *float64 `json:"quality,omitempty"`
	Reference bool     `json:"reference,omitempty"` // the owner's own settings
	Failed    bool     `json:"failed,omitempty"`    // the job could not run under it
}

// Effect is what a setting does compared with the owner's own: paired log ratios per epoch.
type Effect struct {
	Settings Settings `json:"settings"`       // knobs that it speaks about, only
	From     Settings `json:"from,omitempty"` // what they were compared with; nil: the owner's own
	LogRatio float64  `json:"log_ratio"`      // negative is better
	SD       float64  `json:"sd"`             // standard deviation between runs
	LogTime  float64  `json:"log_time"`       // of the seconds alone, for max_slowdown
	Runs     int      `json:"runs"`           // jobs that it was measured in
	Age      float64  `json:"age"`            // days since the newest
}

// halfLife is after how many days an effect counts as if half of its runs were gone: machines,
// libraries and inputs drift.
const halfLife = 90

// Fresh is how many runs of today an effect is worth.
func (e Effect) Fresh() float64 { return float64(e.Runs) * Aged(e.Age) }

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
