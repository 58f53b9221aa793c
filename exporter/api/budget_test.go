package api_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
)

func TestABudgetIsReadAsWordsAndAsJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       api.Budget
		err        error
	}{
		{"words", "joules=2e6 seconds=14400 counts=modelled used=5\n", api.Budget{Joules: 2e6, Seconds: 14400, Used: 5, Modelled: true}, nil},
		{"joules alone", "joules=10", api.Budget{Joules: 10}, nil},
		{"none any more", "joules=0", api.Budget{}, nil},
		{"JSON", `{"joules":3,"used_joules":1,"seconds":2,"modelled":true}`, api.Budget{Joules: 3, Used: 1, Seconds: 2, Modelled: true}, nil},
		{"who says so is not believed", `{"joules":3,"by":"administrator"}`, api.Budget{Joules: 3}, nil},
		{"nothing", "", api.Budget{}, api.ErrInvalid},
		{"no joules", "seconds=5", api.Budget{}, api.ErrInvalid},
		{"below nothing", "joules=-1", api.Budget{}, api.ErrInvalid},
		{"no number", "joules=NaN", api.Budget{}, api.ErrInvalid},
		{"without an end", "joules=Inf", api.Budget{}, api.ErrInvalid},
		{"a unit", "joules=2MJ", api.Budget{}, api.ErrInvalid},
		{"another key", "joules=2 watts=3", api.Budget{}, api.ErrInvalid},
		{"a word", "2000", api.Budget{}, api.ErrInvalid},
		{"other joules", "joules=2 counts=all", api.Budget{}, api.ErrInvalid},
		{"cut JSON", `{"joules":3`, api.Budget{}, api.ErrInvalid},
	} {
		got, err := api.ParseBudget([]byte(tc.text))
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzParseBudget(f *testing.F) {
	for _, text := range []string{"joules=2e6 seconds=1", `{"joules":3}`, "", "joules=", "=1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := api.ParseBudget(text)
		switch {
		case err != nil && !errors.Is(err, api.ErrInvalid):
			t.Errorf("%q: %v", text, err)
		case err == nil && (b.Check() != nil || b.By != ""):
			t.Errorf("%q: %+v", text, b)
		}
	})
}
