package results

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/report"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// Verdict says whether a knob mattered.
type Verdict string

// The verdicts. Doubt is shared among the knobs (Bonferroni).
const (
	Matters   Verdict = "matters"    // by luck once in 20 searches at most
	MayMatter Verdict = "may matter" // once in 5 at most
	NotShown  Verdict = "not shown"
)

// Knob is what one knob did to the values of the trials.
type Knob struct {
	Name    string  `json:"name"`
	Share   float64 `json:"share"`   // of the variance that it alone explains, 0 to 1
	P       float64 `json:"p"`       // how often luck alone makes one of the knobs explain as much
	Verdict Verdict `json:"verdict"` //
	Best    string  `json:"best"`    // its values in the best quarter of the trials
}

// Importance says which knobs mattered.
type Importance struct {
	Epoch     int     `json:"epoch"`     // after which trials are compared
	Trials    int     `json:"trials"`    // that are compared
	Explained float64 `json:"explained"` // share of the variance that all knobs explain
	Knobs     []Knob  `json:"knobs"`     // what explains most first
	Unknown   string  `json:"unknown,omitempty"`

	Failed     int               `json:"failed"`                // trials that failed before they could be compared
	FailedWith map[string]string `json:"failed_with,omitempty"` // their values, by knob
}

const (
	fewest  = 10 // trials that can say anything
	perKnob = 8  // trials that are enough for one knob
	left    = 3  // degrees of freedom that the noise needs
)

// compared are trials after the same epochs.
type compared struct {
	epoch    int
	settings []tuning.Settings
	losses   []float64 // +Inf: it diverged on the way there
}

// Weigh says which knobs mattered. It compares the trials at the highest rung that enough of them
// reached: a trial that ended early has no value that compares with those of longer ones. The values
// become normal scores by their rank, the numbers of a knob ranks, and the words of a knob groups. An
// additive model explains the scores by a line and a parabola of each knob; the share of a knob is the
// variance that the model loses without it, and an F test says how often luck does as much.
func Weigh(s *searcher.Searcher) Importance {
	var c compared
	for _, rung := range slices.Backward(s.Rungs()) {
		at := compare(s, rung)
		if len(at.losses) > len(c.losses) {
			c = at
		}
		if len(at.losses) >= max(fewest, perKnob*len(knobs(at.settings))) {
			break
		}
	}
	out := Importance{Epoch: c.epoch, Trials: len(c.losses)}
	out.Failed, out.FailedWith = failed(s, c.epoch)
	names := knobs(c.settings)
	scores := propose.Normal(c.losses)
	total := residual(scores, nil)
	switch {
	case len(c.losses) < fewest:
		out.Unknown = fmt.Sprintf("%d comparable trials, and at least %d are needed", len(c.losses), fewest)
		return out
	case len(names) == 0:
		out.Unknown = "no knob differs between the trials"
		return out
	case total == nil || floats.Dot(total, total) < 1e-9:
		out.Unknown = "all trials have the same value"
		return out
	}
	variance := floats.Dot(total, total)
	columns := terms(c.settings, names, true)
	if len(c.losses) < 2*len(slices.Concat(slices.Collect(maps.Values(columns))...)) {
		columns = terms(c.settings, names, false)
	}
	all := span(columns, names, "")
	noise := residual(scores, all)
	rest, freedom := floats.Dot(noise, noise), float64(len(scores)-1-len(all))
	if freedom < left {
		out.Unknown = fmt.Sprintf("%d comparable trials, and %d knobs need at least %d", len(c.losses), len(names), len(all)+1+left)
		return out
	}
	out.Explained = 1 - rest/variance
	best := tuning.Each(propose.Ascending(c.losses)[:len(c.losses)/4], func(i int) tuning.Settings { return c.settings[i] })
	for _, name := range names {
		others := span(columns, names, name)
		without := residual(scores, others)
		lost := max(floats.Dot(without, without)-rest, 0)
		k := Knob{Name: name, Share: lost / variance, P: 1, Best: among(best, name)}
		if own := float64(len(all) - len(others)); own > 0 {
			f := distuv.F{D1: own, D2: freedom}
			k.P = min(f.Survival(lost/own/max(rest/freedom, 1e-12))*float64(len(names)), 1)
		}
		switch {
		case k.P < 0.05:
			k.Verdict = Matters
		case k.P < 0.2:
			k.Verdict = MayMatter
		default:
			k.Verdict = NotShown
		}
		out.Knobs = append(out.Knobs, k)
	}
	slices.SortStableFunc(out.Knobs, func(a, b Knob) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

func compare(s *searcher.Searcher, rung int) compared {
	out, before := compared{epoch: rung}, 0 // the rung below
	if rungs := s.Rungs(); rung > rungs[0] {
		before = rungs[slices.Index(rungs, rung)-1]
	}
	for _, t := range s.Trials {
		loss, there := math.Inf(1), t.State == searcher.Diverged && t.Last().Epoch >= before
		if i := slices.IndexFunc(t.Reports, func(r searcher.Report) bool { return r.Epoch >= rung }); i >= 0 {
			loss, there = s.Loss(t.Reports[i].Value), true
		}
		if there {
			out.settings, out.losses = append(out.settings, t.Settings), append(out.losses, loss)
		}
	}
	return out
}

// knobs are those that differ between settings.
func knobs(all []tuning.Settings) []string {
	return slices.DeleteFunc(tuning.Knobs(all), func(name string) bool {
		values := map[tuning.Value]bool{}
		for _, s := range all {
			if v, ok := s[name]; ok {
				values[v] = true
			}
		}
		return len(values) < 2
	})
}

// terms are the columns of the model, by knob. A trial in which a knob does not count has 0.
func terms(all []tuning.Settings, names []string, curved bool) map[string][][]float64 {
	out := map[string][][]float64{}
	for _, name := range names {
		var rows []int
		var numbers []float64
		words := map[string][]float64{}
		for i, s := range all {
			v := s[name]
			if !v.IsSet() {
				continue
			}
			rows = append(rows, i)
			if v.IsNumber() {
				numbers = append(numbers, v.Float())
			}
			if words[v.String()] == nil {
				words[v.String()] = make([]float64, len(all))
			}
			words[v.String()][i] = 1
		}
		if len(numbers) < len(rows) {
			for _, w := range slices.Sorted(maps.Keys(words))[1:] { // the others tell the first
				out[name] = append(out[name], words[w])
			}
			continue
		}
		line, parabola := make([]float64, len(all)), make([]float64, len(all))
		for i, r := range propose.Ranks(numbers) {
			r = 2*r - 1
			line[rows[i]], parabola[rows[i]] = r, r*r-1.0/3
		}
		if out[name] = [][]float64{line}; curved && len(words) > 2 {
			out[name] = append(out[name], parabola)
		}
	}
	return out
}

// span is an orthonormal base of the columns of all knobs but one, without their means.
func span(columns map[string][][]float64, names []string, but string) [][]float64 {
	var out [][]float64
	for _, name := range names {
		if name == but {
			continue
		}
		for _, c := range columns[name] {
			r := residual(c, out)
			if norm := floats.Norm(r, 2); norm > 1e-6 { // else the others tell it
				floats.Scale(1/norm, r)
				out = append(out, r)
			}
		}
	}
	return out
}

// residual is what is left of a column without its mean and its part along a base.
func residual(column []float64, base [][]float64) []float64 {
	if len(column) == 0 {
		return nil
	}
	out := slices.Clone(column)
	floats.AddConst(-floats.Sum(out)/float64(len(out)), out)
	for range 2 { // the second time removes what rounding left
		for _, b := range base {
			floats.AddScaled(out, -floats.Dot(out, b), b)
		}
	}
	return out
}

// failed are the trials that failed before an epoch, or before their first.
func failed(s *searcher.Searcher, epoch int) (n int, with map[string]string) {
	var lost []tuning.Settings
	with = map[string]string{}
	for _, t := range s.Trials {
		if t.State == searcher.Failed && t.Last().Epoch < max(epoch, 1) {
			lost = append(lost, t.Settings)
		}
	}
	for _, name := range tuning.Knobs(lost) {
		with[name] = among(lost, name)
	}
	return len(lost), with
}

// among are the values of a knob in some trials: the range of numbers, or the words.
func among(trials []tuning.Settings, name string) string {
	var values []tuning.Value
	for _, s := range trials {
		if v := s[name]; v.IsSet() {
			values = append(values, v)
		}
	}
	slices.SortFunc(values, tuning.Value.Compare)
	values = slices.Compact(values)
	switch n := len(values); {
	case n == 0:
		return "not set"
	case n > 1 && values[0].IsNumber() && values[n-1].IsNumber():
		return values[0].String() + " to " + values[n-1].String()
	}
	return strings.Join(tuning.Each(values, tuning.Value.String), ", ")
}

// Text prints the importance for people.
func (i Importance) Text() string {
	left := ""
	if i.Failed > 0 {
		with := tuning.Each(slices.Sorted(maps.Keys(i.FailedWith)), func(name string) string { return name + " " + i.FailedWith[name] })
		left = fmt.Sprintf("Left out: %s that failed, with %s.\n", report.Count(i.Failed, "trial"), strings.Join(with, "; "))
	}
	if i.Unknown != "" {
		return "Which hyperparameters mattered is unknown: " + i.Unknown + ".\n" + left
	}
	return report.List([]string{"KNOB", "EXPLAINS", "VERDICT", "BY LUCK", "IN THE BEST QUARTER"}, i.Knobs, func(k Knob) []string {
		return []string{k.Name, fmt.Sprintf("%.0f %%", 100*k.Share), string(k.Verdict), luck(k.P), k.Best}
	}) + fmt.Sprintf("\n%d trials after %d epochs. The knobs together explain %.0f %% of how their values differ.\n", i.Trials, i.Epoch, 100*i.Explained) + left
}

func luck(p float64) string {
	if p < 0.001 {
		return "under 0.1 %"
	}
	return strconv.FormatFloat(100*p, 'f', max(0, int(1-math.Log10(100*p))), 64) + " %"
}
