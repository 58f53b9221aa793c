package classify

import (
	"errors"
	"math"
)

var (
	// ErrSample: a sample cannot be learned from.
	ErrSample = errors.New("not a sample to learn from")
	// ErrConfig: a configuration that makes no sense.
	ErrConfig = errors.New("not a configuration for classes")
	// ErrModel: a text is no model of this version.
	ErrModel = errors.New("not a model of classes")
)

// The defaults of Config. In the simulation of this package's tests a confidence
// of 0.98 recognises two or three more of 100 second runs than 0.95, and takes
// half as many strangers again for something known.
//
// One run makes a class: it gets a name and the widest radius, and
// tuning.Class.Support says how thin it is. To ask for two would keep out nearly every
// stranger (1 to 4 of 100 are taken for a class of one run) and leave 11 more
// of 100 second runs unknown, without a single one fewer in a wrong class. What
// rests on a name is little: the planner uses nothing of a class that fewer than
// two of its jobs have shown.
const (
	DefaultMaxClasses = 64   // in one stratum
	DefaultConfidence = 0.95 // of runs of a class that should lie within its radius
	DefaultPriorRuns  = 4    // runs that the documented noise is worth
)

// Config tells how to learn. Its zero value means the defaults.
type Config struct {
	MaxClasses int     // most classes in a stratum
	Confidence float64 // share of the runs of a class within its radius, if noise is as assumed; 0.5 to 0.9999
	PriorRuns  float64 // weight of the documented noise against what is observed, in runs; from 1
	Priors     []Prior // noise and weight of the features; nil = DefaultPriors
}

func (c Config) filled() (Config, error) {
	if c.MaxClasses == 0 {
		c.MaxClasses = DefaultMaxClasses
	}
	if c.Confidence == 0 {
		c.Confidence = DefaultConfidence
	}
	if c.PriorRuns == 0 {
		c.PriorRuns = DefaultPriorRuns
	}
	if c.Priors == nil {
		c.Priors = DefaultPriors()
	}
	sane := c.MaxClasses > 0 && confident(c.Confidence) && weighty(c.PriorRuns)
	for _, p := range c.Priors {
		sane = sane && p.Feature != "" && positive(p.Noise) && positive(p.Weight) && (p.Floor == 0 || positive(p.Floor))
	}
	if !sane {
		return c, ErrConfig
	}
	return c, nil
}

// positive reports whether a number can be a scale, a weight or a variance; beyond
// these bounds, as beyond those of usable, results would overflow.
func positive(v float64) bool { return v >= 1e-9 && v <= 1e9 }

// usable reports whether a number can be a feature: they are logarithms and shares.
func usable(v float64) bool { return math.Abs(v) <= 1e9 }

func confident(v float64) bool { return v >= 0.5 && v <= 0.9999 }

func weighty(runs float64) bool { return runs >= 1 && runs <= 1e4 }
