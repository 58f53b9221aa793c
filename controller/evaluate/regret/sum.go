package regret

import (
	"math"
	"slices"
)

// summary sums the rows up.
func (in Input) summary(subjects []*subject, judged []judgement) Summary {
	out := Summary{
		Objective: in.Objective, Weight: in.Weight, Energy: in.Energy, Default: in.Default.Key(),
		Inputs: len(judged), SingleSettings: []string{},
	}
	var regret, hindsight, single, singleHind, own, oracle, known, unknown, classes logs
	var probed, unknownProbed logs
	var rows, singles, defaults, probes []*float64
	var workloads, settings, optima []string
	tally := judgement{}
	for _, j := range judged {
		regret, rows = gather(regret, rows, j.row.Regret)
		hindsight, _ = gather(hindsight, nil, j.row.Hindsight)
		probed, probes = gather(probed, probes, j.row.Probed)
		single, singles = gather(single, singles, j.row.Single)
		unknownProbed = append(unknownProbed, j.probedLogs...)
		own, defaults = gather(own, defaults, j.row.Default)
		oracle, _ = gather(oracle, nil, j.row.Oracle)
		singleHind = append(singleHind, j.singleHind...)
		known, unknown = append(known, j.knownLogs...), append(unknown, j.otherwise...)
		classes = append(classes, float64(j.classes))
		tally.asked += j.asked
		tally.known += j.known
		tally.moved += j.moved
		tally.ownKind += j.ownKind
		workloads, optima = insert(workloads, j.row.Workload), insert(optima, j.row.Optimum)
		out.SingleSettings = insert(out.SingleSettings, j.single)
		out.Repeats = max(out.Repeats, j.row.Repeats)
	}
	disturbed, runs := 0, 0
	squares, free := 0.0, 0.0
	for _, s := range subjects {
		a, b := s.spread()
		squares, free = squares+a, free+b
		for _, key := range s.keys() {
			settings = insert(settings, key)
			for _, m := range s.cells[key] {
				runs++
				if m.disturbed {
					disturbed++
				}
			}
		}
	}
	out.Workloads, out.Settings, out.Optima, out.Questions = len(workloads), len(settings), len(optima), tally.asked
	out.Regret, out.RegretWorst, out.Hindsight = regret.geometric(), worst(rows), hindsight.geometric()
	out.KnownRegret, out.UnknownRegret = known.geometric(), unknown.geometric()
	out.UnknownProbed, out.Probed, out.ProbedWorst = unknownProbed.geometric(), probed.geometric(), worst(probes)
	out.Single, out.SingleWorst, out.SingleHindsight = single.geometric(), worst(singles), singleHind.geometric()
	out.DefaultRegret, out.DefaultWorst, out.Oracle = own.geometric(), worst(defaults), oracle.geometric()
	out.Known, out.Moved, out.OwnKind = share(tally.known, tally.asked), share(tally.moved, tally.asked), share(tally.ownKind, tally.known)
	out.Classes, out.Disturbed = classes.mean(), share(disturbed, runs)
	if free > 0 {
		v := math.Sqrt(squares / free)
		out.Spread = &v
	}
	slices.Sort(out.SingleSettings)
	return out
}

// gather adds a ratio to logarithms and to ratios, where there is one.
func gather(l logs, all []*float64, v *float64) (logs, []*float64) {
	if v == nil {
		return l, all
	}
	return append(l, math.Log(*v)), append(all, v)
}
