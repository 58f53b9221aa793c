package allocate

import (
	"math"
	"slices"
)

// play runs the jobs to their end, beginning with sizes: at each end the rule allots again, from what
// the jobs have. It returns the sum of the times at which they end. No further job arrives.
func play(jobs []Job, sizes []int, v Value) (total float64) {
	live, busy := slices.Clone(jobs), make([]float64, len(jobs)) // with a restart until then
	for now := 0.0; len(live) > 0; sizes = allot(live, v, true) {
		end := math.Inf(1)
		for i := range live {
			j := &live[i]
			if j.Has != Waits && sizes[i] != j.Has {
				busy[i] = max(busy[i], now) + j.Restart
			}
			if j.Has = sizes[i]; j.Has != Waits {
				end = min(end, max(now, busy[i])+j.seconds(j.Has))
			}
		}
		if math.IsInf(end, 1) {
			return end // nothing fits, ever
		}
		var stay []Job
		var still []float64
		for i, j := range live {
			if j.Has == Waits {
				j.Waited += end - now
			} else {
				work := j.Sizes[j.Has].Speed * max(0, end-max(now, busy[i]))
				if j.Left -= work; j.Left <= rounding*work {
					total += end
					continue
				}
			}
			stay, still = append(stay, j), append(still, busy[i])
		}
		live, busy, now = stay, still, end
	}
	return total
}
