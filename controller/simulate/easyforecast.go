package simulate

import (
	"context"
	"math"
	"slices"

	"pitchpipe/controller/durations"
)

// easyForecast is easy with forecasts in place of what users asked for, made from the jobs that have ended.
//
// The limit of a job is lowered to twice the 0.99 quantile of its forecast, once enough jobs of its user have ended, as
// advice to a real scheduler has it. A job that reaches that limit gets twice as much, up to what its owner asked for: no
// job is killed earlier than with easy, and the head waits where it must (correction of predictions: Tsafrir, Etsion and
// Feitelson, IEEE TPDS 18(6), 2007). While too many have reached theirs, jobs begin with their owners' limits: all jobs of
// a user may become longer at once. A job whose owner asked for no limit cannot be cut short: its forecast always counts.
//
// The queue is ordered by the slowdown that a job would have if it began now and took its median (largest expansion factor
// first: Chiang, Arpaci-Dusseau and Vernon, JSSPP 2002). Jobs that wait longer by a quarter than 99 % of those before them
// did come first, the oldest at the head, so that long waits grow little. Without the quarter a backlog of days turns into
// first come, first served.
func easyForecast() Spec {
	return Spec{
		Name: "easy-forecast",
		New: func(_ context.Context, in Input) (func(*Pool) Policy, error) {
			return func(p *Pool) Policy {
				f := &forecasts{backfill: backfill{pool: p}, model: durations.New(), origin: in.Log.Origin, waits: waits{long: math.Inf(1)}}
				f.rank, f.begins = f.urgency, f.began
				return f
			}, nil
		},
		Columns: []string{"first_limit", "extended"},
		Cells:   func(j *Job) []float64 { return []float64{expect(j).first, float64(expect(j).extended)} },
	}
}

const (
	limitQuantile = 0.99 // of the forecast
	limitMargin   = 2    // times that quantile; also the growth of a limit when a job reaches it
	enough        = 100  // ended jobs that such a quantile needs
	enoughOwn     = 20   // of them of the same user, where the log names users
	mostRaised    = 300  // one of so many ended jobs may have reached a lowered limit
	leastLimit    = 60   // s; schedulers count limits in minutes
	leastRun      = 10   // s, below which slowdowns do not count
	patient       = 0.99 // share of the jobs whose waits are not yet long
	overdue       = 1.25 // times a long wait is too long
	growth        = 20   // a part of that many more waits, and they are looked at again
)

// expected is what easy-forecast holds of a job, and qssf only its features and run.
type expected struct {
	features durations.Features
	owner    float64 // limit that the owner asked for
	first    float64 // limit at the start
	run      float64 // seconds that it takes as a median
	extended int     // how often its limit was raised
}

func expect(j *Job) *expected { return j.Note.(*expected) } //nolint:forcetypeassert // Arrive wrote it

type forecasts struct {
	backfill

	model  *durations.Model
	origin float64
	waits  waits
	raised int // jobs that reached a lowered limit
}

func (f *forecasts) Arrive(j *Job) {
	features, said := f.model.Submitted(*j.Job, f.origin)
	n := &expected{owner: j.limit, features: features}
	j.Note, n.first, n.run = n, n.owner, n.owner
	if said.Known() {
		if len(f.waits.all) >= enough && (j.Limit == 0 || j.User == "" || said.Samples >= enoughOwn) {
			n.first = min(n.owner, max(leastLimit, limitMargin*coarse(said.Quantile(limitQuantile))))
		}
		n.run = min(n.owner, coarse(said.Median))
	}
	j.key = n.run
	f.pool.SetLimit(j, n.first)
	f.backfill.Arrive(j)
}

// began gives a job its owner's limit while forecasts fail too often.
func (f *forecasts) began(j *Job) {
	if n := expect(j); j.Limit > 0 && mostRaised*f.raised > len(f.waits.all) {
		n.first = n.owner
		f.pool.SetLimit(j, n.owner)
	}
}

// coarse rounds seconds up by 9 % at most, so that jobs are alike.
func coarse(seconds float64) float64 {
	const steps = 8 // of a doubling
	return math.Exp2(math.Ceil(steps*math.Log2(seconds)) / steps)
}

func (f *forecasts) Expire(j *Job) {
	if n := expect(j); j.limit < n.owner {
		f.backfill.Ended(j)
		f.pool.SetLimit(j, min(n.owner, limitMargin*j.limit))
		f.runs(j)
		if n.extended++; n.extended == 1 && j.Limit > 0 {
			f.raised++
		}
	}
}

func (f *forecasts) Ended(j *Job) {
	f.backfill.Ended(j)
	f.waits.ended(j.Wait)
	f.model.Learn(durations.Ended{Features: expect(j).features, Duration: f.pool.Ran(j), End: j.End + f.origin})
}

// waits are those of the jobs that ended.
type waits struct {
	all  []float64
	due  int     // the number of them at which long is determined again
	long float64 // a longer one is too long
}

func (w *waits) ended(seconds float64) {
	if w.all = append(w.all, seconds); len(w.all) >= w.due {
		slices.Sort(w.all)
		w.long = w.all[int(patient*float64(len(w.all)))]
		w.due = len(w.all) + len(w.all)/growth + 1
	}
}

// urgency is lower for what should begin earlier.
func (f *forecasts) urgency(j *Job) float64 {
	wait := f.pool.Now - j.Submit
	if wait > overdue*f.waits.long {
		return math.Inf(-1)
	}
	return -wait / max(leastRun, expect(j).run)
}
