package forecast

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"pitchpipe/controller/evaluate"
)

// Text is the report as a table, and what it sums up to.
func Text(r Report) string {
	heads := []string{"WORKLOAD", "MEASURE", "SEEN", "RUNS", "ERROR", "ALONE", "LAST VALUE", "BEST SINGLE", "MODEL", "RATIO", "TARGET", "SECONDS", "COVERED", "UNKNOWN"}
	cells := make([][]string, 0, len(r.Rows))
	for _, row := range r.Rows {
		var ratio *float64
		if v, ok := row.Ratio(); ok {
			ratio = &v
		}
		cells = append(cells, []string{
			row.Workload, row.Measure, strconv.FormatFloat(row.Seen, 'g', -1, 64), strconv.Itoa(row.Runs),
			evaluate.Number(row.FinalErrorMedian, 4), evaluate.Number(row.AloneErrorMedian, 4),
			evaluate.Number(row.LastErrorMedian, 4), evaluate.Number(row.SingleErrorMedian, 4), cmp.Or(row.Single, "-"),
			evaluate.Number(ratio, 2), evaluate.Number(row.TargetErrorMedian, 3), evaluate.Number(row.SecondsErrorMedian, 3),
			evaluate.Number(row.Coverage, 2), evaluate.Number(&row.UnknownShare, 2),
		})
	}
	var b strings.Builder
	b.WriteString(evaluate.Columns(heads, cells))
	s := r.Summary
	fmt.Fprintf(&b, "\nError over the better of last value and best single model: %s in the mean, %s at most; at most 1.02 in %d of %d rows.\n",
		evaluate.Number(s.RatioMean, 2), evaluate.Number(s.RatioMax, 2), s.Within, s.Rows)
	fmt.Fprintf(&b, "Intervals of rows with 100 runs and more cover from %s to %s.\n",
		evaluate.Number(s.CoverageMin, 2), evaluate.Number(s.CoverageMax, 2))
	return b.String()
}
