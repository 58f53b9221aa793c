package speed

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
)

// Text is the report as a table, and what it sums up to.
func Text(r Report) string {
	heads := []string{"WORKLOAD", "MACHINE", "SETTINGS", "SAMPLES", "FAILED", "UNSEEN", "ERROR", "WORST", "ATTAINED", "CHOSEN"}
	cells := make([][]string, 0, len(r.Rows))
	for _, row := range r.Rows {
		cells = append(cells, []string{
			records.Group{Workload: row.Workload, Input: row.Input}.Name(), row.Machine, strconv.Itoa(row.Settings), strconv.Itoa(row.Samples), strconv.Itoa(row.Failed),
			strconv.Itoa(row.Unseen), evaluate.Number(row.ErrorMean, 3), evaluate.Number(row.ErrorMax, 2),
			evaluate.Number(row.Attained, 3), cmp.Or(row.Chosen, "-"),
		})
	}
	var b strings.Builder
	b.WriteString(evaluate.Columns(heads, cells))
	s := r.Summary
	fmt.Fprintf(&b, "\nMean error %s, at most %s in a row; the setting chosen attains %s of the best or more.\n",
		evaluate.Number(s.ErrorMean, 3), evaluate.Number(s.ErrorMax, 3), evaluate.Number(s.AttainedMin, 3))
	b.WriteString(evaluate.LeftOutText(s.LeftOut))
	return b.String()
}
