package tuning

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// SearchMethod is how a search picks its trials and ends those that are not worth going on.
type SearchMethod string

// The methods. ASHA is asynchronous successive halving; a Gaussian process picks the hyperparameters of
// three in four trials of ASHAGP and of every trial of GP, once some trials have results.
const (
	ASHA      SearchMethod = "asha"
	Hyperband SearchMethod = "hyperband"
	GP        SearchMethod = "gp"
	ASHAGP    SearchMethod = "asha+gp"
	Random    SearchMethod = "random"
	Grid      SearchMethod = "grid"
)

// SearchMethods lists the methods.
func SearchMethods() []SearchMethod { return []SearchMethod{ASHA, Hyperband, GP, ASHAGP, Random, Grid} }

// Halves reports whether the method ends trials early, at rungs.
func (m SearchMethod) Halves() bool { return m == ASHA || m == Hyperband || m == ASHAGP }

// SystemMode is what a search does with the system knobs.
type SystemMode string

// The modes.
const (
	Pipelined SystemMode = "pipelined" // tuned inside the epochs of the trials
	Searched  SystemMode = "searched"  // searched like hyperparameters
	Fixed     SystemMode = "fixed"     // as the job file has them
)

// SystemModes lists the modes.
func SystemModes() []SystemMode { return []SystemMode{Pipelined, Searched, Fixed} }

// Measure names what trials are compared by, besides the quality.
const (
	ByQuality = "quality"
	ByEnergy  = "energy"
	ByTime    = "time"
	ByCost    = "cost"
)

// SearchMeasures lists what trials can be compared by.
func SearchMeasures() []string { return []string{ByQuality, ByEnergy, ByTime, ByCost} }

// Search is a hyperparameter search: many runs of one job file.
type Search struct {
	ID        string       `json:"id,omitempty"` // in the policy of a trial
	Method    SearchMethod `json:"method"`
	Trials    int          `json:"trials"`
	Parallel  int          `json:"parallel"`             // trials that run at a time
	Epochs    int          `json:"epochs,omitempty"`     // of a whole trial; 0: as many as the job says
	MinEpochs int          `json:"min_epochs,omitempty"` // before a trial is ended early; 0: a thirtieth of Epochs, 1 at least
	Eta       int          `json:"eta"`                  // one of so many trials goes on at each rung
	Seed      uint64       `json:"seed"`
	System    SystemMode   `json:"system"`
	Failures  int          `json:"failures,omitempty"` // failed trials after which the search ends; 0: a quarter of Trials, 3 at least

	// What all trials together may use; 0 = unbounded.
	Energy    Joules        `json:"energy,omitempty"`
	Time      time.Duration `json:"time,omitempty"` // from the beginning of the search
	CoreHours float64       `json:"core_hours,omitempty"`

	Share Share `json:"share,omitzero"` // in the policy of a trial
}

// Share is what the trials of a search have to share.
type Share struct {
	Cores  float64 `json:"cores,omitempty"`  // that they get together; 0: unknown, or no trial waits for any
	Trials float64 `json:"trials,omitempty"` // that run at a time where cores suffice
	Serial float64 `json:"serial,omitempty"` // share of all epochs which the longest trial still trains, one after the other
	Late   float64 `json:"late,omitempty"`   // the same of those that do not run yet
	Slack  float64 `json:"-"`                // Late, for one that is to try a setting
	Next   int     `json:"next,omitempty"`   // trials that are still to begin
}

// Fit reports whether all trials that run at a time get the cores that their owner asked for, though some had to wait.
func (s Share) Fit(own Settings) bool { return s.Cores > 0 && s.Trials*own[Cores].Float() <= s.Cores }

// tariff is by how much an hour of a trial prolongs its search.
func (s Share) tariff() Tariff {
	return Tariff{CoreHour: 1 / s.Cores, Least: max(1/max(s.Trials, 1), s.Serial), Slack: s.Slack, Unit: "hours of its search"}
}

// The defaults of a search.
const (
	DefaultMethod   = ASHA
	DefaultTrials   = 27
	DefaultParallel = 4
	DefaultEta      = 3
	DefaultSystem   = Pipelined
)

// DefaultSearch is an empty search block.
func DefaultSearch() Search {
	return Search{Method: DefaultMethod, Trials: DefaultTrials, Parallel: DefaultParallel, Eta: DefaultEta, System: DefaultSystem}
}

// MostFailures is how many failed trials a search tolerates.
func (s Search) MostFailures() int {
	if s.Failures > 0 {
		return s.Failures
	}
	return max(3, s.Trials/4)
}

// Rungs are the epochs at which a trial is compared, ascending; the last is a whole trial. A method
// that ends no trial early has that one alone.
func (s Search) Rungs() []int {
	const part, second = 30, 2 // the first epoch ranks trials by how they warm up
	rungs := []int{s.Epochs}
	if !s.Method.Halves() {
		return rungs
	}
	least := s.MinEpochs
	if least <= 0 {
		least = max(second, (s.Epochs+part-1)/part)
	}
	for length := float64(s.Epochs) / float64(s.Eta); ; length /= float64(s.Eta) {
		rung := int(math.Round(length))
		if rung < max(least, 1) || rung >= rungs[0] {
			return rungs
		}
		rungs = append([]int{rung}, rungs...)
	}
}

// Left is about how many epochs a trial still trains that has done some, of its rungs to come: one of Eta trials is
// taken to go on at each.
func (s Search) Left(rungs []int, done int) (left float64) {
	share := 1.0
	for _, rung := range rungs {
		if rung > done {
			left += share * float64(rung-done)
			done, share = rung, share/float64(s.Eta)
		}
	}
	return left
}

// Knobs are the names of all knobs that some settings have, sorted.
func Knobs(all []Settings) []string {
	names := map[string]bool{}
	for _, s := range all {
		for name := range s {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Condition makes a knob count only while another has a value.
type Condition struct {
	Knob  string `json:"knob"`
	Value Value  `json:"value"`
}

// Holds reports whether the settings meet the condition; nil always holds.
func (c *Condition) Holds(s Settings) bool { return c == nil || s[c.Knob] == c.Value }

// Searched are the knobs that the search varies: those that change what the job learns, and with the
// SystemMode Searched the others that are found out by trying. What follows another knob is not one of them.
func (p Policy) Searched() []Knob {
	if p.Search == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Knobs), func(k Knob) bool {
		return k.Follows != "" || !p.Learns(k.Name) && (p.Search.System != Searched || !Settable(k.Name))
	})
}

// Trial is the policy of one trial of the search, an ordinary job whose hyperparameters are given: what
// the search varies is not a knob of it. The trial is only observed unless the search is pipelined.
func (p Policy) Trial() Policy {
	if p.Search == nil {
		return p
	}
	varied := p.Searched()
	p.Knobs = slices.DeleteFunc(slices.Clone(p.Knobs), func(k Knob) bool {
		return slices.ContainsFunc(varied, func(v Knob) bool { return v.Name == k.Name || v.Name == k.Follows })
	})
	if p.Search.System != Pipelined {
		p.Mode = Observe
	}
	if p.Quality != nil {
		q := *p.Quality
		p.Quality, q.Measures = &q, nil
	}
	p.Search, p.TrialOf = nil, p.Search
	return p
}

// SearchID is the search that a job is a trial of; empty: of none.
func (p Policy) SearchID() string {
	if p.TrialOf == nil {
		return ""
	}
	return p.TrialOf.ID
}

// Part is how much a run counts among those that try a setting. Trials count by their cores: where one held them,
// several on fewer cores try side by side.
func (p Policy) Part(own, tried Settings) float64 {
	if was, now := own[Cores].Float(), tried[Cores].Float(); p.TrialOf != nil && 0 < now && now < was {
		return now / was
	}
	return 1
}

// Tried counts the runs of a kind that tried a setting, for a trial those of its own search.
func (p Policy) Tried(own Settings, past []PastRun) (n float64) {
	for _, r := range past {
		if r.Trying && (p.TrialOf == nil || r.Search == p.TrialOf.ID) {
			n += p.Part(own, r.Began)
		}
	}
	return n
}

// Likely is about how many epochs a job still runs that has done some of all; 0: all that are left.
func (p Policy) Likely(done, all int) float64 {
	if p.TrialOf == nil || all <= 0 {
		return 0
	}
	s := *p.TrialOf
	s.Epochs = cmp.Or(s.Epochs, all)
	return s.Left(s.Rungs(), done)
}
