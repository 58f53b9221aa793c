package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/models"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func words(l evaluate.Line, key string) []string {
	out, _ := l[key].([]string)
	return out
}

// asJSON prints a report, in which what is unknown equals what is unknown.
func asJSON(t testing.TB, report any) string {
	t.Helper()
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestEachEvaluationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, run := range map[string]func() error{
		"verify": func() error { _, err := models.Verify(ctx, models.DefaultVerify(), evaluatetest.Quiet); return err },
		"regret": func() error {
			_, err := models.Regret(ctx, factorialInput(scales(), serial()), evaluatetest.Quiet)
			return err
		},
		"classifier": func() error {
			in := models.ClassifierInput{Set: evaluate.Set{Samples: []evaluate.Table{sampledPrograms([]string{"a", "b"}, []float64{1})}}}
			_, err := models.Classifier(ctx, in, evaluatetest.Quiet)
			return err
		},
		"forecast": func() error {
			in := models.ForecastInput{Set: evaluate.Set{Curves: []evaluate.Table{smallForecast(t)}}, Seen: []float64{0.5}}
			_, err := models.Forecast(ctx, in, evaluatetest.Quiet)
			return err
		},
	} {
		if err := run(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
}
