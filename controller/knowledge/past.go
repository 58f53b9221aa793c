package knowledge

import (
	"pitchpipe/controller/tuning"
)

// PastRuns are the runs of a kind, the oldest first. What others disturbed is left out of
// what they measured; that a run was there, what it was to try and how it ended counts.
func PastRuns(obs []Observation, kind tuning.JobKind, a Aging) []tuning.PastRun {
	of := ofKind(obs, kind)
	measured := map[string][]tuning.Trial{}
	for _, r := range runs(of) {
		measured[r.job] = r.trials
	}
	index := map[string]int{}
	var out []tuning.PastRun
	for _, o := range unique(of) {
		name := o.run()
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, tuning.PastRun{Job: o.Job, Trials: measured[name]})
		}
		p := &out[i]
		p.Age = a.days(o.At)
		p.Trying = p.Trying || o.Trying
		p.Epochs = max(p.Epochs, o.Epochs)
		if o.Machine != "" {
			p.Machine = o.Machine
		}
		if len(o.Began) > 0 {
			p.Began = o.Began
		}
		if o.End != tuning.EndUnknown {
			p.End = o.End
		}
		if o.Reached != nil {
			p.Reached = o.Reached
		}
		if o.Final != nil {
			quality := o.Final.Quality
			p.Quality = &quality
		}
	}
	return out
}

// CurveLessons are what forecasts of jobs of the kind were worth, the oldest first: the
// newest jobs that have any, until there are as many as asked for. That others disturbed
// a job did not change what it learned.
func CurveLessons(obs []Observation, kind tuning.JobKind, most int) []tuning.CurveLesson {
	of := unique(ofKind(obs, kind))
	n, first := 0, len(of)
	for first > 0 && n < most {
		first--
		n += len(of[first].Curve)
	}
	if n == 0 {
		return nil
	}
	out := make([]tuning.CurveLesson, 0, n)
	for _, o := range of[first:] {
		out = append(out, o.Curve...)
	}
	return out[max(0, n-most):]
}

// CurveLessons are what forecasts of jobs of the kind were worth; see the function
// CurveLessons.
func (s *Store) CurveLessons(kind tuning.JobKind, most int) ([]tuning.CurveLesson, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return CurveLessons(obs, kind, most), nil
}

// PastRuns are the runs of a kind; see the function PastRuns.
func (s *Store) PastRuns(kind tuning.JobKind) ([]tuning.PastRun, error) {
	obs, err := s.Observations(kind)
	if err != nil {
		return nil, err
	}
	return PastRuns(obs, kind, s.aging()), nil
}
