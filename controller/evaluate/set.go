package evaluate

import (
	"fmt"
	"slices"
)

// Set holds the tables that an evaluation reads.
type Set struct {
	Trials  []Table
	Samples []Table
	Curves  []Table // or adaptations
}

// Files names the tables.
func (s Set) Files() []string {
	out := []string{}
	for _, t := range slices.Concat(s.Trials, s.Samples, s.Curves) {
		out = append(out, t.File)
	}
	return out
}

// Load reads each file in the first of several formats that its columns fit, and in the
// first of all where they fit none: the error then says what is missing.
func Load(files []string, formats ...Format) ([]Table, error) {
	var out []Table
	for _, file := range files {
		format, err := FormatOf(file)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(formats, format) {
			format = formats[0]
		}
		t, err := Read(file, format)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Table) bool { return o.File == t.File }) {
			return nil, fmt.Errorf("%w: %s is named twice", ErrInvalid, file)
		}
		out = append(out, t)
	}
	return out, nil
}
