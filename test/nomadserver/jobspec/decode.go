package jobspec

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/nomad/api"
	"github.com/zclconf/go-cty/cty"
)

// field is one of a type's fields that the language has a word for.
type field struct {
	index  int
	name   string // of the attribute or block
	labels []string
	kind   string // label, block, optional, or "" for an attribute that must be there
}

// fields reads the tags of a type.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("hcl")
		if !ok {
			continue
		}
		name, kind, _ := strings.Cut(tag, ",")
		f := field{index: i, name: name, kind: kind}
		if kind == "block" {
			if elem := element(t.Field(i).Type); elem.Kind() == reflect.Struct {
				for _, inner := range fields(elem) {
					if inner.kind == "label" {
						f.labels = append(f.labels, inner.name)
					}
				}
			}
			if t == reflect.TypeFor[api.Task]() && name == "scaling" {
				f.labels = []string{"name"} // "cpu" or "mem", which the type has no field for
			}
		}
		out = append(out, f)
	}
	return out
}

// element is what a slice, a pointer or a map of structs holds.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func schema(list []field) *hcl.BodySchema {
	out := &hcl.BodySchema{}
	for _, f := range list {
		switch f.kind {
		case "label":
		case "block":
			out.Blocks = append(out.Blocks, hcl.BlockHeaderSchema{Type: f.name, LabelNames: f.labels})
		default:
			out.Attributes = append(out.Attributes, hcl.AttributeSchema{Name: f.name, Required: f.kind == ""})
		}
	}
	return out
}

// decode reads a body into a struct of the API.
func (p *parser) decode(body hcl.Body, into any) hcl.Diagnostics {
	switch v := into.(type) {
	case *api.Constraint:
		return p.constraint(body, v)
	case *api.Affinity:
		return p.affinity(body, v)
	}
	v := reflect.ValueOf(into).Elem()
	list := fields(v.Type())
	body, diags := p.mapsAsAttributes(body, v, list)
	content, more := body.Content(schema(list))
	diags = append(diags, more...)
	blocks := content.Blocks.ByType()
	for _, f := range list {
		switch f.kind {
		case "label":
		case "block":
			diags = append(diags, p.blocks(v.Field(f.index), f, blocks[f.name])...)
		default:
			if a, ok := content.Attributes[f.name]; ok {
				diags = append(diags, p.attribute(v.Field(f.index), a.Expr)...)
			}
		}
	}
	return append(diags, p.check(body, into)...)
}

// mapsAsAttributes reads meta and env where they are written with =, which is the only
// way to write a name with a dot in it.
func (p *parser) mapsAsAttributes(body hcl.Body, v reflect.Value, list []field) (hcl.Body, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	for _, f := range list {
		switch v.Interface().(type) {
		case api.Job, api.TaskGroup, api.Task:
		default:
			continue
		}
		if f.name != "meta" && f.name != "env" {
			continue
		}
		content, rest, more := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: f.name}}})
		a, ok := content.Attributes[f.name]
		if more.HasErrors() || !ok {
			continue
		}
		if twice, _, _ := rest.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: f.name}}}); len(twice.Blocks) > 0 {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: fmt.Sprintf("Duplicate %s block", f.name), Subject: &twice.Blocks[0].DefRange,
				Detail: fmt.Sprintf("%s may not be defined more than once. Another definition is defined at %s.", f.name, a.Range),
			})
		}
		diags = append(diags, p.attribute(v.Field(f.index), a.Expr)...)
		body = rest
	}
	return body, diags
}

// attribute computes an expression into a field.
func (p *parser) attribute(v reflect.Value, e hcl.Expression) hcl.Diagnostics {
	if t := v.Type(); t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[*time.Duration]() {
		return p.duration(v, e)
	}
	return gohcl.DecodeExpression(e, p.scope(e, p.ctx), v.Addr().Interface())
}

// duration reads "10s", or a number of nanoseconds.
func (p *parser) duration(v reflect.Value, e hcl.Expression) hcl.Diagnostics {
	bad := func(format string, args ...any) hcl.Diagnostics {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Unsuitable value type", Detail: fmt.Sprintf(format, args...),
			Subject: e.StartRange().Ptr(), Context: e.Range().Ptr(),
		}}
	}
	value, diags := p.value(e, p.ctx)
	if diags.HasErrors() {
		return diags
	}
	var d time.Duration
	switch {
	case value.IsNull():
		diags = bad("Unsuitable duration value: nil")
		diags[0].Summary = "Unsuitable value"
		return diags
	case value.Type() == cty.String:
		var err error
		if d, err = time.ParseDuration(value.AsString()); err != nil {
			return bad("Unsuitable duration value: %s", err)
		}
	case value.Type() == cty.Number:
		n, _ := value.AsBigFloat().Int64()
		d = time.Duration(n)
	default:
		return bad("Unsuitable value: expected a string but found %s", value.Type())
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.ValueOf(&d))
	} else {
		v.Set(reflect.ValueOf(d))
	}
	return nil
}
