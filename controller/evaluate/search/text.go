package search

import (
	"slices"
	"strconv"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
)

// means sums up the rows of one file, those of each outcome by themselves.
func (in Input) means(file string, rows []Row) []Means {
	var out []Means
	var outcomes []string
	for _, r := range rows {
		if !slices.Contains(outcomes, r.Outcome) {
			outcomes = append(outcomes, r.Outcome)
			out = append(out, in.meansOf(file, r.Outcome, rows)...)
		}
	}
	return out
}

func (in Input) meansOf(file, outcome string, rows []Row) []Means {
	var out []Means
	random := map[int]float64{}
	for _, m := range in.Methods {
		for _, b := range in.Budgets {
			mean := Means{Data: file, Outcome: outcome, Method: m, Budget: b}
			var log, ratio float64
			for _, r := range rows {
				if r.Outcome == outcome && r.Method == m && r.Budget == b && r.LogRatioMean != nil {
					mean.Problems++
					log += *r.LogRatioMean
					ratio += *r.FoundOverOptimumMean
				}
			}
			if n := float64(mean.Problems); n > 0 {
				log, ratio = log/n, ratio/n
				mean.LogRatioMean, mean.FoundOverOptimumMean = &log, &ratio
				if m == Random {
					random[b] = log
				}
			}
			out = append(out, mean)
		}
	}
	for i, m := range out {
		if r := random[m.Budget]; r > 0 && m.LogRatioMean != nil {
			out[i].OverRandom = new(*m.LogRatioMean / r)
		}
	}
	return out
}

// Text prints the means of each file and the rows of each workload.
func Text(r Report) string {
	var means, rows [][]string
	for _, m := range r.Summary.Means {
		means = append(means, []string{
			m.Data, m.Outcome, string(m.Method), strconv.Itoa(m.Budget), strconv.Itoa(m.Problems),
			evaluate.Number(m.LogRatioMean, 4), evaluate.Number(m.FoundOverOptimumMean, 3), evaluate.Number(m.OverRandom, 2),
		})
	}
	for _, x := range r.Rows {
		rows = append(rows, []string{
			records.Group{Workload: x.Workload, Input: x.Input}.Name(), x.Machine, string(x.Method), strconv.Itoa(x.Budget), strconv.Itoa(x.Settings),
			evaluate.Number(x.LogRatioMean, 4), evaluate.Number(x.FoundOverOptimumMean, 3), evaluate.Number(x.FailedShare, 2),
		})
	}
	return evaluate.Columns([]string{"WORKLOAD", "MACHINE", "METHOD", "BUDGET", "SETTINGS", "LOG RATIO", "FOUND/BEST", "FAILED"}, rows) + "\n" +
		evaluate.Columns([]string{"FILE", "OUTCOME", "METHOD", "BUDGET", "PROBLEMS", "LOG RATIO", "FOUND/BEST", "OVER RANDOM"}, means) +
		evaluate.LeftOutText(r.Summary.LeftOut)
}
