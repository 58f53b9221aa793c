package site_test

import (
	"reflect"
	"testing"

	"pitchpipe/test/site"
)

func TestASiteIsWhatPublishedLogsAre(t *testing.T) {
	t.Parallel()
	jobs := site.Draw(3, site.Month())
	if !reflect.DeepEqual(jobs, site.Draw(3, site.Month())) {
		t.Fatal("the same seed draws two sites")
	}
	var killed, failed, accuracy, idle float64
	limits := map[float64]bool{}
	for _, j := range jobs {
		switch j.State {
		case "TIMEOUT":
			killed++
		case "FAILED":
			failed++
		}
		accuracy += j.Duration / j.Limit
		idle += 1 - j.CPUSeconds/j.Duration/float64(j.CPUs)
		limits[j.Limit] = true
		if got := j.Seconds(j.CPUs); j.State != "TIMEOUT" && (got > j.Duration+1 || got < j.Duration-1) {
			t.Fatalf("job %s ran %g s, and the truth is %g", j.ID, j.Duration, got)
		}
		if j.Duration <= 0 || j.Duration > j.Limit || j.CPUSeconds > j.Duration*float64(j.CPUs)*1.001 {
			t.Fatalf("%+v", j)
		}
	}
	n := float64(len(jobs))
	t.Logf("%v jobs: %.3f killed at their limit, %.3f failed, use %.2f of their limit and leave %.2f of their cores idle; %d limits",
		n, killed/n, failed/n, accuracy/n, idle/n, len(limits))
	if n < 2000 || killed/n > 0.1 || killed == 0 || failed/n < 0.03 || accuracy/n > 0.5 || accuracy/n < 0.1 || idle/n < 0.1 || len(limits) > 12 {
		t.Error("want some killed and failed, limits far too long, and idle cores")
	}
}
