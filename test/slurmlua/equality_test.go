package slurmlua_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// judged is what the controller says about a script, with what the plugin leaves to
// others taken for good:
//   - #SBATCH lines are Slurm's to judge;
//   - patterns are the controller's: each is replaced by one that compiles and has
//     the groups that are needed.
//
// The other difference is
// that what is beyond the limits in pitchpipe_script.lua is left to the controller;
// TestTheDifferences holds an example of each.
func judged(script string) (p tuning.Policy, faults jobfile.Errors, err error) {
	job, err := parsed(script)
	if errors.As(err, &faults) {
		return p, faults, nil
	}
	if err != nil {
		return p, nil, err
	}
	if job.Stanza != nil {
		leavePatterns(job.Stanza)
	}
	p, err = stanza.Policy(job)
	if errors.As(err, &faults) {
		return p, faults, nil
	}
	return p, nil, err
}

func parsed(script string) (*jobfile.Job, error) {
	options := regexp.MustCompile(`(?m)^#SBATCH`)
	return sbatch.Parse("job.sh", []byte(options.ReplaceAllString(script, "#sbatch")))
}

func leavePatterns(top *jobfile.Block) {
	for _, b := range top.Blocks {
		for i, a := range b.Attrs {
			pattern := b.Type == "progress" && a.Name == "pattern" || b.Type == "checkpoint" && a.Name == "done"
			if pattern && isText(a.Value) {
				b.Attrs[i].Value = jobfile.Value{Kind: jobfile.String, Text: "(?P<epoch>.)(?P<quality>.)"}
			}
		}
	}
}

// isText reports whether a value is one text that could be a pattern.
func isText(v jobfile.Value) bool {
	switch v.Kind {
	case jobfile.List:
		return !slices.ContainsFunc(v.List, func(i jobfile.Item) bool { return i.Value.Kind != jobfile.Bare || !isText(i.Value) })
	case jobfile.String, jobfile.Bare:
		return v.Text != "" && utf8.ValidString(v.Text) && !strings.ContainsFunc(v.Text, func(r rune) bool {
			return unicode.IsControl(r) && r != '\t' || r == utf8.RuneError || r == '\uFEFF'
		})
	case jobfile.Number, jobfile.Bool, jobfile.Other:
	}
	return false
}

// compare returns what is different between the plugin and the controller.
func compare(e *examiner, script string) (string, error) {
	got, err := e.examine(script)
	if err != nil {
		return "", err
	}
	_, faults, err := judged(script)
	if errors.Is(err, stanza.ErrNone) {
		if !got.none {
			return fmt.Sprintf("the plugin says %+v, the controller finds no stanza", got), nil
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	want := []string{}
	for _, f := range faults {
		want = append(want, fmt.Sprintf("%d:%d", f.Pos.Line, f.Pos.Column))
	}
	if got.none {
		return fmt.Sprintf("the plugin finds no stanza, the controller says %v", faults), nil
	}
	if mark, err := markOf(script); len(faults) == 0 && (err != nil || mark != got.mark) {
		return fmt.Sprintf("the plugin marks it %q, a submission without it %q (%v)", got.mark, mark, err), nil
	}
	if diff := cmp.Diff(want, got.places()); diff != "" {
		return fmt.Sprintf("places (-controller +plugin):\n%s\ncontroller: %v\nplugin: %+v", diff, faults, got.faults), nil
	}
	return "", nil
}

// markOf is the mark that a submission without the plugin gives a script.
func markOf(script string) (string, error) {
	job, err := parsed(script)
	if err != nil {
		return "", err
	}
	s := &submission{}
	_, err = slurm.Submit(context.Background(), s, job, driver.Spec{Filename: "job.sh", Source: []byte(script)})
	return s.mark, err
}

// submission keeps the mark of what is submitted.
type submission struct{ mark string }

func (s *submission) Run(_ context.Context, c command.Call) (command.Output, error) {
	for _, kv := range c.Env {
		if mark, ok := strings.CutPrefix(kv, "PITCHPIPE_JOB="); ok {
			s.mark = mark
		}
	}
	return command.Output{Stdout: []byte("1\n")}, nil
}

// each runs a test with every interpreter.
func each(t *testing.T, run func(t *testing.T, e *examiner)) {
	t.Helper()
	for _, lua := range interpreters(t) {
		t.Run(filepath.Base(lua), func(t *testing.T) {
			t.Parallel()
			run(t, start(t, lua))
		})
	}
}

func TestThePluginAgreesWithTheControllerOnTheCorpus(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		bad := 0
		for _, s := range corpus(t) {
			diff, err := compare(e, s.script)
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if diff != "" {
				t.Errorf("%s: %s\n%s", s.name, diff, s.script)
			}
			if v, err := e.examine(s.script); err == nil && len(v.faults) > 0 {
				bad++
			}
		}
		if bad < 60 {
			t.Errorf("only %d faulty stanzas were refused, want at least 60", bad)
		}
	})
}

// TestTheMarksAgreeOnWhatANumberIs: what one program takes for a word and the other for a
// number is refused by the task prolog.
func TestTheMarksAgreeOnWhatANumberIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		for _, value := range []string{"inf", "nan", "0x1p4", "1e999", "1e3", ".5", "+2", "1_000"} {
			script := "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob opt env=OPT values=adam," + value + " default=adam\n"
			if diff, err := compare(e, script); err != nil || diff != "" {
				t.Errorf("%s: %s (%v)", value, diff, err)
			}
		}
	})
}

// TestOnlyPatternsPassThePluginAndFailLater lists the faulty stanzas of the corpus
// that the plugin lets through.
func TestOnlyPatternsPassThePluginAndFailLater(t *testing.T) {
	t.Parallel()
	want := []string{"pattern-does-not-compile", "pattern-without-epoch"}
	each(t, func(t *testing.T, e *examiner) {
		var got []string
		for _, s := range corpus(t) {
			v, err := e.examine(s.script)
			if err != nil {
				t.Fatal(err)
			}
			job, err := parsed(s.script)
			if err == nil {
				_, err = stanza.Policy(job)
			}
			if len(v.faults) == 0 && err != nil && !errors.Is(err, stanza.ErrNone) {
				got = append(got, s.name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestMessagesAreThoseOfValidate compares the words, too: a user who runs validate
// after a refused submission reads the same.
func TestMessagesAreThoseOfValidate(t *testing.T) {
	t.Parallel()
	first := regexp.MustCompile(`job\.sh:(\d+):\d+`)
	each(t, func(t *testing.T, e *examiner) {
		for _, s := range corpus(t) {
			_, faults, err := judged(s.script)
			if err != nil && !errors.Is(err, stanza.ErrNone) {
				t.Fatal(err)
			}
			v, err := e.examine(s.script)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for i, f := range faults {
				text := f.Found + "; " + first.ReplaceAllString(f.Want, "line $1")
				if !strings.HasPrefix(text, "grace is") { // printed in another unit
					want = append(want, text)
					got = append(got, v.faults[i].text)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-validate +plugin):\n%s\n%s", s.name, diff, s.script)
			}
		}
	})
}

// TestTheRecordIsTheStanza reads the record back as the JSON form of a stanza.
func TestTheRecordIsTheStanza(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		read := 0
		for _, s := range corpus(t) {
			v, err := e.examine(s.script)
			if err != nil {
				t.Fatal(err)
			}
			if v.none || len(v.faults) > 0 {
				continue
			}
			text, ok := strings.CutPrefix(v.record, "pitchpipe:1:")
			if !ok || strings.ContainsAny(text, " \t") || cty.NormalizeString(text) != text {
				t.Errorf("%s: the record %q", s.name, v.record)
				continue
			}
			job, err := parsed(s.script)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := stanza.Policy(job)
			block, err := jsontree.Parse("record.json", []byte(text))
			if err != nil {
				t.Errorf("%s: %v in %s", s.name, err, text)
				continue
			}
			job.Stanza = block
			got, gotErr := stanza.Policy(job)
			if (wantErr == nil) != (gotErr == nil) {
				t.Errorf("%s: the record gives %v, the script %v", s.name, gotErr, wantErr)
			}
			if wantErr == nil {
				read++
			}
			// A record names the knobs in the order of the script.
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-script +record):\n%s\n%s", s.name, diff, text)
			}
		}
		if read < 20 {
			t.Errorf("only %d records were read back", read)
		}
	})
}

func TestTheDifferences(t *testing.T) {
	t.Parallel()
	const head = "#!/bin/sh\n"
	tests := []struct {
		name, script string
		none         bool // the plugin does not judge it
	}{
		{"a pattern that does not compile", head + "#TUNE progress pattern='('\n", false},
		{"an option that the local scheduler does not run", head + "#SBATCH --array=1-3\n#TUNE mode=apply\n", false},
		{"a script that no sbatch takes", "#TUNE mode=apply\n", false},
		{"a line beyond the limit", head + "#TUNE mode=" + strings.Repeat("x", 9000) + "\n", true},
		{"more lines than the limit", head + strings.Repeat("#TUNE mode=apply\n", 300), true},
		{"a head beyond the limit", head + strings.Repeat("#\n", 40000) + "#TUNE mode=x\n", true},
	}
	each(t, func(t *testing.T, e *examiner) {
		for _, tt := range tests {
			v, err := e.examine(tt.script)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.faults) > 0 || v.none != tt.none {
				t.Errorf("%s: %+v", tt.name, v)
			}
			job, err := sbatch.Parse("job.sh", []byte(tt.script))
			if err == nil {
				_, err = stanza.Policy(job)
			}
			if err == nil {
				t.Errorf("%s: the controller accepts it, so this is no difference", tt.name)
			}
		}
	})
}
