package propose

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Past is what an earlier job measured. Losses are logarithms of the outcome; a failed run
// is left out or put at the worst.
type Past struct {
	Settings []tuning.Settings
	Losses   []float64
}

// memory is how many settings a history is made of, spread evenly by the golden ratio.
const memory = 100

// History is what earlier jobs let expect of each candidate: each job's outcomes about
// their own mean and in units of their own spread, averaged where jobs measured the same
// point, joined into one process, and stretched to the mean spread of the jobs. It is nil
// where no earlier job has two different outcomes.
func (c *Candidates) History(past []Past) ([]float64, error) {
	x, y, spread := c.pool(past)
	if len(y) == 0 {
		return nil, nil
	}
	if n := len(y); n > memory {
		points, scores := x, y
		x, y = nil, nil
		for i := range memory {
			_, part := math.Modf(float64(i) * math.Phi)
			at := int(part * float64(n))
			x, y = append(x, points[at]), append(y, scores[at])
		}
	}
	const differ = 0.3 // the noise between jobs
	out, err := c.expect(data{x: x, y: y}, differ, 1)
	floats.Scale(spread, out)
	return out, err
}

// pool joins the jobs' standard scores, and is the mean of their spreads.
func (c *Candidates) pool(past []Past) (x [][]float64, y []float64, spread float64) {
	jobs := 0.0
	at := map[string]int{}
	var count []float64
	for _, job := range past {
		mean, sd := stat.MeanStdDev(job.Losses, nil)
		if !(sd > math.Sqrt(vanishing)) {
			continue
		}
		jobs++
		spread += (sd - spread) / jobs
		for i, p := range c.Of(job.Settings) {
			key := fmt.Sprint(p)
			k, ok := at[key]
			if !ok {
				k, at[key] = len(y), len(y)
				x, y, count = append(x, p), append(y, 0), append(count, 0)
			}
			count[k]++
			y[k] += ((job.Losses[i]-mean)/sd - y[k]) / count[k]
		}
	}
	return x, y, spread
}
