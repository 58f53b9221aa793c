package stanza

import (
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// LuaTable writes what the submission plugin of Slurm judges a stanza by: Keys, and
// the words, names, units and limits that the judging uses beside them.
func LuaTable() string {
	var b strings.Builder
	b.WriteString("-- This file is generated from the table of keys that `pitchpipe validate` judges\n" +
		"-- by. Do not edit it.\n\nreturn {\n  keys = {\n")
	for _, k := range Keys() {
		b.WriteString(luaKey(k))
	}
	b.WriteString("  },\n")
	b.WriteString("  blocks = " + luaWords(Blocks()) + ",\n")
	b.WriteString("  defaults = { objective = " + luaText(string(tuning.DefaultObjective)) + " },\n")
	b.WriteString("  blend = " + luaText(string(tuning.Blend)) + ",\n")
	b.WriteString("  linear = " + luaText(string(tuning.Linear)) + ",\n")
	b.WriteString("  system = " + luaWords(tuning.SystemKnobs()) + ",\n")
	b.WriteString("  counts = " + luaWords(counts()) + ",\n")
	b.WriteString("  signals = " + luaWords(signals()) + ",\n")
	b.WriteString("  denied = {\n    names = " + luaWords(jobfile.Denied()) + ",\n    bytes = " + luaText("[^"+strings.ReplaceAll(strings.TrimSuffix(jobfile.ValueBytes, "-"), "%", "%%")+"%-]") + ", -- of values\n  },\n")
	b.WriteString("  rules = {\n")
	for _, knob := range append(tuning.SystemKnobs(), "") {
		b.WriteString("    [" + luaText(knob) + "] = " + luaText(valueRule(knob)) + ",\n")
	}
	b.WriteString("  },\n  units = {\n")
	b.WriteString("    bytes = " + luaUnits(
		[]string{"KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "TB", "K", "M", "G", "T", "B", ""},
		func(s string) float64 { v, _ := tuning.ParseBytes(s); return float64(v) }) + ",\n")
	b.WriteString("    energy = " + luaUnits(
		[]string{"MWh", "kWh", "Wh", "GJ", "MJ", "kJ", "KJ", "J", ""},
		func(s string) float64 { v, _ := tuning.ParseJoules(s); return float64(v) }) + ",\n")
	b.WriteString("  },\n  limits = {\n")
	b.WriteString("    name = " + strconv.Itoa(longestName) + ", -- letters of the name of a knob\n")
	b.WriteString("    count = " + strconv.Itoa(maxCount) + ", -- cores, threads or GPUs\n")
	b.WriteString("    bytes = 4611686018427387904, -- of memory\n")
	b.WriteString("    grace = " + strconv.FormatInt(int64(time.Hour), 10) + ", -- nanoseconds\n")
	b.WriteString("  },\n}\n")
	return b.String()
}

func luaKey(k Key) string {
	var b strings.Builder
	b.WriteString("    {\n      block = " + luaText(k.Block) + ", name = " + luaText(k.Name) + ", type = " + luaText(string(k.Type)) + ",\n")
	if len(k.Words) > 0 {
		b.WriteString("      words = " + luaWords(k.Words) + ",\n")
	}
	if k.Type == TypeNumber || k.Type == TypeInteger {
		b.WriteString("      low = " + luaNumber(k.Low) + ", high = " + luaNumber(k.High) + ",\n")
	}
	b.WriteString("      allowed = " + luaText(k.allowed()) + ",\n")
	b.WriteString("      line = " + luaText(k.Line()) + ",\n    },\n")
	return b.String()
}

// luaUnits writes the units in the order in which they are tried, the longer name
// first; one is what the unit's own parser makes of one of it.
func luaUnits(names []string, one func(string) float64) string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range names {
		b.WriteString("      { name = " + luaText(name) + ", factor = " + luaNumber(one("1"+name)) + " },\n")
	}
	b.WriteString("    }")
	return b.String()
}

func luaWords(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = luaText(s)
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func luaNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// luaText writes a text of the table, which has no control characters.
func luaText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
