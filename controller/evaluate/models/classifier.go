package models

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

// DefaultResamples is how often the stability is asked.
const DefaultResamples = 20

// mostFolds bounds how often classes are learned where a setting has many executions.
const mostFolds = 5

// ClassifierInput is what Classifier measures: samples, and trials of the same runs for the
// cost of deciding by classes.
type ClassifierInput struct {
	records.Set
	Objective string // of that cost, see Objectives; empty: cores
	Seed      uint64
	Resamples int // for the stability
}

// ClassifierRow is what became of one program. Shares are plain fractions; null: there was
// nothing to measure it by.
type ClassifierRow struct {
	Workload    string        `json:"workload" about:"name, as in the data" col:"PROGRAM"`
	Questions   int           `json:"questions" about:"executions held out whose settings were learned" col:"ASKED"`
	Recognised  result.Figure `json:"recognised" about:"share of them that got a class" col:"RECOGNISED"`
	Precision   result.Figure `json:"precision" about:"share of those that got a class that is mostly the program's" col:"PRECISION"`
	UnknownAUC  result.Figure `json:"unknown_auc" about:"area under the curve: left out against others' held-out executions, by distance over radius" col:"UNKNOWN AREA"`
	CalledKnown result.Figure `json:"unknown_called_known" about:"share of its executions that got a class when the program was left out" col:"CALLED KNOWN"`
	TakenFor    []string      `json:"taken_for,omitempty" about:"programs of whose classes these were" col:"TAKEN FOR"`
}

// Variation is what becomes of the questions when something is not as it was learned.
type Variation struct {
	Name       string        `json:"name" about:"what is different" col:"WHAT IS DIFFERENT"`
	Questions  int           `json:"questions" about:"how many were asked" col:"ASKED"`
	Recognised result.Figure `json:"recognised" about:"share that got a class" col:"RECOGNISED"`
	Precision  result.Figure `json:"precision" about:"share of those that got their own" col:"PRECISION"`
	Refused    result.Figure `json:"refused" about:"share not compared at all: other settings, another set of counters" col:"REFUSED"`
}

// ClassifierSummary sums the rows up.
type ClassifierSummary struct {
	Programs    int           `json:"programs" about:"how many there are in the data"`
	Runs        int           `json:"runs" about:"executions in the data"`
	Folds       int           `json:"folds" about:"how often whole executions are held out in turn"`
	K           int           `json:"k" about:"classes learned from all executions, of the stratum that has most: those that a job under one setting is compared with"`
	KMost       int           `json:"k_max" about:"k of the fit that has most"`
	StrataOver  int           `json:"strata_over" about:"strata with more classes than twice their programs, in the fit that has most of them"`
	Strata      []Stratum     `json:"strata" about:"one entry for each set of runs that can be compared: one machine, set of counters, and number of cores and threads"`
	Questions   int           `json:"questions" about:"how many were asked"`
	Recognised  result.Figure `json:"recognised" about:"over all questions"`
	Precision   result.Figure `json:"precision" about:"over all that got a class"`
	UnknownAUC  result.Figure `json:"unknown_auc" about:"mean over programs"`
	UnknownMin  result.Figure `json:"unknown_auc_min" about:"of the worst program"`
	CalledKnown result.Figure `json:"unknown_called_known" about:"mean over programs"`
	Thresholds  []Threshold   `json:"thresholds" about:"what recognised, precision and unknown_called_known would be if the limit of the distance were another"`
	Stability   result.Figure `json:"stability" about:"mean adjusted Rand index between the classes of all executions and those of a random four fifths of them: 1 means the same partition"`
	Resamples   int           `json:"resamples" about:"how often the stability was asked"`
	Variations  []Variation   `json:"variations" about:"what becomes of the questions when something is not as it was learned"`
	Regret      *ClassCosts   `json:"regret" about:"what deciding by classes costs; null: there were no trials"`
}

// Stratum are the runs that can be compared with each other: those of one machine, one set
// of counters and one shape of settings.
type Stratum struct {
	Machine  string `json:"machine" about:"the machine" col:"MACHINE"`
	Settings string `json:"settings" about:"cores and threads" col:"SETTINGS"`
	Runs     int    `json:"runs" about:"executions" col:"RUNS"`
	Programs int    `json:"programs" about:"programs among the runs in its classes" col:"PROGRAMS"`
	K        int    `json:"k" about:"classes" col:"CLASSES"`
}

// Threshold is what becomes of the questions where a run gets the nearest class up to
// another multiple of its radius than 1. Ambiguous ones get the nearest, too.
type Threshold struct {
	Limit       result.Figure `json:"limit" about:"distance over radius" col:"LIMIT|2"`
	Recognised  result.Figure `json:"recognised" about:"share of all questions that got a class" col:"RECOGNISED"`
	Precision   result.Figure `json:"precision" about:"share of those that got their own" col:"PRECISION"`
	CalledKnown result.Figure `json:"unknown_called_known" about:"share of the executions of programs left out that got a class" col:"CALLED KNOWN"`
}

// ClassCosts is what deciding by classes costs inputs that were left out. Costs are
// geometric means relative to the cheapest setting of the input itself.
type ClassCosts struct {
	Objective  string         `json:"objective" about:"what a setting costs"`
	Inputs     int            `json:"inputs" about:"inputs left out in turn"`
	Settings   int            `json:"settings" about:"settings measured for each"`
	Questions  int            `json:"questions" about:"executions of these, under whichever setting they ran"`
	Recognised result.Figure  `json:"recognised" about:"share of the executions that got a class"`
	ClassCost  result.Figure  `json:"class_cost" about:"geometric mean of the cost of the class's setting over the input's own best, where there was a class"`
	AnyCost    result.Figure  `json:"any_cost" about:"the same, with the best single setting where there was no class"`
	SingleCost result.Figure  `json:"single_cost" about:"the same of the setting that is best for all others together"`
	OwnCost    result.Figure  `json:"own_cost" about:"the same of the setting that the execution ran under"`
	Kinds      []ProgramCosts `json:"kinds" about:"one entry for each program"`
}

// ProgramCosts is the regret of one program.
type ProgramCosts struct {
	Workload   string        `json:"workload" about:"the program" col:"PROGRAM"`
	Best       string        `json:"best" about:"cheapest setting of its inputs together" col:"ITS BEST SETTING"`
	Recognised result.Figure `json:"recognised" about:"share that got a class" col:"RECOGNISED"`
	ClassCost  result.Figure `json:"class_cost" about:"cost of the class's setting" col:"CLASS"`
	SingleCost result.Figure `json:"single_cost" about:"cost of the setting that is best for all others" col:"SINGLE"`
}

// ClassifierReport is the result of Classifier.
type ClassifierReport = result.Report[ClassifierRow, ClassifierSummary]

// bench is what the parts of the evaluation share.
type bench struct {
	all      []execution
	programs []string
	folds    int
	seed     uint64
	most     int      // classes of one stratum of any fit
	over     int      // strata of any fit with more classes than twice their programs
	asked    []answer // about programs that were learned
	left     []answer // about programs that were left out
	step     func(what string)
}

// answer is what a question got.
type answer struct {
	distance float64 // to the nearest class, over its radius; +Inf: compared with nothing
	nearest  bool    // that class is mostly the program's
	known    bool    // it got a class
	right    bool    // which is mostly the program's
	of       string  // the program of most of its runs
	refused  bool    // it was not compared at all: other settings, another set of counters
}

// Classifier learns classes from recorded runs as the controller does, and asks about whole
// executions that were held out, and about each program in turn when it was not learned.
// Executions of a workload under the same settings are numbered; a fold learns from all but
// one number and is asked about that one.
func Classifier(ctx context.Context, in ClassifierInput, progress result.Progress) (ClassifierReport, error) {
	out := ClassifierReport{Command: "evaluate classifier", Data: in.sampled()}
	all, err := executions(in.Samples)
	if err != nil {
		return out, err
	}
	b := &bench{all: all, seed: in.Seed}
	for _, e := range all {
		b.folds = min(max(b.folds, e.nth+1), mostFolds)
		b.programs = insert(b.programs, e.workload)
	}
	if b.folds < 2 || len(b.programs) < 2 {
		return out, result.Invalid("too little is recorded: want at least two programs, and two executions of some setting; there are %d programs and %d executions of a setting at most",
			len(b.programs), b.folds)
	}
	done, total := 0, b.folds*(1+len(b.programs))+in.Resamples+len(variations())
	b.step = func(what string) { progress(done, total, what); done++ }
	if err := b.ask(ctx, &out); err != nil {
		return out, err
	}
	if err := b.stability(ctx, in.Resamples, &out.Summary); err != nil {
		return out, err
	}
	if err := b.vary(ctx, &out.Summary); err != nil {
		return out, err
	}
	out.Summary.KMost, out.Summary.StrataOver = b.most, b.over
	if len(in.Trials) > 0 {
		if out.Summary.Regret, err = b.costs(in.Trials, cmp.Or(in.Objective, "cores")); err != nil {
			return out, err
		}
	}
	progress(total, total, "done")
	return out, nil
}

// sampled names the tables of samples.
func (in ClassifierInput) sampled() []string { return records.Set{Samples: in.Samples}.Files() }

// learned is a model and what a reader of it has to know.
type learned struct {
	model  *classify.Model
	owner  map[string]string // class → program of most of its runs
	knows  map[string]bool   // settings learned
	label  map[string]string // run → class
	met    map[string]bool   // programs learned
	k      int               // classes of the stratum that has most
	strata []Stratum
}

// fit learns from the executions chosen.
func (b *bench) fit(choose func(execution) bool, kinds bool) (learned, error) {
	var samples []classify.Sample
	of := map[string]string{}
	out := learned{owner: map[string]string{}, knows: map[string]bool{}, label: map[string]string{}, met: map[string]bool{}}
	for _, e := range b.all {
		if !choose(e) {
			continue
		}
		s := classify.Sample{Profile: e.profile, Run: e.run, Kind: e.workload}
		if !kinds {
			s.Kind = ""
		}
		samples = append(samples, s)
		of[e.run], out.knows[e.setting()], out.met[e.workload] = e.workload, true, true
	}
	var err error
	if out.model, err = classify.Fit(samples); err != nil {
		return out, fmt.Errorf("fit the classes: %w", err)
	}
	over := 0
	for _, s := range out.model.Strata {
		var programs []string // a run without a class is of an unknown stratum
		for _, g := range s.Groups {
			count := map[string]int{}
			for _, r := range g.Runs {
				programs, out.label[r] = insert(programs, of[r]), g.ID
				count[of[r]]++
			}
			for _, p := range programs { // of several the first by name
				if count[p] > count[out.owner[g.ID]] {
					out.owner[g.ID] = p
				}
			}
		}
		st := Stratum{Machine: s.Key.Machine, Settings: s.Key.Settings, Runs: s.Runs, Programs: len(programs), K: len(s.Groups)}
		out.strata, out.k = append(out.strata, st), max(out.k, st.K)
		if st.K > 2*st.Programs {
			over++
		}
	}
	b.most, b.over = max(b.most, out.k), max(b.over, over)
	return out, nil
}

// question asks about one profile of a program.
func (l learned) question(p tuning.Profile, program string) answer {
	c := l.model.Classify(p)
	a := answer{distance: math.Inf(1), known: c.Known(), of: l.owner[c.ID]}
	if c.Radius > 0 {
		a.distance, a.nearest = c.Distance/c.Radius, l.owner[c.NearestID] == program
	}
	a.right = a.known && a.of == program
	a.refused = !a.known && slices.Contains([]tuning.Reason{tuning.ReasonOtherSettings, tuning.ReasonSchemaMismatch, tuning.ReasonNoModel}, c.Reason)
	return a
}

// shares are those of answers that got a class, and of these that got their own.
func shares(all []answer) (recognised, precision result.Figure) {
	known, right := 0, 0
	for _, a := range all {
		if a.known {
			known++
		}
		if a.right {
			right++
		}
	}
	return result.Share(known, len(all)), result.Share(right, known)
}

// ask goes through the folds.
func (b *bench) ask(ctx context.Context, out *ClassifierReport) error {
	held := make([][]answer, len(b.programs))   // about executions held out
	left := make([][]answer, len(b.programs))   // about executions of programs left out
	areas := make([][]float64, len(b.programs)) // of each fold
	for fold := range b.folds {
		b.step(fmt.Sprintf("fold %d", fold+1))
		out := func(e execution) bool { return e.nth%b.folds == fold }
		l, err := b.fit(func(e execution) bool { return !out(e) }, true)
		if err != nil {
			return err
		}
		for i, program := range b.programs {
			for _, e := range b.all {
				if e.workload == program && out(e) && l.knows[e.setting()] {
					held[i] = append(held[i], l.question(e.profile, program))
				}
			}
		}
		for i, program := range b.programs {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.step(fmt.Sprintf("fold %d without %s", fold+1, program))
			l, err := b.fit(func(e execution) bool { return !out(e) && e.workload != program }, true)
			if err != nil {
				return err
			}
			var own, others []float64 // what could be compared with nothing stays out of the area
			for _, e := range b.all {
				a := l.question(e.profile, "")
				switch {
				case e.workload == program:
					left[i] = append(left[i], a)
					if !math.IsInf(a.distance, 1) {
						own = append(own, a.distance)
					}
				case out(e) && l.knows[e.setting()] && !math.IsInf(a.distance, 1):
					others = append(others, a.distance)
				}
			}
			if len(own) > 0 && len(others) > 0 {
				areas[i] = append(areas[i], area(own, others))
			}
		}
	}
	b.asked, b.left = slices.Concat(held...), slices.Concat(left...)
	s := &out.Summary
	var auc, called []result.Figure
	for i, program := range b.programs {
		r := ClassifierRow{Workload: program, Questions: len(held[i]), UnknownAUC: result.Mean(areas[i])}
		r.Recognised, r.Precision = shares(held[i])
		r.CalledKnown, _ = shares(left[i])
		for _, a := range left[i] {
			if a.known {
				r.TakenFor = insert(r.TakenFor, a.of)
			}
		}
		out.Rows = append(out.Rows, r)
		auc, called = append(auc, r.UnknownAUC), append(called, r.CalledKnown)
	}
	s.Programs, s.Runs, s.Folds, s.Questions = len(b.programs), len(b.all), b.folds, len(b.asked)
	s.Recognised, s.Precision = shares(b.asked)
	s.UnknownAUC, s.CalledKnown = result.Mean(auc), result.Mean(called)
	s.UnknownMin, _ = result.Range(auc)
	for _, limit := range []float64{0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3} {
		within := func(all []answer) (out []answer) {
			for _, a := range all {
				near := a.distance <= limit
				out = append(out, answer{known: near, right: near && a.nearest})
			}
			return out
		}
		t := Threshold{Limit: result.Figure(limit)}
		t.Recognised, t.Precision = shares(within(b.asked))
		t.CalledKnown, _ = shares(within(b.left))
		s.Thresholds = append(s.Thresholds, t)
	}
	return nil
}

// area is how probable it is that one of the high is above one of the low, ties
// counting half: the area under the receiver operating characteristic.
func area(high, low []float64) float64 {
	sum := 0.0
	for _, x := range high {
		for _, y := range low {
			switch {
			case x > y:
				sum++
			case x == y:
				sum += 0.5
			}
		}
	}
	return sum / float64(len(high)*len(low))
}

// insert adds a word to sorted ones that does not stand there.
func insert(all []string, one string) []string {
	if i, found := slices.BinarySearch(all, one); !found {
		all = slices.Insert(all, i, one)
	}
	return all
}
