package tuner

import "pitchpipe/controller/evaluate"

// Row is what one table showed. All ratios are costs in what the objective minimises,
// relative to the owner's settings, and means over the seeds; null: not known.
type Row struct {
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Input    string `json:"input,omitempty"` // of the workload, where the data tell inputs apart
	Part     string `json:"part,omitempty"`  // which part of the table, such as "gpus=2"

	Settings    int `json:"settings"`    // in the table
	Absent      int `json:"absent"`      // settings left out of it, since they lack a number that the objective needs
	Recurrences int `json:"recurrences"` // returns of the job in one replay
	Seeds       int `json:"seeds"`

	OracleRatio    float64 `json:"oracle_ratio"`     // of the best setting that keeps the limits, in expectation
	FinalRatio     float64 `json:"final_ratio"`      // of the setting that the tuner ends with, in expectation
	FinalKept      float64 `json:"final_kept_ratio"` // the same, but that a seed that breaks a limit saves nothing
	FinalTimeRatio float64 `json:"final_time_ratio"` // its seconds
	WithinOracle   float64 `json:"within_oracle"`    // share of the seeds that keep the limits and cost at most 1.03 of the oracle's

	CumulativeRatio           float64  `json:"cumulative_ratio"`                  // of all returns, exploration included
	CumulativeEnergyRatio     *float64 `json:"cumulative_energy_ratio"`           // the joules of all returns
	CumulativeTimeRatio       float64  `json:"cumulative_time_ratio"`             // the seconds of all returns
	ReferenceCumulativeEnergy *float64 `json:"reference_cumulative_energy_ratio"` // as published, with its own blend of energy and time
	ReferenceFinalEnergy      *float64 `json:"reference_final_energy_ratio"`      // the joules of its last runs
	ReferenceFinalTime        *float64 `json:"reference_final_time_ratio"`

	RandomCumulative     float64 `json:"random_cumulative_ratio"`
	GridCumulative       float64 `json:"grid_cumulative_ratio"`
	HalvingCumulative    float64 `json:"halving_cumulative_ratio"`
	SingleKnobCumulative float64 `json:"single_knob_cumulative_ratio"` // of the better of the tuners of one knob alone
	RandomFinal          float64 `json:"random_final_ratio"`
	GridFinal            float64 `json:"grid_final_ratio"`
	HalvingFinal         float64 `json:"halving_final_ratio"`
	SingleKnobFinal      float64 `json:"single_knob_final_ratio"`
	SystemKnobOracle     float64 `json:"system_knob_oracle_ratio"` // of the best system settings, everything else as the owner's

	// A job that cannot be moved while it runs: each return runs as a whole under one
	// setting. Null where the goal is least cores.
	WholeCumulative   *float64 `json:"whole_cumulative_ratio"`
	WholeEnergy       *float64 `json:"whole_cumulative_energy_ratio"` // their joules; null where they were not measured
	WholeFinal        *float64 `json:"whole_final_ratio"`
	WholeTried        *float64 `json:"whole_tried"` // returns that tried a setting
	WholeLimitsBroken *float64 `json:"whole_limits_broken"`

	LimitsBroken float64  `json:"limits_broken"` // share of the seeds that end with a setting that breaks a limit in expectation
	StepsAbove   *float64 `json:"steps_above"`   // where a share of speed is to be attained: core steps above the fewest that do
	Default      string   `json:"default"`

	DefaultReplaced bool `json:"default_replaced,omitempty"` // the default asked for never reaches its end: the nearest that does stands for it

	Oracle string `json:"oracle"`
	Final  string `json:"final"` // of the first seed
}

// Summary is what the rows sum up to.
type Summary struct {
	Objective         string   `json:"objective"`
	Tables            int      `json:"tables"`
	Skipped           int      `json:"skipped"`                     // tables with nothing to choose, or without the numbers that the objective needs
	WithinOracle      int      `json:"within_1_03_of_oracle"`       // tables on which no seed breaks a limit
	WithinShare       *float64 `json:"within_1_03_of_oracle_share"` // of all seeds of all tables
	OracleSaving      float64  `json:"oracle_saving"`               // sum over tables of 1 - oracle_ratio
	SavingShare       *float64 `json:"saving_share"`                // the tuner's sum, of 1 - final_kept_ratio, relative to the oracle's; null: there is nothing to save
	Broken            int      `json:"tables_with_broken_limits"`   // by any seed
	Referenced        int      `json:"tables_with_reference"`       // published numbers
	AtMostReference   int      `json:"at_most_reference"`           // tables whose joules are at or below the reference's
	NoWorseThanSystem int      `json:"final_at_most_system_oracle"` // tables whose final setting costs at most what the best system settings do
	NoWorseThanSingle int      `json:"cumulative_at_most_single_knob"`
	WorstCumulative   float64  `json:"worst_cumulative_ratio"`
	WorstFinal        float64  `json:"worst_final_ratio"`
	WithinOneStep     *int     `json:"within_one_core_step"` // tables, where a share of speed is to be attained

	LeftOut []evaluate.LeftOut `json:"left_out"` // rows and tables that could not be used
}

// Report is the result of Run.
type Report = evaluate.Report[Row, Summary]
