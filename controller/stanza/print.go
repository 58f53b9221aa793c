package stanza

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/controller/tuning"
)

// entry is one key of a printed stanza, with a remark after it, or only a remark.
type entry struct {
	key    string
	value  any // a literal
	remark string
}

type section struct {
	block, label string
	entries      []entry
}

// Print writes the policy as a tuning block of a Nomad job file, with every default written
// out; what is unbounded is said in a comment. Read again in the same job file, it is the same
// policy.
func Print(p tuning.Policy) string {
	var b strings.Builder
	b.WriteString("tuning {\n")
	for i, s := range sections(p) {
		indent := "  "
		if i > 0 {
			b.WriteString("\n  " + s.block)
			if s.label != "" {
				b.WriteString(" " + hclQuote(s.label))
			}
			b.WriteString(" {\n")
			indent = "    "
		}
		width := 0
		for _, e := range s.entries {
			width = max(width, len(e.key))
		}
		for _, e := range s.entries {
			line := indent
			if e.key != "" {
				line += e.key + strings.Repeat(" ", width-len(e.key)) + " = " + hcl(e.value) + " "
			}
			if e.remark != "" {
				line += "# " + e.remark
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		if i > 0 {
			b.WriteString("  }\n")
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func sections(p tuning.Policy) (out []section) {
	for _, block := range Blocks() {
		knobs := []tuning.Knob{{}}
		switch block {
		case "knob":
			knobs = p.Knobs
		case "action": // its name is all that it has of a knob
			knobs = tuning.Each(p.Actions, func(o tuning.Offer) tuning.Knob { return tuning.Knob{Name: o.Name} })
		}
		if block == "progress" && !p.Progress.IsSet() || block == "quality" && p.Quality == nil || block == "checkpoint" && p.Checkpoint == nil ||
			block == "search" && p.Search == nil {
			continue
		}
		for i, knob := range knobs {
			s := section{block: block, label: knob.Name}
			for _, k := range keysOf(block) {
				of := subject{Policy: &p, knob: &knob, guard: p.Quality, save: p.Checkpoint, search: p.Search}
				if block == "action" {
					of.action = &p.Actions[i]
				}
				s.add(k, of)
			}
			out = append(out, s)
		}
	}
	return out
}

// add adds a key that holds something, or what its absence means.
func (s *section) add(k Key, of subject) {
	field := k.field(&of)
	e := entry{key: k.Name, value: literal(of.knob.Name, field)}
	empty := reflect.ValueOf(field).Elem().IsZero()
	byTime := of.Objective == tuning.Time
	switch {
	case field == &of.Weight && of.Objective != tuning.Blend:
		return
	case field == &of.MaxSlowdown && empty && byTime:
		e = entry{remark: "max_slowdown: unbounded, the default for objective=time"}
	case field == &of.MaxSlowdown && empty:
		e.value = none
	case field == &of.MaxSlowdown && of.MaxSlowdown == tuning.DefaultMaxSlowdown && !byTime:
		e.remark = "the default for objective=" + string(of.Objective)
	case empty && (k.Type == TypeEnergy || k.Type == TypeDuration || k.Name == "core_hours"):
		e = entry{remark: k.Name + ": unbounded"}
	case empty && (k.Default == "" || k.Default == "0"), e.value == nil:
		return
	}
	s.entries = append(s.entries, e)
}

// A literal is a value as a stanza writes it: a text, something bare, or a list of these. A
// bare text is a number or a boolean, which needs no quotes.
type bare string

// literal is what a field of a policy or of the knob holds; nil: nothing.
func literal(knob string, field any) any {
	switch v := field.(type) {
	case *string:
		if *v != "" {
			return *v
		}
	case *bool:
		if *v {
			return bare("true")
		}
	case *int:
		return bare(strconv.Itoa(*v))
	case *uint64:
		return bare(strconv.FormatUint(*v, 10))
	case *float64:
		return bare(strconv.FormatFloat(*v, 'g', -1, 64))
	case **float64:
		if *v != nil {
			return literal(knob, *v)
		}
	case *time.Duration:
		return duration(*v)
	case *tuning.Joules:
		return v.String()
	case *tuning.Value:
		return valueLiteral(knob, *v)
	case **tuning.Condition:
		if c := *v; c != nil {
			return c.Knob + "=" + c.Value.String()
		}
	case *[]string:
		return tuning.Each(*v, func(one string) any { return one })
	case *[]tuning.Value:
		return tuning.Each(*v, func(one tuning.Value) any { return valueLiteral(knob, one) })
	}
	return nil
}

func valueLiteral(knob string, v tuning.Value) any {
	if v.IsNumber() && knob != tuning.Memory {
		return bare(v.String())
	}
	return tuning.Spell(knob, v)
}

func text(v any) string {
	if b, ok := v.(bare); ok {
		return string(b)
	}
	s, _ := v.(string)
	return s
}

func hcl(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = hcl(one)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return hclQuote(v)
	}
	return text(v)
}

func line(v any) string {
	list, ok := v.([]any)
	if !ok {
		return lineQuote(text(v))
	}
	parts := make([]string, len(list))
	for i, one := range list {
		parts[i] = line(one)
	}
	return strings.Join(parts, ",")
}

// hclQuote writes a text as a quoted template without interpolation.
func hclQuote(s string) string { return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes()) }

// lineQuote writes a text bare where that is possible, else in single quotes, else in double
// quotes.
func lineQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./:+@%^~-", r)
	}
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// duration prints whole hours, minutes or seconds as people write them, and anything else
// exactly.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%unit.of == 0 {
			return strconv.FormatInt(int64(d/unit.of), 10) + unit.name
		}
	}
	return d.String()
}
