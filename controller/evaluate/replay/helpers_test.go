package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trialsIn loads files of trials.
func trialsIn(t interface{ Fatal(...any) }, files ...string) evaluate.Set {
	var out evaluate.Set
	for _, file := range files {
		table, err := evaluate.Read(file, evaluate.Trials)
		if err != nil {
			t.Fatal(err)
		}
		out.Trials = append(out.Trials, table)
	}
	return out
}

// asJSON prints a report, in which what is unknown equals what is unknown.
func asJSON(t interface{ Fatal(...any) }, report any) string {
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func equal(a, b evaluate.Figure) bool { return math.Abs(float64(a-b)) < 1e-9 }

func TestEachReplayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	trials := trialsIn(t, write(t, "trials.csv", halves))
	for name, run := range map[string]func() error{
		"tuner": func() error {
			_, err := replay.Tuner(ctx, replay.TunerInput{Set: trials, Seeds: 1}, evaluatetest.Quiet)
			return err
		},
		"plan": func() error {
			_, err := replay.Plan(ctx, smallPlan(t, trials.Trials[0].File), evaluatetest.Quiet)
			return err
		},
		"search": func() error { _, err := replay.Search(ctx, smallSearch(t), evaluatetest.Quiet); return err },
		"speed":  func() error { _, err := replay.Speed(ctx, speedInput(smallSpeed(t)), evaluatetest.Quiet); return err },
		"hyper": func() error {
			_, err := replay.Hyper(ctx, replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{curvesOfTwo(t)}}, Seeds: 1}, evaluatetest.Quiet)
			return err
		},
	} {
		if err := run(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
}
