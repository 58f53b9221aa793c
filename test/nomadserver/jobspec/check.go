package jobspec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/nomad/api"
)

// check looks at what tags cannot say.
func (p *parser) check(body hcl.Body, into any) hcl.Diagnostics {
	g, ok := into.(*api.TaskGroup)
	if !ok || g.Scaling == nil {
		return nil
	}
	if g.Scaling.Type == "" {
		g.Scaling.Type = "horizontal"
	}
	if g.Scaling.Max != nil && g.Scaling.Type == "horizontal" {
		return nil
	}
	content, _, diags := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "scaling"}}})
	if len(content.Blocks) == 0 {
		return diags
	}
	inner, _, diags := content.Blocks[0].Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "max", Required: true}, {Name: "type"}}})
	if a, ok := inner.Attributes["type"]; ok && g.Scaling.Type != "horizontal" {
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Invalid group scaling type", Subject: a.Expr.Range().Ptr(),
			Detail: fmt.Sprintf("task group scaling policy had invalid type: %q", g.Scaling.Type),
		})
	}
	return diags
}

// taskScaling gives a task's scaling policy the type that its label says. Groups have
// theirs without a label.
func taskScaling(v reflect.Value, b *hcl.Block) hcl.Diagnostics {
	policy, ok := reflect.TypeAssert[*api.ScalingPolicy](v)
	if !ok || len(b.Labels) == 0 {
		return nil
	}
	switch strings.ToLower(b.Labels[0]) {
	case "cpu":
		policy.Type = "vertical_cpu"
	case "mem":
		policy.Type = "vertical_mem"
	default:
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid scaling policy name", Detail: `scaling policy name must be "cpu" or "mem"`, Subject: &b.LabelRanges[0],
		}}
	}
	return nil
}

// texts reads a body of texts; words are the attributes that may be there.
func (p *parser) texts(body hcl.Body, words ...string) (map[string]string, hcl.Diagnostics) {
	s := &hcl.BodySchema{}
	for _, w := range words {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: w})
	}
	content, diags := body.Content(s)
	out := map[string]string{}
	for name, a := range content.Attributes {
		var text string
		diags = append(diags, p.attribute(reflect.ValueOf(&text).Elem(), a.Expr)...)
		out[name] = text
	}
	return out, diags
}

// constraint reads the long form and the short ones, such as regexp = "...".
func (p *parser) constraint(body hcl.Body, c *api.Constraint) hcl.Diagnostics {
	got, diags := p.texts(body, "attribute", "value", "operator", api.ConstraintDistinctProperty, api.ConstraintDistinctHosts,
		api.ConstraintRegex, api.ConstraintVersion, api.ConstraintSemver, api.ConstraintSetContains, api.ConstraintSetContainsAll,
		api.ConstraintSetContainsAny, api.ConstraintAttributeIsSet, api.ConstraintAttributeIsNotSet)
	c.LTarget, c.RTarget, c.Operand = got["attribute"], got["value"], got["operator"]
	for _, word := range []string{api.ConstraintVersion, api.ConstraintSemver, api.ConstraintRegex, api.ConstraintSetContains, api.ConstraintDistinctHosts} {
		if got[word] != "" {
			c.Operand, c.RTarget = word, got[word]
		}
	}
	if property := got[api.ConstraintDistinctProperty]; property != "" {
		c.Operand, c.LTarget = api.ConstraintDistinctProperty, property
	}
	if c.Operand == "" {
		c.Operand = "="
	}
	return diags
}

func (p *parser) affinity(body hcl.Body, a *api.Affinity) hcl.Diagnostics {
	weight, body, diags := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "weight"}}})
	if w, ok := weight.Attributes["weight"]; ok {
		diags = append(diags, p.attribute(reflect.ValueOf(&a.Weight).Elem(), w.Expr)...)
	}
	words := []string{api.ConstraintVersion, api.ConstraintSemver, api.ConstraintRegex, api.ConstraintSetContainsAny, api.ConstraintSetContainsAll, api.ConstraintSetContains}
	got, more := p.texts(body, append([]string{"attribute", "value", "operator"}, words...)...)
	a.LTarget, a.RTarget, a.Operand = got["attribute"], got["value"], got["operator"]
	for _, word := range words {
		if got[word] != "" {
			a.Operand, a.RTarget = word, got[word]
		}
	}
	if a.Operand == "" {
		a.Operand = "="
	}
	return append(diags, more...)
}
