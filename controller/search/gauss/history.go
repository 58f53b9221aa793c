package gauss

import (
	"fmt"
	"math"
)

// Past is what an earlier job measured, in the coordinates of the present job's space.
// Y are logarithms of the outcome; a failed run is left out or put at the worst.
type Past struct {
	X [][]float64
	Y []float64
}

// goldenRatio spreads a sample of any size evenly over a list.
const goldenRatio = 0.618033988749894848204586834365638118

// History is what earlier jobs let expect of each of the points: each job's outcomes
// about their own mean and in units of their own spread, averaged where jobs measured
// the same point, joined into one process, and stretched to the mean spread of the
// jobs. It is nil where no earlier job has two different outcomes. Of more than limit
// points that many are used, spread evenly.
func History(past []Past, points [][]float64, words []bool, p Prior, limit int) ([]float64, error) {
	all, spread := pool(past)
	if len(all.Y) == 0 {
		return nil, nil
	}
	all.Words = words
	p.Noise, p.NoiseSD = 0.3, 1 // jobs differ
	m, err := Fit(thin(all, limit), p)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(points))
	for i, x := range points {
		z, _ := m.Predict(x, 0)
		out[i] = z * spread
	}
	return out, nil
}

// pool joins the jobs' standard scores and tells the mean of their spreads.
func pool(past []Past) (Data, float64) {
	var all Data
	spread, jobs := 0.0, 0.0
	at := map[string]int{}
	var count []float64
	for _, job := range past {
		mean, sd := 0.0, 0.0
		if len(job.Y) > 1 {
			for _, y := range job.Y {
				mean += y / float64(len(job.Y))
			}
			sd = math.Sqrt(variance(job.Y))
		}
		if sd <= math.Sqrt(least) {
			continue
		}
		spread += sd
		jobs++
		for i, y := range job.Y {
			key := fmt.Sprint(job.X[i])
			k, ok := at[key]
			if !ok {
				k, at[key] = len(all.Y), len(all.Y)
				all.X, all.Y, count = append(all.X, job.X[i]), append(all.Y, 0), append(count, 0)
			}
			count[k]++
			all.Y[k] += ((y-mean)/sd - all.Y[k]) / count[k]
		}
	}
	return all, spread / max(jobs, 1)
}

func thin(d Data, limit int) Data {
	n := len(d.Y)
	if limit <= 0 || n <= limit {
		return d
	}
	out := Data{Words: d.Words}
	used := make([]bool, n)
	for i := 0; len(out.Y) < limit; i++ {
		_, part := math.Modf(float64(i) * goldenRatio)
		at := int(part * float64(n))
		for used[at] {
			at = (at + 1) % n
		}
		used[at] = true
		out.X, out.Y = append(out.X, d.X[at]), append(out.Y, d.Y[at])
	}
	return out
}
