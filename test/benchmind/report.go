package benchmind

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/test/measure"
)

// result is one evaluation that was run.
type result struct {
	section
	object  object
	took    time.Duration
	used    time.Duration // CPU time
	err     error         // why the object is missing
	figures []figure
}

// Report is what all evaluations found.
type Report struct {
	Machine measure.Machine
	Data    string // the folder
	results []result
}

// limit is how long all evaluations together may take on two cores.
const limit = 10 * time.Minute

// Missed counts the aims that were missed, Failed the evaluations that did not run.
func (r Report) Missed() (missed, aims int) {
	for _, x := range r.results {
		for _, a := range x.aimed() {
			aims++
			if !a.met {
				missed++
			}
		}
	}
	return missed, aims
}

// Failed are the evaluations that brought no result, with the reason.
func (r Report) Failed() []string {
	var out []string
	for _, x := range r.results {
		if x.err != nil {
			out = append(out, fmt.Sprintf("%s: %v", x.name, x.err))
		}
	}
	return out
}

func (x result) aimed() []aim {
	if x.err != nil || x.aims == nil {
		return nil
	}
	return x.aims(x.object)
}

// Write writes the report as Markdown.
func (r Report) Write(to io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# The mind of the tuner on recorded runs\n")
	say("%d cores of %s, %s, load average before %s, after %s.\n", r.Machine.Cores, r.Machine.CPU, r.Machine.GoVersion, r.Machine.Load, r.Machine.LoadAfter)
	r.writeAims(say)
	r.writeTimes(say)
	for _, x := range r.results {
		say("\n## %s\n", x.title)
		if x.err != nil {
			say("It brought no result: %s.", cell(x.err.Error()))
			continue
		}
		say("`pitchpipe %s`\n", x.words(r.Data))
		for _, f := range x.figures {
			say("![%s](%s.svg)\n", f.title, f.name)
		}
		table(say, r.Data, x.shown(x.object))
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// words is the command with paths relative to the data.
func (x result) words(data string) string {
	return strings.ReplaceAll(strings.Join(x.command(data), " "), data+"/", "")
}

func (r Report) writeAims(say func(string, ...any)) {
	missed, aims := r.Missed()
	say("## Aims\n\n%d of %d met.\n", aims-missed, aims)
	say("| evaluation | aim | wanted | reached | |\n|---|---|--:|--:|---|")
	for _, x := range r.results {
		for _, a := range x.aimed() {
			say("| %s | %s | %s | %s | %s |", x.name, a.what, a.want, a.got, a.verdict())
		}
	}
}

func (a aim) verdict() string {
	switch {
	case a.met:
		return "met"
	case a.missed == "":
		return "not measured"
	default:
		return "missed by " + a.missed
	}
}

func (r Report) writeTimes(say func(string, ...any)) {
	total, used := time.Duration(0), time.Duration(0)
	for _, x := range r.results {
		total += x.took
		used += x.used
	}
	verdict := "within"
	if total > limit {
		verdict = "above"
	}
	say("\n## Time\n\n%.0f s together (%.0f s of CPU time), %s the %.0f s that are allowed on two cores.\n", total.Seconds(), used.Seconds(), verdict, limit.Seconds())
	say("| evaluation | seconds | of CPU time |\n|---|--:|--:|")
	for _, x := range r.results {
		say("| %s | %.1f | %.1f |", x.name, x.took.Seconds(), x.used.Seconds())
	}
}

// table has a column for each key that is a word or a number in any row, words first.
func table(say func(string, ...any), data string, rows []fields) {
	words, numbers := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		for k, v := range r {
			switch v.(type) {
			case string:
				words[k] = true
			case float64:
				numbers[k] = true
			}
		}
	}
	columns := append(slices.Sorted(maps.Keys(words)), slices.Sorted(maps.Keys(numbers))...)
	say("| %s |\n|%s%s", strings.Join(columns, " | "), strings.Repeat("---|", len(words)), strings.Repeat("--:|", len(columns)-len(words)))
	for _, r := range rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			switch v := r[c].(type) {
			case nil:
				cells[i] = "-"
			case float64:
				cells[i] = strconv.FormatFloat(v, 'g', 4, 64)
			default:
				cells[i] = cell(strings.TrimPrefix(fmt.Sprint(v), data+"/"))
			}
		}
		say("| %s |", strings.Join(cells, " | "))
	}
}

// cell keeps a text in its cell of a table.
func cell(text string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text) }
