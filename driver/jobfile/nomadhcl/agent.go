package nomadhcl

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile"
)

// ForAgent is a job file as a Nomad agent parses it: blanks replace the tuning blocks of
// the job and its groups, which Nomad does not know. Every other byte keeps its place.
// Group is the group that a block was of; empty: of the job, or of none. A file that
// cannot be read is returned as it is.
func ForAgent(filename string, src []byte) (out []byte, group string) {
	out = bytes.Clone(src)
	body, ok := newParser(filename, src).syntax()
	if !ok {
		return out, ""
	}
	blank := func(body *hclsyntax.Body) (some bool) {
		for _, b := range blocksOf(body, "tuning") {
			some = true
			for i := b.TypeRange.Start.Byte; i < b.CloseBraceRange.End.Byte; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
		}
		return some
	}
	for _, job := range blocksOf(body, "job") {
		blank(job.Body)
		for _, g := range blocksOf(job.Body, "group") {
			if blank(g.Body) {
				group = name(g)
			}
		}
	}
	return out, group
}

// complaint is one line of an agent's answer to a file that it cannot parse, such as
// "input.hcl:6,3-9: Unsupported block type; Blocks of type ... are not expected here."
// A range over several lines is "6,3-8,4".
var complaint = regexp.MustCompile(`input\.hcl:(\d+),(\d+)-(?:\d+,)?\d+: (.*)`)

// Faults turns an agent's answer about a job file into faults. Everything without a place
// becomes one fault of the first line. The result is never empty.
func Faults(filename string, src []byte, said string) jobfile.Errors {
	var out jobfile.Errors
	if strings.Count(said, ")") == strings.Count(said, "(") && strings.HasSuffix(said, ")") {
		said = strings.TrimSuffix(said, ")") // the answer is in brackets after its status
	}
	lines := strings.Split(string(src), "\n")
	for _, m := range complaint.FindAllStringSubmatch(said, -1) {
		at := jobfile.Pos{Filename: filename}
		at.Line, _ = strconv.Atoi(m[1])
		at.Column, _ = strconv.Atoi(m[2])
		if at.Line >= 1 && at.Line <= len(lines) { // the agent counts characters
			line := []rune(lines[at.Line-1])
			at.Column = len(string(line[:min(max(at.Column-1, 0), len(line))])) + 1
		}
		found, want, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(m[3]), "."), "; ")
		if found != "" {
			found = strings.ToLower(found[:1]) + found[1:]
		}
		out = append(out, jobfile.Error{Pos: at, Found: found, Want: want})
	}
	if len(out) == 0 {
		return jobfile.Fault(filename, "Nomad refuses the file: "+strings.Join(strings.Fields(said), " "), "")
	}
	return out
}

// Declared are the names of the variables that a job file declares, in their order; none
// where it cannot be read.
func Declared(filename string, src []byte) []string {
	var out []string
	if body, ok := newParser(filename, src).syntax(); ok {
		for _, b := range blocksOf(body, "variable") {
			if n := name(b); n != "" {
				out = append(out, n)
			}
		}
	}
	return out
}

// VariableFile is the values as a file of variables, which an agent takes with a job
// file: a text in quotes, or where the file declares a list, a map or an object the
// expression as it was given, as --var of Nomad's own command has it.
func VariableFile(filename string, src []byte, vars map[string]string) string {
	p := newParser(filename, src)
	complexes := map[string]bool{}
	if body, ok := p.syntax(); ok {
		for _, b := range blocksOf(body, "variable") {
			if a, typed := b.Body.Attributes["type"]; typed {
				t, diags := typeexpr.TypeConstraint(a.Expr)
				complexes[name(b)] = !diags.HasErrors() && t != cty.DynamicPseudoType && !t.IsPrimitiveType()
			}
		}
	}
	out := hclwrite.NewEmptyFile()
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if complexes[name] {
			out.Body().SetAttributeRaw(name, hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(vars[name])}})
			continue
		}
		out.Body().SetAttributeValue(name, cty.StringVal(vars[name]))
	}
	return string(out.Bytes())
}
