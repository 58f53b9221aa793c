package stanza

import (
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
)

// entry is one key of a printed stanza, with a remark behind it, or a remark alone.
type entry struct {
	key    string
	value  literal
	remark string
}

// section is one block of a printed stanza.
type section struct {
	block, label string
	entries      []entry
}

// Print writes the policy as a tuning block of a Nomad job file, with every
// default written out; what is unbounded is said in a comment. Read again in the
// same job file, it is the same policy.
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
			remark := ""
			if e.remark != "" {
				remark = "# " + e.remark
			}
			if e.key == "" {
				b.WriteString(indent + remark + "\n")
				continue
			}
			line := indent + e.key + strings.Repeat(" ", width-len(e.key)) + " = " + e.value.hcl() + " " + remark
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		if i > 0 {
			b.WriteString("  }\n")
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// PrintLines writes the policy as #TUNE lines of a batch script, with every
// default written out. Read again in the same script, it is the same policy; arg
// is written too, though a batch script refuses it.
func PrintLines(p tuning.Policy) string {
	var b strings.Builder
	for _, s := range sections(p) {
		b.WriteString("#TUNE")
		if s.block != "" {
			b.WriteString(" " + s.block)
		}
		if s.label != "" {
			b.WriteString(" " + s.label)
		}
		for _, e := range s.entries {
			if e.key != "" {
				b.WriteString(" " + e.key + "=" + e.value.line())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// sections are the blocks of a policy, the top level first.
func sections(p tuning.Policy) []section {
	var top section
	top.add("mode", quoted(string(p.Mode)))
	top.add("objective", quoted(string(p.Objective)))
	if p.Objective == tuning.Blend {
		top.add("weight", number(p.Weight))
	}
	switch {
	case p.MaxSlowdown == 0 && p.Objective == tuning.Time:
		top.entries = append(top.entries, entry{remark: "max_slowdown: unbounded, the default for objective=time"})
	case p.MaxSlowdown == 0:
		top.add("max_slowdown", quoted(none))
	case p.MaxSlowdown == tuning.DefaultMaxSlowdown && p.Objective != tuning.Time:
		top.entries = append(top.entries, entry{"max_slowdown", number(p.MaxSlowdown), "the default for objective=" + string(p.Objective)})
	default:
		top.add("max_slowdown", number(p.MaxSlowdown))
	}
	out := []section{top}
	for _, k := range p.Knobs {
		out = append(out, knobSection(k))
	}
	if p.Progress.IsSet() {
		s := section{block: "progress"}
		s.addIf(p.Progress.Pattern != "", "pattern", quoted(p.Progress.Pattern), "")
		s.addIf(p.Progress.File != "", "file", quoted(p.Progress.File), "")
		s.addIf(p.Progress.Report, "report", bare("true"), "")
		s.addIf(p.Progress.Total != 0, "total", integer(p.Progress.Total), "")
		out = append(out, s)
	}
	if q := p.Quality; q != nil {
		s := section{block: "quality"}
		s.add("direction", quoted(q.Direction))
		s.add("max_loss", number(q.MaxLoss))
		if q.Target != nil {
			s.add("target", number(*q.Target))
		}
		out = append(out, s)
	}
	s := section{block: "profile"}
	s.add("warmup_epochs", integer(p.Profile.WarmupEpochs))
	s.add("epochs", integer(p.Profile.Epochs))
	out = append(out, s)
	if c := p.Checkpoint; c != nil {
		s := section{block: "checkpoint"}
		s.add("signal", quoted(c.Signal))
		s.add("grace", quoted(duration(c.Grace)))
		s.addIf(c.Exit != 0, "exit", integer(c.Exit), "")
		s.addIf(c.Done != "", "done", quoted(c.Done), "")
		out = append(out, s)
	}
	s = section{block: "budget"}
	s.addIf(p.Budget.Energy != 0, "energy", quoted(joules(p.Budget.Energy)), "energy: unbounded")
	s.addIf(p.Budget.Time != 0, "time", quoted(duration(p.Budget.Time)), "time: unbounded")
	s.add("restarts", integer(p.Budget.Restarts))
	s.add("probes", integer(p.Budget.Probes))
	s.addIf(p.Budget.Returns != 0, "returns", integer(p.Budget.Returns), "")
	return append(out, s)
}

func knobSection(k tuning.Knob) section {
	s := section{block: "knob", label: k.Name}
	s.addIf(k.Env != "", "env", quoted(k.Env), "")
	s.addIf(k.Arg != "", "arg", quoted(k.Arg), "")
	s.addIf(k.Live, "live", bare("true"), "")
	s.addIf(k.Follows != "", "follows", quoted(k.Follows), "")
	if len(k.Values) > 0 {
		l := valueLiteral(k.Name, k.Values...)
		l.list = true
		s.add("values", l)
	}
	s.addIf(k.Min.IsSet(), "min", valueLiteral(k.Name, k.Min), "")
	s.addIf(k.Max.IsSet(), "max", valueLiteral(k.Name, k.Max), "")
	s.addIf(k.Scale != "", "scale", quoted(string(k.Scale)), "")
	s.addIf(k.Default.IsSet(), "default", valueLiteral(k.Name, k.Default), "")
	s.addIf(k.Quality != "", "quality", quoted(k.Quality), "")
	return s
}

func (s *section) add(key string, value literal) {
	s.entries = append(s.entries, entry{key: key, value: value})
}

// addIf adds the key if it holds something, else the remark if there is one.
func (s *section) addIf(holds bool, key string, value literal, remark string) {
	switch {
	case holds:
		s.add(key, value)
	case remark != "":
		s.entries = append(s.entries, entry{remark: remark})
	}
}

// duration prints whole hours, minutes or seconds as people write them, and
// anything else exactly.
func duration(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// joules prints an amount with the largest unit that loses nothing.
func joules(j tuning.Joules) string {
	text := j.String()
	if back, err := tuning.ParseJoules(text); err == nil && back == j {
		return text
	}
	return strconv.FormatFloat(float64(j), 'g', -1, 64) + "J"
}
