package config

import (
	"cmp"
	"errors"
	"slices"
)

// ErrInvalid is what every fault of a configuration or of a site's policy wraps: a person has
// to change what is written.
var ErrInvalid = errors.New("invalid configuration")

// ErrUntrusted is returned for a file that others than its owner may change, or read where it
// is a secret: a person has to look at it and set its owner and mode.
var ErrUntrusted = errors.New("untrusted file")

// Error is one fault.
type Error struct {
	Where string // file:line:column, the variable, or the flag
	Key   string // empty where the fault is not about one
	Found string
	Want  string // what is allowed there, and the nearest known word
	at    place  // for sorting; zero where it is not in a file
	cause error  // of a path that cannot be used, else nil
}

// Error prints one line: where: key: found; want.
func (e Error) Error() string {
	text := e.Where + ": "
	if e.Key != "" {
		text += e.Key + ": "
	}
	return text + e.Found + "; " + e.Want
}

// Unwrap returns ErrInvalid, and the system's error where a path cannot be used.
func (e Error) Unwrap() []error {
	if e.cause != nil {
		return []error{ErrInvalid, e.cause}
	}
	return []error{ErrInvalid}
}

// joined is one error of all faults, those of a file in the order of their places; nil: there
// are none.
func joined(faults []Error) error {
	slices.SortStableFunc(faults, func(a, b Error) int {
		return cmp.Or(cmp.Compare(b.at.file, a.at.file), cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	all := make([]error, len(faults))
	for i, e := range faults {
		all[i] = e
	}
	return errors.Join(all...)
}
