package durations_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/joblog"
)

func rolling(t *testing.T, jobs []durations.Ended) evaluate.Report {
	t.Helper()
	r, _, err := durations.Rolling(t.Context(), jobs, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func between(t *testing.T, l evaluate.Line, key string, low, high evaluate.Figure) {
	t.Helper()
	if x := l.Figure(key); !(x >= low && x <= high) {
		t.Errorf("%s is %v: want %v to %v", key, x, low, high)
	}
}

func TestVenusIsForecastBelowItsBar(t *testing.T) {
	t.Parallel()
	l, err := joblog.Read(joblog.Venus, evaluatetest.Path(t, "lucid-venus"))
	if err != nil {
		t.Fatal(err)
	}
	r := rolling(t, durations.History(l))
	all := r.Rows[len(r.Rows)-4:] // of all weeks: as of the Monday, learning on, two medians
	for i, l := range all {
		t.Logf("%v", l)
		if l["jobs"] != 18944 { // those of 7 to 26 September
			t.Errorf("line %d has %v jobs", i, l["jobs"])
		}
	}
	between(t, r.Summary, "mae", 0, min(15772, r.Summary.Figure("mae_median_of_user")))
	between(t, r.Summary, "mae_online", 0, min(15772, r.Summary.Figure("mae_median_of_all")))
	between(t, all[1], "spearman", 0.45, 1)
	between(t, all[1], "within_50", 0.45, 0.55)
	between(t, all[1], "within_95", 0.92, 0.98)
	between(t, all[1], "within_99", 0.96, 1)
}

func TestHabitsOfUsersAreLearnt(t *testing.T) {
	t.Parallel()
	jobs := site(1, 5000)
	r := rolling(t, jobs)
	learning := r.Rows[len(r.Rows)-3]
	between(t, r.Summary, "mae_online", 0, 0.7*r.Summary.Figure("mae_median_of_user"))
	between(t, learning, "spearman", 0.85, 1)
	for key, q := range map[string]evaluate.Figure{"within_50": 0.5, "within_90": 0.9, "within_95": 0.95, "within_99": 0.99} {
		between(t, learning, key, q-0.04, q+0.04)
	}

	rand.New(rand.NewPCG(1, 1)).Shuffle(len(jobs), func(a, b int) { //nolint:gosec // a simulation
		jobs[a].Features, jobs[b].Features = jobs[b].Features, jobs[a].Features
		jobs[a].Submit, jobs[b].Submit = jobs[b].Submit, jobs[a].Submit
	})
	control := rolling(t, jobs)
	between(t, control.Rows[len(control.Rows)-3], "spearman", -0.1, 0.1)
	between(t, control.Summary, "mae_online", 0.95*control.Summary.Figure("mae_median_of_all"), 1.1*control.Summary.Figure("mae_median_of_all"))
}

func TestALogThatIsTooShortIsNamed(t *testing.T) {
	t.Parallel()
	if _, _, err := durations.Rolling(t.Context(), site(1, 40), evaluatetest.Quiet); !errors.Is(err, evaluate.ErrInput) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := durations.Rolling(ctx, site(1, 4000), evaluatetest.Quiet); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
