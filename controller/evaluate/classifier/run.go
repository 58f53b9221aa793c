package classifier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
)

// DefaultResamples is how often the stability is asked.
const DefaultResamples = 20

// mostFolds bounds how often classes are learned where a setting has many executions.
const mostFolds = 5

// ErrTooLittle means that the data cannot answer the question.
var ErrTooLittle = errors.New("too little is recorded")

// Input is what is evaluated.
type Input struct {
	Tables    []records.Table // of samples
	Trials    []records.Table // of the same runs, for the regret; none: it is not asked
	Objective string          // of the regret; empty = DefaultObjective
	Seed      uint64
	Resamples int // for the stability; 0 = DefaultResamples
}

// bench is what the parts of an evaluation share.
type bench struct {
	all      []execution
	programs []string
	folds    int
	seed     uint64
	most     int // classes of one stratum of any fit
	over     int // strata of any fit with more classes than twice their programs
	asked    []answer
	left     []answer // about programs that were left out
	step     func(what string)
}

// Run evaluates the classes. Executions of a workload under the same settings are
// numbered; a fold learns from all but one number and is asked about that one.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	if in.Resamples == 0 {
		in.Resamples = DefaultResamples
	}
	out := Report{Command: "evaluate classifier", Rows: []Row{}}
	for _, t := range in.Tables {
		out.Data = append(out.Data, t.File)
	}
	all, err := gather(in.Tables)
	if err != nil {
		return out, err
	}
	b := &bench{all: all, seed: in.Seed, programs: programs(all)}
	for _, e := range all {
		b.folds = min(max(b.folds, e.nth+1), mostFolds)
	}
	if b.folds < 2 || len(b.programs) < 2 {
		return out, fmt.Errorf("%w: want at least two programs, and two executions of some setting; there are %d programs and %d executions of a setting at most",
			ErrTooLittle, len(b.programs), b.folds)
	}
	done, total := 0, b.folds*(1+len(b.programs))+in.Resamples+len(variations())
	b.step = func(what string) { progress(done, total, what); done++ }

	tallies := make([]programTally, len(b.programs))
	for fold := range b.folds {
		if err := b.fold(ctx, fold, tallies); err != nil {
			return out, err
		}
	}
	out.Rows, out.Summary = b.sum(tallies)
	out.Summary.Thresholds = b.thresholds()
	if err := b.stability(ctx, in.Resamples, &out.Summary); err != nil {
		return out, err
	}
	if err := b.vary(ctx, &out.Summary); err != nil {
		return out, err
	}
	out.Summary.KMost, out.Summary.StrataOver = b.most, b.over
	if len(in.Trials) > 0 {
		if out.Summary.Regret, err = b.regret(in.Trials, in.Objective); err != nil {
			return out, err
		}
	}
	progress(total, total, "done")
	return out, nil
}

func programs(all []execution) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.workload)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// learned is a model and what a reader of it has to know.
type learned struct {
	model  *classify.Model
	owner  map[string]string // class → program of most of its runs
	knows  map[string]bool   // settings learned
	label  map[string]string // run → class
	met    map[string]bool   // programs learned
	k      int               // classes of the stratum that has most
	over   int               // strata with more classes than twice their programs
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
		s := e.sample()
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
	for _, s := range out.model.Strata {
		st := stratumOf(s, of)
		out.strata, out.k = append(out.strata, st), max(out.k, st.K)
		if st.K > 2*st.Programs {
			out.over++
		}
		for _, g := range s.Groups {
			var members []string
			for _, r := range g.Runs {
				members = append(members, of[r])
				out.label[r] = g.ID
			}
			out.owner[g.ID] = most(members)
		}
	}
	b.most, b.over = max(b.most, out.k), max(b.over, out.over)
	return out, nil
}

// stratumOf tells of the classes among runs that can be compared. A run without a class
// is of a program, too, but nobody knows of which stratum.
func stratumOf(s classify.Stratum, of map[string]string) Stratum {
	programs := map[string]bool{}
	for _, g := range s.Groups {
		for _, r := range g.Runs {
			programs[of[r]] = true
		}
	}
	return Stratum{Machine: s.Key.Machine, Settings: s.Key.Settings, Runs: s.Runs, Programs: len(programs), K: len(s.Groups)}
}

// most is the word that stands most often, of several the first by name.
func most(words []string) string {
	slices.Sort(words)
	best, n := "", 0
	for i := 0; i < len(words); {
		j := i
		for j < len(words) && words[j] == words[i] {
			j++
		}
		if j-i > n {
			best, n = words[i], j-i
		}
		i = j
	}
	return best
}

// programTally is what became of one program over the folds.
type programTally struct {
	questions, known, right int
	left, taken             int       // executions of it when it was left out, and those that got a class
	areas                   []float64 // of each fold
	takenFor                []string
}

func (b *bench) fold(ctx context.Context, fold int, tallies []programTally) error {
	b.step(fmt.Sprintf("fold %d", fold+1))
	held := func(e execution) bool { return e.nth%b.folds == fold }
	l, err := b.fit(func(e execution) bool { return !held(e) }, true)
	if err != nil {
		return err
	}
	for _, e := range b.all {
		if !held(e) || !l.knows[e.setting()] {
			continue
		}
		t := &tallies[slices.Index(b.programs, e.workload)]
		t.questions++
		c := l.model.Classify(e.profile)
		b.asked = append(b.asked, answerOf(c, l.owner[c.NearestID] == e.workload))
		if c.Known() {
			t.known++
			if l.owner[c.ID] == e.workload {
				t.right++
			}
		}
	}
	for i, program := range b.programs {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.step(fmt.Sprintf("fold %d without %s", fold+1, program))
		if err := b.leaveOut(program, held, &tallies[i]); err != nil {
			return err
		}
	}
	return nil
}

// leaveOut asks about a program that was never learned. Executions that could be
// compared with nothing say nothing about the classes and stay out of the area.
func (b *bench) leaveOut(program string, held func(execution) bool, t *programTally) error {
	l, err := b.fit(func(e execution) bool { return !held(e) && e.workload != program }, true)
	if err != nil {
		return err
	}
	var own, others []float64
	for _, e := range b.all {
		switch c := l.model.Classify(e.profile); {
		case e.workload == program:
			t.left++
			b.left = append(b.left, answerOf(c, false))
			if c.Known() {
				t.taken++
				t.takenFor = append(t.takenFor, l.owner[c.ID])
			}
			if c.Radius > 0 {
				own = append(own, c.Distance/c.Radius)
			}
		case held(e) && l.knows[e.setting()] && c.Radius > 0:
			others = append(others, c.Distance/c.Radius)
		}
	}
	if len(own) > 0 && len(others) > 0 {
		t.areas = append(t.areas, area(own, others))
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

func (b *bench) sum(tallies []programTally) ([]Row, Summary) {
	s := Summary{Programs: len(b.programs), Runs: len(b.all), Folds: b.folds}
	var rows []Row
	known, right := 0, 0
	var areas, taken []float64
	for i, t := range tallies {
		slices.Sort(t.takenFor)
		row := Row{
			Workload: b.programs[i], Questions: t.questions,
			Recognised: share(t.known, t.questions), Precision: share(t.right, t.known),
			UnknownAUC: mean(t.areas), CalledKnown: share(t.taken, t.left), TakenFor: slices.Compact(t.takenFor),
		}
		rows = append(rows, row)
		s.Questions += t.questions
		known += t.known
		right += t.right
		if row.UnknownAUC != nil {
			areas = append(areas, *row.UnknownAUC)
		}
		if row.CalledKnown != nil {
			taken = append(taken, *row.CalledKnown)
		}
	}
	s.Recognised, s.Precision = share(known, s.Questions), share(right, known)
	s.UnknownAUC, s.CalledKnown = mean(areas), mean(taken)
	if len(areas) > 0 {
		least := slices.Min(areas)
		s.UnknownMin = &least
	}
	return rows, s
}

func share(part, whole int) *float64 {
	if whole == 0 {
		return nil
	}
	v := float64(part) / float64(whole)
	return &v
}

func mean(v []float64) *float64 {
	if len(v) == 0 {
		return nil
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	m := sum / float64(len(v))
	if math.IsNaN(m) {
		return nil
	}
	return &m
}
