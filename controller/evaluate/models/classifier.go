package models

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// DefaultResamples is how often the stability is asked.
const DefaultResamples = 20

// mostFolds bounds how often classes are learned where a setting has many executions.
const mostFolds = 5

// ClassifierInput is what Classifier measures: samples, and trials of the same runs for the
// cost of deciding by classes.
type ClassifierInput struct {
	evaluate.Set
	Objective string // of that cost, see Objectives; empty: cores
	Seed      uint64
	Resamples int // for the stability
}

// bench is what the parts of the evaluation share.
type bench struct {
	all      []execution
	programs []string
	folds    int
	seed     uint64
	most     int // classes of one stratum of any fit
	over     int // strata of any fit with more classes than twice their programs
	step     func(what string)
}

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
func Classifier(ctx context.Context, in ClassifierInput, progress evaluate.Progress) (evaluate.Report, error) {
	out := evaluate.Report{Command: "evaluate classifier", Data: in.Files()}
	in.Objective = cmp.Or(in.Objective, "cores")
	if err := evaluate.Want(slices.Contains(Objectives(), in.Objective), "objective %q: want one of %s", in.Objective, strings.Join(Objectives(), ", ")); err != nil {
		return out, err
	}
	all, err := executions(in.Samples)
	if err != nil {
		return out, err
	}
	b := &bench{all: all, seed: in.Seed}
	for _, e := range all {
		b.folds = min(max(b.folds, e.nth+1), mostFolds)
		b.programs = insert(b.programs, e.Workload)
	}
	if b.folds < 2 || len(b.programs) < 2 {
		return out, evaluate.Invalid("too little is recorded: want at least two programs, and two executions of some setting; there are %d programs and %d executions of a setting at most",
			len(b.programs), b.folds)
	}
	done, total := 0, b.folds*(1+len(b.programs))+in.Resamples+len(b.variations())
	b.step = func(what string) { progress(done, total, what); done++ }
	rows, summary, err := b.ask(ctx)
	if err != nil {
		return out, err
	}
	stability, err := b.stability(ctx, in.Resamples)
	if err != nil {
		return out, err
	}
	variations, err := b.vary(ctx)
	if err != nil {
		return out, err
	}
	out.Rows, out.Summary = rows, summary.With(stability, evaluate.Line{
		"programs": len(b.programs), "runs": len(b.all), "folds": b.folds, "k_max": b.most, "strata_over": b.over, "variations": variations,
	})
	if len(in.Trials) > 0 {
		if out.Summary["regret"], err = b.costs(in.Trials, in.Objective); err != nil {
			return out, err
		}
	}
	progress(total, total, "done")
	return out, nil
}

// learned is a model and what a reader of it has to know.
type learned struct {
	model  *classify.Model
	owner  map[string]string // class → program of most of its runs
	knows  map[string]bool   // settings learned
	label  map[string]string // run → class
	met    map[string]bool   // programs learned
	k      int               // classes of the stratum that has most
	strata []evaluate.Line
}

func (b *bench) fit(choose func(execution) bool, kinds bool) (learned, error) {
	var samples []classify.Sample
	of := map[string]string{}
	out := learned{owner: map[string]string{}, knows: map[string]bool{}, label: map[string]string{}, met: map[string]bool{}}
	for _, e := range b.all {
		if !choose(e) {
			continue
		}
		s := classify.Sample{Profile: e.profile, Run: e.Run, Kind: e.Workload}
		if !kinds {
			s.Kind = ""
		}
		samples = append(samples, s)
		of[e.Run], out.knows[e.setting()], out.met[e.Workload] = e.Workload, true, true
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
		k := len(s.Groups)
		out.strata, out.k = append(out.strata, evaluate.Line{"machine": s.Key.Machine, "settings": s.Key.Settings, "runs": s.Runs, "programs": len(programs), "k": k}), max(out.k, k)
		if k > 2*len(programs) {
			over++
		}
	}
	b.most, b.over = max(b.most, out.k), max(b.over, over)
	return out, nil
}

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
func shares(all []answer) evaluate.Line {
	known := evaluate.Only(all, func(a answer) bool { return a.known })
	return evaluate.Line{
		"recognised": evaluate.Share(len(known), len(all)),
		"precision":  evaluate.ShareOf(known, func(a answer) bool { return a.right }),
	}
}

func (b *bench) ask(ctx context.Context) (rows []evaluate.Line, summary evaluate.Line, err error) {
	held := map[string][]answer{}   // by program, about its executions held out
	left := map[string][]answer{}   // about its executions where it was left out
	areas := map[string][]float64{} // of each fold
	for fold := range b.folds {
		b.step(fmt.Sprintf("fold %d", fold+1))
		out := func(e execution) bool { return e.nth%b.folds == fold }
		l, err := b.fit(func(e execution) bool { return !out(e) }, true)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range b.all {
			if out(e) && l.knows[e.setting()] {
				held[e.Workload] = append(held[e.Workload], l.question(e.profile, e.Workload))
			}
		}
		for _, program := range b.programs {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			b.step(fmt.Sprintf("fold %d without %s", fold+1, program))
			l, err := b.fit(func(e execution) bool { return !out(e) && e.Workload != program }, true)
			if err != nil {
				return nil, nil, err
			}
			var own, others []float64 // what could be compared with nothing stays out of the area
			for _, e := range b.all {
				a := l.question(e.profile, "")
				compared := !math.IsInf(a.distance, 1)
				switch {
				case e.Workload == program:
					left[program] = append(left[program], a)
					if compared {
						own = append(own, a.distance)
					}
				case compared && out(e) && l.knows[e.setting()]:
					others = append(others, a.distance)
				}
			}
			if len(own) > 0 && len(others) > 0 {
				areas[program] = append(areas[program], area(own, others))
			}
		}
	}
	var asked, strange []answer
	for _, program := range b.programs {
		asked, strange = append(asked, held[program]...), append(strange, left[program]...)
		var taken []string
		for _, a := range left[program] {
			if a.known {
				taken = insert(taken, a.of)
			}
		}
		rows = append(rows, shares(held[program]).With(evaluate.Line{
			"workload": program, "questions": len(held[program]), "unknown_auc": evaluate.Mean(areas[program]),
			"unknown_called_known": shares(left[program])["recognised"], "taken_for": taken,
		}))
	}
	auc := evaluate.Column(rows, "unknown_auc")
	least, _ := evaluate.Range(auc)
	var thresholds []evaluate.Line
	for _, limit := range []float64{0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3} {
		within := func(a answer) answer {
			return answer{known: a.distance <= limit, right: a.distance <= limit && a.nearest}
		}
		thresholds = append(thresholds, shares(tuning.Each(asked, within)).With(evaluate.Line{
			"limit": evaluate.Figure(limit), "unknown_called_known": shares(tuning.Each(strange, within))["recognised"],
		}))
	}
	return rows, shares(asked).With(evaluate.Line{
		"questions": len(asked), "unknown_auc": evaluate.Mean(auc), "unknown_auc_min": least, "thresholds": thresholds,
		"unknown_called_known": evaluate.Mean(evaluate.Column(rows, "unknown_called_known")),
	}), nil
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

// insert adds a word to sorted ones unless it is there.
func insert(all []string, one string) []string {
	if i, found := slices.BinarySearch(all, one); !found {
		all = slices.Insert(all, i, one)
	}
	return all
}
