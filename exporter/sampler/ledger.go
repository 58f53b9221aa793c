package sampler

import (
	"errors"
	"math"
	"slices"
	"time"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
)

// ledger is what the energy accounts know between two intervals.
type ledger struct {
	book    energy.Book
	last    time.Time
	busy    float64 // CPU seconds of all cores then
	sockets sockets
	known   bool                     // an interval was settled
	covered float64                  // seconds that were settled
	users   map[uint32]energy.Joules // what each user's jobs were charged with
	fault   fault                    // why the last one was not
	cards   cards
	rates   rates // of the node
}

// settle charges the interval since the last call; unread is why the meter could not be read
// at its end. An interval without energy is charged with the next one, so that nothing is lost.
func (l *ledger) settle(meter energy.Meter, unread error, now time.Time, cpu node.CPU, jobs map[attrib.Key]*job) error {
	first := l.last.IsZero()
	act := energy.Activity{Elapsed: now.Sub(l.last), At: now, Busy: max(cpu.Busy-l.busy, 0), Cores: cpu.Cores}
	if first {
		act = energy.Activity{At: now, Cores: cpu.Cores}
	}
	act.Packages = l.sockets.interval(cpu.PerCPU)
	act.GPUs, act.Guessed = l.cards.followed(now)-l.cards.reached, l.cards.guess(now)
	if err := errors.Join(l.cards.missing(now), unread); err != nil {
		return err
	}
	split, ok := meter.Settle(act)
	l.cards.counted = l.cards.counted || split.WithGPUs
	if first || !ok {
		l.close(now, cpu)
		for _, j := range jobs {
			j.settled()
		}
		return nil
	}
	charged := make([]*job, 0, len(jobs))
	uses := make([]energy.Use, 0, len(jobs))
	var sum energy.Load
	for _, j := range jobs {
		u := j.located(j.use(l.last, now), l.sockets)
		sum.CPUSeconds, sum.Cores = sum.CPUSeconds+u.CPUSeconds, sum.Cores+u.Cores
		charged, uses = append(charged, j), append(uses, u)
	}
	ofJobs := 0.0
	for i, joules := range l.book.Add(split, act, uses) {
		joules.GPU, joules.Lacks = charged[i].pendingGPU(), split.Lacks
		ofJobs += joules.GPU
		charged[i].charge(joules, uses[i], act.Elapsed)
		l.users[charged[i].uid] = l.users[charged[i].uid].Plus(joules)
	}
	l.book.AddGPUs(l.cards.took(), ofJobs)
	seconds := act.Elapsed.Seconds()
	if l.known = true; !split.Lacks {
		l.covered += seconds
	}
	l.rates.add(split.Active(), max(act.Busy, sum.CPUSeconds), split.Idle, max(float64(cpu.Cores), sum.Cores)*seconds)
	l.close(now, cpu)
	return nil
}

func (l *ledger) close(now time.Time, cpu node.CPU) {
	l.last, l.busy = now, cpu.Busy
	if cpu.PerCPU != nil {
		l.sockets.last = cpu.PerCPU
	}
	l.cards.close(now)
}

// knows reports whether the joules are known at that moment: the last interval could be
// settled, and is not too long ago.
func (l *ledger) knows(now time.Time, interval time.Duration) bool {
	return l.known && l.fault == "" && now.Sub(l.last) <= max(staleIntervals*interval, staleSoonest)
}

const (
	// staleIntervals is how many intervals the last reading of the meter may be old.
	staleIntervals = 3
	// staleSoonest is no more than a loaded machine may hold up a short interval.
	staleSoonest = time.Second
)

// ahead carries a job's joules forward to now, at its own rates, or where it has none yet at the
// node's.
func (l *ledger) ahead(j *job, now time.Time) float64 {
	elapsed := max(now.Sub(later(l.last, j.first)).Seconds(), 0)
	u, r := j.use(later(l.last, j.first), now), l.rates
	if j.charged.rates != (rates{}) {
		r = j.charged.rates
	}
	return j.joules.Total() + r.of(u.CPUSeconds, u.Cores*elapsed) + j.pendingGPU()
}

// rates are joules and the work that they were measured over. The last intervals weigh more, and
// none counts alone: in a short one, meter and clocks do not show the same moments.
type rates struct{ active, cpuSeconds, idle, coreSeconds float64 }

func (r *rates) add(active, cpuSeconds, idle, coreSeconds float64) {
	const before = 0.8
	r.active, r.cpuSeconds = before*r.active+active, before*r.cpuSeconds+cpuSeconds
	r.idle, r.coreSeconds = before*r.idle+idle, before*r.coreSeconds+coreSeconds
}

// of returns the joules of so much work, and no more than were measured.
func (r rates) of(cpuSeconds, coreSeconds float64) (joules float64) {
	if cpuSeconds > 0 {
		joules += r.active * cpuSeconds / max(r.cpuSeconds, cpuSeconds)
	}
	if coreSeconds > 0 {
		joules += r.idle * coreSeconds / max(r.coreSeconds, coreSeconds)
	}
	return joules
}

func later(a, b time.Time) time.Time {
	return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare)
}

// growth is how much a counter grew; 0 where it is not known or began again.
func growth(from, to float64) float64 {
	if math.IsNaN(from) || math.IsNaN(to) {
		return 0
	}
	return max(to-from, 0)
}

// errCards means that what is left for the jobs is not known.
var errCards = errors.New("the meter counts the graphics cards too, and they are not read any more")

// lost is the age from which on the cards' last reading does not help to guess what they take.
const lost = 30 * time.Second

// cards follows what all graphics cards take from one reading of them to the next, which
// come when they come, so that a meter that counts the cards too gets what they took
// in its own interval. Between two readings they go on as between the last two; what that
// was wrong by is made good with the next reading.
type cards struct {
	there   bool      // there are some
	shown   bool      // the last look at them gave a reading of all
	at      time.Time // of the newest reading; zero = there was none
	rated   bool      // there were two
	joules  float64   // that it showed
	watts   float64   // between it and the one before
	settled float64   // joules that were shown when the last interval was closed
	reached float64   // and those that the cards had been followed to
	counted bool      // the meter of the node counts the cards too
}

// see takes a look at the cards: what they took by a moment, unless that is not known.
func (c *cards) see(joules float64, at time.Time, known bool) {
	c.there, c.shown = true, known
	switch {
	case !known:
		return
	case c.at.IsZero():
		c.settled, c.reached = joules, joules
	case !at.After(c.at):
		return // it is the one from before
	default:
		c.watts, c.rated = max(joules-c.joules, 0)/at.Sub(c.at).Seconds(), true
	}
	c.joules, c.at = joules, at
}

// followed returns the cards' joules so far. It never falls.
func (c *cards) followed(now time.Time) float64 {
	if !c.rated {
		return c.reached
	}
	return max(c.joules+c.watts*max(now.Sub(c.at), 0).Seconds(), c.reached)
}

// took returns the joules that the cards added since the last interval was closed.
func (c *cards) took() float64 {
	if !c.shown {
		return 0
	}
	return max(c.joules-c.settled, 0)
}

// guess reports whether it is unknown what the cards take now.
func (c *cards) guess(now time.Time) bool {
	return c.there && (!c.rated || !c.shown || now.Sub(c.at) > collector.Bridge)
}

// missing is an error where the meter counts cards that are unknown now. What
// is not shared out meanwhile is when the cards are known again.
func (c *cards) missing(now time.Time) error {
	if age := now.Sub(c.at); c.counted && c.rated && age > lost {
		return errCards
	}
	return nil
}

func (c *cards) close(now time.Time) {
	if c.shown {
		c.settled = c.joules
	}
	c.reached = c.followed(now)
}
