package simulate

import (
	"math"

	"pitchpipe/controller/joblog"
)

// Job is a job in a simulation.
type Job struct {
	*joblog.Job // what is known at the submission: Start, Duration, State and what was used are blank

	Units int // that it needs: GPUs or cores, as its pool counts them
	Seq   int // in the order of arrival

	First      float64 // when it began; NaN: it has not
	End        float64 // when it ended; NaN: it has not
	Wait       float64 // seconds in the queue, of all its turns
	Preempted  int
	Killed     bool    // at its limit
	Note       any     // of its policy
	key        float64 // its policy orders by it
	ran        float64 // seconds of its runs that are over, elsewhere too
	limit      float64 // of a run; +Inf: none
	duration   float64 // true work in seconds at rate 1
	remain     float64 // of it, at the moment since
	rate       float64
	since      float64 // remain is of this moment
	began      float64 // of this run
	queued     float64 // since when it waits
	place      *place  // nil: it does not run
	order      int     // of its beginning among all
	turn       int     // counts runs and changes, so that older events are void
	pool       *Pool
	stopsEarly bool // the next end is that of its limit
}

// Running reports whether the job runs.
func (j *Job) Running() bool { return j.place != nil }

// JCT is the completion time: from the submission to the end.
func (j *Job) JCT() float64 { return j.End - j.Submit }

// place is what a job occupies. Jobs that share it count themselves in.
type place struct {
	of    []share
	users int
	jobs  []*Job // scratch of pitchpipe, as is worth
	worth float64
}

type share struct {
	node  *node
	units int
}

// wear subtracts rate from left repeatedly, as a simulator that ticks does, until it is 0 or less, but not more
// often than most. It returns what is left and the number of subtractions. The result is that of single subtractions
// bit by bit: within a power of two each takes off the same rounded amount.
func wear(left, rate, most float64) (float64, float64) {
	if rate == 1 {
		n := min(math.Ceil(max(left, 0)), most)
		return left - n, n
	}
	n := 0.0
	for n < most && left > 0 {
		left, n = left-rate, n+1
		b := left - rate
		c := b - rate
		_, exponent := math.Frexp(left)
		low := math.Ldexp(1, exponent-1)
		if c < low || c >= b {
			continue
		}
		d := b - c // the first one in a power of two may round another way: where it is a tie
		k := min(math.Floor((b-low)/d), most-n-1)
		if b-k*d < low {
			k--
		}
		if k > 0 {
			left, n = b-k*d, n+1+k
		}
	}
	return left, n
}
