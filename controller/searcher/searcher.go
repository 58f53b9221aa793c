package searcher

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// ErrEvent means that an event does not fit the search: a bug of the caller.
var ErrEvent = errors.New("event that does not fit the search")

// Searcher handles the events of one search. Use New.
type Searcher struct {
	Plan
	Snapshot
	rungs  []int
	ways   []int // how many trials of a round each bracket of Hyperband gets
	method propose.Method

	there [][][]standing  // by bracket and rung: the trials that came to it, the best first
	tries []propose.Trial // the trials as methods see them
}

// blind is every which trial of ASHAGP the Gaussian process does not choose: it may be wrong.
const blind = 4

// retries is how often a trial whose job was lost is run again without a report in between.
const retries = 2

// New makes a Searcher that goes on from a snapshot; the zero one begins.
func New(p Plan, s Snapshot) *Searcher {
	out := &Searcher{Plan: p, Snapshot: s, rungs: p.Rungs()}
	c := propose.Of(p.Settings)
	rng := rand.New(rand.NewPCG(p.Seed, 1))
	out.method = c.Random(rng)
	guided := propose.Then{First: c.Guide(p.History), Rest: out.method}
	switch p.Method {
	case tuning.GP:
		out.method = guided
	case tuning.ASHAGP:
		out.method = propose.Turns{One: out.method, Other: guided, Every: blind}
	default:
	}
	out.method = propose.Then{First: propose.Listed(p.First), Rest: out.method}
	brackets := 1
	if p.Method == tuning.Hyperband {
		brackets = len(out.rungs)
	}
	for b := range brackets { // Hyperband gives each bracket about the same epochs
		s := float64(brackets - 1 - b)
		out.ways = append(out.ways, int(math.Ceil(float64(brackets)*math.Pow(float64(p.Eta), s)/(s+1))))
	}
	out.index()
	return out
}

// Know sets how many epochs the job runs, where the plan lacks it. It comes before the first report.
func (s *Searcher) Know(total int) {
	s.Total = cmp.Or(s.Total, total)
	if s.Epochs == 0 {
		s.Epochs = total
		s.index()
	}
}

// Handle takes one event and returns what to do about it.
func (s *Searcher) Handle(e Event) ([]Action, error) {
	s.Seq++
	e.Seq = s.Seq
	var out []Action
	switch e.Kind {
	case Opened:
		e.Search = cmp.Or(e.Search, new(s.Search))
		epochs := s.Epochs
		s.Search, s.Restart, s.Closing, s.Over = *e.Search, e.Cost, "", false
		s.Epochs = cmp.Or(s.Epochs, epochs) // which the job said meanwhile
		s.index()
	case Waited:
	case Closed:
		out = s.close(e.Reason)
	case Reported, Broke, Ended:
		if e.Trial < 1 || e.Trial > len(s.Trials) {
			return nil, fmt.Errorf("%w: %s of trial %d of %d", ErrEvent, e.Kind, e.Trial, len(s.Trials))
		}
		t := &s.Trials[e.Trial-1]
		if e.Kind != Reported {
			e.Report.Value = 0 // JSON has no NaN
			t.Log = append(t.Log, e)
		}
		switch e.Kind {
		case Reported:
			out = s.report(t, e.Report)
		case Broke:
			if t.State == Running {
				t.State, t.Reason = Diverged, fmt.Sprintf("epoch %d ended with NaN or infinity", e.Report.Epoch)
				out = []Action{{Stop, t.Number}}
			}
		default:
			out = s.end(t, e)
		}
		s.settle(t)
	default:
		return nil, fmt.Errorf("%w: %q", ErrEvent, e.Kind)
	}
	if e.Trial == 0 {
		s.Log = append(s.Log, e)
	}
	if why := s.Bound(e.Report.At); why != "" && s.Closing == "" {
		out = append(out, s.close(why)...)
	}
	more, err := s.fill()
	return append(out, more...), err
}

// report keeps a report and judges the trial by it. A repeated one changes nothing.
func (s *Searcher) report(t *Trial, r Report) []Action {
	if r.Epoch <= t.Last().Epoch {
		s.Seq--
		return nil
	}
	r.Seq, t.Retries = s.Seq, 0
	t.Reports = append(t.Reports, r)
	if t.State == Done && s.Total == 0 && t.Counted == len(t.Reports)-1 && s.Epochs <= t.Decisive().Epoch {
		return []Action{{Stop, t.Number}} // its job does not end by itself
	}
	return s.judge(t)
}

// judge judges a trial by the reports that do not count yet.
func (s *Searcher) judge(t *Trial) (out []Action) {
	for t.State == Running && s.Epochs > 0 && t.Counted < len(t.Reports) {
		t.Counted++
		s.arrive(t, t.Reports[t.Counted-1])
		out = s.count(t, t.Reports[t.Counted-1])
	}
	return out
}

func (s *Searcher) count(t *Trial, r Report) []Action {
	switch {
	case s.reaches(r.Value):
		t.State, t.Reason = Done, fmt.Sprintf("reached the target after %d epochs", r.Epoch)
		return []Action{{Stop, t.Number}}
	case r.Epoch >= s.Epochs:
		t.State = Done
		if s.Total > s.Epochs {
			return []Action{{Stop, t.Number}}
		}
		return nil
	case s.dearer(r):
		t.State, t.Reason = Stopped, "another trial reached the target at less"
		return []Action{{Stop, t.Number}}
	}
	for rung := s.next(t); rung < len(s.rungs)-1 && r.Epoch >= s.rungs[rung]; rung = s.next(t) {
		rank, of := s.rank(t, rung)
		if rank > s.places(t, of) {
			t.Reason = s.place(rank, of, rung)
			if t.State = Stopped; s.Resumes {
				t.State = Paused
				return []Action{{Pause, t.Number}}
			}
			return []Action{{Stop, t.Number}}
		}
		t.Passed++
	}
	return nil
}

// end is what happens to a trial whose job is over.
func (s *Searcher) end(t *Trial, e Event) []Action {
	t.Busy, t.Ended = false, s.Seq
	if t.State != Running {
		s.release()
		return nil
	}
	again := e.End == Lost || e.End == NoTime && s.Resumes
	switch {
	case again && t.Retries < retries && s.Closing == "" && s.Bound(e.Report.At) == "":
		t.Retries++
		return s.resume(t)
	case e.End == Succeeded && len(t.Reports) > 0:
		t.State = Done
		if last := t.Last().Epoch; last < s.Epochs {
			t.Reason = fmt.Sprintf("its job ended after %d of %d epochs", last, s.Epochs)
		}
	case e.End == Cancelled:
		t.State, t.Reason, t.Spared = Stopped, e.Reason, true
	default:
		t.State, t.Reason = Failed, e.Reason
	}
	return nil
}

func (s *Searcher) resume(t *Trial) []Action {
	t.State, t.Cut, t.Reason = Running, false, ""
	s.judge(t)
	s.settle(t)
	if t.State != Running { // its last job came far enough before it ended
		s.release()
		return nil
	}
	t.Busy = true
	t.Attempt++
	return []Action{{Resume, t.Number}}
}

// close ends the search: nothing begins any more.
func (s *Searcher) close(why string) []Action {
	if s.Closing != "" {
		return nil
	}
	s.Closing = why
	var out []Action
	for i := range s.Trials {
		t := &s.Trials[i]
		switch {
		case t.State != Running:
		case s.Resumes:
			t.State, t.Reason, t.Cut = Paused, why, true
			out = append(out, Action{Pause, t.Number})
		default:
			t.State, t.Reason = Stopped, why
			out = append(out, Action{Stop, t.Number})
		}
	}
	return out
}

// Errors of Reopen.
var (
	ErrOpen  = errors.New("the search is not over")
	ErrSpent = errors.New("budgets and failures count from the beginning of the search; begin a new one")
)

// Reopen goes on after so many seconds with a search that is over, with more trials or larger budgets perhaps.
// Where a bound would end it at once nothing changes, and the error is ErrSpent.
func (s *Searcher) Reopen(search tuning.Search, at float64) ([]Action, error) {
	if !s.Over {
		return nil, ErrOpen
	}
	next := *s
	next.Search = search
	if why := next.Bound(at); why != "" {
		return nil, fmt.Errorf("%s: %w", why, ErrSpent)
	}
	return s.Handle(Event{Kind: Opened, Cost: s.Restart, Search: &search})
}

// Bound says which budget is used up after so many seconds, or that too many trials failed; empty: neither.
func (s *Searcher) Bound(at float64) string {
	_, hours, failed := s.Spent()
	switch {
	case s.Energy > 0 && s.Charged() >= float64(s.Energy):
		return fmt.Sprintf("the budget of %s is used up", s.Energy)
	case s.CoreHours > 0 && hours >= s.CoreHours:
		return fmt.Sprintf("the budget of %g core-hours is used up", s.CoreHours)
	case s.Time > 0 && at >= s.Time.Seconds():
		return fmt.Sprintf("the budget of %s is used up", s.Time)
	case failed > s.MostFailures():
		return fmt.Sprintf("%d trials failed", failed)
	}
	return ""
}

// Spent is what all trials used so far. Epochs that were not measured count no joules.
func (s *Snapshot) Spent() (joules, coreHours float64, failed int) {
	for _, t := range s.Trials {
		r := t.Used()
		joules, coreHours = joules+r.Measured(), coreHours+r.CoreHours
		if t.State == Failed {
			failed++
		}
	}
	return joules, coreHours, failed
}

// Charged are the joules that count towards the budget of energy: those of a trial that has modelled ones only where the
// site allows that.
func (s *Searcher) Charged() float64 {
	return tuning.Sum(s.Trials, func(t Trial) float64 {
		if r := t.Used(); s.EnforceModel || !tuning.IsModelled(r.Source) {
			return r.Measured()
		}
		return 0
	})
}

// fill uses free places.
func (s *Searcher) fill() ([]Action, error) {
	var out []Action
	for s.Busy() < s.Parallel && s.Closing == "" {
		// First a trial that the end of the search interrupted.
		if i := slices.IndexFunc(s.Trials, func(t Trial) bool { return t.Cut && !t.Busy }); i >= 0 {
			out = append(out, s.resume(&s.Trials[i])...)
			continue
		}
		t := s.promotable(0)
		at, err := -1, error(nil)
		if t == nil && len(s.Trials) < s.Search.Trials {
			at, err = s.method.Next(s.seen())
		}
		if err != nil {
			return out, fmt.Errorf("propose trial %d: %w", len(s.Trials)+1, err)
		}
		if t == nil && at < 0 && s.Busy() == 0 {
			t = s.promotable(1)
		}
		if t != nil {
			t.Passed++
			out = append(out, s.resume(t)...)
			continue
		}
		if at < 0 {
			break
		}
		n := len(s.Trials) + 1
		s.Trials = append(s.Trials, Trial{
			Number: n, Candidate: at, Settings: s.Settings[at], Bracket: s.bracket(), State: Running, Busy: true, Attempt: 1, Began: s.Seq,
		})
		s.tries = append(s.tries, propose.Trial{At: at})
		out = append(out, Action{Create, n})
	}
	if s.Busy() == 0 && !s.Over {
		s.Over = true
		out = append(out, Action{Kind: Finish})
	}
	return out, nil
}

// Busy is how many trials have a job that has not ended.
func (s *Snapshot) Busy() int { return tuning.Count(s.Trials, func(t Trial) bool { return t.Busy }) }

// seen are the trials as the methods see them.
func (s *Searcher) seen() []propose.Trial {
	for i := range s.tries {
		s.tries[i].Running = s.Trials[i].State == Running
	}
	return s.tries
}

// bracket is the bracket that is furthest behind its share.
func (s *Searcher) bracket() int {
	have := make([]float64, len(s.ways))
	for _, t := range s.Trials {
		have[t.Bracket]++
	}
	best := 0
	for b := range have {
		if (have[b]+1)/float64(s.ways[b]) < (have[best]+1)/float64(s.ways[best]) {
			best = b
		}
	}
	return best
}
