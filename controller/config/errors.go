package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/nearest"
)

// ErrInvalid is what every fault of a configuration or of a site's policy wraps:
// a person has to change what is written.
var ErrInvalid = errors.New("invalid configuration")

// ErrUntrusted is returned for a site's policy that others than root could have
// written: a person has to look at it and set its owner and mode.
var ErrUntrusted = errors.New("untrusted policy file")

// Error is one fault.
type Error struct {
	Where string // file:line:column, the variable, or the flag
	Key   string // the key, empty where the fault is not about one
	Found string
	Want  string // what is allowed there, and the nearest known word where one is near
	at    place  // for sorting; zero where it is not in a file
	cause error  // of a path that cannot be used, else nil
}

// Error prints one line: where: key: found; want.
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Where + ": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Found)
	if e.Want != "" {
		b.WriteString("; " + e.Want)
	}
	return b.String()
}

// Unwrap returns ErrInvalid, and what the system said where a path cannot be used.
func (e Error) Unwrap() []error {
	if e.cause != nil {
		return []error{ErrInvalid, e.cause}
	}
	return []error{ErrInvalid}
}

// Errors are all faults, those of a file in the order of their places.
type Errors []Error

// Error prints one fault a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look at each fault.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// unknown is the fault of a key that does not exist.
func unknown(at place, path, name string, known []string) Error {
	want := "want one of " + strings.Join(known, ", ")
	if near := nearest.Word(name, known); near != "" {
		want = fmt.Sprintf("did you mean %q?", near)
	}
	return Error{Where: at.String(), Key: path, Found: fmt.Sprintf("unknown key %q", name), Want: want, at: at}
}

// sorted puts the faults of a file in the order of their places, and the others
// behind them.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(cmp.Compare(b.at.file, a.at.file), cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	return es
}

// wanted is the part of an error that says what is allowed: the parsers of units
// repeat what was found before it.
func wanted(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "want "); i > 0 && errors.Is(err, tuning.ErrUnit) {
		return text[i:]
	}
	return text
}
