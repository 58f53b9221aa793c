package filter_test

import (
	"testing"

	"pitchpipe/test/nomadserver/filter"
)

func row() map[string]any {
	return map[string]any{
		"ID": "train", "Priority": 50, "Stop": false, "Meta": map[string]any{"a.b": "x", "empty": ""}, "Datacenters": []any{"dc1", "dc2"}, "None": nil,
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``:                                 true,
		`ID == "train"`:                    true,
		`ID == train`:                      true,
		`ID != "train"`:                    false,
		`Priority == 50`:                   true,
		`Stop == false`:                    true,
		`Meta["a.b"] == "x"`:               true,
		`Meta["none"] == "x"`:              false,
		`Meta["none"] != "x"`:              true,
		`"a.b" in Meta`:                    true,
		`"c" not in Meta`:                  true,
		`Meta contains "a.b"`:              true,
		`Meta not contains "a.b"`:          false,
		`"dc2" in Datacenters`:             true,
		`Meta is empty`:                    false,
		`None is empty`:                    true,
		`Meta.empty is empty`:              true,
		`ID matches "^tr"`:                 true,
		"ID not matches `^tr`":             false,
		`not ID == "x" and Priority == 50`: true,
		`ID == "x" or (Priority == 50)`:    true,
		`ID == "x" and Stop == x or Priority == 50`: true,
		`"/Meta/a.b" == "x"`:                        true,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e, err := filter.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Match(row())
			if err != nil || got != want {
				t.Errorf("%t, %v, want %t", got, err, want)
			}
		})
	}
}

func TestWhatIsNoExpressionIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`ID`, `ID ==`, `(ID == "x"`, `ID == "x" extra`, `ID == "x`, `"x" == 1`, `Meta["a" == 1`, `ID is`, `ID matches "("`, `?`, `and`} {
		if _, err := filter.Parse(text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func TestARowWithoutTheFieldIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`Nothing == "x"`, `ID.part == "x"`} {
		e, err := filter.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Match(row()); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{``, `ID == "x"`, `Meta["a"] != b and not (c in D or E is not empty)`, "A matches `x`", `"`, `[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := filter.Parse(text)
		if err != nil {
			return
		}
		first, errFirst := e.Match(row())
		second, errSecond := e.Match(row())
		if first != second || (errFirst == nil) != (errSecond == nil) {
			t.Errorf("%t %v, then %t %v", first, errFirst, second, errSecond)
		}
	})
}
