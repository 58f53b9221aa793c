package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ParseReport reads the body of a progress report: JSON, or words of the form
// key=value, or the one word saved. A report is about an epoch or of a checkpoint,
// never of both. Every error is ErrInvalid.
func ParseReport(body []byte) (Report, error) {
	var r Report
	err := parse(body, &r, map[string]func(string) error{
		"saved": func(text string) error {
			if r.Saved = text == ""; !r.Saved {
				return errors.New("saved has no value")
			}
			return nil
		},
		"epoch": func(text string) (err error) {
			epoch, total, both := strings.Cut(text, "/")
			if r.Epoch, err = natural(epoch); err == nil && both {
				r.Total, err = natural(total)
			}
			return err
		},
		"total":   func(text string) (err error) { r.Total, err = natural(text); return err },
		"loss":    func(text string) error { return number(text, &r.Loss, &r.Diverged) },
		"quality": func(text string) error { return number(text, &r.Quality, &r.Diverged) },
	})
	if err != nil {
		return Report{}, fmt.Errorf("report: %w: %w", ErrInvalid, err)
	}
	switch {
	case (r.Saved || r.Begins) && (r.Saved == r.Begins || r.Epoch != 0 || r.Total != 0 || r.Loss != nil || r.Quality != nil):
		return Report{}, fmt.Errorf("report: %w: want exactly one of saved, begins and an epoch", ErrInvalid)
	case r.Nth < 0:
		return Report{}, fmt.Errorf("report: %w: line %d: lines count from 1", ErrInvalid, r.Nth)
	case !r.Saved && !r.Begins && (r.Epoch < 1 || r.Total < 0):
		return Report{}, fmt.Errorf("report: %w: epoch %d of %d: epochs count from 1", ErrInvalid, r.Epoch, r.Total)
	}
	return r, nil
}

// parse reads JSON into v, or words of the form key=value, or key alone, by the function of
// the key.
func parse(body []byte, v any, keys map[string]func(text string) error) error {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte{'{'}) {
		return json.Unmarshal(body, v)
	}
	for word := range strings.FieldsSeq(string(body)) {
		key, text, _ := strings.Cut(word, "=")
		if keys[key] == nil {
			return fmt.Errorf("%.40q is not of the form key=value with one of the keys %s", word, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		if err := keys[key](text); err != nil {
			return fmt.Errorf("%.40q: %w", word, err)
		}
	}
	return nil
}

func natural(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a whole number", text)
	}
	return int(n), nil
}

// number reads a number. NaN and infinity are not errors, since the epoch ended all the same.
func number(text string, into **float64, diverged *bool) error {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		*diverged = true
	case err != nil:
		return fmt.Errorf("%.40q is not a number", text)
	default:
		*into = &v
	}
	return nil
}

// Origin is who set a budget.
type Origin string

// The three that may say something, each for itself. The lowest of what they say counts,
// so that none can raise what another said.
const (
	ByAdministrator Origin = "administrator" // a file on the node
	ByController    Origin = "controller"    // root, the exporter's readers, callers over TLS
	ByOwner         Origin = "owner"         // the job's user
)

// Budget is what a job may use. Nothing is stopped at its end: it is what alerts
// compare with.
type Budget struct {
	// Joules are those that all attempts of the job may use together. 0, where one is
	// set: it removes the budget of its origin.
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
	b := Budget{Joules: -1}
	number := func(to *float64) func(string) error {
		return func(text string) (err error) { *to, err = strconv.ParseFloat(text, 64); return err }
	}
	err := parse(body, &b, map[string]func(string) error{
		"joules": number(&b.Joules), "used": number(&b.Used), "seconds": number(&b.Seconds),
		"counts": func(text string) error {
			if b.Modelled = text == "modelled"; !b.Modelled && text != "measured" {
				return errors.New("want measured or modelled")
			}
			return nil
		},
	})
	if err == nil {
		err = b.Check()
	}
	if err != nil {
		return Budget{}, fmt.Errorf("%w: a budget: %w", ErrInvalid, err)
	}
	b.By = ""
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
	for _, by := range []Origin{ByAdministrator, ByController, ByOwner} { // the highest authority first
		b, ok := s[by]
		if b.By = by; ok && out == nil {
			out = &b
		}
		if !ok {
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
