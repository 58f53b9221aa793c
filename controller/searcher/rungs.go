package searcher

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/search/propose"
)

// standing is what a trial had at a rung.
type standing struct {
	loss  float64 // infinite: it failed on the way
	trial int     // number
}

func (a standing) compare(b standing) int {
	return cmp.Or(cmp.Compare(a.loss, b.loss), cmp.Compare(a.trial, b.trial))
}

// index enters all trials at the rungs that they came to.
func (s *Searcher) index() {
	s.rungs, s.tries = s.Rungs(), nil
	s.there = make([][][]standing, len(s.ways))
	for b := range s.there {
		s.there[b] = make([][]standing, len(s.rungs))
	}
	for i := range s.Trials {
		t := &s.Trials[i]
		s.tries = append(s.tries, propose.Trial{At: t.Candidate})
		for _, r := range t.counted() {
			s.arrive(t, r)
		}
		s.settle(t)
	}
}

// arrive enters a trial at the rungs that a report comes to.
func (s *Searcher) arrive(t *Trial, r Report) {
	for n := s.came(t); n < len(s.rungs) && r.Epoch >= s.rungs[n]; n++ {
		s.stand(t, s.Loss(r.Value))
	}
}

// settle enters a trial that is over at the rungs that it did not come to: where it was going it is the
// worst if it failed, and everywhere what it was if it did all that its job does.
func (s *Searcher) settle(t *Trial) {
	n := s.came(t)
	switch losses := s.tries[t.Number-1].Losses; {
	case n == len(s.rungs):
	case t.State == Failed, t.State == Diverged:
		if n == 0 || !math.IsNaN(losses[n-1]) {
			s.stand(t, math.Inf(1))
		}
	case t.State == Done && t.Counted > 0:
		for range len(s.rungs) - n {
			s.stand(t, s.Loss(t.Reports[t.Counted-1].Value))
		}
	}
}

func (s *Searcher) stand(t *Trial, loss float64) {
	list, one := &s.there[t.Bracket][s.came(t)], standing{loss, t.Number}
	at, _ := slices.BinarySearchFunc(*list, one, standing.compare)
	*list = slices.Insert(*list, at, one)
	if math.IsInf(loss, 1) {
		loss = math.NaN()
	}
	try := &s.tries[t.Number-1]
	try.Losses = append(try.Losses, loss)
}

// came is how many rungs a trial came to.
func (s *Searcher) came(t *Trial) int { return len(s.tries[t.Number-1].Losses) }

// places is how many of the trials that came to a rung go on at once, t among them. One that can be
// resumed cheaply waits for others to compare it with. Where none is, one for each eta+1 of the others goes
// on, fewer than where a trial that ends early can come back, since too many would go on while few have come;
// and of a search of many trials the first ones end at the lowest rung, where they show what is usual: else
// the first of all would be trained to its end whatever it is.
func (s *Searcher) places(t *Trial, of int) int {
	const many = 27
	if s.Resumes && s.worthwhile(t) {
		return of / s.Eta
	}
	others := (of - 1) / (s.Eta + 1)
	if t.Passed == 0 && s.Search.Trials >= many {
		return others
	}
	return max(others, 1)
}

func (s *Searcher) next(t *Trial) int { return t.Bracket + t.Passed }

// rank is the place of a trial among those of its bracket that came to a rung so far, from 1.
func (s *Searcher) rank(t *Trial, rung int) (rank, of int) {
	list, loss := s.there[t.Bracket][rung], s.tries[t.Number-1].Losses[rung]
	if math.IsNaN(loss) {
		loss = math.Inf(1)
	}
	at, _ := slices.BinarySearchFunc(list, standing{loss, t.Number}, standing.compare)
	return at + 1, len(list)
}

func (s *Searcher) place(rank, of, rung int) string {
	return fmt.Sprintf("rank %d of %d after %d epochs", rank, of, s.rungs[rung])
}

// alive are the standings of the trials that did not fail, also later than at that rung.
func (s *Searcher) alive(list []standing) []standing {
	return slices.DeleteFunc(slices.Clone(list), func(one standing) bool {
		t := &s.Trials[one.trial-1]
		return t.State == Failed || t.State == Diverged || t.Spared
	})
}

// release gives up the paused trials that no later trial can make one of the best.
func (s *Searcher) release() {
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.State != Paused || t.Busy || t.Cut {
			continue
		}
		rank, of := s.rank(t, s.next(t))
		if ahead := s.there[t.Bracket][s.next(t)][:rank-1]; len(s.alive(ahead)) >= max(s.Search.Trials/s.Eta, 1) {
			t.State, t.Reason = Stopped, s.place(rank, of, s.next(t))
		}
	}
}

// NextRung is the epoch at which a trial is compared next.
func (s *Searcher) NextRung(t *Trial) int { return s.rungs[min(s.next(t), len(s.rungs)-1)] }

// promotable is the paused trial that goes on, the one at the highest rung first; nil: none. Where nothing
// else is left to do it is the best of the highest rung at which one waits.
func (s *Searcher) promotable(least int) *Trial {
	for rung := len(s.rungs) - 2; rung >= 0; rung-- {
		for _, lists := range s.there {
			list := lists[rung]
			if least > 0 {
				list = s.alive(list)
			}
			for _, one := range list[:min(max(len(list)/s.Eta, least), len(list))] {
				t := &s.Trials[one.trial-1]
				if t.State == Paused && !t.Busy && !t.Cut && s.next(t) == rung && (least > 0 || s.worthwhile(t)) {
					return t
				}
			}
		}
	}
	return nil
}

// worthwhile reports whether a restart costs less than to bring as many fresh trials as it takes to find
// another as good as far.
func (s *Searcher) worthwhile(t *Trial) bool {
	return t.Decisive().Seconds*float64(s.Eta) > s.Restart
}
