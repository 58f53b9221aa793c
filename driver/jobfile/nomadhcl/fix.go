package nomadhcl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/jsontree"
)

// Fix rewrites a job file. The given variables become defaults, except for sensitive ones.
// What stays keeps its bytes; a stanza that is not a block is rewritten. The error, if any,
// is of type jobfile.Errors.
func Fix(filename string, src []byte, vars map[string]string, f jobfile.Fix) ([]byte, error) {
	p, body := read(filename, src, vars, true)
	if len(p.errs) == 0 && p.task == nil {
		p.fail(p.top(), "a job without a main task", "want one group with one task that is no helper")
	}
	e := &editor{parser: p, fix: f}
	if len(p.errs) == 0 {
		e.defaults(body)
		e.env()
		e.args()
		e.cores()
		e.stanza()
	}
	if err := p.errs.Err(); err != nil {
		return nil, err
	}
	return e.apply(), nil
}

// editor collects the changes of a file.
type editor struct {
	*parser
	fix   jobfile.Fix
	edits []edit
}

// edit puts text where bytes were.
type edit struct {
	from, to int
	text     string
}

func (e *editor) put(from, to int, text string) { e.edits = append(e.edits, edit{from, to, text}) }

func (e *editor) replace(x hcl.Expression, text string) {
	e.put(x.Range().Start.Byte, x.Range().End.Byte, text)
}

func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	at := 0
	for _, c := range e.edits {
		out = append(append(out, e.src[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, e.src[at:]...)
}

// line is the text of a line before byte i.
func (e *editor) line(i int) string {
	return string(e.src[strings.LastIndexByte(string(e.src[:i]), '\n')+1 : i])
}

// cut takes what is on its own lines out with them.
func (e *editor) cut(r hcl.Range) {
	from, to := r.Start.Byte, r.End.Byte
	rest, _, found := strings.Cut(string(e.src[to:]), "\n")
	if before := e.line(from); strings.TrimSpace(before) == "" && strings.TrimSpace(rest) == "" && found {
		from, to = from-len(before), to+len(rest)+1
	}
	e.put(from, to, "")
}

// add puts lines at the end of a block, which may be on one line.
func (e *editor) add(b *hclsyntax.Block, lines ...string) {
	if len(lines) == 0 {
		return
	}
	before := e.line(b.TypeRange.Start.Byte)
	indent := before[:len(before)-len(strings.TrimLeft(before, " \t"))]
	text := "  " + strings.Join(lines, "\n"+indent+"  ") + "\n" + indent
	open, end := b.OpenBraceRange.End.Byte, b.CloseBraceRange.Start.Byte
	inner := string(e.src[open:end])
	switch {
	case strings.TrimSpace(inner) == "":
		e.put(open, end, "\n"+indent+text)
	case !strings.Contains(inner, "\n"):
		e.put(open, open+len(inner)-len(strings.TrimLeft(inner, " \t")), "\n"+indent+"  ")
		e.put(open+len(strings.TrimRight(inner, " \t")), end, "\n"+indent+text)
	default:
		e.put(end, end, text)
	}
}

func literal(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }

func quoted(text string) string { return literal(cty.StringVal(text)) }

// pairs returns lines NAME = "value" in the order of the names.
func pairs(values map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+" = "+quoted(values[name]))
	}
	return out
}

func (e *editor) defaults(body *hclsyntax.Body) {
	known := e.scope.Variables["var"]
	for _, b := range append(blocksOf(body, "variable"), e.listed(body)...) {
		_, given := e.vars[name(b)]
		if secret, ok := e.key(b.Body, "sensitive", cty.Bool); !given || ok && secret.True() {
			continue
		}
		text := literal(known.GetAttr(name(b)))
		if a, ok := b.Body.Attributes["default"]; ok {
			e.replace(a.Expr, text)
		} else {
			e.add(b, "default = "+text)
		}
	}
}

func (e *editor) env() {
	left := maps.Clone(e.fix.Env)
	blocks := blocksOf(e.task.Body, "env")
	for _, b := range blocks {
		for _, a := range attributes(b.Body) {
			if value, ok := e.fix.Env[a.Name]; ok {
				e.replace(a.Expr, quoted(value))
				delete(left, a.Name)
			}
		}
	}
	a, isMap := e.task.Body.Attributes["env"]
	switch lines := pairs(left); {
	case len(lines) == 0:
	case isMap:
		e.put(a.Expr.Range().Start.Byte, a.Expr.Range().Start.Byte, "merge(")
		e.put(a.Expr.Range().End.Byte, a.Expr.Range().End.Byte, ", { "+strings.Join(lines, ", ")+" })")
	case len(blocks) > 0:
		e.add(blocks[len(blocks)-1], lines...)
	default:
		e.add(e.task, slices.Concat([]string{"env {"}, indented(lines), []string{"}"})...)
	}
}

func indented(lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, "  "+l)
	}
	return out
}

func (e *editor) args() {
	config := blocksOf(e.task.Body, "config")
	switch {
	case len(e.fix.Args) == 0:
		return
	case len(config) != 1:
		e.fail(e.pos(e.task.TypeRange), "a task without one config block", "want the one with its command")
		return
	}
	a, ok := config[0].Body.Attributes["args"]
	if !ok {
		e.add(config[0], "args = ["+strings.Join(quotedAll(driver.WithFlags(nil, e.fix.Args)), ", ")+"]")
		return
	}
	list, diags := hcl.ExprList(a.Expr)
	if diags.HasErrors() {
		e.fail(e.pos(a.Expr.Range()), "arguments that are no list", `want them written out, such as ["--lr", "0.1"]`)
		return
	}
	// WithFlags keeps the words up to "--" in their places, and adds after them.
	words := e.words(a)
	flags := words
	if i := slices.Index(words, "--"); i >= 0 {
		flags = words[:i]
	}
	fixed := driver.WithFlags(flags, e.fix.Args)
	for i := range flags {
		if fixed[i] != words[i] {
			e.replace(list[i], quoted(fixed[i]))
		}
	}
	more := strings.Join(quotedAll(fixed[len(flags):]), ", ")
	switch {
	case more == "":
	case len(flags) > 0:
		end := list[len(flags)-1].Range().End.Byte
		e.put(end, end, ", "+more)
	default:
		open := a.Expr.Range().Start.Byte + 1
		if len(list) > 0 {
			more += ", "
		}
		e.put(open, open, more)
	}
}

// cores gives the task whole cores instead of a share of them: Nomad refuses both.
func (e *editor) cores() {
	if e.fix.Cores == 0 {
		return
	}
	text := fmt.Sprintf("cores = %d", e.fix.Cores)
	blocks := blocksOf(e.task.Body, "resources")
	if len(blocks) == 0 {
		e.add(e.task, "resources {", "  "+text, "}")
		return
	}
	b := blocks[len(blocks)-1]
	whole, isWhole := b.Body.Attributes["cores"]
	share, isShare := b.Body.Attributes["cpu"]
	switch {
	case isWhole:
		e.replace(whole.Expr, strconv.Itoa(e.fix.Cores))
	case isShare:
		e.put(share.SrcRange.Start.Byte, share.SrcRange.End.Byte, text)
	default:
		e.add(b, text)
	}
}

func quotedAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoted(w)
	}
	return out
}

func (e *editor) stanza() {
	switch {
	case e.fix.Search:
	case e.tuning != nil:
		e.keys(e.tuning)
		if _, given := e.tuning.Body.Attributes["mode"]; !given && e.fix.Mode != "" {
			e.add(e.tuning, "mode = "+quoted(e.fix.Mode))
		}
		for _, b := range e.tuning.Body.Blocks {
			if e.fix.Leaves(b.Type, name(b)) {
				e.cut(b.Range())
			} else {
				e.keys(b)
			}
		}
	case e.tuned != nil:
		e.rewrite(e.tuned, "tuning")
	}
}

// keys are those of the stanza or of a block of it. A block may be written as a key.
func (e *editor) keys(b *hclsyntax.Block) {
	for _, a := range attributes(b.Body) {
		switch {
		case e.fix.Drops(b.Type, a.Name), b == e.tuning && e.fix.Leaves(a.Name, ""):
			e.cut(a.SrcRange)
		case b == e.tuning && slices.Contains([]string{"knob", "quality"}, a.Name):
			e.rewrite(a.Expr, a.Name)
		}
	}
}

// rewrite rewrites the stanza, or the value of one of its keys, as an expression.
func (e *editor) rewrite(x hcl.Expression, key string) {
	v, ok := e.try(x)
	if _, written := x.(hclsyntax.Expression); !ok || !written {
		e.fail(e.pos(x.Range()), "a stanza that is computed", "want it written out")
		return
	}
	if v.Type() == cty.String && !v.IsNull() {
		e.replace(x, quoted(jsontree.WithoutIn(v.AsString(), e.fix)))
		return
	}
	data, err := ctyjson.SimpleJSONValue{Value: cty.ObjectVal(map[string]cty.Value{key: v})}.MarshalJSON()
	var back ctyjson.SimpleJSONValue
	if err == nil {
		err = json.Unmarshal([]byte(jsontree.WithoutIn(string(data), e.fix)), &back)
	}
	if err != nil {
		e.fail(e.pos(x.Range()), "a stanza that cannot be written: "+err.Error(), "want a block")
		return
	}
	e.replace(x, literal(back.GetAttr(key)))
}
