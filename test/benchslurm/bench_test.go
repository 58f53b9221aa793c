package benchslurm_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/benchslurm"
	"pitchpipe/test/slurmcluster"
)

// How much and how soon is the bench's to print and nobody's to assert here: this
// machine may be busy.
func TestASmallQueueIsMeasuredFromSubmissionToSight(t *testing.T) {
	t.Parallel()
	report, err := benchslurm.Run(t.Context(), benchslurm.Options{
		Jobs: 200, Over: 4 * time.Second, Seen: 3, Root: "../..", Trace: t.Output(),
	})
	if errors.Is(err, slurmcluster.ErrUnavailable) {
		slurmcluster.Need(t, nil, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]benchslurm.Cost{"arrived": report.Arrived, "busy": report.Busy} {
		if c.Controller <= 0 || c.Children <= 0 || c.Children > c.Controller || c.Over <= 0 || c.Share(c.Controller) <= 0 {
			t.Errorf("%s: %+v, want CPU", name, c)
		}
	}
	for _, times := range [][]time.Duration{report.SeenQuiet, report.SeenBusy} {
		if len(times) != 3 || !slices.IsSorted(times) || times[0] <= 0 {
			t.Errorf("times to be seen: %v, want 3 sorted ones", times)
		}
	}
	if report.Controller.RSS <= 0 || report.Slurmctld.RSS <= 0 || report.Largest < report.Controller.Peak/2 {
		t.Errorf("memory: %+v, %+v, %d", report.Controller, report.Slurmctld, report.Largest)
	}
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"200 queued jobs", "load average", "nothing happens", "% of a core", "MiB", "longest"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	t.Log("\n" + printed.String())
}
