package plan

import "math"

// AllReturned is what the returned runs of all rows sum up to, each with the same weight.
type AllReturned struct {
	Jobs    int     `json:"jobs"`
	Changed float64 `json:"changed"`
	Moved   float64 `json:"moved"`

	Paid      float64  `json:"paid"`
	Hurt      float64  `json:"hurt"`
	Ratio     float64  `json:"ratio"`
	PaidRatio *float64 `json:"paid_ratio"`
	HurtRatio *float64 `json:"hurt_ratio"`
	Worst     float64  `json:"worst_ratio"`
	WorstAt   string   `json:"worst_at"`
	Last      float64  `json:"last_ratio"`

	OracleRatio float64 `json:"oracle_ratio"`
}

// returned sums up what returned; nil: nothing did.
func returned(rows []Row) *AllReturned {
	var s AllReturned
	var ratio, last, oracle float64 // logarithms
	var paid, hurt tally
	for _, row := range rows {
		r := row.Returned
		if r == nil {
			continue
		}
		n := float64(r.Jobs)
		s.Jobs += r.Jobs
		s.Changed += n * r.Changed
		s.Moved += n * r.Moved
		ratio += n * math.Log(r.Ratio)
		last += n * math.Log(r.Last)
		oracle += n * math.Log(r.OracleRatio)
		paid.add(n*r.Paid, r.PaidRatio)
		hurt.add(n*r.Hurt, r.HurtRatio)
		if r.Worst > s.Worst {
			s.Worst, s.WorstAt = r.Worst, row.name()
		}
	}
	if s.Jobs == 0 {
		return nil
	}
	n := float64(s.Jobs)
	s.Changed, s.Moved, s.Paid, s.Hurt = s.Changed/n, s.Moved/n, paid.jobs/n, hurt.jobs/n
	s.Ratio, s.Last, s.OracleRatio = math.Exp(ratio/n), math.Exp(last/n), math.Exp(oracle/n)
	s.PaidRatio, s.HurtRatio = paid.mean(), hurt.mean()
	return &s
}
