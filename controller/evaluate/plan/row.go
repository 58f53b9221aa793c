package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

// Row is what the jobs of one table and length showed. Ratios are costs of whole jobs in
// what the objective minimises, moves and waits included, relative to the same job under
// its owner's settings all the way (never moving is 1); shares are of the jobs.
type Row struct {
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Part     string `json:"part,omitempty"` // which part of the table, such as "gpus=2"

	Epochs       float64 `json:"epochs"`        // of a job, in the mean
	EpochSeconds float64 `json:"epoch_seconds"` // under the owner's settings
	Settings     int     `json:"settings"`      // that a job may be moved to, its owner's among them
	Jobs         int     `json:"jobs"`          // replayed, each with other luck

	Moved     float64  `json:"moved"`      // share that was restarted at least once, to try or to stay
	Paid      float64  `json:"paid"`       // share that cost less than never moving
	Hurt      float64  `json:"hurt"`       // share that cost more
	Ratio     float64  `json:"ratio"`      // of all jobs, geometric mean
	PaidRatio *float64 `json:"paid_ratio"` // of those that paid; null: none did
	HurtRatio *float64 `json:"hurt_ratio"` // of those that were hurt; null: none was
	BestRatio float64  `json:"best_ratio"`
	Worst     float64  `json:"worst_ratio"`
	Restarts  float64  `json:"restarts"` // of a job, probes among them, in the mean
	Probes    float64  `json:"probes"`   // of a job, in the mean
	Slower    float64  `json:"slower"`   // share that ends under settings slower than allowed, in expectation

	NeverRatio  float64 `json:"never_ratio"`  // of the same controller, told only to look
	AlwaysRatio float64 `json:"always_ratio"` // of a tuner that goes to the best it saw, without asking whether that pays
	AlwaysHurt  float64 `json:"always_hurt"`  // share that it hurt
	AlwaysWorst float64 `json:"always_worst_ratio"`

	OracleRatio float64 `json:"oracle_ratio"` // of the best allowed settings from the first epoch on
	Regret      float64 `json:"regret"`       // ratio over oracle_ratio, less 1
	Oracle      string  `json:"oracle"`
	Final       string  `json:"final"` // settings of the last epoch of the first job

	// All of the above is about jobs that the site meets for the first time; this about
	// the same when they come again. Null: none does.
	Returned *Returned `json:"returned"`
}

// Summary is what the rows sum up to, each job with the same weight.
type Summary struct {
	Objective string  `json:"objective"`
	Restart   float64 `json:"restart_seconds"`
	Wait      float64 `json:"wait_seconds"`
	Attempts  float64 `json:"noise_attempts"` // standard deviations of what the controller saw, see Noise
	Varying   float64 `json:"noise_epochs"`
	Rows      int     `json:"rows"`
	Skipped   int     `json:"skipped"` // tables in which nothing may move, or without the numbers that the objective needs
	Jobs      int     `json:"jobs"`

	Moved     float64  `json:"moved"`
	Paid      float64  `json:"paid"`
	Hurt      float64  `json:"hurt"`
	MovedHurt *float64 `json:"hurt_of_moved"` // share of the moved jobs that were hurt; null: none was moved
	Ratio     float64  `json:"ratio"`         // geometric mean
	PaidRatio *float64 `json:"paid_ratio"`
	HurtRatio *float64 `json:"hurt_ratio"`
	Worst     float64  `json:"worst_ratio"`
	WorstAt   string   `json:"worst_at"` // the row
	Slower    float64  `json:"slower"`

	AlwaysRatio float64 `json:"always_ratio"`
	AlwaysHurt  float64 `json:"always_hurt"`
	AlwaysWorst float64 `json:"always_worst_ratio"`
	OracleRatio float64 `json:"oracle_ratio"`
	Regret      float64 `json:"regret"`

	Returned *AllReturned `json:"returned"` // null: no job comes again
}

// Report is the result of Run.
type Report = evaluate.Report[Row, Summary]

// same is how near to each other two ratios are the same.
const same = 1e-9

// row replays the jobs of one table and length.
func (in Input) row(ctx context.Context, t table, epochs int) (Row, error) {
	cells := t.reachable(in)
	r := Row{Workload: t.workload, Machine: t.machine, Part: t.part, Settings: len(cells), Jobs: in.Seeds}
	var ratios, all, none []float64
	var again returning
	share := 1 / float64(in.Seeds)
	for seed := range in.Seeds {
		j := in.job(t, epochs, seed)
		own, _ := j.Expected(j.Own)
		var knows site
		c, err := replayAt(ctx, j, &knows)
		if err == nil {
			err = in.returns(ctx, t, epochs, seed, &knows, &again)
		}
		if err != nil {
			return Row{}, err
		}
		for _, other := range []struct {
			stages func(Job) (Job, reconcile.Stages)
			ratios *[]float64
		}{{never, &none}, {always, &all}} {
			still, s := other.stages(j)
			course, err := replay(ctx, still, s, &site{})
			if err != nil {
				return Row{}, err
			}
			*other.ratios = append(*other.ratios, j.ratio(course))
		}
		ratios = append(ratios, j.ratio(c))
		last := c.Under[len(c.Under)-1]
		end, _ := j.Expected(last)
		r.Epochs += share * float64(j.Epochs)
		r.EpochSeconds = own.Seconds
		r.Restarts += share * float64(c.Restarts)
		r.Probes += share * float64(c.Probes)
		r.Moved += share * float64(min(c.Restarts, 1))
		if in.MaxSlowdown > 0 && end.Seconds > in.MaxSlowdown*own.Seconds*(1+same) {
			r.Slower += share
		}
		if seed == 0 {
			r.Final = last.Key()
		}
	}
	r.judge(ratios)
	r.NeverRatio = geometric(none)
	r.AlwaysRatio, r.AlwaysWorst = geometric(all), slices.Max(all)
	r.AlwaysHurt = share * float64(len(beyond(all, above)))
	in.compare(&r, t, cells)
	r.Returned = again.told(r.OracleRatio)
	return r, nil
}

func above(ratio float64) bool { return ratio > 1+same }

func below(ratio float64) bool { return ratio < 1-same }

// judge counts what paid and what hurt.
func (r *Row) judge(ratios []float64) {
	paid, hurt := beyond(ratios, below), beyond(ratios, above)
	n := float64(len(ratios))
	r.Paid, r.Hurt = float64(len(paid))/n, float64(len(hurt))/n
	r.Ratio, r.BestRatio, r.Worst = geometric(ratios), slices.Min(ratios), slices.Max(ratios)
	r.PaidRatio, r.HurtRatio = meanOf(paid), meanOf(hurt)
}

func beyond(ratios []float64, is func(float64) bool) []float64 {
	return slices.DeleteFunc(slices.Clone(ratios), func(v float64) bool { return !is(v) })
}

// geometric is the geometric mean.
func geometric(ratios []float64) float64 {
	sum := 0.0
	for _, v := range ratios {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(ratios)))
}

func meanOf(ratios []float64) *float64 {
	if len(ratios) == 0 {
		return nil
	}
	v := geometric(ratios)
	return &v
}

// compare finds the best settings that keep the limit.
func (in Input) compare(r *Row, t table, cells map[string]tuning.Spent) {
	m := in.job(t, 1, 0).Policy.Measure()
	own := cells[t.own.Key()]
	best, least := t.own.Key(), 0.0
	for _, key := range sortedKeys(cells) {
		gain := m.Log(cells[key]) - m.Log(own)
		allowed := in.MaxSlowdown == 0 || cells[key].Seconds <= in.MaxSlowdown*own.Seconds
		if allowed && gain < least {
			best, least = key, gain
		}
	}
	r.Oracle, r.OracleRatio = best, math.Exp(least)
	r.Regret = r.Ratio/r.OracleRatio - 1
}

func sortedKeys[V any](cells map[string]V) []string { return slices.Sorted(maps.Keys(cells)) }

// name tells a row from the others.
func (r Row) name() string {
	parts := slices.DeleteFunc([]string{r.Workload, r.Machine, r.Part}, func(part string) bool { return part == "" })
	return fmt.Sprintf("%s of %.4g epochs", strings.Join(parts, " "), r.Epochs)
}

func (in Input) summary(rows []Row) Summary {
	s := Summary{Objective: in.objective(), Restart: in.Restart.Seconds(), Wait: in.Wait.Seconds(), Attempts: in.Noise.Attempt, Varying: in.Noise.Epoch, Rows: len(rows)}
	if len(rows) == 0 {
		return s
	}
	var ratio, always, oracle float64 // logarithms
	var paid, hurt tally
	for _, r := range rows {
		n := float64(r.Jobs)
		s.Jobs += r.Jobs
		s.Moved += n * r.Moved
		s.Slower += n * r.Slower
		s.AlwaysHurt += n * r.AlwaysHurt
		ratio += n * math.Log(r.Ratio)
		always += n * math.Log(r.AlwaysRatio)
		oracle += n * math.Log(r.OracleRatio)
		paid.add(n*r.Paid, r.PaidRatio)
		hurt.add(n*r.Hurt, r.HurtRatio)
		s.AlwaysWorst = max(s.AlwaysWorst, r.AlwaysWorst)
		if r.Worst > s.Worst {
			s.Worst, s.WorstAt = r.Worst, r.name()
		}
	}
	jobs := float64(s.Jobs)
	if s.Moved > 0 {
		share := hurt.jobs / s.Moved
		s.MovedHurt = &share
	}
	s.Moved, s.Paid, s.Hurt = s.Moved/jobs, paid.jobs/jobs, hurt.jobs/jobs
	s.Slower, s.AlwaysHurt = s.Slower/jobs, s.AlwaysHurt/jobs
	s.Ratio, s.AlwaysRatio, s.OracleRatio = math.Exp(ratio/jobs), math.Exp(always/jobs), math.Exp(oracle/jobs)
	s.PaidRatio, s.HurtRatio = paid.mean(), hurt.mean()
	s.Regret = s.Ratio/s.OracleRatio - 1
	s.Returned = returned(rows)
	return s
}

// tally sums up ratios of several rows.
type tally struct{ jobs, logs float64 }

func (t *tally) add(jobs float64, ratio *float64) {
	if ratio != nil {
		t.jobs += jobs
		t.logs += jobs * math.Log(*ratio)
	}
}

func (t *tally) mean() *float64 {
	if t.jobs == 0 {
		return nil
	}
	v := math.Exp(t.logs / t.jobs)
	return &v
}

// objective names the goal in the words of the flags.
func (in Input) objective() string {
	name := string(cmp.Or(in.Objective, tuning.DefaultObjective))
	if in.Objective == tuning.Blend {
		name += fmt.Sprintf(" of weight %g", in.Weight)
	}
	if in.MaxSlowdown > 0 {
		name += fmt.Sprintf(", time at most %g", in.MaxSlowdown)
	}
	return name
}
