package check

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mode is whose jobs the controller tunes.
type Mode string

// The modes.
const (
	Owner Mode = "owner" // those of the user who runs it
	Site  Mode = "site"  // everybody's
)

// Verdict is what came of looking at one thing.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Missing Verdict = "missing" // it is not there
	Wrong   Verdict = "wrong"   // it is there, and not as it has to be
	Unknown Verdict = "unknown" // it cannot be seen by this user, or from this machine
)

// Finding is one thing that was looked at.
type Finding struct {
	Name    string   `json:"name"`             // stays the same between versions, such as slurm.task_prolog
	Where   string   `json:"where"`            // the file, or what else, that is changed
	Looked  string   `json:"looked"`           // what was looked at, and what was found
	Verdict Verdict  `json:"verdict"`          //
	Why     string   `json:"why,omitempty"`    // one sentence: why it matters
	Change  []string `json:"change,omitempty"` // the lines to write, or the commands to run
	Then    string   `json:"then,omitempty"`   // what makes the change count
	Needed  []Mode   `json:"needed"`           // in which modes nothing works as promised without it; none = advice
}

// Fails reports whether the mode lacks this.
func (f Finding) Fails(m Mode) bool {
	return (f.Verdict == Missing || f.Verdict == Wrong) && slices.Contains(f.Needed, m)
}

// Report is all that was found.
type Report struct {
	Cluster  string    `json:"cluster"`
	Version  string    `json:"version"` // of Slurm
	Mode     Mode      `json:"mode"`
	Caller   string    `json:"caller"`
	Passed   bool      `json:"passed"` // nothing that the mode needs is missing or wrong
	Findings []Finding `json:"findings"`
}

//go:embed findings.yaml
var findings []byte

// words are those of a finding or of one of its cases. Empty ones of a case are the finding's.
type words struct {
	Where, Looked, Why, Needed string
	Change                     []string
	Then                       *string
	Cases                      map[string]words
}

// UnmarshalYAML reads a case that is only a text: what was looked at.
func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&w.Looked)
	}
	type plain words
	return node.Decode((*plain)(w))
}

// judge collects findings.
type judge struct {
	Facts
	words map[string]words
	vars  map[string]string
	out   []Finding
}

// say adds a finding. The case begins with the verdict; vars are names and values that its
// words mention, beside those that all findings have.
func (j *judge) say(name, which string, vars ...string) Verdict {
	verdict, _, _ := strings.Cut(which, ".")
	of := j.words[name]
	is := of.Cases[which]
	fill := func(s string) string { return j.fill(s, vars) }
	either := func(a, b string) string {
		if a == "" {
			a = b
		}
		return fill(a)
	}
	f := Finding{Name: name, Verdict: Verdict(verdict), Where: fill(of.Where), Looked: either(is.Looked, of.Looked), Why: either(is.Why, of.Why)}
	f.Needed = j.needed(either(is.Needed, of.Needed))
	if f.Verdict != Unknown && is.Change == nil {
		is.Change = of.Change
	}
	if f.Verdict != Unknown && is.Then == nil {
		is.Then = of.Then
	}
	if f.Verdict != OK { // else there is nothing to do
		for _, line := range is.Change {
			f.Change = append(f.Change, strings.Split(fill(line), "\n")...)
		}
		if is.Then != nil {
			f.Then = fill(*is.Then)
		}
	}
	j.out = append(j.out, f)
	return f.Verdict
}

// fill replaces {NAME} by a value and {=KEY} by a setting of slurm.conf.
func (j *judge) fill(text string, vars []string) string {
	return regexp.MustCompile(`\{=?\w+\}`).ReplaceAllStringFunc(text, func(s string) string {
		name := s[1 : len(s)-1]
		if key, ok := strings.CutPrefix(name, "="); ok {
			if v := j.Slurm[key]; v != "" {
				return key + "=" + v
			}
			return key + " is not set"
		}
		for i := 0; i+1 < len(vars); i += 2 {
			if vars[i] == name {
				return vars[i+1]
			}
		}
		if v, ok := j.vars[name]; ok {
			return v
		}
		return s
	})
}

// needed are the modes of a word of findings.yaml.
func (j *judge) needed(word string) []Mode {
	switch {
	case word == "both", word == "plugin" && j.Config.Plugin, word == "prolog" && j.Config.TaskProlog:
		return []Mode{Owner, Site}
	case word == "plugin" && j.Config.Scripts, word == "":
		return []Mode{}
	case word == "mode":
		return []Mode{j.Mode}
	case word == "owner":
		return []Mode{Owner}
	}
	return []Mode{Site}
}

// is chooses a case of a finding where a condition holds.
type is struct {
	so    bool
	which string
}

// pick returns the first case whose condition holds, ok where there is none.
func pick(list ...is) string {
	for _, i := range list {
		if i.so {
			return i.which
		}
	}
	return string(OK)
}

// when is pick of one case.
func when(so bool, which string) string { return pick(is{so, which}) }
