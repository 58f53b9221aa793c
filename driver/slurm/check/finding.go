package check

import (
	"cmp"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

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

// rule is an entry of findings.yaml, or a case of one: texts and conditions.
type rule struct {
	Name, Where, If, Each       string
	OK, Missing, Wrong, Unknown string // of a case: its condition
	Looked, Why, Needed         string
	Change                      []string
	Then                        *string
	Cases                       []rule
}

// Judge says what the facts mean. The facts have to have Slurm: without an answer of slurmctld
// there is nothing to judge.
func Judge(f Facts) Report {
	var rules []rule
	if err := yaml.Unmarshal(findings, &rules); err != nil {
		panic(err) // the file is part of the program, and tests read it
	}
	j := &judge{Facts: f, Ours: readSubmit(f.Submit.Text), Read: ReadPrologConf(f.PrologConf.Text)}
	r := Report{Cluster: f.Slurm["ClusterName"], Version: f.Slurm["SLURM_VERSION"], Mode: f.Mode, Caller: f.Caller, Passed: true}
	where := ""
	for _, rule := range rules {
		where = cmp.Or(rule.Where, where)
		rule.Where = where
		for _, j.It = range j.each(rule.Each) {
			if rule.If == "" || j.so(rule.If) {
				j.say(rule)
			}
		}
	}
	var files []string
	for _, finding := range j.out {
		r.Passed = r.Passed && !finding.Fails(f.Mode)
		if !slices.Contains(files, finding.Where) {
			files = append(files, finding.Where)
		}
	}
	slices.SortStableFunc(j.out, func(a, b Finding) int { return slices.Index(files, a.Where) - slices.Index(files, b.Where) })
	r.Findings = j.out
	return r
}

func (j *judge) say(r rule) {
	f := Finding{Name: r.Name, Where: j.fill(r.Where), Verdict: OK}
	for _, c := range r.Cases {
		verdicts := []Verdict{OK, Missing, Wrong, Unknown}
		i := slices.IndexFunc([]string{c.OK, c.Missing, c.Wrong, c.Unknown}, func(condition string) bool { return condition != "" && j.so(condition) })
		if i < 0 {
			continue
		}
		if f.Verdict = verdicts[i]; f.Verdict == Unknown {
			r.Change, r.Then = nil, nil
		}
		r.Looked, r.Why, r.Needed = cmp.Or(c.Looked, r.Looked), cmp.Or(c.Why, r.Why), cmp.Or(c.Needed, r.Needed)
		if c.Change != nil {
			r.Change = c.Change
		}
		r.Then = cmp.Or(c.Then, r.Then)
		break
	}
	f.Looked, f.Why, f.Needed = j.fill(r.Looked), r.Why, j.needed(j.fill(r.Needed))
	if f.Verdict != OK { // else there is nothing to do
		for _, line := range r.Change {
			f.Change = append(f.Change, strings.Split(j.fill(line), "\n")...)
		}
		if r.Then != nil {
			f.Then = j.fill(*r.Then)
		}
	}
	j.out = append(j.out, f)
}

func (j *judge) fill(text string) string {
	var b strings.Builder
	t, err := template.New("").Delims("{", "}").Option("missingkey=zero").Funcs(template.FuncMap{
		"prefix": strings.HasPrefix, "suffix": strings.HasSuffix, "contains": strings.Contains, "clean": path.Clean, "dir": path.Dir, "before": before,
		"mul": func(a, b int) int { return a * b }, "ours": ours, "calls": callsProlog, "version": withoutConf,
	}).Parse(text)
	if err == nil {
		err = t.Execute(&b, j)
	}
	if err != nil {
		return fmt.Sprintf("%q: %v", text, err) // a test finds it
	}
	return b.String()
}

func (j *judge) so(condition string) bool { return j.fill("{if "+condition+"}y{end}") == "y" }

// needed returns the modes that a word of findings.yaml means.
func (j *judge) needed(word string) []Mode {
	switch word {
	case "":
		return []Mode{}
	case "both":
		return []Mode{Owner, Site}
	}
	return []Mode{Mode(word)}
}
