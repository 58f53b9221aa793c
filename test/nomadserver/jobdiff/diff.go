package jobdiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// The types of a difference.
const (
	none    = "None"
	added   = "Added"
	deleted = "Deleted"
	edited  = "Edited"
)

// Jobs compares a job with the version before it, nil = there was none.
func Jobs(old, job *api.Job) *api.JobDiff {
	out := &api.JobDiff{Type: none, ID: *job.ID}
	a, b := tree(old), tree(job)
	groups := func(t map[string]any) map[string]map[string]any { return byName(t, "TaskGroups") }
	ga, gb := groups(a), groups(b)
	for _, side := range []map[string]any{a, b} {
		for k := range strings.FieldsSeq("TaskGroups ID Status StatusDescription Stable Version CreateIndex ModifyIndex JobModifyIndex SubmitTime") {
			delete(side, k)
		}
	}
	out.Fields, out.Objects = object(a, b)
	for _, name := range names(ga, gb) {
		if d := group(name, ga[name], gb[name]); d.Type != none || old != nil {
			out.TaskGroups = append(out.TaskGroups, d)
		}
	}
	changed := len(out.Fields)+len(out.Objects) > 0 ||
		slices.ContainsFunc(out.TaskGroups, func(g *api.TaskGroupDiff) bool { return g.Type != none })
	switch {
	case old == nil:
		out.Type = added
	case changed:
		out.Type = edited
	}
	return out
}

func group(name string, a, b map[string]any) *api.TaskGroupDiff {
	out := &api.TaskGroupDiff{Name: name, Type: typeOf(a, b)}
	ta, tb := byName(a, "Tasks"), byName(b, "Tasks")
	for _, side := range []map[string]any{a, b} {
		delete(side, "Tasks")
		delete(side, "Name")
	}
	out.Fields, out.Objects = object(a, b)
	for _, n := range names(ta, tb) {
		out.Tasks = append(out.Tasks, task(n, ta[n], tb[n]))
	}
	if out.Type == none && (len(out.Fields)+len(out.Objects) > 0 ||
		slices.ContainsFunc(out.Tasks, func(t *api.TaskDiff) bool { return t.Type != none })) {
		out.Type = edited
	}
	return out
}

func task(name string, a, b map[string]any) *api.TaskDiff {
	out := &api.TaskDiff{Name: name, Type: typeOf(a, b)}
	for _, side := range []map[string]any{a, b} {
		delete(side, "Name")
	}
	out.Fields, out.Objects = object(a, b)
	if out.Type == none && len(out.Fields)+len(out.Objects) > 0 {
		out.Type = edited
	}
	return out
}

func typeOf(a, b map[string]any) string {
	switch {
	case a == nil:
		return added
	case b == nil:
		return deleted
	}
	return none
}

// object compares two trees; only what differs shows.
func object(a, b map[string]any) ([]*api.FieldDiff, []*api.ObjectDiff) {
	var fields []*api.FieldDiff
	var objects []*api.ObjectDiff
	keys := slices.Sorted(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		x, y := a[k], b[k]
		ma, aMap := x.(map[string]any)
		mb, bMap := y.(map[string]any)
		switch {
		case (aMap || bMap) && (k == "Env" || k == "Meta"):
			inner, _ := object(ma, mb)
			for _, f := range inner {
				f.Name = k + "[" + f.Name + "]"
				fields = append(fields, f)
			}
		case aMap || bMap:
			if f, o := object(ma, mb); len(f)+len(o) > 0 {
				objects = append(objects, &api.ObjectDiff{Type: objectType(x, y), Name: k, Fields: f, Objects: o})
			}
		default:
			if la, lb := list(x), list(y); la != nil || lb != nil {
				f, o := lists(k, la, lb)
				fields, objects = append(fields, f...), append(objects, o...)
				continue
			}
			if d := field(k, x, y); d != nil {
				fields = append(fields, d)
			}
		}
	}
	return fields, objects
}

// lists compares element by element: words as fields NAME[0], objects as objects NAME.
func lists(name string, a, b []any) ([]*api.FieldDiff, []*api.ObjectDiff) {
	var fields []*api.FieldDiff
	var objects []*api.ObjectDiff
	for i := range max(len(a), len(b)) {
		var x, y any
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		ma, aMap := x.(map[string]any)
		mb, bMap := y.(map[string]any)
		if aMap || bMap {
			if f, o := object(ma, mb); len(f)+len(o) > 0 {
				objects = append(objects, &api.ObjectDiff{Type: objectType(x, y), Name: name, Fields: f, Objects: o})
			}
		} else if d := field(fmt.Sprintf("%s[%d]", name, i), x, y); d != nil {
			fields = append(fields, d)
		}
	}
	return fields, objects
}

func objectType(a, b any) string {
	switch {
	case a == nil:
		return added
	case b == nil:
		return deleted
	}
	return edited
}

func field(name string, a, b any) *api.FieldDiff {
	x, y := said(a), said(b)
	switch {
	case x == y:
		return nil
	case x == "":
		return &api.FieldDiff{Type: added, Name: name, New: y}
	case y == "":
		return &api.FieldDiff{Type: deleted, Name: name, Old: x}
	}
	return &api.FieldDiff{Type: edited, Name: name, Old: x, New: y}
}

func said(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// tree is a job as JSON has it.
func tree(j *api.Job) map[string]any {
	if j == nil {
		return nil
	}
	out := map[string]any{}
	text, err := json.Marshal(j)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("a job that JSON cannot say: %v", err))
	}
	return out
}

func byName(t map[string]any, key string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, e := range list(t[key]) {
		if m, ok := e.(map[string]any); ok {
			out[said(m["Name"])] = m
		}
	}
	return out
}

func names(a, b map[string]map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), cmp.Compare[string])
}
