package driver_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/driver"
)

func TestEncodeSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		live map[string]string
		want string
	}{
		{"nothing is an empty object", nil, `{"revision":3,"settings":{}}`},
		{"a number is a number", map[string]string{"lr": "0.001"}, `{"revision":3,"settings":{"lr":0.001}}`},
		{"so is one with an exponent", map[string]string{"lr": "-1e-06"}, `{"revision":3,"settings":{"lr":-1e-06}}`},
		{"a word is a string", map[string]string{"opt": "adam"}, `{"revision":3,"settings":{"opt":"adam"}}`},
		{"a word of JSON is a string too", map[string]string{"opt": "true"}, `{"revision":3,"settings":{"opt":"true"}}`},
		{"what JSON does not write as a number is a string", map[string]string{"a": "007", "b": "+1", "c": ".5", "d": "1 ", "e": "0x10", "f": "NaN"}, `{"revision":3,"settings":{"a":"007","b":"+1","c":".5","d":"1 ","e":"0x10","f":"NaN"}}`},
		{"a number that no type can hold is a string", map[string]string{"a": "1e999"}, `{"revision":3,"settings":{"a":"1e999"}}`},
		{"an empty value is a string", map[string]string{"a": ""}, `{"revision":3,"settings":{"a":""}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := driver.EncodeSettings(3, tt.live)
			if err != nil || string(got) != tt.want+"\n" {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
	for _, live := range []map[string]string{{"": "1"}, {"a\xff": "1"}, {"a": "\xff"}} {
		if got, err := driver.EncodeSettings(1, live); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("EncodeSettings(%q) = %s, %v; want %v", live, got, err, driver.ErrInvalid)
		}
	}
}

func TestWhatIsEncodedIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := rapid.MapOf(rapid.StringN(1, 8, -1), rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9.eE+ ]{0,5}`))).Draw(t, "live")
		data, err := driver.EncodeSettings(7, live)
		if err != nil {
			t.Skip("not UTF-8")
		}
		var got struct {
			Revision int            `json:"revision"`
			Settings map[string]any `json:"settings"`
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if got.Revision != 7 || len(got.Settings) != len(live) {
			t.Fatalf("%s: want revision 7 and %d settings", data, len(live))
		}
		for name, value := range live {
			var number float64
			switch v := got.Settings[name].(type) {
			case string:
				if v != value {
					t.Fatalf("%s is %q, want %q", name, v, value)
				}
			case float64:
				if err := json.Unmarshal([]byte(value), &number); err != nil || number != v {
					t.Fatalf("%s is %v, want %q (%v)", name, v, value, err)
				}
			default:
				t.Fatalf("%s is a %T", name, v)
			}
		}
	})
}

func TestACloneOfAChangeSharesNothing(t *testing.T) {
	t.Parallel()
	set := func() map[string]string { return map[string]string{"a": "1"} }
	c := driver.Change{Env: set(), Args: set(), Live: set()}
	clone := c.Clone()
	clone.Env["a"], clone.Args["a"], clone.Live["a"] = "2", "2", "2"
	if c.Env["a"] != "1" || c.Args["a"] != "1" || c.Live["a"] != "1" {
		t.Errorf("the change became %+v", c)
	}
}

func TestAChangeIsEmptyWhereNothingOfItCounts(t *testing.T) {
	t.Parallel()
	one := map[string]string{"a": "1"}
	for _, c := range []driver.Change{
		{Cores: 1},
		{MemoryBytes: 1},
		{TimeLimit: 1},
		{Env: one},
		{Args: one},
		{Live: one},
	} {
		if c.Empty() {
			t.Errorf("%+v is said to be empty", c)
		}
	}
	if !(driver.Change{Env: map[string]string{}}).Empty() {
		t.Error("a change of no variables is not empty")
	}
}
