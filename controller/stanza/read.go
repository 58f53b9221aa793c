package stanza

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// datum is a value that was read as its key wants it.
type datum struct {
	key, at  jobfile.Pos
	text     string // words, texts, patterns, signals, names
	number   float64
	flag     bool
	duration time.Duration
	energy   tuning.Joules
	items    []jobfile.Item // of TypeValue and TypeValues, to be read by the knob
	pattern  *regexp.Regexp
}

// readValue reads the value of a key. Found is empty, or says what stands there
// instead of what the key wants.
func readValue(k Key, a jobfile.Attr) (d datum, found string) {
	d = datum{key: a.Pos, at: a.ValuePos}
	switch k.Type {
	case TypeValue:
		d.items = []jobfile.Item{{Pos: a.ValuePos, Value: single(a.Value)}}
		return d, ""
	case TypeValues:
		d.items = []jobfile.Item{{Pos: a.ValuePos, Value: a.Value}}
		if a.Value.Kind == jobfile.List {
			d.items = a.Value.List
		}
		return d, ""
	case TypeWord, TypeText, TypePattern, TypeNumber, TypeInteger, TypeBool, TypeDuration, TypeEnergy,
		TypeSignal, TypeEnv, TypeFlag, TypeKnob:
	}
	v := single(a.Value)
	text, ok := scalarText(v)
	found = k.Name + " is " + describe(v)
	if !ok || !printable(text) {
		return d, found
	}
	d.text = text
	if !d.readScalar(k, v) {
		return d, found
	}
	if k.Type == TypePattern {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return d, fmt.Sprintf("%s does not compile: %s", k.Name, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		d.pattern = pattern
	}
	return d, ""
}

// readScalar reads d.text as the type of the key and reports whether it is one.
func (d *datum) readScalar(k Key, v jobfile.Value) bool {
	var err error
	switch k.Type {
	case TypeWord:
		return v.Kind != jobfile.Number && slices.Contains(k.Words, d.text)
	case TypeText, TypePattern, TypeFlag, TypeKnob, TypeEnv, TypeSignal:
		return d.text != "" && (v.Kind == jobfile.String || v.Kind == jobfile.Bare)
	case TypeNumber, TypeInteger:
		if v.Kind != jobfile.Number && slices.Contains(k.Words, d.text) {
			return true
		}
		value := tuning.ParseValue(d.text)
		d.number = value.Float()
		whole := k.Type == TypeNumber || d.number == math.Trunc(d.number)
		return value.IsNumber() && v.Kind != jobfile.Bool && whole && d.number >= k.Low && d.number <= k.High
	case TypeBool:
		d.flag = d.text == "true"
		return d.text == "true" || d.text == "false"
	case TypeDuration:
		d.duration, err = tuning.ParseDuration(d.text)
		return err == nil && d.duration > 0
	case TypeEnergy:
		d.energy, err = tuning.ParseJoules(d.text)
		return err == nil && d.energy > 0 && !math.IsInf(float64(d.energy), 0)
	case TypeValue, TypeValues:
	}
	return false
}

// single joins a bare list of a #TUNE line for a key that wants one text: there a
// comma is only a comma.
func single(v jobfile.Value) jobfile.Value {
	if v.Kind != jobfile.List || len(v.List) == 0 {
		return v
	}
	parts := make([]string, len(v.List))
	for i, item := range v.List {
		if item.Value.Kind != jobfile.Bare {
			return v
		}
		parts[i] = item.Value.Text
	}
	return jobfile.Value{Kind: jobfile.Bare, Text: strings.Join(parts, ",")}
}

// scalarText is the text of a scalar as tuning's parsers read it.
func scalarText(v jobfile.Value) (string, bool) {
	switch v.Kind {
	case jobfile.String, jobfile.Bare:
		return v.Text, true
	case jobfile.Number:
		return strconv.FormatFloat(v.Number, 'g', -1, 64), true
	case jobfile.Bool:
		return strconv.FormatBool(v.Bool), true
	case jobfile.List, jobfile.Other:
	}
	return "", false
}

// printable reports whether a text can stand in both spellings of a stanza.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' || r == utf8.RuneError || r == '\uFEFF'
	}) < 0
}

// describe says what a value is, for messages.
func describe(v jobfile.Value) string {
	switch v.Kind {
	case jobfile.String, jobfile.Bare:
		if len(v.Text) > 80 {
			return "a long text"
		}
		return strconv.Quote(v.Text)
	case jobfile.Number:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case jobfile.Bool:
		return strconv.FormatBool(v.Bool)
	case jobfile.List:
		if len(v.List) == 0 {
			return "an empty list"
		}
		return "a list"
	case jobfile.Other:
	}
	return "null, an object, or not known before the job runs"
}
