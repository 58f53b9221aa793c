package budget

import (
	"maps"

	"pitchpipe/exporter/api"
)

// Set holds at most one budget of each origin. The nil Set is empty.
type Set map[api.Origin]api.Budget

// With is the set in which an origin says something else; a budget without joules takes
// what it said away.
func (s Set) With(by api.Origin, b api.Budget) Set {
	out := maps.Clone(s)
	if b.Joules <= 0 {
		delete(out, by)
		return out
	}
	if out == nil {
		out = Set{}
	}
	b.By = by
	out[by] = b
	return out
}

// Counts is the budget that counts, nil where nobody set one: the lowest number of
// joules and of seconds, and the most that anybody knows to be used. Whether modelled
// joules count is for the highest authority among them to say.
func (s Set) Counts() *api.Budget {
	var out *api.Budget
	for _, by := range api.Origins() {
		b, ok := s[by]
		if !ok {
			continue
		}
		if out == nil {
			b.By = by
			out = &b
			continue
		}
		if b.Joules < out.Joules {
			out.Joules, out.By = b.Joules, by
		}
		if b.Seconds > 0 && (out.Seconds <= 0 || b.Seconds < out.Seconds) {
			out.Seconds = b.Seconds
		}
		out.Used = max(out.Used, b.Used)
	}
	return out
}
