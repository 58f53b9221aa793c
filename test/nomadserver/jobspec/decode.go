package jobspec

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"
)

// field is one of a type's fields that the language has a word for.
type field struct {
	index  int
	name   string // of the attribute or block
	kind   string // label, block, optional, or "" for an attribute that must be there
	labels []string
}

// fields reads the tags of a type.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("hcl")
		if !ok {
			continue
		}
		f := field{index: i}
		f.name, f.kind, _ = strings.Cut(tag, ",")
		if f.kind == "block" {
			if elem := element(t.Field(i).Type); elem.Kind() == reflect.Struct {
				for _, inner := range fields(elem) {
					if inner.kind == "label" {
						f.labels = append(f.labels, inner.name)
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// element is the struct that a slice, a pointer or a map of structs holds.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decode reads a body into a struct of the API.
func (p *parser) decode(body *hclsyntax.Body, into any) hcl.Diagnostics {
	v := reflect.ValueOf(into).Elem()
	list := fields(v.Type())
	schema := &hcl.BodySchema{}
	for _, f := range list {
		switch {
		case f.kind == "label":
		case f.kind == "block":
			schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: f.name, LabelNames: f.labels})
			if v.Field(f.index).Type() == reflect.TypeFor[map[string]string]() {
				// meta and env may be written with =, the only way to write a name with a dot in it.
				schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: f.name})
			}
		default:
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: f.name, Required: f.kind == ""})
		}
	}
	content, diags := body.Content(schema)
	blocks := content.Blocks.ByType()
	for _, f := range list {
		if a, ok := content.Attributes[f.name]; ok {
			diags = append(diags, p.attribute(v.Field(f.index), a.Expr)...)
		}
		if f.kind == "block" && len(blocks[f.name]) > 0 {
			diags = append(diags, p.blocks(v.Field(f.index), f, blocks[f.name])...)
		}
	}
	if c, ok := into.(*api.Constraint); ok && c.Operand == "" {
		c.Operand = "="
	}
	if g, ok := into.(*api.TaskGroup); ok && g.Scaling != nil && g.Scaling.Max == nil && !diags.HasErrors() {
		at := blocks["scaling"][0].Body.(*hclsyntax.Body).MissingItemRange()
		diags = append(diags, fault(&at, "Missing required argument", `The argument "max" is required, but no definition was found.`))
	}
	return diags
}

// blocks reads the blocks of one name into a field.
func (p *parser) blocks(v reflect.Value, f field, found hcl.Blocks) hcl.Diagnostics {
	t := v.Type()
	if len(found) > 1 && t.Kind() != reflect.Slice && len(f.labels) == 0 {
		return hcl.Diagnostics{fault(&found[1].DefRange, fmt.Sprintf("Duplicate %s block", f.name),
			"Only one %s block is allowed. Another was defined at %s.", f.name, found[0].DefRange)}
	}
	var diags hcl.Diagnostics
	for _, b := range found {
		body := b.Body.(*hclsyntax.Body)
		switch t {
		case reflect.TypeFor[map[string]any]():
			tree, more := p.free(body)
			v.Set(reflect.ValueOf(tree))
			return more
		case reflect.TypeFor[map[string]string]():
			attrs, more := body.JustAttributes()
			out := map[string]string{}
			inOrder := func(a, b *hcl.Attribute) int { return a.NameRange.Start.Byte - b.NameRange.Start.Byte }
			for _, a := range slices.SortedFunc(maps.Values(attrs), inOrder) {
				var text string
				more = append(more, p.attribute(reflect.ValueOf(&text).Elem(), a.Expr)...)
				out[a.Name] = text
			}
			v.Set(reflect.ValueOf(out))
			return more
		}
		one := reflect.New(element(t))
		diags = append(diags, p.decode(body, one.Interface())...)
		for _, inner := range fields(one.Elem().Type()) {
			if inner.kind != "label" {
				continue
			}
			if to := one.Elem().Field(inner.index); to.Kind() == reflect.Pointer {
				to.Set(reflect.ValueOf(&b.Labels[0]))
			} else {
				to.SetString(b.Labels[0])
			}
		}
		switch {
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Pointer:
			v.Set(reflect.Append(v, one))
		case t.Kind() == reflect.Slice:
			v.Set(reflect.Append(v, one.Elem()))
		case t.Kind() == reflect.Map:
			if v.IsNil() {
				v.Set(reflect.MakeMap(t))
			}
			v.SetMapIndex(reflect.ValueOf(b.Labels[0]), one)
		default:
			v.Set(one)
		}
	}
	return diags
}

// free reads a body without a schema: a driver's config or the policy of a scaling block.
// A block is a list of maps, with a map around it for each label, and an object written
// after = is a list of one map.
func (p *parser) free(body *hclsyntax.Body) (map[string]any, hcl.Diagnostics) {
	out := map[string]any{}
	var diags hcl.Diagnostics
	for name, a := range body.Attributes {
		v, more := a.Expr.Value(p.scope(a.Expr))
		diags = append(diags, more...)
		out[name] = plain(v)
		if m, ok := out[name].(map[string]any); ok {
			out[name] = []any{m}
		}
	}
	for _, b := range body.Blocks {
		tree, more := p.free(b.Body)
		diags = append(diags, more...)
		for _, label := range slices.Backward(b.Labels) {
			tree = map[string]any{label: []any{tree}}
		}
		list, _ := out[b.Type].([]any)
		out[b.Type] = append(list, tree)
	}
	return out, diags
}

// plain turns a value into what JSON has: text, number, truth, list, map, null.
func plain(v cty.Value) any {
	t := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown():
		return nil
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		if n, accuracy := v.AsBigFloat().Int64(); accuracy == big.Exact {
			return int(n)
		}
		n, _ := v.AsBigFloat().Float64()
		return n
	case t.IsObjectType() || t.IsMapType():
		out := map[string]any{}
		for k, e := range v.AsValueMap() {
			out[k] = plain(e)
		}
		return out
	}
	out := []any{}
	for _, e := range v.AsValueSlice() {
		out = append(out, plain(e))
	}
	return out
}

// attribute computes an expression into a field; a duration is a text such as "10s".
func (p *parser) attribute(v reflect.Value, e hcl.Expression) hcl.Diagnostics {
	t := v.Type()
	if t != reflect.TypeFor[time.Duration]() && t != reflect.TypeFor[*time.Duration]() {
		return gohcl.DecodeExpression(e, p.scope(e), v.Addr().Interface())
	}
	var text string
	if diags := gohcl.DecodeExpression(e, p.scope(e), &text); diags.HasErrors() {
		return diags
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return hcl.Diagnostics{fault(e.StartRange().Ptr(), "Unsuitable value type", "Unsuitable duration value: %s", err)}
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.ValueOf(&d))
	default:
		v.Set(reflect.ValueOf(d))
	}
	return nil
}

// complete adds what the parser itself adds, before the job is canonicalised.
func complete(job *api.Job) {
	if p := job.Periodic; p != nil && (p.Spec != nil || p.Specs != nil) {
		p.SpecType = new("cron")
	}
	for _, g := range job.TaskGroups {
		if g.Scaling != nil {
			g.Scaling.Type = "horizontal"
		}
		for _, t := range g.Tasks {
			for _, tmpl := range t.Templates {
				tmpl.ChangeMode = orElse(tmpl.ChangeMode, "restart")
				tmpl.Perms = orElse(tmpl.Perms, "0644")
				tmpl.Splay = orElse(tmpl.Splay, 5*time.Second)
				tmpl.ErrMissingKey = orElse(tmpl.ErrMissingKey, false)
			}
			// The list does not have the default identity.
			isDefault := func(w *api.WorkloadIdentity) bool { return w.Name == "" || w.Name == "default" }
			if i := slices.IndexFunc(t.Identities, isDefault); i >= 0 {
				t.Identity = t.Identities[i]
				t.Identities = slices.Delete(t.Identities, i, i+1)
			}
		}
	}
}

func orElse[T any](p *T, otherwise T) *T {
	if p == nil {
		return &otherwise
	}
	return p
}
