package nomadhcl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"

	"pitchpipe/driver/jobfile/nomadjson"
)

func blocksOf(body *hclsyntax.Body, kind string) []*hclsyntax.Block {
	return slices.DeleteFunc(slices.Clone(body.Blocks), func(b *hclsyntax.Block) bool { return b.Type != kind })
}

func dynamic(body *hclsyntax.Body, kind string) bool {
	return slices.ContainsFunc(blocksOf(body, "dynamic"), func(b *hclsyntax.Block) bool { return name(b) == kind })
}

func name(b *hclsyntax.Block) string {
	if len(b.Labels) == 0 {
		return ""
	}
	return b.Labels[0]
}

func (p *parser) nomadJob(b *hclsyntax.Block) {
	p.job.Name = name(b)
	if why := nomadjson.Misread(p.job.Name); why != "" && p.lenient {
		p.fail(p.pos(b.LabelRanges[0]), fmt.Sprintf("the job %q: %s", p.job.Name, why), "give it another id")
	}
	p.known(&p.job.Name, b.Body, "name")
	p.known(&p.job.Partition, b.Body, "namespace")
	kind := "service"
	p.known(&kind, b.Body, "type")
	p.tuningBlocks(b.Body)
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
	p.task = p.mainTask(tasks)
	switch {
	case p.task != nil:
		p.nomadTask(p.task)
	case p.stanzaAt != nil && !dynamic(group.Body, "task"):
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
		p.tuningBlocks(g.Body)
		for _, s := range blocksOf(g.Body, "scaling") {
			for _, policy := range blocksOf(s.Body, "policy") {
				p.tuningBlocks(policy.Body)
				if a, ok := policy.Body.Attributes["tuning"]; ok {
					p.tuningAttr(p.pos(a.NameRange), a.Expr)
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
	case p.stanzaAt != nil && !dynamic(job.Body, "group"):
		p.fail(*p.stanzaAt, fmt.Sprintf("a tuning stanza of a job of %d groups", len(groups)), "want it in the group that it is meant for")
	}
	return nil
}

// mainTask is the task whose end is the end of its group's work: the only one that is
// not a helper, or the leader.
func (p *parser) mainTask(tasks []*hclsyntax.Block) *hclsyntax.Block {
	var main []*hclsyntax.Block
	for _, t := range tasks {
		if v, ok := p.key(t.Body, "leader", cty.Bool); ok && v.True() {
			return t
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
	p.knownMap(p.job.Env, b.Body, "env")
	kind := "exec"
	if p.known(&kind, b.Body, "driver"); !slices.Contains(nomadjson.Drivers(), kind) {
		p.job.Observed = "driver = " + kind
	}
	for _, c := range blocksOf(b.Body, "config") {
		for _, own := range []string{"cgroup_v1_override", "cgroup_v2_override"} {
			if c.Body.Attributes[own] != nil || len(blocksOf(c.Body, own)) > 0 {
				p.job.Observed = own
			}
		}
		command := ""
		for _, key := range []string{"image", "command"} { // a command overrides the image that it runs in
			p.known(&command, c.Body, key)
		}
		p.known(&p.job.Dir, c.Body, "work_dir")
		p.job.Argv = append([]string{command}, p.words(c.Body.Attributes["args"])...)
	}
	for _, r := range blocksOf(b.Body, "resources") {
		asked := api.Resources{Cores: p.number(r.Body, "cores"), MemoryMB: p.number(r.Body, "memory"), MemoryMaxMB: p.number(r.Body, "memory_max")}
		p.job.Cores, p.job.MemoryBytes = nomadjson.Size(&asked)
	}
}

func (p *parser) nomadMeta(body *hclsyntax.Body) { p.knownMap(p.job.Meta, body, "meta") }

// key is the value of a key as far as the file alone determines it.
func (p *parser) key(body *hclsyntax.Body, key string, kind cty.Type) (cty.Value, bool) {
	if a, ok := body.Attributes[key]; ok {
		return p.as(a.Expr, kind)
	}
	return cty.NilVal, false
}

func (p *parser) known(to *string, body *hclsyntax.Body, key string) {
	if v, ok := p.key(body, key, cty.String); ok {
		*to = v.AsString()
	}
}

// number is a whole number, nil where the file alone does not determine it.
func (p *parser) number(body *hclsyntax.Body, key string) *int {
	v, ok := p.key(body, key, cty.Number)
	if !ok {
		return nil
	}
	n, _ := v.AsBigFloat().Int64()
	return new(int(n))
}

// words reads a list of texts. One that is unknown hides no other.
func (p *parser) words(a *hclsyntax.Attribute) []string {
	if a == nil {
		return nil
	}
	var out []string
	if list, diags := hcl.ExprList(a.Expr); !diags.HasErrors() {
		for _, e := range list {
			text := "${" + strings.TrimSpace(p.text(e.Range())) + "}"
			if v, known := p.as(e, cty.String); known {
				text = v.AsString()
			}
			out = append(out, text)
		}
		return out
	}
	if v, ok := p.as(a.Expr, cty.List(cty.String)); ok {
		for _, e := range v.AsValueSlice() {
			if !e.IsNull() {
				out = append(out, e.AsString())
			}
		}
	}
	return out
}

func (p *parser) knownMap(to map[string]string, body *hclsyntax.Body, key string) {
	for _, b := range blocksOf(body, key) {
		for _, a := range attributes(b.Body) {
			if v, known := p.as(a.Expr, cty.String); known {
				to[a.Name] = v.AsString()
			}
		}
	}
	if v, known := p.key(body, key, cty.Map(cty.String)); known {
		for name, e := range v.AsValueMap() {
			if !e.IsNull() {
				to[name] = e.AsString()
			}
		}
	}
}
