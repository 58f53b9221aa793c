package tuning

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

	// Best is the setting that is known to be better than the owner's own; nil: none.
	Best *Effect `json:"best,omitempty"`

	// Seen is what whole runs showed of the settings of system knobs that they ran under,
	// clear or not, and Longest is how many seconds the epochs of the longest run under the
	// owner's own took; 0 = unknown.
	Seen    []Effect `json:"seen,omitempty"`
	Longest float64  `json:"longest,omitempty"`
}
