package check

import "slices"

// Mode is whose jobs the controller tunes.
type Mode string

// The modes.
const (
	Owner Mode = "owner" // those of the user who runs it
	Site  Mode = "site"  // everybody's
)

// Verdict is what came of looking at one thing.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Missing Verdict = "missing" // it is not there
	Wrong   Verdict = "wrong"   // it is there, and not as it has to be
	Unknown Verdict = "unknown" // it cannot be seen by this user, or from this machine
)

// Finding is one thing that was looked at.
type Finding struct {
	Name    string   `json:"name"`             // stays the same between versions, such as slurm.task_prolog
	Where   string   `json:"where"`            // the file, or what else, that is changed
	Looked  string   `json:"looked"`           // what was looked at, and what was found
	Verdict Verdict  `json:"verdict"`          //
	Why     string   `json:"why,omitempty"`    // one sentence: why it matters
	Change  []string `json:"change,omitempty"` // the lines to write, or the commands to run
	Then    string   `json:"then,omitempty"`   // what makes the change count
	Needed  []Mode   `json:"needed"`           // in which modes nothing works as promised without it; none = advice
}

// Fails tells whether the mode lacks this.
func (f Finding) Fails(m Mode) bool {
	return (f.Verdict == Missing || f.Verdict == Wrong) && slices.Contains(f.Needed, m)
}

// Report is all that was found.
type Report struct {
	Cluster  string    `json:"cluster"`
	Version  string    `json:"version"` // of Slurm
	Mode     Mode      `json:"mode"`
	Caller   string    `json:"caller"`
	Passed   bool      `json:"passed"` // nothing that the mode needs is missing or wrong
	Findings []Finding `json:"findings"`
}

func both() []Mode { return []Mode{Owner, Site} }

// advice is needed in no mode.
func advice() []Mode { return []Mode{} }

// when adds the owner mode to what a site needs, where the owner's controller counts
// on it.
func when(owner bool) []Mode {
	if owner {
		return both()
	}
	return []Mode{Site}
}
