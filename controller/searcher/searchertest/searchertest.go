package searchertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"pitchpipe/controller/searcher"
)

// ErrReplay means that the events of a search do not lead to what it became.
var ErrReplay = errors.New("the logged events lead elsewhere")

func events(s searcher.Snapshot) []searcher.Event {
	out := slices.Clone(s.Log)
	for _, t := range s.Trials {
		out = append(out, t.Log...)
		for _, r := range t.Reports {
			out = append(out, searcher.Event{Kind: searcher.Reported, Seq: r.Seq, Trial: t.Number, Report: r})
		}
	}
	slices.SortFunc(out, func(a, b searcher.Event) int { return a.Seq - b.Seq })
	return out
}

// Replay gives the events of a search to a fresh searcher and returns the actions that it decides on. It is
// ErrReplay where an event is missing or counts twice, or where a trial becomes another than it was.
func Replay(p searcher.Plan, was searcher.Snapshot) ([]searcher.Action, error) {
	fresh := searcher.New(p, searcher.Snapshot{})
	var out []searcher.Action
	for i, e := range events(was) {
		if e.Seq != i+1 {
			return out, fmt.Errorf("%w: event %d is %s of trial %d, logged as %d", ErrReplay, i+1, e.Kind, e.Trial, e.Seq)
		}
		actions, err := fresh.Handle(e)
		if err != nil {
			return out, err
		}
		out = append(out, actions...)
	}
	for i := range max(len(was.Trials), len(fresh.Trials)) {
		if err := same(at(was.Trials, i), at(fresh.Trials, i)); err != nil {
			return out, fmt.Errorf("trial %d: %w", i+1, err)
		}
	}
	return out, same(was.Head, fresh.Head)
}

func at(all []searcher.Trial, i int) *searcher.Trial {
	if i < len(all) {
		return &all[i]
	}
	return nil
}

func same(was, now any) error {
	a, err := json.Marshal(was)
	b, err2 := json.Marshal(now)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("%w: %s, and it was %s", ErrReplay, b, a)
	}
	return nil
}
