package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// Origin is who set a budget.
type Origin string

// The three that may say something, each for itself. The lowest of what they say counts,
// so that none can raise what another said.
const (
	ByAdministrator Origin = "administrator" // a file on the node
	ByController    Origin = "controller"    // root, the exporter's readers, callers over TLS
	ByOwner         Origin = "owner"         // the job's user
)

// Origins lists them, the highest authority first.
func Origins() []Origin { return []Origin{ByAdministrator, ByController, ByOwner} }

// Budget is what a job may use. Nothing is stopped at its end: it is what alerts
// compare with.
type Budget struct {
	// Joules are those that all attempts of the job may use together. 0, where one is
	// set: whoever says so has no budget any more.
	Joules float64 `json:"joules"`
	// Used is how many of them earlier attempts used, as far as that is known.
	Used float64 `json:"used_joules,omitempty"`
	// Seconds are the wall time of this attempt; 0 = not known.
	Seconds float64 `json:"seconds,omitempty"`
	// Modelled joules count against it; else it is compared with measured ones alone.
	Modelled bool `json:"modelled,omitempty"`
	// By is whose budget it is. The exporter says so: what a caller says is ignored.
	By Origin `json:"by,omitempty"`
}

// No budget is larger: ten years of a supercomputer.
const maxJoules = 1e16

// ParseBudget reads JSON, or words of the form key=value with the keys joules, used,
// seconds and counts, which is measured or modelled:
//
//	joules=2e6 seconds=14400 counts=measured
//
// Joules are needed. Every error is ErrInvalid.
func ParseBudget(body []byte) (Budget, error) {
	body = bytes.TrimSpace(body)
	var b Budget
	var err error
	if bytes.HasPrefix(body, []byte{'{'}) {
		err = json.Unmarshal(body, &b)
	} else {
		b, err = budgetWords(string(body))
	}
	if err == nil {
		err = b.Check()
	}
	if err != nil {
		return Budget{}, fmt.Errorf("%w: a budget: %w", ErrInvalid, err)
	}
	b.By = ""
	return b, nil
}

func budgetWords(text string) (b Budget, err error) {
	b.Joules = -1
	for word := range strings.FieldsSeq(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return b, fmt.Errorf("%q: want key=value", word)
		}
		number := map[string]*float64{"joules": &b.Joules, "used": &b.Used, "seconds": &b.Seconds}[key]
		switch {
		case number != nil:
			if *number, err = strconv.ParseFloat(value, 64); err != nil {
				return b, fmt.Errorf("%s=%q: want a number", key, value)
			}
		case key == "counts" && (value == "measured" || value == "modelled"):
			b.Modelled = value == "modelled"
		case key == "counts":
			return b, fmt.Errorf("counts=%q: want measured or modelled", value)
		default:
			return b, fmt.Errorf("%q is not a key: want joules, used, seconds or counts", key)
		}
	}
	if b.Joules < 0 {
		return b, fmt.Errorf("%q: want joules=NUMBER", text)
	}
	return b, nil
}

// Check reports what is wrong with the numbers.
func (b Budget) Check() error {
	for _, n := range []struct {
		name  string
		value float64
	}{{"joules", b.Joules}, {"used", b.Used}, {"seconds", b.Seconds}} {
		if math.IsNaN(n.value) || n.value < 0 || n.value > maxJoules {
			return fmt.Errorf("%s %g: want a number from 0 to %g", n.name, n.value, float64(maxJoules))
		}
	}
	return nil
}

// Counts says which joules a budget is compared with: measured or modelled.
func (b Budget) Counts() string {
	if b.Modelled {
		return "modelled"
	}
	return "measured"
}

// Budgets holds at most one budget of each origin. The nil Budgets is empty.
type Budgets map[Origin]Budget

// With returns the budgets where an origin sets another one; a budget without joules
// removes its own.
func (s Budgets) With(by Origin, b Budget) Budgets {
	out := maps.Clone(s)
	if b.Joules <= 0 {
		delete(out, by)
		return out
	}
	if out == nil {
		out = Budgets{}
	}
	b.By = by
	out[by] = b
	return out
}

// Lowest is the budget that counts, nil where no origin set one: the lowest number of
// joules and of seconds, and the highest of used joules. The highest authority among them
// decides whether modelled joules count.
func (s Budgets) Lowest() *Budget {
	var out *Budget
	for _, by := range Origins() {
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
