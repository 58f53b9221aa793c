package slurmlua_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

const late = "#TUNE behind the first command"

// judged is what the controller finds in a script whose #SBATCH lines are Slurm's to judge.
func judged(t testing.TB, script string) (job *jobfile.Job, unread, faults jobfile.Errors) {
	t.Helper()
	job, err := sbatch.Parse("job.sh", []byte(regexp.MustCompile(`(?m)^#SBATCH`).ReplaceAllString(script, "#sbatch")))
	if errors.As(err, &unread) {
		return job, unread, unread
	}
	if err == nil {
		_, err = stanza.Policy(job)
	}
	if !errors.As(err, &faults) && err != nil && !errors.Is(err, stanza.ErrNone) {
		t.Fatal(err)
	}
	return job, nil, faults
}

// looked reports whether the plugin looks for a fault that the controller finds: blocks,
// keys, and keys that take nothing but words.
func looked(found string) bool {
	for _, k := range stanza.Keys() {
		words := k.Type == stanza.TypeWord || k.Type == stanza.TypeBool
		if words && strings.HasPrefix(found, k.Name+" is ") || found == k.Name+" is given twice" && !slices.Contains(stanza.Blocks(), k.Name) {
			return true
		}
	}
	return regexp.MustCompile(`^unknown (key|block) |^[a-z]+ is a (key|block), not a |^a knob with|^the name ".*" of the `).MatchString(found)
}

// disagreement is what is different between the plugin and the controller, empty where they
// agree: the plugin finds all faults that it looks for, at the same places, and no others;
// and it marks a job without them as a submission by the controller does.
func disagreement(t testing.TB, e *examiner, script string) string {
	t.Helper()
	got := e.examine(t, script)
	job, unread, faults := judged(t, script)
	want, all, behind := map[string]bool{}, map[string]string{}, false
	for _, f := range faults {
		place := fmt.Sprintf("%d:%d", f.Pos.Line, f.Pos.Column)
		all[place] += f.Found + "\n"
		behind = behind || f.Found == late
		if block, twice := strings.CutSuffix(f.Found, " is given twice"); twice && slices.Contains(stanza.Blocks(), block) && len(got.faults) > 0 {
			return "" // the controller does not read the second, which has another name
		}
		if f.Found != late && (unread != nil || looked(f.Found)) {
			want[place] = true
		}
	}
	warned := false
	for place, text := range got.faults {
		warned = warned || strings.HasPrefix(text, late)
		found, _, _ := strings.Cut(text, "; ")
		if i := strings.Index(found, "' "); strings.HasPrefix(found, "the character '") { // which each quotes in its way
			found = found[i:]
		}
		if all[place] == "" {
			return fmt.Sprintf("the plugin alone finds %s %s", place, text)
		}
		ascii := !strings.ContainsFunc(found, func(r rune) bool { return r < ' ' || r > '~' })
		if ascii && !strings.Contains(all[place], found) && !strings.Contains(all[place], ", not a ") && !strings.HasSuffix(found, " is a list") {
			return fmt.Sprintf("at %s the plugin says %q, the controller %q", place, found, all[place])
		}
		delete(want, place)
	}
	for _, text := range got.warnings {
		warned = warned || strings.HasPrefix(text, late)
	}
	switch {
	case len(want) > 0:
		return fmt.Sprintf("the controller alone finds %v in %v, the plugin %+v", want, faults, got)
	case behind != warned:
		return fmt.Sprintf("the plugin says %+v, and the controller finds lines behind the first command: %v", got, faults)
	case job == nil || len(got.faults) > 0:
		return ""
	case tuning.Count(job.Warnings, ofStanza) != len(got.warnings):
		return fmt.Sprintf("the plugin warns of %v, the controller of %v", got.warnings, job.Warnings)
	}
	s := &submission{}
	if _, err := slurm.Submit(t.Context(), s, job, driver.Spec{Filename: "job.sh", Source: []byte(script)}); err != nil || s.mark != got.mark {
		return fmt.Sprintf("the plugin marks it %q, a submission without it %q (%v)", got.mark, s.mark, err)
	}
	return ""
}

// ofStanza reports whether a warning is of the stanza alone: the plugin does not read the commands of a script.
func ofStanza(w jobfile.Error) bool { return !strings.Contains(w.Found, "ends the shell") }

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

func TestThePluginAgreesWithTheControllerOnTheCorpus(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		refused, left := 0, 0
		for _, s := range corpus(t) {
			if diff := disagreement(t, e, s.script); diff != "" {
				t.Errorf("%s: %s\n%s", s.name, diff, s.script)
			}
			got := e.examine(t, s.script)
			_, _, faults := judged(t, s.script)
			switch {
			case len(got.faults) > 0:
				refused++
			case len(faults) > 0: // which `pitchpipe explain` shows: each has its line
				left++
				if slices.ContainsFunc(faults, func(f jobfile.Error) bool { return f.Pos.Line == 0 || f.Found == "" || f.Want == "" }) {
					t.Errorf("%s: the controller says only %v", s.name, faults)
				}
			}
		}
		if refused < 35 || left < 35 {
			t.Errorf("the plugin refused %d stanzas and left %d faulty ones to the controller, want 35 of each", refused, left)
		}
	})
}

// TestTheMarksAgree: what one program takes for a word and the other for a number is refused
// by the task prolog; and no word of a stanza may forge another variable.
func TestTheMarksAgree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		for value, want := range map[string]string{
			"inf": "inf", "nan": "nan", "0x1p4": "0x1p4", "1_000": "1_000", "1e999": "#", "1e3": "#", ".5": "#", "5.": "#", "+2": "#", "-1.5E-7": "#",
			".": ".", "1.2.3": "1.2.3", "1e": "1e", "''": "", "'x;PATH=#'": "", "'a|#'": "", "'$(id)'": "",
		} {
			script := "#!/bin/sh\n#TUNE mode=apply\n#TUNE knob opt env=OPT values=" + value + "\n#TUNE knob m env='M;X=#' values=1\n"
			if diff := disagreement(t, e, script); diff != "" {
				t.Errorf("%s: %s", value, diff)
			}
			if got := e.examine(t, script).mark; got != "2::OPT="+want {
				t.Errorf("%s: the mark is %q", value, got)
			}
		}
	})
}

func TestThePluginAgreesOnRandomStanzas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *examiner) {
		rapid.Check(t, func(rt *rapid.T) {
			lines := []string{"#!/bin/sh"}
			for range rapid.IntRange(1, 8).Draw(rt, "lines") {
				if rapid.IntRange(0, 5).Draw(rt, "kind") == 0 {
					lines = append(lines, otherLine(rt))
				} else {
					lines = append(lines, tuneLine(rt))
				}
			}
			for range rapid.IntRange(0, 4).Draw(rt, "commands") {
				lines = append(lines, otherLine(rt))
			}
			agree(t, rt, e, strings.Join(lines, "\n")+"\n")
		})
	})
}

// TestThePluginAgreesOnMutations changes a few bytes or lines of the corpus.
func TestThePluginAgreesOnMutations(t *testing.T) {
	t.Parallel()
	all := corpus(t)
	alphabet := "abcdeklmnoprstuvwxyzTUNEK0123456789=,.'\"\\ \t#-_$\n"
	each(t, func(t *testing.T, e *examiner) {
		rapid.Check(t, func(rt *rapid.T) {
			script := rapid.SampledFrom(all).Draw(rt, "sample").script
			for range rapid.IntRange(1, 4).Draw(rt, "changes") {
				at := rapid.IntRange(0, len(script)-1).Draw(rt, "at")
				less := script[min(at+1, len(script)):]
				char := string(alphabet[rapid.IntRange(0, len(alphabet)-1).Draw(rt, "char")])
				lines := strings.SplitAfter(script, "\n")
				i := rapid.IntRange(0, len(lines)-1).Draw(rt, "line")
				script = rapid.SampledFrom([]string{
					script[:at] + char + script[at:], script[:at] + less, script[:at] + char + less, // a byte more, less, another
					strings.Join(lines[:i+1], "") + strings.Join(lines[i:], ""), // a line twice
					script[:at] + rapid.SampledFrom(values()).Draw(rt, "value") + script[at:],
				}).Draw(rt, "change")
			}
			agree(t, rt, e, script)
		})
	})
}

// agree asks for agreement on a script that sbatch takes and that has no text in another of
// Unicode's normal forms, which only the controller knows.
func agree(t testing.TB, rt *rapid.T, e *examiner, script string) {
	if cty.NormalizeString(script) != script || strings.Contains(script, "\r") || !strings.HasPrefix(script, "#!") || strings.Contains(script, "\x00") {
		return
	}
	if diff := cmp.Diff("", disagreement(t, e, script)); diff != "" {
		rt.Fatalf("%s\n%s", diff, script)
	}
}

// values are texts that keys may be given; most fit some key and not another.
func values() []string {
	return []string{
		"apply", "observ", "energy", "blend", "0.5", "1", "2", "0", "-1", "1e3", "1e-3", ".5", "5.", "1e999", "inf", "nan", "0x10", "1_000", "+4",
		"64,128,256", "1,2,2", "adam,sgd", "'a b'", "'it',2", `"a \"b\" \\"`, "true", "false", "'true'", "maybe", "same", "60s", "2MJ", "256MiB",
		"USR1", "PATH", "LD_X", "BATCH", "OMP_NUM_THREADS", "9X", "A-B", "cores", "threads", "batch", "lr", "memory", "--lr", "max", "min", "log",
		"'(?P<epoch>.)'", "(", "a,b", "''", `""`, "'\u00e9'", "\u2003", "'\ufeff'", "\xff", "'300 W'", "'x;A=#'",
	}
}

// tuneLine writes one #TUNE line of known and misspelled words.
func tuneLine(t *rapid.T) string {
	keys := func(block string) []string {
		names := []string{"vals", "mod", "knob", "x"}
		for _, k := range stanza.Keys() {
			if block == "*" || k.Block == block {
				names = append(names, k.Name)
			}
		}
		return names
	}
	block := rapid.SampledFrom(append(stanza.Blocks(), "knob", "knob", "knob", "bugdet", "mode")).Draw(t, "block")
	line := strings.TrimSuffix("#TUNE "+block, " ")
	if block == "knob" || rapid.IntRange(0, 20).Draw(t, "labelled") == 0 {
		line += " " + rapid.SampledFrom([]string{"cores", "threads", "memory", "power_limit", "batch", "lr", "opt", "core", "1x", "a b", "x-y_z"}).Draw(t, "label")
	}
	for range rapid.IntRange(0, 4).Draw(t, "keys") {
		of := rapid.SampledFrom([]string{block, block, block, block, "*"}).Draw(t, "of")
		line += " " + rapid.SampledFrom(keys(of)).Draw(t, "key") + "=" + rapid.SampledFrom(values()).Draw(t, "value")
	}
	return line
}

// otherLine is a line that is no #TUNE line at its place.
func otherLine(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"", "# a remark", "#SBATCH -c 4", "#TUNED x", " #TUNE mode=apply", "# TUNE mode=apply", "#tune knob cores values=1", "# tune it when x=y", "export BATCH=32", "./train",
	}).Draw(t, "other")
}
