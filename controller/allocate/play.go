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
		end, ends := math.Inf(1), make([]float64, len(live))
		for i := range live {
			j := &live[i]
			if j.Has != Waits && sizes[i] != j.Has {
				busy[i] = max(busy[i], now) + j.Restart
			}
			if j.Has = sizes[i]; j.Has != Waits {
				ends[i] = max(now, busy[i]) + j.seconds(j.Has)
				end = min(end, ends[i])
			}
		}
		if math.IsInf(end, 1) {
			return end // nothing fits, ever
		}
		var stay []Job
		var still []float64
		for i, j := range live {
			switch {
			case j.Has == Waits:
				j.Waited += end - now
			case ends[i] <= end*(1+rounding): // what is left may be too short to be seen in a sum
				total += end
				continue
			default:
				j.Left -= j.Sizes[j.Has].Speed * max(0, end-max(now, busy[i]))
			}
			stay, still = append(stay, j), append(still, busy[i])
		}
		live, busy, now = stay, still, end
	}
	return total
}
