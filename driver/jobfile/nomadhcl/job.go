package nomadhcl

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pitchpipe/driver/jobfile"
)

// ParseForNomad reads a Nomad job file that an agent will read too: the tuning stanza,
// and of the rest what the file alone determines. Everything that only Nomad
// understands is left to it. What is refused is what no agent could mend: broken
// syntax, a stanza that cannot be read, and a stanza of a job that cannot be tuned
// (a service; several tasks of which none is the main one). A task that asks for
// a share of the CPU has one core. The error, if any, is of type jobfile.Errors.
func ParseForNomad(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	p := newParser(filename, src, vars)
	p.lenient = true
	return p.parse((*parser).nomadFile)
}

func (p *parser) nomadFile(body *hclsyntax.Body) {
	p.variables(append(blocksOf(body, "variable"), p.listed(body)...))
	p.locals(blocksOf(body, "locals"))
	if len(p.errs) > 0 {
		return
	}
	jobs := blocksOf(body, "job")
	if len(jobs) != 1 {
		p.fail(jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}, fmt.Sprintf("%d jobs", len(jobs)), "want one job block")
		return
	}
	p.nomadJob(jobs[0])
}

// listed are the variables of a variables block, which have a value each and nothing
// else.
func (p *parser) listed(body *hclsyntax.Body) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, b := range blocksOf(body, "variables") {
		for _, a := range attributes(b.Body) {
			value := *a
			value.Name = "default"
			out = append(out, &hclsyntax.Block{
				Type: "variable", TypeRange: a.NameRange, Labels: []string{a.Name},
				Body: &hclsyntax.Body{Attributes: hclsyntax.Attributes{"default": &value}},
			})
		}
	}
	return out
}

func (p *parser) nomadJob(b *hclsyntax.Block) {
	p.job.Name = name(b)
	p.known(&p.job.Name, b.Body, "name")
	p.known(&p.job.Partition, b.Body, "namespace")
	kind := "service"
	p.known(&kind, b.Body, "type")
	for _, t := range blocksOf(b.Body, "tuning") {
		p.tuningBlock(t)
	}
	p.nomadMeta(b.Body)
	p.stanzaOfMeta(b.Body)
	group := p.tunedGroup(b)
	if p.stanzaAt != nil && kind != "batch" {
		p.fail(*p.stanzaAt, fmt.Sprintf("a tuning stanza of a job of the type %q", kind), `want type = "batch": only batch jobs are tuned`)
	}
	if group == nil {
		return
	}
	p.observed(b, group)
	p.nomadMeta(group.Body)
	tasks := blocksOf(group.Body, "task")
	main := mainTask(tasks)
	switch {
	case main != nil:
		p.nomadTask(main)
	case p.stanzaAt != nil && dynamic(group.Body, "task") == nil:
		p.fail(*p.stanzaAt, fmt.Sprintf("a tuning stanza of a group of %d main tasks", len(tasks)),
			"want one main task: the others have a lifecycle block, or the main one has leader = true")
	}
}

// observed notes what of a job that only Nomad runs keeps its driver from changing it.
func (p *parser) observed(job, group *hclsyntax.Block) {
	count := "1"
	p.known(&count, group.Body, "count")
	if count != "1" {
		p.job.Observed = "count = " + count
	}
	if n := len(blocksOf(job.Body, "group")); n > 1 {
		p.job.Observed = fmt.Sprintf("%d groups", n)
	}
	for _, block := range []string{"periodic", "parameterized", "multiregion"} {
		if len(blocksOf(job.Body, block)) > 0 {
			p.job.Observed = "a block " + block
		}
	}
}

// tunedGroup returns the group with the stanza, or the only one.
func (p *parser) tunedGroup(job *hclsyntax.Block) *hclsyntax.Block {
	groups := blocksOf(job.Body, "group")
	var tuned *hclsyntax.Block
	for _, g := range groups {
		before := p.stanzaAt
		for _, t := range blocksOf(g.Body, "tuning") {
			p.tuningBlock(t)
		}
		for _, s := range blocksOf(g.Body, "scaling") {
			for _, policy := range blocksOf(s.Body, "policy") {
				for _, t := range blocksOf(policy.Body, "tuning") {
					p.tuningBlock(t)
				}
				if a, ok := policy.Body.Attributes["tuning"]; ok {
					p.tuningAttr(a)
				}
			}
		}
		p.stanzaOfMeta(g.Body)
		for _, t := range blocksOf(g.Body, "task") {
			p.stanzaOfMeta(t.Body)
		}
		if before == nil && p.stanzaAt != nil {
			tuned = g
		}
	}
	switch {
	case tuned != nil:
		return tuned
	case len(groups) == 1:
		return groups[0]
	case p.stanzaAt != nil && dynamic(job.Body, "group") == nil:
		p.fail(*p.stanzaAt, fmt.Sprintf("a tuning stanza of a job of %d groups", len(groups)), "want it in the group that it is meant for")
	}
	return nil
}

// mainTask is the task whose end is the end of its group's work: the only one that is
// no helper, or the leader.
func mainTask(tasks []*hclsyntax.Block) *hclsyntax.Block {
	var main []*hclsyntax.Block
	for _, t := range tasks {
		if a, ok := t.Body.Attributes["leader"]; ok {
			if v, diags := a.Expr.Value(nil); !diags.HasErrors() && v.Type() == cty.Bool && v.IsKnown() && !v.IsNull() && v.True() {
				return t
			}
		}
		if len(blocksOf(t.Body, "lifecycle")) == 0 {
			main = append(main, t)
		}
	}
	if len(main) != 1 {
		return nil
	}
	return main[0]
}

func (p *parser) nomadTask(b *hclsyntax.Block) {
	p.nomadMeta(b.Body)
	for _, e := range blocksOf(b.Body, "env") {
		p.knownEntries(p.job.Env, e.Body)
	}
	p.knownMap(p.job.Env, b.Body, "env")
	for _, c := range blocksOf(b.Body, "config") {
		command := ""
		for _, key := range []string{"image", "command"} { // a command stands over the image that it runs in
			p.known(&command, c.Body, key)
		}
		p.known(&p.job.Dir, c.Body, "work_dir")
		p.job.Argv = append([]string{command}, p.knownList(c.Body, "args")...)
	}
	for _, r := range blocksOf(b.Body, "resources") {
		if n, ok := p.knownInt(r.Body, "cores"); ok && n > 0 {
			p.job.Cores = int(n)
		}
		memory, _ := p.knownInt(r.Body, "memory")
		p.job.MemoryBytes = max(memory, 0) << 20
		if ceiling, ok := p.knownInt(r.Body, "memory_max"); ok {
			p.job.MemoryBytes = max(memory, ceiling) << 20
			if ceiling < 0 {
				p.job.MemoryBytes = 0
			}
		}
	}
}

// nomadMeta reads the meta of a job, group or task as far as it is known.
func (p *parser) nomadMeta(body *hclsyntax.Body) {
	for _, m := range blocksOf(body, "meta") {
		p.knownEntries(p.job.Meta, m.Body)
	}
	p.knownMap(p.job.Meta, body, "meta")
}

// stanzaOfMeta looks for the stanza in a meta block or map.
func (p *parser) stanzaOfMeta(body *hclsyntax.Body) {
	for _, m := range blocksOf(body, "meta") {
		if a, ok := m.Body.Attributes["tuning"]; ok {
			p.tuningAttr(a)
		}
	}
	a, ok := body.Attributes["meta"]
	if !ok {
		return
	}
	object, written := a.Expr.(*hclsyntax.ObjectConsExpr)
	if !written {
		if v, known := p.try(a.Expr); known && !v.IsNull() && isMapping(v.Type()) {
			if text, isText := asString(element(v, "tuning")); isText {
				p.metaText(p.pos(a.Expr.Range()), text)
			}
		}
		return
	}
	for _, item := range object.Items {
		if v, known := p.try(item.KeyExpr); known {
			if s, isText := asString(v); isText && s == "tuning" {
				p.tuningExpr(p.pos(item.KeyExpr.Range()), item.ValueExpr)
			}
		}
	}
}

func element(v cty.Value, name string) cty.Value {
	for it := v.ElementIterator(); it.Next(); {
		key, value := it.Element()
		if key.AsString() == name {
			return value
		}
	}
	return cty.NullVal(cty.String)
}

// try computes what the file alone determines.
func (p *parser) try(e hclsyntax.Expression) (cty.Value, bool) {
	if !p.bounded(e) {
		return cty.NilVal, false
	}
	v, diags := e.Value(p.scope)
	if diags.HasErrors() || !p.fits(e, v) {
		return cty.NilVal, false
	}
	v, _ = v.UnmarkDeep()
	return v, v.IsWhollyKnown()
}

func (p *parser) known(to *string, body *hclsyntax.Body, key string) {
	if a, ok := body.Attributes[key]; ok {
		if v, known := p.try(a.Expr); known {
			if s, isText := asString(v); isText {
				*to = s
			}
		}
	}
}

func (p *parser) knownInt(body *hclsyntax.Body, key string) (int64, bool) {
	const largest = 1 << 40
	a, ok := body.Attributes[key]
	if !ok {
		return 0, false
	}
	v, known := p.try(a.Expr)
	if !known {
		return 0, false
	}
	number, err := convert.Convert(v, cty.Number)
	if err != nil || number.IsNull() {
		return 0, false
	}
	n, _ := number.AsBigFloat().Int64()
	return n, n >= -1 && n <= largest
}

func (p *parser) knownList(body *hclsyntax.Body, key string) []string {
	a, ok := body.Attributes[key]
	if !ok {
		return nil
	}
	var out []string
	if list, written := a.Expr.(*hclsyntax.TupleConsExpr); written { // one that is unknown hides no other
		for _, e := range list.Exprs {
			text := "${" + strings.TrimSpace(p.text(e.Range())) + "}"
			if v, known := p.try(e); known {
				if s, isText := asString(v); isText {
					text = s
				}
			}
			out = append(out, text)
		}
		return out
	}
	if v, known := p.try(a.Expr); known && !v.IsNull() && isSequence(v.Type()) {
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			s, _ := asString(e)
			out = append(out, s)
		}
	}
	return out
}

func (p *parser) knownEntries(to map[string]string, body *hclsyntax.Body) {
	for _, a := range attributes(body) {
		if v, known := p.try(a.Expr); known {
			if s, isText := asString(v); isText {
				to[a.Name] = s
			}
		}
	}
}

func (p *parser) knownMap(to map[string]string, body *hclsyntax.Body, key string) {
	a, ok := body.Attributes[key]
	if !ok {
		return
	}
	out := map[string]string{}
	v, known := p.try(a.Expr)
	if !known || v.IsNull() || !isMapping(v.Type()) {
		return
	}
	for it := v.ElementIterator(); it.Next(); {
		name, value := it.Element()
		if s, isText := asString(value); isText {
			out[name.AsString()] = s
		}
	}
	maps.Copy(to, out)
}
