package models_test

import (
	"encoding/json"
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asJSON prints a report, in which what is unknown equals what is unknown.
func asJSON(t testing.TB, report any) string {
	t.Helper()
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}
