package jobfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Fix holds the changes that make a job file run one trial of a search.
type Fix struct {
	Env   map[string]string // variables that it sets
	Args  map[string]string // flag → value, where the file has a command line
	Cores int               // 0: as it has them

	// Knobs leave the stanza, and with them what only a search may say, so that the file is an
	// ordinary job. Search: the job is a trial, and the stanza stays as it is.
	Knobs  []string
	Mode   string // takes the place of the search in a stanza that names no mode
	Search bool
}

// FixedMark ends a line of a batch script that sets a variable of a Fix. Such a line makes
// the script no other command.
const FixedMark = " # set by pitchpipe search"

// Leaves reports whether a block of the stanza is left out.
func (f Fix) Leaves(block, label string) bool {
	return !f.Search && (block == "search" || block == "knob" && slices.Contains(f.Knobs, label))
}

// Drops reports whether a key of a block that stays is left out.
func (f Fix) Drops(block, key string) bool {
	return !f.Search && (block == "knob" && key == "when" || block == "quality" && key == "measures")
}

// Check refuses what no job file can say. Nomad itself replaces what is in ${...}.
func (f Fix) Check(filename string, format Format) error {
	var faults Errors
	fail := func(found, want string) {
		faults = append(faults, Fault(filename, found, want)...)
	}
	for _, values := range []map[string]string{f.Env, f.Args} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			switch value := values[name]; {
			case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
				fail("a value of "+name+" that is no line of text", "want one line of UTF-8 without control characters")
			case format == Sbatch && value == "":
				fail("an empty value of "+name, "want one: ${"+name+":-...} takes its default else")
			case format != Sbatch && strings.Contains(value, "${"):
				fail("a value of "+name+" with ${", "want one in which Nomad replaces nothing")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
			fail("the variable "+name, "want letters, digits and _")
		}
	}
	if format == Sbatch && len(f.Args) > 0 {
		fail("a batch script has no command line to change", "want knobs that variables carry")
	}
	return faults.Err()
}
