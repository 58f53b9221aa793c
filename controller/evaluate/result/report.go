package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what an evaluation found: rows of one kind and a summary of them.
//
// The fields of R and S carry three tags: json is the key, about says what the figure
// means, and col heads the column of the printed table (behind | stands the number of
// digits, or % for a percentage). A field without col stands in the JSON alone.
type Report[R, S any] struct {
	Command string   `json:"command"` // the words behind `pitchpipe`, such as "evaluate tuner"
	Data    []string `json:"data"`    // the files it was measured on, as they were named
	Rows    []R      `json:"rows"`
	Summary S        `json:"summary"`
}

// MarshalJSON writes empty lists where there are no rows and no data.
func (r Report[R, S]) MarshalJSON() ([]byte, error) {
	type plain Report[R, S]
	r.Data, r.Rows = append([]string{}, r.Data...), append([]R{}, r.Rows...)
	return json.Marshal(plain(r))
}

// Text prints the rows as a table, and below them each key of the summary with its value
// and meaning.
func (r Report[R, S]) Text() string {
	var b strings.Builder
	b.WriteString(table(reflect.ValueOf(r.Rows)))
	summarise(&b, "", reflect.ValueOf(r.Summary))
	return b.String()
}

// summarise prints the single values of a struct, then its lists and inner structs.
func summarise(b *strings.Builder, prefix string, v reflect.Value) {
	var lines [][]string
	var rest strings.Builder
	for _, f := range Fields(v.Type()) {
		at, kind := v.FieldByIndex(f.Index), f.Type.Kind()
		switch {
		case kind == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			if at.Len() > 0 {
				fmt.Fprintf(&rest, "\n%s: %s\n%s", prefix+f.Key, f.About, table(at))
			}
		case kind == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
			if !at.IsNil() {
				summarise(&rest, prefix+f.Key+".", at.Elem())
			}
		default:
			lines = append(lines, []string{prefix + f.Key, f.print(at), f.About})
		}
	}
	b.WriteString("\n" + columns(lines) + rest.String())
}

// Detailed is a row that may stand in the JSON alone, since another one sums it up.
type Detailed interface{ Detail() bool }

// table prints a list of structs. A column that is empty in every row is left out.
func table(rows reflect.Value) string {
	list := reflect.MakeSlice(rows.Type(), 0, rows.Len())
	for i := range rows.Len() {
		if d, ok := reflect.TypeAssert[Detailed](rows.Index(i)); !ok || !d.Detail() {
			list = reflect.Append(list, rows.Index(i))
		}
	}
	fields := slices.DeleteFunc(Fields(list.Type().Elem()), func(f Field) bool {
		if f.Head == "" {
			return true
		}
		for i := range list.Len() {
			if f.print(list.Index(i).FieldByIndex(f.Index)) != "-" {
				return false
			}
		}
		return true
	})
	cells := make([][]string, 1+list.Len())
	for _, f := range fields {
		cells[0] = append(cells[0], f.Head)
		for i := range list.Len() {
			cells[i+1] = append(cells[i+1], f.print(list.Index(i).FieldByIndex(f.Index)))
		}
	}
	return columns(cells)
}

// columns aligns rows of cells, two spaces apart.
func columns(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // to memory
	}
	_ = w.Flush()
	return b.String()
}

// Field is one key of the JSON of a struct.
type Field struct {
	Key, About, Head, Digits string
	Index                    []int
	Type                     reflect.Type
}

// Fields lists the keys of a struct in their order, those of embedded structs included.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				out = append(out, inner)
			}
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		head, digits, _ := strings.Cut(f.Tag.Get("col"), "|")
		out = append(out, Field{key, f.Tag.Get("about"), head, digits, []int{i}, f.Type})
	}
	return out
}

// print writes one value, "-" where it is missing.
func (f Field) print(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case Figure:
		if f.Digits == "%" && value.Known() {
			return (100 * value).Print(0) + " %"
		}
		digits := 3
		_, _ = fmt.Sscan(f.Digits, &digits) // three where the tag has none
		return value.Print(digits)
	case []string:
		return cmp.Or(strings.Join(value, " | "), "-")
	default:
		return cmp.Or(fmt.Sprint(value), "-")
	}
}

// Average is a row whose figures are the means of those of several, where they are known;
// all else is as in the first.
func Average[R any](rows []R) R {
	out := rows[0]
	v := reflect.ValueOf(&out).Elem()
	for _, f := range Fields(v.Type()) {
		if f.Type != reflect.TypeFor[Figure]() {
			continue
		}
		all := make([]Figure, len(rows))
		for i, r := range rows {
			all[i] = reflect.ValueOf(r).FieldByIndex(f.Index).Interface().(Figure)
		}
		if slices.ContainsFunc(all, func(x Figure) bool { return x != all[0] }) { // else it keeps every digit
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(Mean(all)))
		}
	}
	return out
}

// LeftOut is what of a file could not be used, and why.
type LeftOut struct {
	Data     string `json:"data" about:"the file"`
	Workload string `json:"workload" about:"whose rows these are" col:"LEFT OUT"`
	Machine  string `json:"machine" about:"on which they ran" col:"MACHINE"`
	Rows     int    `json:"rows,omitempty" about:"how many of its rows; none: the workload as a whole" col:"ROWS"`
	Line     int    `json:"line,omitempty" about:"of the first of them" col:"LINE"`
	Why      string `json:"why" about:"what is wrong with them" col:"WHY"`
}

// Leave counts a row that cannot be used: one entry stands for all rows of a workload on
// a machine that are left out for the same reason.
func Leave(all []LeftOut, one LeftOut) []LeftOut {
	for i, l := range all {
		if l.Data == one.Data && l.Workload == one.Workload && l.Machine == one.Machine && l.Why == one.Why && l.Rows > 0 && one.Rows > 0 {
			all[i].Rows += one.Rows
			return all
		}
	}
	return append(all, one)
}
