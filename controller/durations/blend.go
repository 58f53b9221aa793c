package durations

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// The rungs of the ladder on which a forecast is built, from the widest set of jobs to the narrowest.
const (
	every  = iota
	alike  // of similar length by the additive model
	user   // of the same user
	narrow // of the same user, name, group and size
	rungs
)

// memory is how many of the latest jobs each rung keeps.
func memory() [rungs]int { return [...]int{4096, 2048, 128, 64} }

// doubts are what may count against a rung, as a number of jobs of the rung below.
func doubts() [5]float64 { return [...]float64{32, 2, 8, 128, math.Inf(1)} }

// How many of the levels at which jobs ended are kept, and how many of a user weigh as much as those of all.
const kept, enough = 1000, 100

// set is a set of jobs whose durations are kept together.
type set struct {
	rung   int
	kin    kin
	length int
}

// blend turns what the additive model says into a distribution of the logarithm of seconds: that of all jobs,
// mixed with those of ever narrower sets, each with the weight n / (n + doubt). The doubt of a rung is the one
// under which the forecasts so far would have lost least, by the sum of quantile losses. Upper levels are moved
// so that they would have held for the jobs so far.
type blend struct {
	sets [2]Latest[set, spread]
	lost [rungs][5]float64      // by doubt
	held Latest[string, spread] // the levels at which jobs ended, by user; "": of all
}

// opinion is a forecast before its levels are moved, and what it is made of.
type opinion struct {
	sets  [rungs]set
	jobs  [rungs]int
	parts [rungs]*grid
	grid  grid
}

// opinion is a job's forecast by the additive model, with the forecast for an average job.
func (b *blend) opinion(f Features, value, average float64) opinion {
	k := f.kin()
	whole := k[ofBoth]
	if whole == (kin{}) {
		whole = k[ofSize]
	}
	out := opinion{sets: [...]set{{}, {rung: alike, length: int(2 * value)}, {rung: user, kin: k[ofUser]}, {rung: narrow, kin: whole}}}
	for r, at := range out.sets {
		s := b.sets[at.kin.named()].Get(at)
		if s == nil && r == alike && out.parts[every] != nil { // all jobs, moved to where this one is
			for k, x := range out.grid {
				out.grid[k] = min(max(x+value-average, out.parts[every][0]), out.parts[every][levels-1])
			}
		}
		if s == nil || r >= user && at.kin == (kin{}) {
			continue
		}
		out.jobs[r], out.parts[r] = len(s.ring), s.quantile
		if r == every {
			out.grid = *s.quantile
		} else {
			out.grid = mix(&out.grid, s.quantile, weight(out.jobs[r], b.doubt(r)))
		}
	}
	return out
}

func weight(jobs int, doubt float64) float64 { return float64(jobs) / (float64(jobs) + doubt) }

// doubt is that of a rung which lost least, the first of those that lost as much.
func (b *blend) doubt(rung int) float64 {
	return doubts()[floats.MinIdx(b.lost[rung][:])]
}

// learn takes in the logarithm of the seconds that a job took, and its earlier forecast.
func (b *blend) learn(said opinion, value float64) {
	if said.parts[every] != nil {
		b.judge(said, value)
		for who := range map[string]bool{"": true, said.sets[user].kin.user: true} {
			b.held.Use(who).add(said.grid.level(value), kept)
		}
	}
	for r, at := range said.sets {
		b.sets[at.kin.named()].Use(at).add(value, memory()[r])
	}
}

// judge adds to what each doubt of each rung lost, given the rungs below it.
func (b *blend) judge(said opinion, value float64) {
	below := *said.parts[every]
	for r := alike; r < rungs; r++ {
		if said.parts[r] == nil {
			continue
		}
		now, next := b.doubt(r), below
		for d, doubt := range doubts() {
			g := mix(&below, said.parts[r], weight(said.jobs[r], doubt))
			if doubt == now {
				next = g
			}
			for k := 2; k < levels; k += 5 {
				b.lost[r][d] += loss((float64(k)+0.5)/levels, value-g[k])
			}
		}
		below = next
	}
}

const topLevel = 1 - 0.5/levels

// loss is the quantile loss of a miss, the truth less the forecast.
func loss(q, miss float64) float64 { return max(q*miss, (q-1)*miss) }

// cautious is the forecast with its upper half moved up to where jobs ended, the user's own as far as there are
// enough. The lower half stays: the median is best as it is.
func (b *blend) cautious(said opinion) grid {
	out := said.grid
	all, own := b.held.Get(""), b.held.Get(said.sets[user].kin.user)
	for k := levels / 2; k < levels && all != nil; k++ {
		level := all.quantile[k]
		if own != nil {
			level += weight(len(own.ring), enough) * (own.quantile[k] - level)
		}
		out[k] = max(out[k], said.grid.at(level))
		if over := (level - topLevel) / (1 - topLevel); over > 0 {
			out[k] += over * max(0, said.parts[every][levels-1]-out[k])
		}
	}
	return out
}
