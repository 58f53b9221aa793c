package knowledge

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// between are the effects of settings that the trials of a search ran under, whether or not they ran under
// the asker's own too: the time of all their epochs is attributed to the setting, the hyperparameters, the
// machine and, since its data may have been others, the search.
func (a Asker) between(all []run, m tuning.Measure, now time.Time) (out []tuning.Effect) {
	source, machine, under := commonSource(all), a.Machine, map[string]*tuning.Effect{}
	var times, joules []point
	for _, r := range slices.Backward(all) {
		machine = cmp.Or(machine, r.machine)
		had := map[string]bool{}
		for _, t := range r.trials {
			at, s := a.learned(t.Settings), a.others(t.Settings).WithoutMemory()
			key := otherSettings + s.Key()
			if s.Equal(a.others(a.Own).WithoutMemory()) {
				key = ""
			} else if under[key] == nil {
				under[key] = &tuning.Effect{Settings: a.learned(a.Own).Merge(s), Age: days(r.at, now)}
			}
			if had[key] || !(t.Weight() >= 1) {
				continue
			}
			had[key] = true
			for column, apart := range map[string]bool{key: key != "", " machine " + r.machine: r.machine != machine, " search " + r.search: r.search != a.Search} {
				if apart {
					at = at.With(column, tuning.Number(1))
				}
			}
			times = append(times, point{at, math.Log(t.Seconds)})
			if t.Joules != nil && *t.Joules > 0 && t.Source == source {
				joules = append(joules, point{at, math.Log(float64(*t.Joules))})
			}
		}
	}
	if a.Seconds > 0 && a.Machine != "" {
		times = append(times, point{a.learned(a.Own), math.Log(a.Seconds)})
	}
	took, ok := a.fit(times)
	if !ok || !among(times, "") {
		return nil
	}
	spent, _ := a.fit(joules)
	wj, ws := m.Weights()
	own := tuning.Trial{Settings: a.Own, Seconds: math.Exp(took[""].value), Source: source}
	if among(joules, "") {
		own.Joules = new(tuning.Joules(math.Exp(spent[""].value)))
	}
	for _, key := range slices.Sorted(maps.Keys(under)) {
		e, sum, squares := under[key], 0.0, 0.0
		t := tuning.Trial{Settings: a.Own.Merge(e.Settings), Seconds: own.Seconds * math.Exp(took[key].value), Source: source}
		if own.Joules != nil && among(joules, key) {
			t.Joules = new(*own.Joules * tuning.Joules(math.Exp(spent[key].value)))
		}
		for _, p := range times {
			if p.under(key) {
				work := p.value - took[key].value - took[""].value
				e.Runs, sum, squares = e.Runs+1, sum+work, squares+work*work
			}
		}
		ratio, ok := t.LogRatio(own, m)
		sd := math.Hypot(ws*took[key].sd, wj*spent[key].sd)
		e.LogRatio, e.LogTime, e.SD = ratio, took[key].value, sd*math.Sqrt(float64(e.Runs))
		e.Apart = math.Hypot(workEffect*sum/float64(e.Runs), workBend*math.Sqrt(squares/float64(e.Runs)))
		if ok && e.Error(0) < foretold {
			out = append(out, *e)
		}
	}
	return out
}

// surer are the effects of two lists, the surer where both have one.
func surer(out, others []tuning.Effect) []tuning.Effect {
	for _, e := range others {
		switch i := slices.IndexFunc(out, func(x tuning.Effect) bool { return x.Settings.Equal(e.Settings) }); {
		case i < 0:
			out = append(out, e)
		case e.Error(0) < out[i].Error(0):
			out[i] = e
		}
	}
	slices.SortStableFunc(out, func(x, y tuning.Effect) int { return cmp.Compare(x.LogRatio, y.LogRatio) })
	return out
}

// under reports whether a run had the settings of a column; "" are the asker's own.
func (p point) under(key string) bool {
	if key != "" {
		return p.at[key].IsSet()
	}
	for name := range p.at {
		if strings.HasPrefix(name, otherSettings) {
			return false
		}
	}
	return true
}

func among(from []point, key string) bool {
	return slices.ContainsFunc(from, func(p point) bool { return p.under(key) })
}

// commonSource is where most trials have their joules from.
func commonSource(all []run) (source string) {
	n := map[string]int{}
	for _, r := range all {
		for _, t := range r.trials {
			if n[t.Source]++; t.Joules != nil && n[t.Source] > n[source] {
				source = t.Source
			}
		}
	}
	return source
}
