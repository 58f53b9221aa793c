package evaluate

import "fmt"

// LeftOut is what of a file could not be used, and why.
type LeftOut struct {
	Data     string `json:"data"` // the file
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Rows     int    `json:"rows,omitempty"` // how many of its rows; none: the workload as a whole
	Line     int    `json:"line,omitempty"` // of the first of them
	Why      string `json:"why"`
}

// Leave counts a row that cannot be used: rows of one workload on one machine that are
// left out for the same reason are told of once.
func Leave(all []LeftOut, one LeftOut) []LeftOut {
	for i, l := range all {
		if l.Data == one.Data && l.Workload == one.Workload && l.Machine == one.Machine && l.Why == one.Why && l.Rows > 0 && one.Rows > 0 {
			all[i].Rows += one.Rows
			return all
		}
	}
	return append(all, one)
}

// RowsOf is how many rows were left out in all.
func RowsOf(all []LeftOut) int {
	n := 0
	for _, l := range all {
		n += l.Rows
	}
	return n
}

// LeftOutText lines up what was left out, empty where nothing was.
func LeftOutText(all []LeftOut) string {
	var rows [][]string
	for _, l := range all {
		count := "all"
		if l.Rows > 0 {
			count = fmt.Sprintf("%d, from line %d", l.Rows, l.Line)
		}
		rows = append(rows, []string{l.Workload, l.Machine, l.Data, count, l.Why})
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Columns([]string{"LEFT OUT", "MACHINE", "FILE", "ROWS", "WHY"}, rows)
}
