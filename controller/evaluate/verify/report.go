package verify

import (
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// Comparison says what is compared with what.
type Comparison string

// The comparisons that the controller makes.
const (
	Job   Comparison = "job"   // one job: its epochs before and after its move
	Pairs Comparison = "pairs" // jobs of which chance left one untuned, inputs not known
)

// Recorded and Simulated are where a null comes from.
const (
	Recorded  = "recorded"
	Simulated = "simulated"
)

// Row is one null with one effect put in. Shares are plain fractions of the replays;
// null: there is nothing to say.
type Row struct {
	Comparison Comparison       `json:"comparison"` // job or pairs
	Null       string           `json:"null"`       // what has no effect
	Source     string           `json:"source"`     // recorded or simulated
	Data       string           `json:"data"`       // the file; empty where simulated
	Objective  tuning.Objective `json:"objective"`  // time or energy
	Effect     float64          `json:"effect"`     // by how much the tuned side is less: 0.1 is a tenth
	Workloads  int              `json:"workloads"`  // that the replays are dealt to in turn
	Replays    int              `json:"replays"`
	Looks      float64          `json:"looks_mean"` // epochs or pairs of a replay, each looked at

	// FalseVerdicts is the share whose verdict was wrong at any look: a claim where there
	// is no effect, a regression where there is an improvement, or neutral where the
	// effect is above the margin.
	FalseVerdicts float64  `json:"false_verdicts"`
	Power         *float64 `json:"power"` // share whose first verdict was an improvement; null without an effect
	Neutral       float64  `json:"neutral"`
	Inconclusive  float64  `json:"inconclusive"`      // share without a verdict at the end
	ToVerdict     *float64 `json:"to_verdict_median"` // epochs or pairs until the first right verdict, of those that had one
	ToVerdict90   *float64 `json:"to_verdict_p90"`

	Coverage     float64 `json:"coverage"`      // share whose interval held the truth at every look
	CoverageLast float64 `json:"coverage_last"` // share whose last interval held it

	Worst      string  `json:"worst_workload,omitempty"` // of several: that of most false verdicts
	WorstFalse float64 `json:"worst_false_verdicts"`     // its share

	Limit string `json:"limit,omitempty"` // what the null breaks of what the interval relies on
}

// Power is a mean over the rows of one comparison and effect that have no limit.
type Power struct {
	Comparison Comparison `json:"comparison"`
	Source     string     `json:"source"`
	Effect     float64    `json:"effect"`
	Rows       int        `json:"rows"`
	Power      float64    `json:"power"`
	ToVerdict  *float64   `json:"to_verdict_median"` // median of the rows' medians
}

// Summary is over all rows. Rows with a limit count only where that is said.
type Summary struct {
	Level    float64 `json:"level"` // allowed share of false verdicts
	Seed     uint64  `json:"seed"`
	Replays  int     `json:"replays"` // of each row
	Rows     int     `json:"rows"`    // without effect and without limit
	FalseMax float64 `json:"false_verdicts_max"`
	FalseOf  string  `json:"false_verdicts_max_of"`
	// Over are the rows whose share is above the level, and further than chance takes it:
	// two and a half standard deviations of so many replays.
	Over         []string `json:"over"`
	CoverageMin  float64  `json:"coverage_min"`           // effects included
	LimitedRows  int      `json:"limited_rows"`           // without effect, with a limit
	LimitedFalse float64  `json:"limited_false_verdicts"` // the most of them
	LimitedOf    string   `json:"limited_of,omitempty"`   // its null
	Power        []Power  `json:"power"`                  // by comparison, source and effect
	LeftOut      []string `json:"left_out"`               // files without a null, and why
}

// Report is what Run found.
type Report = evaluate.Report[Row, Summary]
