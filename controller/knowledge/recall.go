package knowledge

import (
	"time"

	"pitchpipe/controller/tuning"
)

func (s *Store) aging() Aging { return Aging{Now: s.now(), HalfLife: s.halfLife} }

// Effects are those of settings on jobs of one kind; see the function Effects.
func (s *Store) Effects(kind tuning.JobKind, own tuning.Settings, m tuning.Measure) ([]tuning.Effect, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return Effects(obs, kind, own, m, s.aging()), nil
}

// Carried are the effects on jobs of the kind whose owner asked for something else then; see
// the function Carried.
func (s *Store) Carried(kind tuning.JobKind, own tuning.Settings, m tuning.Measure) ([]tuning.Effect, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return Carried(obs, kind, own, m, s.aging()), nil
}

// ClassEffects are those of system knobs on the jobs of one class, as the given
// classifier sees them now; see the function ClassEffects. The classifier
// returns the class of an observation, empty for none.
func (s *Store) ClassEffects(
	class string, classify func(Observation) string, own tuning.Settings, to Target, m tuning.Measure,
) ([]tuning.Effect, error) {
	obs, err := s.All()
	if err != nil || class == "" {
		return nil, err
	}
	belongs := func(o Observation) bool { return classify(o) == class }
	return ClassEffects(obs, belongs, own, to, m, s.aging()), nil
}

// PeakRSS is the largest memory seen in jobs of the kind, and in how many.
func (s *Store) PeakRSS(kind tuning.JobKind) (peak tuning.Bytes, jobs int, err error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return 0, 0, err
	}
	peak, jobs = PeakRSS(obs, kind)
	return peak, jobs, nil
}

// MemoryHeld reports whether jobs of the kind keep their memory for now; see the function
// MemoryHeld.
func (s *Store) MemoryHeld(kind tuning.JobKind) (bool, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return false, err
	}
	return MemoryHeld(obs, kind), nil
}

// KindProfile is what the newest untuned run of the kind made of its cores; see the
// function KindProfile.
func (s *Store) KindProfile(kind tuning.JobKind) (*tuning.Profile, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return KindProfile(obs, kind), nil
}

// KindSeconds are those of an epoch of untuned jobs of the kind; see the function
// KindSeconds.
func (s *Store) KindSeconds(kind tuning.JobKind, own tuning.Settings) (seconds float64, jobs int, err error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return 0, 0, err
	}
	seconds, jobs = KindSeconds(obs, kind, own)
	return seconds, jobs, nil
}

// Regressions are the settings that made jobs of the kind worse.
func (s *Store) Regressions(kind tuning.JobKind) ([]tuning.Settings, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return Regressions(obs, kind), nil
}

// LastReference is what the newest untuned job of the kind measured, or
// ErrNotFound.
func (s *Store) LastReference(kind tuning.JobKind) (tuning.Trial, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return tuning.Trial{}, err
	}
	t, ok := LastReference(obs, kind)
	if !ok {
		return tuning.Trial{}, ErrNotFound
	}
	return t, nil
}

// RestartCost is the median cost of a restart, of jobs of the kind or else of
// all, and of how many; 0 and 0 where none was measured.
func (s *Store) RestartCost(kind tuning.JobKind) (cost time.Duration, restarts int, err error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return 0, 0, err
	}
	if cost, restarts = RestartCost(obs, kind); restarts > 0 {
		return cost, restarts, nil // without a look at all
	}
	if obs, err = s.All(); err != nil {
		return 0, 0, err
	}
	cost, restarts = RestartCost(obs, kind)
	return cost, restarts, nil
}
