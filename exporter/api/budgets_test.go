package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
)

func TestTheLowestCounts(t *testing.T) {
	t.Parallel()
	file := api.Budget{Joules: 100, Seconds: 60}
	for _, tc := range []struct {
		name string
		set  api.Budgets
		want *api.Budget
	}{
		{"no origin said anything", nil, nil},
		{"one did", api.Budgets(nil).With(api.ByOwner, file), &api.Budget{Joules: 100, Seconds: 60, By: api.ByOwner}},
		{
			"the controller asks for less", api.Budgets(nil).With(api.ByAdministrator, file).With(api.ByController, api.Budget{Joules: 40, Used: 9, Seconds: 90}),
			&api.Budget{Joules: 40, Used: 9, Seconds: 60, By: api.ByController},
		},
		{
			"the user asks for more", api.Budgets(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 400, Seconds: 5}),
			&api.Budget{Joules: 40, Seconds: 5, By: api.ByController},
		},
		{
			"the user wants modelled joules to count", api.Budgets(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 4, Modelled: true}),
			&api.Budget{Joules: 4, By: api.ByOwner},
		},
		{
			"the controller takes its word back", api.Budgets(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 50}).With(api.ByController, api.Budget{}),
			&api.Budget{Joules: 50, By: api.ByOwner},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.set.Lowest()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Whatever the others say, no job has more than each of them grants.
func TestNoOriginRaisesWhatAnotherSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set api.Budgets
		said := map[api.Origin]api.Budget{}
		for range rapid.IntRange(1, 12).Draw(t, "words") {
			by := rapid.SampledFrom([]api.Origin{api.ByAdministrator, api.ByController, api.ByOwner}).Draw(t, "by")
			b := api.Budget{Joules: float64(rapid.IntRange(0, 5).Draw(t, "joules")), Seconds: float64(rapid.IntRange(0, 5).Draw(t, "seconds"))}
			set = set.With(by, b)
			said[by] = b
			if b.Joules == 0 {
				delete(said, by)
			}
		}
		got := set.Lowest()
		if (got != nil) != (len(said) > 0) {
			t.Fatalf("%+v of %+v", got, said)
		}
		for by, b := range said {
			if got.Joules > b.Joules || b.Seconds > 0 && got.Seconds > b.Seconds {
				t.Errorf("%+v, though %s said %+v", got, by, b)
			}
		}
		if got != nil && said[got.By].Joules != got.Joules {
			t.Errorf("%+v is said to be of %s, who said %+v", got, got.By, said[got.By])
		}
	})
}
