package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

// Line is a row or a summary of a report: values by key. KEYS.md has the keys. A key
// without a value is unknown. Values are a Figure, an int, a word, words, a Line or Lines.
type Line map[string]any

// Figure returns a number, and an unknown one where there is none.
func (l Line) Figure(key string) Figure {
	switch v := l[key].(type) {
	case Figure:
		return v
	case int:
		return Figure(v)
	}
	return Unknown()
}

// Text returns a word.
func (l Line) Text(key string) string {
	out, _ := l[key].(string)
	return out
}

// Line returns a line within this one, nil where there is none.
func (l Line) Line(key string) Line {
	out, _ := l[key].(Line)
	return out
}

// Lines returns a list.
func (l Line) Lines(key string) []Line {
	out, _ := l[key].([]Line)
	return out
}

// With adds the values of other lines.
func (l Line) With(others ...Line) Line {
	out := maps.Clone(l)
	for _, o := range others {
		maps.Copy(out, o)
	}
	return out
}

// Column is one figure of each line.
func Column(lines []Line, key string) []Figure {
	return tuning.Each(lines, func(l Line) Figure { return l.Figure(key) })
}

// Average is the first line with the mean of each figure over all lines that know it.
func Average(lines []Line) Line {
	out := maps.Clone(lines[0])
	for key, first := range lines[0] {
		if _, is := first.(Figure); !is {
			continue
		}
		all := Column(lines, key)
		if slices.ContainsFunc(all, func(x Figure) bool { return x != all[0] }) { // else it keeps every digit
			out[key] = Mean(all)
		}
	}
	return out
}

// Report is what an evaluation found.
type Report struct {
	Command string   // the words after `pitchpipe`, such as "evaluate tuner"
	Data    []string // the files that it read, as they were named
	Rows    []Line
	Summary Line
	Hidden  func(row Line) bool // rows that only the JSON has; nil: none
}

// Progress receives the number of parts done, of all parts, and the part done last.
type Progress func(done, total int, what string)

// Fill makes the rows of n independent parts on all processors, in the order of the parts,
// and reports each part when it is done. It returns the first error and begins no further
// part then.
func (r *Report) Fill(ctx context.Context, n int, report Progress, part func(ctx context.Context, i int) (what string, rows []Line, err error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	done, rows := 0, make([][]Line, n)
	for i := range n {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			what, made, err := part(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			done++
			report(done, n, what)
			rows[i] = made
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("%s: %w", r.Command, err)
	}
	r.Rows = slices.Concat(rows...)
	return nil
}

// MarshalJSON writes the keys in the order of KEYS.md.
func (r Report) MarshalJSON() ([]byte, error) {
	rows, summary := Keys(r.Command)
	top := []Key{{Name: "command"}, {Name: "data"}, {Name: "rows", List: true, Inner: rows}, {Name: "summary", Inner: summary}}
	return json.Marshal(ordered{top, Line{"command": r.Command, "data": append([]string{}, r.Data...), "rows": r.Rows, "summary": r.Summary}})
}

// ordered is a line whose JSON has the keys in their order.
type ordered struct {
	keys []Key
	Line
}

func (o ordered) MarshalJSON() ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Line)) {
		if !slices.ContainsFunc(o.keys, func(k Key) bool { return k.Name == name }) && o.Line[name] != "" {
			return nil, fmt.Errorf("KEYS.md lacks the key %s", name)
		}
	}
	var parts []string
	for _, k := range o.keys {
		value := o.Line[k.Name]
		if k.Printed || k.Optional && k.print(value) == "-" {
			continue
		}
		within := func(l Line) ordered { return ordered{k.Inner, l} }
		if inner := o.Line.Line(k.Name); k.List {
			value = append([]ordered{}, tuning.Each(o.Lines(k.Name), within)...)
		} else if inner != nil {
			value = within(inner)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", k.Name, text))
	}
	return []byte("{" + strings.Join(parts, ",") + "}"), nil
}

// Text prints the rows as a table, and below them each key of the summary with its value
// and meaning.
func (r Report) Text() string {
	rows, summary := Keys(r.Command)
	var b strings.Builder
	b.WriteString(table(rows, slices.DeleteFunc(slices.Clone(r.Rows), func(l Line) bool { return r.Hidden != nil && r.Hidden(l) })))
	summarise(&b, "", summary, r.Summary)
	return b.String()
}

// summarise prints the single values of a summary, then its lists and inner lines.
func summarise(b *strings.Builder, prefix string, keys []Key, l Line) {
	var cells [][]string
	var rest strings.Builder
	for _, k := range keys {
		inner := l.Line(k.Name)
		switch {
		case k.List && len(l.Lines(k.Name)) > 0:
			fmt.Fprintf(&rest, "\n%s: %s\n%s", prefix+k.Name, k.About, table(k.Inner, l.Lines(k.Name)))
		case inner != nil:
			summarise(&rest, prefix+k.Name+".", k.Inner, inner)
		case k.Inner == nil:
			cells = append(cells, []string{prefix + k.Name, k.print(l[k.Name]), k.About})
		}
	}
	b.WriteString("\n" + report.Columns(cells...) + rest.String())
}

// table prints lines. A column that is empty in every line is left out.
func table(keys []Key, lines []Line) string {
	cells := make([][]string, 1+len(lines))
	for _, k := range keys {
		empty := func(l Line) bool { return k.print(l[k.Name]) == "-" }
		if k.Head == "" || !slices.ContainsFunc(lines, func(l Line) bool { return !empty(l) }) {
			continue
		}
		cells[0] = append(cells[0], k.Head)
		for i, l := range lines {
			cells[i+1] = append(cells[i+1], k.print(l[k.Name]))
		}
	}
	return report.Columns(cells...)
}

// LeftOut lists what of the files cannot be used, and why.
type LeftOut []Line

// Add counts rows of a group that cannot be used: one entry stands for all that are left out
// for the same reason. Without rows the group as a whole is.
func (l *LeftOut) Add(g Group, rows []Row, why string) {
	one := Line{"data": g.File, "workload": g.Name(), "machine": g.Machine, "why": why}
	if len(rows) == 0 {
		*l = append(*l, one)
		return
	}
	for _, have := range *l {
		if have["data"] == g.File && have["workload"] == g.Name() && have["machine"] == g.Machine && have["why"] == why && have["rows"] != nil {
			have["rows"] = have["rows"].(int) + len(rows) //nolint:forcetypeassert // written below
			return
		}
	}
	one["rows"], one["line"] = len(rows), rows[0].Line
	*l = append(*l, one)
}
