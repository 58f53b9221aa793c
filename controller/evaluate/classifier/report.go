package classifier

import (
	"fmt"
	"strings"

	"pitchpipe/controller/evaluate"
)

// Report is what Run returns.
type Report = evaluate.Report[Row, Summary]

// Row is what became of one program. Shares are plain fractions; null: there was
// nothing to measure it by.
type Row struct {
	Workload    string   `json:"workload"`
	Questions   int      `json:"questions"`            // executions held out whose settings were learned
	Recognised  *float64 `json:"recognised"`           // share of them that got a class
	Precision   *float64 `json:"precision"`            // share of those that got a class that is mostly the program's
	UnknownAUC  *float64 `json:"unknown_auc"`          // area under the curve: left out against others' held-out executions, by distance over radius
	CalledKnown *float64 `json:"unknown_called_known"` // share of its executions that got a class when the program was left out
	TakenFor    []string `json:"taken_for,omitempty"`  // programs of whose classes these were
}

// Variation is what becomes of the questions when something is not as it was learned.
type Variation struct {
	Name       string   `json:"name"`
	Questions  int      `json:"questions"`
	Recognised *float64 `json:"recognised"` // share that got a class
	Precision  *float64 `json:"precision"`  // share of those that got their own
	Refused    *float64 `json:"refused"`    // share not compared at all: other settings, another set of counters
}

// Summary sums the rows up.
type Summary struct {
	Programs    int       `json:"programs"`
	Runs        int       `json:"runs"` // executions in the data
	Folds       int       `json:"folds"`
	K           int       `json:"k"`           // classes learned from all executions, of the stratum that has most: those that a job under one setting is compared with
	KMost       int       `json:"k_max"`       // the same, of any fit of this evaluation
	StrataOver  int       `json:"strata_over"` // most strata of any fit that have more classes than twice their programs
	Strata      []Stratum `json:"strata"`      // of the fit to all executions
	Questions   int       `json:"questions"`
	Recognised  *float64  `json:"recognised"`           // over all questions
	Precision   *float64  `json:"precision"`            // over all that got a class
	UnknownAUC  *float64  `json:"unknown_auc"`          // mean over programs
	UnknownMin  *float64  `json:"unknown_auc_min"`      // of the worst program
	CalledKnown *float64  `json:"unknown_called_known"` // mean over programs
	// Thresholds are what these would be if the limit of the distance were another.
	Thresholds []Threshold `json:"thresholds"`
	// Stability is the mean adjusted Rand index between the classes of all executions
	// and those of a random four fifths of them: 1 means the same partition.
	Stability  *float64    `json:"stability"`
	Resamples  int         `json:"resamples"`
	Variations []Variation `json:"variations"`
	Regret     *Regret     `json:"regret"` // null: there were no trials
}

// Stratum are the runs that can be compared with each other: those of one machine, one set
// of counters and one shape of settings.
type Stratum struct {
	Machine  string `json:"machine"`
	Settings string `json:"settings"`
	Runs     int    `json:"runs"`
	Programs int    `json:"programs"` // among the runs in its classes
	K        int    `json:"k"`        // classes
}

// Threshold is what becomes of the questions where a run gets the nearest class up to
// another multiple of its radius than 1. Ambiguous ones get the nearest, too.
type Threshold struct {
	Limit       float64  `json:"limit"`                // distance over radius
	Recognised  *float64 `json:"recognised"`           // share of all questions that got a class
	Precision   *float64 `json:"precision"`            // share of those that got their own
	CalledKnown *float64 `json:"unknown_called_known"` // share of the executions of programs left out that got a class
}

// Regret is what deciding by classes costs inputs that were left out. Costs are
// geometric means relative to the cheapest setting of the input itself.
type Regret struct {
	Objective  string   `json:"objective"`
	Inputs     int      `json:"inputs"`    // left out in turn: each input of each program
	Settings   int      `json:"settings"`  // measured for each
	Questions  int      `json:"questions"` // executions of them, under whichever setting they ran
	Recognised *float64 `json:"recognised"`
	ClassCost  *float64 `json:"class_cost"`  // the class's setting, where there was a class
	AnyCost    *float64 `json:"any_cost"`    // likewise, and the best single setting where there was none
	SingleCost *float64 `json:"single_cost"` // the setting that is best for all others together
	OwnCost    *float64 `json:"own_cost"`    // the setting that the execution ran under
	Kinds      []Kind   `json:"kinds"`
}

// Kind is the regret of one program.
type Kind struct {
	Workload   string   `json:"workload"`
	Best       string   `json:"best"` // cheapest setting of its inputs together
	Recognised *float64 `json:"recognised"`
	ClassCost  *float64 `json:"class_cost"`
	SingleCost *float64 `json:"single_cost"`
}

// Text prints the report as tables.
func Text(r Report) string {
	var b strings.Builder
	var rows [][]string
	for _, x := range r.Rows {
		rows = append(rows, []string{
			x.Workload, fmt.Sprint(x.Questions), evaluate.Number(x.Recognised, 3), evaluate.Number(x.Precision, 3),
			evaluate.Number(x.UnknownAUC, 3), evaluate.Number(x.CalledKnown, 3), strings.Join(x.TakenFor, " "),
		})
	}
	b.WriteString(evaluate.Columns([]string{"program", "asked", "recognised", "precision", "unknown area", "called known", "taken for"}, rows))
	s := r.Summary
	fmt.Fprintf(&b, "\n%d programs, %d executions, %d folds; %d classes under one setting (at most %d in any fit)\n", s.Programs, s.Runs, s.Folds, s.K, s.KMost)
	for _, st := range s.Strata {
		fmt.Fprintf(&b, "  %s %s: %d classes of %d programs, %d executions\n", st.Machine, st.Settings, st.K, st.Programs, st.Runs)
	}
	fmt.Fprintf(&b, "recognised %s of %d, precision %s\n", evaluate.Number(s.Recognised, 3), s.Questions, evaluate.Number(s.Precision, 3))
	fmt.Fprintf(&b, "left out: area %s, of the worst %s; called known %s\n",
		evaluate.Number(s.UnknownAUC, 3), evaluate.Number(s.UnknownMin, 3), evaluate.Number(s.CalledKnown, 3))
	fmt.Fprintf(&b, "stability %s over %d resamples\n\n", evaluate.Number(s.Stability, 3), s.Resamples)
	rows = nil
	for _, v := range s.Variations {
		rows = append(rows, []string{
			v.Name, fmt.Sprint(v.Questions), evaluate.Number(v.Recognised, 3), evaluate.Number(v.Precision, 3), evaluate.Number(v.Refused, 3),
		})
	}
	b.WriteString(evaluate.Columns([]string{"what is different", "asked", "recognised", "precision", "refused"}, rows))
	if s.Regret != nil {
		b.WriteString(s.Regret.text())
	}
	return b.String()
}

func (r Regret) text() string {
	var rows [][]string
	for _, k := range r.Kinds {
		rows = append(rows, []string{k.Workload, k.Best, evaluate.Number(k.Recognised, 3), evaluate.Number(k.ClassCost, 3), evaluate.Number(k.SingleCost, 3)})
	}
	return fmt.Sprintf("\nobjective %s: %d inputs left out in turn, %d settings, %d executions, recognised %s\n"+
		"cost relative to the input's own best: class %s, class or else single %s, single %s, as it ran %s\n\n",
		r.Objective, r.Inputs, r.Settings, r.Questions, evaluate.Number(r.Recognised, 3),
		evaluate.Number(r.ClassCost, 3), evaluate.Number(r.AnyCost, 3), evaluate.Number(r.SingleCost, 3), evaluate.Number(r.OwnCost, 3)) +
		evaluate.Columns([]string{"program", "its best setting", "recognised", "class", "single"}, rows)
}
