package tuning_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// anyValue draws values of every kind, with a liking for those that look alike.
func anyValue() *rapid.Generator[tuning.Value] {
	return rapid.OneOf(
		rapid.Just(tuning.Value{}),
		rapid.Map(rapid.Float64(), tuning.Number),
		rapid.Map(rapid.Float64Range(-4, 4), func(f float64) tuning.Value { return tuning.Number(math.Round(f)) }),
		rapid.Map(rapid.SampledFrom([]string{"", "1", "1KiB", "adam", "a b", "x=1", `"1"`, "+Inf", "1e3", "nan"}), tuning.Word),
		rapid.Map(rapid.String(), tuning.Word),
	)
}

func anySettings() *rapid.Generator[tuning.Settings] {
	names := rapid.OneOf(rapid.SampledFrom([]string{"cores", "memory", "a", "a b", "lr", ""}), rapid.String())
	return rapid.Map(rapid.MapOfN(names, anyValue(), 0, 4), func(m map[string]tuning.Value) tuning.Settings { return m })
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		value  tuning.Value
		text   string
		json   string
		number bool
		set    bool
		whole  int
	}{
		{"a value that is not set", tuning.Value{}, "", "null", false, false, 0},
		{"a whole number has no point", tuning.Number(64), "64", "64", true, true, 64},
		{"a large whole number has no exponent", tuning.Number(1e14), "100000000000000", "100000000000000", true, true, 1e14},
		{"a fraction", tuning.Number(0.0001), "0.0001", "0.0001", true, true, 0},
		{"a fraction rounds to the nearest whole", tuning.Number(2.5), "2.5", "2.5", true, true, 3},
		{"a word", tuning.Word("adam"), "adam", `"adam"`, false, true, 0},
		{"a word of digits stays a word", tuning.Word("64"), "64", `"64"`, false, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.value.String(); got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
			if got, err := json.Marshal(c.value); err != nil || string(got) != c.json {
				t.Errorf("JSON %s (%v), want %s", got, err, c.json)
			}
			if c.value.IsNumber() != c.number || c.value.IsSet() != c.set || c.value.Int() != c.whole {
				t.Errorf("number %v, set %v, whole %d; want %v, %v, %d",
					c.value.IsNumber(), c.value.IsSet(), c.value.Int(), c.number, c.set, c.whole)
			}
		})
	}
}

func TestParseValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       tuning.Value
	}{
		{"a whole number", "64", tuning.Number(64)},
		{"an exponent", "1e-4", tuning.Number(1e-4)},
		{"a word", "adam", tuning.Word("adam")},
		{"a hexadecimal number is a word", "0x1p4", tuning.Word("0x1p4")},
		{"underscores make a word", "1_000", tuning.Word("1_000")},
		{"infinity is a word", "inf", tuning.Word("inf")},
		{"what is not a number is a word", "NaN", tuning.Word("NaN")},
		{"a number out of range is a word", "1e400", tuning.Word("1e400")},
	} {
		if got := tuning.ParseValue(c.text); got != c.want {
			t.Errorf("%s: ParseValue(%q) = %#v, want %#v", c.name, c.text, got, c.want)
		}
	}
}

func TestNumbersReadBackFromTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := tuning.Number(rapid.Float64().Draw(t, "number"))
		if got := tuning.ParseValue(v.String()); got != v {
			t.Fatalf("%v prints as %q and reads back as %#v", v.Float(), v, got)
		}
	})
}

func TestValuesSurviveJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue().Draw(t, "value")
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got tuning.Value
		if err := json.Unmarshal(b, &got); err != nil || !got.Equal(v) {
			t.Fatalf("%#v is %s, which reads back as %#v (%v)", v, b, got, err)
		}
	})
	for _, text := range []string{"true", "[1]", `{"a":1}`, "1e400", "{"} {
		var v tuning.Value
		if err := v.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was accepted as %#v", text, v)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	n, w := tuning.Number, tuning.Word
	for _, c := range []struct {
		name string
		in   tuning.Settings
		want string
	}{
		{"no settings", nil, ""},
		{"sorted by name", tuning.Settings{"cores": n(2), "batch_size": n(32)}, "batch_size=32 cores=2"},
		{"memory in units", tuning.Settings{"memory": n(256 << 20)}, "memory=256MiB"},
		{"other bytes as they are", tuning.Settings{"buffer": n(1024)}, "buffer=1024"},
		{"a word as it is", tuning.Settings{"optimizer": w("adam")}, "optimizer=adam"},
		{"a word of digits in quotes", tuning.Settings{"x": w("1e3")}, `x="1e3"`},
		{"a word that looks like memory in quotes", tuning.Settings{"memory": w("1KiB")}, `memory="1KiB"`},
		{"an empty word is not nothing", tuning.Settings{"x": w(""), "y": {}}, `x="" y=`},
		{"a word with spaces in quotes", tuning.Settings{"x": w("a b=c")}, `x="a b=c"`},
	} {
		if got := c.in.Key(); got != c.want || c.in.String() != got {
			t.Errorf("%s: key %q, text %q, want %q", c.name, got, c.in.String(), c.want)
		}
	}
}

func TestKeysAreEqualExactlyWhenSettingsAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySettings().Draw(t, "a"), anySettings().Draw(t, "b")
		same := rapid.Bool().Draw(t, "same")
		if same {
			b = a.Clone()
		}
		if (a.Key() == b.Key()) != a.Equal(b) {
			t.Fatalf("%#v and %#v have the keys %q and %q", a, b, a.Key(), b.Key())
		}
		if (len(a.Diff(b)) == 0) != a.Equal(b) {
			t.Fatalf("%#v and %#v differ in %q", a, b, a.Diff(b))
		}
		if !slices.Equal(a.Diff(b), b.Diff(a)) || !slices.IsSorted(a.Diff(b)) {
			t.Fatalf("differences %q one way, %q the other", a.Diff(b), b.Diff(a))
		}
	})
}

func TestSettingsAreCopied(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySettings().Draw(t, "a"), anySettings().Draw(t, "b")
		v := anyValue().Draw(t, "v")
		before, beforeB := a.Key(), b.Key()
		copies := []tuning.Settings{
			a.Clone(), a.With("x", v), a.Merge(b), a.Only(func(string) bool { return true }), tuning.Settings(nil).Clone(),
		}
		for _, c := range copies {
			c["cores"] = tuning.Word("written")
		}
		if a.Key() != before || b.Key() != beforeB {
			t.Fatalf("a copy shares its map: %q became %q, %q became %q", before, a.Key(), beforeB, b.Key())
		}
		if got := a.With("x", v)["x"]; got != v {
			t.Fatalf("With set %#v, want %#v", got, v)
		}
		merged := a.Merge(b)
		for k, got := range merged {
			want, ok := b[k]
			if !ok {
				want = a[k]
			}
			if got != want {
				t.Fatalf("merged %q is %#v, want %#v", k, got, want)
			}
		}
	})
}

func TestOnlyAndDiff(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	s := tuning.Settings{"cores": n(2), "lr": n(0.1), "threads": n(2)}
	if diff := cmp.Diff(tuning.Settings{"cores": n(2), "threads": n(2)}, s.Only(tuning.IsSystem)); diff != "" {
		t.Errorf("system knobs (-want +got):\n%s", diff)
	}
	other := tuning.Settings{"cores": n(4), "lr": n(0.1), "batch_size": n(32)}
	if diff := cmp.Diff([]string{"batch_size", "cores", "threads"}, s.Diff(other)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
