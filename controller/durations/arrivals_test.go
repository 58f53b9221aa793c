package durations_test

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/evaluate/evaluatetest"
)

func TestArrivalsOnVenusAreForecastBetterThanPublished(t *testing.T) {
	t.Parallel()
	file, err := os.Open(evaluatetest.Path(t, "lucid-venus", "cluster_throughput.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	a := durations.Arrivals{Start: 1585699200}
	for _, r := range rows[1:] {
		jobs, err1 := strconv.ParseFloat(r[4], 64)
		gpus, err2 := strconv.ParseFloat(r[7], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(r)
		}
		a.Jobs, a.GPUs = append(a.Jobs, jobs), append(a.GPUs, gpus)
	}
	const september = 22032
	found := durations.JudgeArrivals(a, september)
	t.Log(found)
	between(t, found[0], "mae", 0, 4.125)
	between(t, found[0], "mae_hour_before", 4.45, 4.46)
	between(t, found[1], "mae", 0, 45.8)
}

func TestARhythmOfArrivalsIsLearnt(t *testing.T) {
	t.Parallel()
	var jobs []durations.Ended
	for bin := range 144 * 28 {
		for range int(10 + 10*math.Sin(float64(bin)*2*math.Pi/144)) {
			jobs = append(jobs, durations.Ended{Features: durations.Features{GPUs: 2, Submit: 1.6e9 + 600*float64(bin)}})
		}
	}
	a := durations.Count(jobs)
	for _, l := range durations.JudgeArrivals(a, len(a.Jobs)*3/4) {
		between(t, l, "mae", 0, 0.6*l.Figure("mae_hour_before"))
	}
	if empty := durations.Count(nil); len(empty.Jobs) > 0 {
		t.Error(empty)
	}
}
