package faultnomad_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// span is a time from and to.
type span struct{ from, to time.Time }

// spans are times in which somebody was down. Its methods may be called at the same time.
type spans struct {
	mu  sync.Mutex
	all []span
}

// during notes that somebody is down while do runs.
func (s *spans) during(do func() error) error {
	from := time.Now()
	err := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, span{from, time.Now()})
	return err
}

func (s *spans) list() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// outside is how much of a span is in none of the others.
func outside(of span, others []span) time.Duration {
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b span) int { return a.from.Compare(b.from) })
	left, at := time.Duration(0), of.from
	for _, o := range others {
		if o.from.After(of.to) {
			break
		}
		if o.from.After(at) {
			left += o.from.Sub(at)
		}
		if o.to.After(at) {
			at = o.to
		}
	}
	return left + max(0, of.to.Sub(at))
}

func TestOnlyTimeInWhichNothingWasDownCounts(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, tt := range []struct {
		name   string
		of     span
		others []span
		want   time.Duration
	}{
		{"nothing was down", span{at(10), at(13)}, nil, 3 * time.Second},
		{"before and behind", span{at(10), at(13)}, []span{{at(14), at(20)}, {at(1), at(9)}}, 3 * time.Second},
		{"all the time", span{at(10), at(13)}, []span{{at(9), at(20)}}, 0},
		{"two at a time", span{at(10), at(20)}, []span{{at(12), at(16)}, {at(11), at(15)}}, 5 * time.Second},
		{"one within another", span{at(10), at(20)}, []span{{at(11), at(16)}, {at(12), at(13)}}, 5 * time.Second},
		{"at its end", span{at(10), at(20)}, []span{{at(18), at(30)}}, 8 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := outside(tt.of, tt.others); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// It is what counting second by second says.
func TestOutsideCountsEachSecondOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		one := rapid.Custom(func(rt *rapid.T) span {
			from := rapid.IntRange(0, 30).Draw(rt, "from")
			return span{time.Unix(int64(from), 0), time.Unix(int64(from+rapid.IntRange(0, 10).Draw(rt, "for")), 0)}
		})
		of, others := one.Draw(rt, "of"), rapid.SliceOfN(one, 0, 6).Draw(rt, "others")
		want := time.Duration(0)
		for s := of.from; s.Before(of.to); s = s.Add(time.Second) {
			if !slices.ContainsFunc(others, func(o span) bool { return !s.Before(o.from) && s.Before(o.to) }) {
				want += time.Second
			}
		}
		if got := outside(of, others); got != want {
			rt.Fatalf("%v, want %v", got, want)
		}
	})
}
