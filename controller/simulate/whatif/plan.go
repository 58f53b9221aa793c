package whatif

import (
	"fmt"
	"math"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
)

const (
	enoughRuns  = 3    // ended runs of a kind before a job of it is changed
	mostSlower  = 1.10 // times the seconds on the cores asked for, at worst: the default of max_slowdown
	agreement   = 0.8  // least share of the saving of the better bound that the worse one has to confirm
	headroom    = 1.25 // times the largest memory seen, and the cores kept busy: that of the tuner
	whollyAlike = 0.01 // cores that averages differ by for no reason
)

// change is what the tuner would have done to a job, by what was known when it was submitted.
type change struct {
	cores      int     // at most those asked for
	fast, slow float64 // times the seconds of the log that it takes on these cores, at best and at worst
	busy       int     // cores that it needs where others may use those that it leaves idle
	crowded    float64 // times the seconds where it keeps more busy than that
	memory     int64   // bytes
	short      bool    // they do not suffice: it fails and runs again with what its owner asked for
}

// past is what ended runs of a kind showed.
type past struct {
	speeds map[int]speed // by cores
	peaks  int           // runs whose memory is known
	peak   float64       // largest, bytes for each core
}

// speed is how many cores runs kept busy.
type speed struct {
	runs         int
	cpu, seconds float64
}

func (s speed) busy() float64 { return s.cpu / s.seconds }

// kind returns a key that is equal for runs that are alike.
func kind(j joblog.Job) string {
	if j.Name != "" {
		return j.User + "\x00" + j.Name
	}
	return fmt.Sprintf("%s\x00\x00%d\x00%g", j.User, j.CPUs, j.Limit)
}

// ended is when the job ended in the log; where its start is unknown, it began at once.
func ended(j joblog.Job) float64 { return max(j.Submit, j.Start) + j.Duration }

// plan returns a change for each job, in the order of jobs.
func plan(jobs []joblog.Job) []change {
	out, kinds := make([]change, len(jobs)), map[string]*past{}
	durations.Replay(evaluate.Indices(jobs), func(i int) float64 { return jobs[i].Submit }, func(i int) float64 { return ended(jobs[i]) }, func(rest []int) {
		j := jobs[rest[0]]
		out[rest[0]] = kinds[kind(j)].change(j)
	}, func(i int) { learn(kinds, jobs[i]) })
	return out
}

func learn(kinds map[string]*past, j joblog.Job) {
	k := kind(j)
	if kinds[k] == nil {
		kinds[k] = &past{speeds: map[int]speed{}}
	}
	p := kinds[k]
	if j.MemoryUsed > 0 && j.CPUs > 0 {
		p.peaks++
		p.peak = max(p.peak, float64(j.MemoryUsed)/float64(j.CPUs))
	}
	if j.CPUSeconds > 0 && j.Duration > 0 {
		s := p.speeds[j.CPUs]
		p.speeds[j.CPUs] = speed{s.runs + 1, s.cpu + j.CPUSeconds, s.seconds + j.Duration}
	}
}

func (p *past) change(j joblog.Job) change {
	out := change{cores: j.CPUs, fast: 1, slow: 1, busy: j.CPUs, crowded: 1, memory: j.Memory}
	if p == nil || j.GPUs > 0 {
		return out
	}
	if j.Memory > 0 && p.peaks >= enoughRuns {
		out.memory = min(j.Memory, int64(headroom*p.peak*float64(j.CPUs)))
		out.short = j.MemoryUsed > out.memory && out.memory < j.Memory
	}
	s := p.speeds[j.CPUs]
	if s.runs < enoughRuns {
		return out
	}
	own := s.busy() // of this run, which was unknown
	if j.CPUSeconds > 0 && j.Duration > 0 {
		own = j.CPUSeconds / j.Duration
	}
	out.busy = min(j.CPUs, max(1, int(math.Ceil(headroom*s.busy()-whollyAlike))))
	out.crowded = max(1, min(own, float64(j.CPUs))/(float64(out.busy)+whollyAlike))
	for n := 1; n < j.CPUs; n++ {
		fast, slow := p.bounds(s.busy(), j.CPUs, n)
		c, m := float64(j.CPUs), float64(n)
		if slow <= mostSlower && c-m*slow >= agreement*(c-m*fast) && c > m*slow {
			out.cores = n
			out.fast, out.slow = p.bounds(own, j.CPUs, n)
			break
		}
	}
	return out
}

// bounds are the seconds on n cores over those on c, at best and at worst, for a job that uses busy of the c cores.
func (p *past) bounds(busy float64, c, n int) (fast, slow float64) {
	all, some := float64(c), float64(n)
	busy = min(busy, all)
	most, least := min(max(busy, 1), some), 1.0 // speeds on n cores
	if busy > 1 {
		serial := (1/busy - 1/all) / (1 - 1/all)
		least = 1 / (serial + (1-serial)/some)
	}
	if busy < 1 { // it waits for other things than cores
		return 1, 1
	}
	for m, s := range p.speeds {
		at := s.busy()
		if m >= c || m > n || s.runs < enoughRuns || at > busy || at < 1 {
			continue
		}
		most = min(most, at*some/float64(m))
		least = max(least, at+(busy-at)*float64(n-m)/float64(c-m))
	}
	return busy / max(most, least), busy / least
}
