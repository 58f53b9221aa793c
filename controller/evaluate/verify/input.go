package verify

import (
	"errors"
	"fmt"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// ErrInput marks choices that cannot be evaluated.
var ErrInput = errors.New("invalid input")

// The defaults.
const (
	DefaultSeeds  = 300
	DefaultLevel  = 0.05
	DefaultEpochs = 40
	DefaultPairs  = 32
)

// Input is what to measure and on what. Without any table the simulated nulls stand
// alone.
type Input struct {
	Trials  []records.Table
	Samples []records.Table
	Curves  []records.Table // or adaptations

	Seeds      int     // replays of each null; 0: DefaultSeeds
	Seed       uint64  // of the first
	Level      float64 // share of false verdicts that is allowed; 0: DefaultLevel
	Untuned    int     // epochs of a job before its move; 0: as many as are profiled
	Epochs     int     // epochs after it, each of which is looked at; 0: DefaultEpochs
	Pairs      int     // pairs of jobs, each of which is looked at; 0: DefaultPairs
	Candidates int     // settings that were tried with the same untuned epochs; 0 and 1: one
}

func (in Input) withDefaults() Input {
	for value, standard := range map[*int]int{
		&in.Seeds: DefaultSeeds, &in.Untuned: tuning.DefaultEpochs, &in.Epochs: DefaultEpochs, &in.Pairs: DefaultPairs,
	} {
		if *value == 0 {
			*value = standard
		}
	}
	if in.Level == 0 {
		in.Level = DefaultLevel
	}
	return in
}

func (in Input) check() error {
	switch {
	case in.Seeds < 1:
		return fmt.Errorf("%w: %d seeds: want 1 or more", ErrInput, in.Seeds)
	case !(in.Level > 0 && in.Level < 1):
		return fmt.Errorf("%w: level %g: want a share above 0 and below 1", ErrInput, in.Level)
	case in.Untuned < 1 || in.Epochs < 1 || in.Pairs < 1:
		return fmt.Errorf("%w: %d untuned epochs, %d epochs, %d pairs: want 1 or more of each", ErrInput, in.Untuned, in.Epochs, in.Pairs)
	case in.Candidates < 0:
		return fmt.Errorf("%w: %d candidates: want 0 or more", ErrInput, in.Candidates)
	}
	return nil
}

// Effects are the shares by which the tuned side is made shorter.
func Effects() []float64 { return []float64{0, 0.02, 0.05, 0.10, 0.20} }
