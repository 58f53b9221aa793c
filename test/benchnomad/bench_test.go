package benchnomad_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/benchnomad"
	"pitchpipe/test/nomadagent"
)

// How much and how soon is the bench's to print and nobody's to assert here: this
// machine may be busy.
func TestASmallClusterIsMeasuredFromRegistrationToSight(t *testing.T) {
	t.Parallel()
	report, err := benchnomad.Run(t.Context(), benchnomad.Options{
		Kind: nomadagent.InProcess, Jobs: 60, Stanzas: 5, Over: 3 * time.Second, Seen: 3, Root: "../..", Trace: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := report.Arrived; a.CPU <= 0 || a.Requests < 1 || a.Bytes < 100 || a.Over <= 0 {
		t.Errorf("its start cost %+v", a)
	}
	// While nothing happens a list is waited for, and no job is asked after: fewer requests in
	// seconds than there are jobs, however slow the machine is.
	if q := report.Quiet; q.Requests >= int64(report.Jobs) {
		t.Errorf("while nothing happens: %d requests in %v, of %d jobs", q.Requests, q.Over, report.Jobs)
	}
	if b := report.Busy; b.Over < 3*time.Second || b.Requests < 1 {
		t.Errorf("while others register: %+v", b)
	}
	for _, times := range [][]time.Duration{report.SeenQuiet, report.SeenBusy} {
		if len(times) != 3 || !slices.IsSorted(times) || times[0] <= 0 {
			t.Errorf("times to be seen: %v, want 3 sorted ones", times)
		}
	}
	if report.Controller.RSS <= 0 {
		t.Errorf("memory: %+v", report.Controller)
	}
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"60 registered jobs", "in-process server", "requests a minute", "% of a core", "MiB", "longest"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Log("\n" + printed.String())
}
