package tuner

import (
	"fmt"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// tolerance of ratios that are to be equal.
const tolerance = 1e-9

// near is how near to the oracle a setting is as good as it.
const near = 1.03

func (in Input) summary(rows []Row) Summary {
	s := Summary{Objective: in.objective(), Tables: len(rows)}
	steps, saved, within := 0, 0.0, 0.0
	for _, r := range rows {
		s.OracleSaving += 1 - r.OracleRatio
		saved += 1 - r.FinalKept
		within += r.WithinOracle
		s.WorstCumulative = max(s.WorstCumulative, r.CumulativeRatio)
		s.WorstFinal = max(s.WorstFinal, r.FinalRatio)
		count(&s.WithinOracle, r.LimitsBroken == 0 && r.FinalRatio <= near*r.OracleRatio)
		count(&s.Broken, r.LimitsBroken > 0)
		count(&s.NoWorseThanSystem, r.FinalRatio <= r.SystemKnobOracle+tolerance)
		count(&s.NoWorseThanSingle, r.CumulativeRatio <= r.SingleKnobCumulative+tolerance)
		if r.ReferenceCumulativeEnergy != nil && r.CumulativeEnergyRatio != nil {
			s.Referenced++
			count(&s.AtMostReference, *r.CumulativeEnergyRatio <= *r.ReferenceCumulativeEnergy)
		}
		if r.StepsAbove != nil {
			count(&steps, *r.StepsAbove <= 1 && r.LimitsBroken == 0)
			s.WithinOneStep = &steps
		}
	}
	if len(rows) > 0 {
		s.WithinShare = new(within / float64(len(rows)))
	}
	if s.OracleSaving > tolerance {
		share := saved / s.OracleSaving
		s.SavingShare = &share
	}
	return s
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// objective names the goal in the words of the flags.
func (in Input) objective() string {
	g := in.Goal
	name := string(g.Objective)
	if g.Least() {
		name = "cores"
	}
	if g.Attain > 0 {
		return fmt.Sprintf("%s, at least %g of full speed", name, g.Attain)
	}
	if g.Objective == tuning.Blend && !g.Least() {
		name = fmt.Sprintf("%s of weight %g", name, g.Weight)
	}
	if g.MaxSlowdown > 0 {
		name += fmt.Sprintf(", time at most %g", g.MaxSlowdown)
	}
	if g.MaxJoules > 0 {
		name += fmt.Sprintf(", joules at most %g", g.MaxJoules)
	}
	return name
}

// Text prints a report as a table.
func Text(rep Report) string {
	rows := make([][]string, 0, len(rep.Rows))
	for _, r := range rep.Rows {
		rows = append(rows, []string{
			records.Group{Workload: r.Workload, Input: r.Input}.Name(), orDash(r.Machine), orDash(r.Part), fmt.Sprint(r.Recurrences),
			figure(r.OracleRatio), figure(r.FinalRatio), figure(r.CumulativeRatio),
			evaluate.Number(r.CumulativeEnergyRatio, 3), evaluate.Number(r.ReferenceCumulativeEnergy, 3),
			evaluate.Number(r.WholeFinal, 3), evaluate.Number(r.WholeCumulative, 3),
			figure(r.SingleKnobCumulative), figure(r.HalvingCumulative), figure(r.GridCumulative), figure(r.RandomCumulative),
			fmt.Sprintf("%.0f %%", 100*r.LimitsBroken), r.Final,
		})
	}
	heads := []string{
		"WORKLOAD", "MACHINE", "PART", "RUNS", "ORACLE", "FINAL", "ALL RUNS", "JOULES", "REFERENCE",
		"WHOLE FINAL", "WHOLE ALL", "ONE KNOB", "HALVING", "GRID", "RANDOM", "BROKEN", "SETTINGS",
	}
	return evaluate.Columns(heads, rows) + "\n" + rep.Summary.text() + evaluate.LeftOutText(rep.Summary.LeftOut)
}

func (s Summary) text() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("Minimised: %s. Costs are relative to the owner's settings.", s.Objective)
	say("%d tables (%d more have nothing to choose, or lack a number that is needed).", s.Tables, s.Skipped)
	say("Final settings within %g of the oracle's cost, no limit broken: %d of %d, %s of the seeds; limits broken on %d.",
		near, s.WithinOracle, s.Tables, evaluate.Number(s.WithinShare, 2), s.Broken)
	if s.SavingShare != nil {
		say("The oracle saves %.3f in sum, the final settings %.1f %% of that.", s.OracleSaving, 100**s.SavingShare)
	}
	if s.WithinOneStep != nil {
		say("Within one step of the fewest cores: %d of %d.", *s.WithinOneStep, s.Tables)
	}
	if s.Referenced > 0 {
		say("Joules of all runs at or below the published reference: %d of %d.", s.AtMostReference, s.Referenced)
	}
	say("Final settings no worse than the best system settings alone: %d; all runs no worse than the best tuner of one knob: %d.",
		s.NoWorseThanSystem, s.NoWorseThanSingle)
	say("Worst: final %.3f, all runs %.3f.", s.WorstFinal, s.WorstCumulative)
	return b.String()
}

func figure(v float64) string { return evaluate.Number(&v, 3) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
