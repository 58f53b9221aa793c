package benchmind

import (
	"fmt"
	"maps"
	"slices"
)

// aim is what was asked for, next to what was reached.
type aim struct {
	what   string
	want   string
	got    string
	met    bool
	missed string // by how much; empty where it was met or not measured
}

func atMost(what string, got float64, known bool, limit float64) aim {
	return bound(what, got, known, limit, "at most", got <= limit)
}

func atLeast(what string, got float64, known bool, limit float64) aim {
	return bound(what, got, known, limit, "at least", got >= limit)
}

// atMost wants the number of a key to be at most a limit.
func (f fields) atMost(what, key string, limit float64) aim {
	v, known := f.number(key)
	return atMost(what, v, known, limit)
}

// atLeast wants the number of a key to be at least a limit.
func (f fields) atLeast(what, key string, limit float64) aim {
	v, known := f.number(key)
	return atLeast(what, v, known, limit)
}

func bound(what string, got float64, known bool, limit float64, words string, met bool) aim {
	a := aim{what: what, want: fmt.Sprintf("%s %.4g", words, limit), got: "-", met: known && met}
	if known {
		a.got = fmt.Sprintf("%.4g", got)
	}
	if known && !met {
		a.missed = fmt.Sprintf("%.2g", max(got-limit, limit-got))
	}
	return a
}

// counted wants all but a few of the rows to reach something.
func counted(what string, rows []fields, spare int, reaches func(fields) bool) aim {
	n := 0
	for _, r := range rows {
		if reaches(r) {
			n++
		}
	}
	want := max(len(rows)-spare, 1)
	a := aim{what: what, want: fmt.Sprintf("%d of %d", want, len(rows)), got: fmt.Sprintf("%d of %d", n, len(rows)), met: n >= want}
	if !a.met {
		a.missed = fmt.Sprint(want - n)
	}
	return a
}

// ordered reports whether one key's number is at most so many times another's.
func ordered(r fields, key string, times float64, other string) bool {
	a, okA := r.number(key)
	b, okB := r.number(other)
	return okA && okB && a <= times*b
}

// byWord splits rows by a word, in its order.
func byWord(rows []fields, key string) (words []string, of map[string][]fields) {
	of = map[string][]fields{}
	for _, r := range rows {
		of[r.word(key)] = append(of[r.word(key)], r)
	}
	return slices.Sorted(maps.Keys(of)), of
}

func perMachine(o object, what string, reaches func(fields) bool) []aim {
	var out []aim
	machines, of := byWord(o.Rows, "machine")
	for _, m := range machines {
		out = append(out, counted(what+", "+m, of[m], 1, reaches))
	}
	return out
}

func aimsOfReference(o object) []aim {
	return append(perMachine(o, "workloads whose joules of all runs are at or below the published reference", func(r fields) bool {
		return ordered(r, "cumulative_energy_ratio", 1, "reference_cumulative_energy_ratio")
	}), perMachine(o, "the same, a whole run at a time as the controller does", func(r fields) bool {
		return ordered(r, "whole_cumulative_energy_ratio", 1, "reference_cumulative_energy_ratio")
	})...)
}

func aimsOfConstrained(o object) []aim {
	return append(perMachine(o, "workloads whose final setting costs at most 1.03 of the constrained oracle's", func(r fields) bool {
		broken, _ := r.number("limits_broken")
		return broken == 0 && ordered(r, "final_ratio", 1.03, "oracle_ratio")
	}), perMachine(o, "the same, a whole run at a time as the controller does", func(r fields) bool {
		broken, _ := r.number("whole_limits_broken")
		return broken == 0 && ordered(r, "whole_final_ratio", 1.03, "oracle_ratio")
	})...)
}

func aimsOfTen(o object) []aim {
	return []aim{
		counted("tables whose final setting is no worse than the best power limit at the default batch", o.Rows, 2, func(r fields) bool {
			return ordered(r, "final_ratio", 1+1e-9, "system_knob_oracle_ratio")
		}),
		o.Summary.atMost("the worst final setting, relative to the default", "worst_final_ratio", 1.1),
		o.Summary.atMost("the worst cost of all runs, relative to the default", "worst_cumulative_ratio", 1.1),
	}
}

func aimsOfCores(o object) []aim {
	var out []aim
	_, of := byWord(o.Rows, "machine")
	for _, m := range []string{"xeon", "arm"} {
		saved, best := 0.0, 0.0
		for _, r := range of[m] {
			final, _ := r.number("final_kept_ratio")
			oracle, _ := r.number("oracle_ratio")
			saved += 1 - final
			best += 1 - oracle
		}
		out = append(out, atLeast("share of the oracle's summed saving, "+m, saved/best, best > 0, 0.8))
	}
	broken := 0.0
	for _, r := range o.Rows {
		if v, _ := r.number("limits_broken"); v > 0 {
			broken++
		}
	}
	return append(out, atMost("tables on which a limit is broken", broken, len(o.Rows) > 0, 1))
}

func aimsOfAttain(o object) []aim {
	return []aim{counted("tables within one core step of the fewest cores", o.Rows, 0, func(r fields) bool {
		steps, ok := r.number("steps_above")
		broken, _ := r.number("limits_broken")
		return ok && steps <= 1 && broken == 0
	})}
}

func aimsOfClasses(o object) []aim {
	s := o.Summary
	out := []aim{
		s.atLeast("share recognised at equal settings", "recognised", 0.90),
		s.atLeast("precision among the recognised", "precision", 0.97),
		s.atLeast("area for programs left out, mean", "unknown_auc", 0.97),
		s.atLeast("area for the worst program left out", "unknown_auc_min", 0.93),
		s.atMost("programs left out that are called known", "unknown_called_known", 0.05),
	}
	if programs, ok := s.number("programs"); ok && s["k_max"] != nil {
		out = append(out, s.atMost("classes of any fit", "k_max", 2*programs))
	}
	for _, v := range s.list("variations") {
		switch v.word("name") {
		case "other cores or threads":
			recognised, _ := v.number("recognised")
			precision, ok := v.number("precision")
			refused, _ := v.number("refused")
			out = append(out, aim{
				what: "other core counts: right at 0.90, or refused", want: "one of both",
				got: fmt.Sprintf("%.2f recognised, %.2f refused", recognised, refused), met: refused == 1 || ok && recognised*precision >= 0.9,
				missed: "neither",
			})
		case "another set of counters":
			out = append(out, v.atLeast("another set of counters is refused", "refused", 1))
		}
	}
	return out
}

func aimsOfRegret(o object) []aim {
	return []aim{
		o.Summary.atMost("cost of what an input that was left out got, over its own optimum", "regret_mean", 1.05),
		o.Summary.atLeast("cost of the best single setting for all, so that there is something to decide", "single_regret_mean", 1.15),
	}
}

func aimsOfPlan(o object) []aim {
	s, again := o.Summary, o.Summary.one("returned")
	paid, _ := s.number("paid")
	all, _ := s.number("ratio")
	return []aim{
		s.atMost("cost of all jobs, relative to never moving", "ratio", 1),
		s.atMost("share of the jobs that were hurt, not above the share that paid", "hurt", paid),
		s.atMost("cost of the job that was hurt most", "worst_ratio", 1.05),
		again.atMost("cost of the jobs that came again, not above those met for the first time", "ratio", all),
		again.atMost("share of these that were hurt", "hurt", 0.05),
	}
}

// manyRuns is from how many runs on an interval's coverage is asked for.
const manyRuns = 100

func aimsOfForecast(o object) []aim {
	known := slices.DeleteFunc(slices.Clone(o.Rows), func(r fields) bool {
		_, a := r.number("final_error_median")
		_, b := r.number("last_value_error_median")
		return !a || !b
	})
	many := slices.DeleteFunc(slices.Clone(o.Rows), func(r fields) bool {
		runs, _ := r.number("runs")
		_, ok := r.number("interval80_coverage")
		return runs < manyRuns || !ok
	})
	return []aim{
		counted("families and shares whose error is at most 1.02 of the better of last value and best single model", known, 0, func(r fields) bool {
			last, _ := r.number("last_value_error_median")
			if single, ok := r.number("best_single_error_median"); ok {
				last = min(last, single)
			}
			err, _ := r.number("final_error_median")
			return err <= 1.02*last
		}),
		counted("of at least 100 runs: 80 % intervals that cover 75 to 90 %", many, 0, func(r fields) bool {
			v, _ := r.number("interval80_coverage")
			return v >= 0.75 && v <= 0.90
		}),
	}
}

func aimsOfSpeed(limit float64) func(object) []aim {
	return func(o object) []aim {
		return []aim{
			o.Summary.atMost("mean error on unseen cells", "error_mean", limit),
			counted("workloads whose chosen setting attains 0.95 of the best", o.Rows, 0, func(r fields) bool {
				v, ok := r.number("attained")
				return ok && v >= 0.95
			}),
		}
	}
}

// aimsOfSearch are about the best of the methods, told with its name.
func aimsOfSearch(o object) []aim {
	var out []aim
	files, of := byWord(o.Summary.list("means"), "data")
	for _, f := range files {
		out = append(out, overRandom(family(f)+", log ratio to the optimum over random's at 10 evaluations", where(of[f], fields{"budget": 10.0}))...)
	}
	return out
}

func aimsOfHyper(o object) []aim {
	var out []aim
	for _, m := range []struct {
		method, what string
		most         float64
	}{
		{"asha", "regret of ASHA over random's at equal seconds", 0.45},
		{"asha_gaussian_process", "the same with a Gaussian process", 0.28},
		{"asha_gaussian_process_warm", "the same with a history", 0.22},
	} {
		for _, mean := range o.Summary.list("means") {
			if mean.word("method") == m.method {
				out = append(out, mean.atMost(m.what, "over_random", m.most))
			}
		}
	}
	return out
}

// overRandom wants the best of several methods to be at half of random's.
func overRandom(what string, means []fields) []aim {
	best, name, known := 0.0, "", false
	for _, m := range means {
		if v, ok := m.number("over_random"); ok && (!known || v < best) {
			best, name, known = v, m.word("method"), true
		}
	}
	if name != "" {
		what += ", " + name
	}
	return []aim{atMost(what, best, known, 0.5)}
}

func aimsOfVerdicts(o object) []aim {
	none := where(o.Rows, fields{"effect": 0.0})
	kept := slices.DeleteFunc(slices.Clone(none), func(r fields) bool { return r.word("limit") != "" })
	level, _ := o.Summary.number("level")
	over, _ := o.Summary["over"].([]any)
	return []aim{
		{
			what: "nulls whose share of false verdicts is above the level by more than chance", want: fmt.Sprintf("none of %d", len(kept)),
			got: fmt.Sprint(len(over)), met: len(over) == 0 && len(kept) > 0, missed: fmt.Sprint(len(over)),
		},
		o.Summary.atMost("share of false verdicts however often it is looked at, worst null", "false_verdicts_max", level),
	}
}
