package reconcile_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// TestACloneSharesNothingThatAPassChanges finds a list, a map or a pointer that was added to
// the record and not to Clone.
func TestACloneSharesNothingThatAPassChanges(t *testing.T) {
	t.Parallel()
	var r reconcile.Record
	fill(reflect.ValueOf(&r).Elem())
	c := r.Clone()
	if diff := cmp.Diff(&r, c, cmp.AllowUnexported(tuning.Value{})); diff != "" {
		t.Errorf("the clone is another record (-record +clone):\n%s", diff)
	}
	if n := compare(t, reflect.ValueOf(r), reflect.ValueOf(*c), "Record"); n < 15 {
		t.Errorf("compared %d fields: a record has more", n)
	}
}

// fill gives every list, map and pointer of a struct something to share.
func fill(v reflect.Value) {
	for _, f := range v.Fields() {
		switch kind := f.Kind(); {
		case kind == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 2))
		case kind == reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.Zero(f.Type().Key()), reflect.Zero(f.Type().Elem()))
		case kind == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case part(f.Type()):
			fill(f)
		}
	}
}

// part reports whether a struct is one of those that a record is made of.
func part(t reflect.Type) bool {
	of := reflect.TypeFor[reconcile.Record]().PkgPath()
	return t.Kind() == reflect.Struct && (t.PkgPath() == of || t == reflect.TypeFor[tuning.Policy]())
}

func compare(t *testing.T, a, b reflect.Value, path string) (compared int) {
	t.Helper()
	for i := range a.NumField() {
		name := path + "." + a.Type().Field(i).Name
		f := a.Field(i)
		switch kind := f.Kind(); {
		case kind == reflect.Slice || kind == reflect.Map || kind == reflect.Pointer:
			compared++
			if f.Pointer() == b.Field(i).Pointer() {
				t.Errorf("a clone shares %s", name)
			}
		case part(f.Type()):
			compared += compare(t, f, b.Field(i), name)
		}
	}
	return compared
}
