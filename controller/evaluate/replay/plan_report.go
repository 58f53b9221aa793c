package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

// PlanCosts is what jobs cost. A ratio is the cost of a whole job in what the objective
// minimises, moves and waits included, over that of the same job under its owner's
// settings all the way (never moving is 1). Shares are of the jobs.
type PlanCosts struct {
	Jobs      int           `json:"jobs" about:"replayed, each with other luck"`
	Moved     result.Figure `json:"moved" about:"share that was restarted at least once, to try or to stay" col:"MOVED|%"`
	Paid      result.Figure `json:"paid" about:"share that cost less than never moving" col:"PAID|%"`
	Hurt      result.Figure `json:"hurt" about:"share that cost more" col:"HURT|%"`
	Ratio     result.Figure `json:"ratio" about:"cost of all jobs over that of never moving, geometric mean" col:"COST"`
	PaidRatio result.Figure `json:"paid_ratio" about:"of those that paid; null: none did"`
	HurtRatio result.Figure `json:"hurt_ratio" about:"of those that were hurt; null: none was"`
	BestRatio result.Figure `json:"best_ratio" about:"least cost of a job"`
	Worst     result.Figure `json:"worst_ratio" about:"greatest cost of a job" col:"WORST"`

	OracleRatio result.Figure `json:"oracle_ratio" about:"of the best allowed settings from the first epoch on" col:"ORACLE"`
}

// PlanCompared is what the same jobs cost otherwise.
type PlanCompared struct {
	Slower      result.Figure `json:"slower" about:"share that ends under settings slower than allowed, in expectation"`
	AlwaysRatio result.Figure `json:"always_ratio" about:"of a tuner that goes to the best it saw, without asking whether that pays" col:"ALWAYS"`
	AlwaysHurt  result.Figure `json:"always_hurt" about:"share that it hurt"`
	AlwaysWorst result.Figure `json:"always_worst_ratio" about:"greatest cost of a job that always moves" col:"ITS WORST"`
	Regret      result.Figure `json:"regret" about:"ratio over oracle_ratio, less 1" col:"REGRET"`
}

// PlanReturned is what jobs cost that came again, by what their earlier runs taught.
type PlanReturned struct {
	PlanCosts
	Changed result.Figure `json:"changed" about:"share that ran under other settings than its owner's from its start"`
	Last    result.Figure `json:"last_ratio" about:"geometric mean of the last runs alone"`
	Final   string        `json:"final,omitempty" about:"settings of the last epoch of the first job's last run"`
	WorstAt string        `json:"worst_at,omitempty" about:"the row of the greatest cost"`
}

// PlanRow is what the jobs of one table and length showed that the site met for the first
// time, and, in Returned, the same jobs when they came again.
type PlanRow struct {
	Workload     string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine      string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Input        string        `json:"input,omitempty" about:"which input of the workload, where the data distinguish inputs" col:"INPUT"`
	Part         string        `json:"part,omitempty" about:"which part of the table, such as \"gpus=2\"" col:"PART"`
	Epochs       result.Figure `json:"epochs" about:"of a job, in the mean" col:"EPOCHS|0"`
	EpochSeconds result.Figure `json:"epoch_seconds" about:"under the owner's settings"`
	Settings     int           `json:"settings" about:"that a job may be moved to, its owner's among them"`
	PlanCosts
	PlanCompared
	NeverRatio result.Figure `json:"never_ratio" about:"of the same controller when it may only look" col:"NEVER"`
	Restarts   result.Figure `json:"restarts" about:"of a job, probes among them, in the mean" col:"RESTARTS|1"`
	Probes     result.Figure `json:"probes" about:"of a job, in the mean"`
	Oracle     string        `json:"oracle" about:"the best allowed settings"`
	Final      string        `json:"final" about:"settings of the last epoch of the first job" col:"SETTINGS"`
	Returned   *PlanReturned `json:"returned" about:"the same about jobs that come again; null: none does"`
}

// PlanSummary is over all jobs, each with the same weight.
type PlanSummary struct {
	Objective string        `json:"objective" about:"what is minimised"`
	Restart   result.Figure `json:"restart_seconds" about:"what a move takes"`
	Wait      result.Figure `json:"wait_seconds" about:"in the queue at each move"`
	Attempts  result.Figure `json:"noise_attempts" about:"standard deviation between attempts of what the controller saw, where what was recorded does not vary"`
	Varying   result.Figure `json:"noise_epochs" about:"the same between epochs of one attempt"`
	Rows      int           `json:"rows" about:"how many rows there are"`
	Skipped   int           `json:"skipped" about:"tables in which nothing may move, or without the numbers that the objective needs"`
	PlanCosts
	MovedHurt result.Figure `json:"hurt_of_moved" about:"share of the moved jobs that were hurt; null: none was moved"`
	WorstAt   string        `json:"worst_at" about:"the row of the greatest cost"`
	PlanCompared
	Returned *PlanReturned `json:"returned" about:"the same about jobs that come again; null: none does"`
}

// PlanReport is the result of Plan.
type PlanReport = result.Report[PlanRow, PlanSummary]

// costs sums stories up; oracle are the costs of the best settings, for each of them.
func costs(all []story, oracle []float64) PlanCosts {
	var ratios, paid, hurt []float64
	moved := 0
	for _, s := range all {
		ratios = append(ratios, s.ratio)
		moved += min(s.course.Restarts, 1)
		switch {
		case s.ratio < 1-tolerance:
			paid = append(paid, s.ratio)
		case s.ratio > 1+tolerance:
			hurt = append(hurt, s.ratio)
		}
	}
	n := len(all)
	least, greatest := result.Range(ratios)
	return PlanCosts{
		Jobs: n, Moved: result.Share(moved, n), Paid: result.Share(len(paid), n), Hurt: result.Share(len(hurt), n),
		Ratio: result.GeometricOf(ratios), PaidRatio: result.GeometricOf(paid), HurtRatio: result.GeometricOf(hurt),
		BestRatio: least, Worst: greatest, OracleRatio: result.GeometricOf(oracle),
	}
}

// compared sums up how the same jobs go otherwise.
func compared(all []story, c PlanCosts) PlanCompared {
	var always []float64
	slower, hurt := 0, 0
	for _, s := range all {
		always = append(always, s.always)
		if s.slower {
			slower++
		}
		if s.always > 1+tolerance {
			hurt++
		}
	}
	_, worst := result.Range(always)
	return PlanCompared{
		Slower: result.Share(slower, len(all)), AlwaysRatio: result.GeometricOf(always), AlwaysHurt: result.Share(hurt, len(all)),
		AlwaysWorst: worst, Regret: c.Ratio/c.OracleRatio - 1,
	}
}

// returned sums up the runs that came again; nil: there are none.
func returned(all []story, oracle []float64) *PlanReturned {
	var again, last []story
	var oracles []float64
	changed := 0
	for i, s := range all {
		for n, r := range s.returned {
			again, oracles = append(again, r), append(oracles, oracle[i])
			if !r.course.Under[0].Equal(r.job.Own) {
				changed++
			}
			if n == len(s.returned)-1 {
				last = append(last, r)
			}
		}
	}
	if len(again) == 0 {
		return nil
	}
	return &PlanReturned{
		PlanCosts: costs(again, oracles), Changed: result.Share(changed, len(again)), Last: costs(last, nil).Ratio, Final: last[0].course.final(),
	}
}

// final are the settings of the last epoch.
func (c Course) final() string { return c.Under[len(c.Under)-1].Key() }

// row sums up the jobs of one table and length.
func (in PlanInput) row(t recorded, all []story) PlanRow {
	cells := in.reachable(t)
	r := PlanRow{Workload: t.Workload, Machine: t.Machine, Input: t.Input, Part: t.part, Settings: len(cells), Final: all[0].course.final()}
	m, own := all[0].job.Policy.Measure(), cells[t.own.Key()]
	r.EpochSeconds, r.Oracle = result.Figure(own.Seconds), t.own.Key()
	least := 0.0 // of the settings that keep the limit
	for _, key := range slices.Sorted(maps.Keys(cells)) {
		gain := m.Log(cells[key]) - m.Log(own)
		if (in.MaxSlowdown == 0 || cells[key].Seconds <= in.MaxSlowdown*own.Seconds) && gain < least {
			r.Oracle, least = key, gain
		}
	}
	oracle := slices.Repeat([]float64{math.Exp(least)}, len(all))
	var epochs, restarts, probes, never []float64
	for _, s := range all {
		epochs, restarts = append(epochs, float64(s.job.Epochs)), append(restarts, float64(s.course.Restarts))
		probes, never = append(probes, float64(s.course.Probes)), append(never, s.never)
	}
	r.Epochs, r.Restarts, r.Probes, r.NeverRatio = result.Mean(epochs), result.Mean(restarts), result.Mean(probes), result.GeometricOf(never)
	r.PlanCosts = costs(all, oracle)
	r.PlanCompared, r.Returned = compared(all, r.PlanCosts), returned(all, oracle)
	return r
}

// title distinguishes a row from the others.
func (r PlanRow) title() string {
	name := records.Group{Workload: r.Workload, Input: r.Input}.Name()
	words := strings.Fields(strings.Join([]string{name, r.Machine, r.Part}, " "))
	return fmt.Sprintf("%s of %.4g epochs", strings.Join(words, " "), float64(r.Epochs))
}

func (in PlanInput) summary(rows []PlanRow, stories [][]story) PlanSummary {
	s := PlanSummary{
		Objective: string(cmp.Or(in.Objective, tuning.DefaultObjective)), Restart: result.Figure(in.Restart.Seconds()), Wait: result.Figure(in.Wait.Seconds()),
		Attempts: result.Figure(in.Noise.Attempt), Varying: result.Figure(in.Noise.Epoch), Rows: len(rows),
	}
	if in.Objective == tuning.Blend {
		s.Objective += fmt.Sprintf(" of weight %g", in.Weight)
	}
	if in.MaxSlowdown > 0 {
		s.Objective += fmt.Sprintf(", time at most %g", in.MaxSlowdown)
	}
	all := slices.Concat(stories...)
	if len(all) == 0 {
		return s
	}
	var oracle []float64
	for i, r := range rows {
		oracle = append(oracle, slices.Repeat([]float64{float64(r.OracleRatio)}, len(stories[i]))...)
	}
	s.PlanCosts = costs(all, oracle)
	s.PlanCompared, s.MovedHurt, s.Returned = compared(all, s.PlanCosts), s.Hurt/s.Moved, returned(all, oracle)
	for _, r := range rows {
		if r.Worst == s.Worst && s.WorstAt == "" {
			s.WorstAt = r.title()
		}
		if again := s.Returned; again != nil && r.Returned.Worst == again.Worst && again.WorstAt == "" {
			again.WorstAt, again.Final = r.title(), ""
		}
	}
	return s
}
