package jobspec

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// blocks reads the blocks of one name into a field.
func (p *parser) blocks(v reflect.Value, f field, found hcl.Blocks) hcl.Diagnostics {
	t := v.Type()
	if len(found) == 0 {
		return nil
	}
	if len(found) > 1 && t.Kind() != reflect.Slice && (t.Kind() != reflect.Map || len(f.labels) == 0) {
		return hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: fmt.Sprintf("Duplicate %s block", f.name), Subject: &found[1].DefRange,
			Detail: fmt.Sprintf("Only one %s block is allowed. Another was defined at %s.", f.name, found[0].DefRange),
		}}
	}
	var diags hcl.Diagnostics
	for _, b := range found {
		if t.Kind() == reflect.Map && len(f.labels) == 0 {
			return p.free(v, b.Body)
		}
		one := reflect.New(element(t))
		diags = append(diags, p.decode(b.Body, one.Interface())...)
		label(one.Elem(), b)
		pointer := t
		if t.Kind() != reflect.Pointer {
			pointer = t.Elem()
		}
		if pointer.Kind() != reflect.Pointer {
			one = one.Elem()
		}
		switch t.Kind() {
		case reflect.Slice:
			v.Set(reflect.Append(v, one))
		case reflect.Map:
			if v.IsNil() {
				v.Set(reflect.MakeMap(t))
			}
			v.SetMapIndex(reflect.ValueOf(b.Labels[0]), one)
		default:
			v.Set(one)
		}
		diags = append(diags, taskScaling(one, b)...)
	}
	return diags
}

// label writes the labels of a block into the fields for them.
func label(v reflect.Value, b *hcl.Block) {
	i := 0
	for _, f := range fields(v.Type()) {
		if f.kind != "label" || i >= len(b.Labels) {
			continue
		}
		if to := v.Field(f.index); to.Kind() == reflect.Pointer {
			to.Set(reflect.ValueOf(&b.Labels[i]))
		} else {
			to.SetString(b.Labels[i])
		}
		i++
	}
}

// free reads a body without a schema into a map.
func (p *parser) free(v reflect.Value, body hcl.Body) hcl.Diagnostics {
	attrs, diags := body.JustAttributes()
	out := reflect.MakeMap(v.Type())
	for _, a := range inOrder(attrs) {
		one := reflect.New(v.Type().Elem())
		if one.Elem().Kind() == reflect.Interface {
			value, more := p.value(a.Expr, p.ctx)
			diags = append(diags, more...)
			if goes, err := plain(value); err != nil {
				diags = append(diags, &hcl.Diagnostic{
					Severity: hcl.DiagError, Summary: "unsuitable value type", Detail: "Unsuitable value: " + err.Error(),
					Subject: a.Expr.StartRange().Ptr(), Context: a.Expr.Range().Ptr(),
				})
			} else if goes != nil {
				one.Elem().Set(reflect.ValueOf(goes))
			}
		} else {
			diags = append(diags, p.attribute(one.Elem(), a.Expr)...)
		}
		out.SetMapIndex(reflect.ValueOf(a.Name), one.Elem())
	}
	v.Set(out)
	return diags
}

// plain turns a value into what JSON has: text, number, truth, list, map.
func plain(v cty.Value) (any, error) {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil, nil //nolint:nilnil // null is a value of its own in the language
	case !v.IsKnown():
		return nil, fmt.Errorf("value is not known")
	case t == cty.String:
		return v.AsString(), nil
	case t == cty.Bool:
		return v.True(), nil
	case t == cty.Number:
		f := v.AsBigFloat()
		if n, accuracy := f.Int64(); accuracy == big.Exact {
			return int(n), nil
		}
		n, _ := f.Float64()
		return n, nil
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		out := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			one, err := plain(e)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	case t.IsObjectType() || t.IsMapType():
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			one, err := plain(e)
			if err != nil {
				return nil, err
			}
			out[k.AsString()] = one
		}
		return out, nil
	default:
		return nil, fmt.Errorf("cannot serialize %s", t.FriendlyName())
	}
}
