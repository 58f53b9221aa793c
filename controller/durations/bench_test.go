package durations_test

import (
	"testing"

	"pitchpipe/controller/durations"
)

func BenchmarkFit100000(b *testing.B) {
	jobs := site(1, 100_000)
	for b.Loop() {
		durations.Fit(jobs)
	}
}

func BenchmarkPredict(b *testing.B) {
	jobs := site(1, 20_000)
	m := durations.Fit(jobs)
	i := 0
	for b.Loop() {
		m.Predict(jobs[i%len(jobs)].Features)
		i++
	}
}

func BenchmarkLearn(b *testing.B) { // a job noted and learnt, fits included
	jobs := site(1, 20_000)
	m, i := durations.Fit(jobs), 0
	for b.Loop() {
		j := jobs[i%len(jobs)]
		j.Submit += float64(1+i/len(jobs)) * 1e7
		j.End += float64(1+i/len(jobs)) * 1e7
		m.Note(j.Features)
		m.Learn(j)
		i++
	}
}
