package evaluate

// LeftOut lists what of the files cannot be used, and why.
type LeftOut []Line

// Add counts rows that cannot be used: one entry stands for all rows of a workload on a
// machine that are left out for the same reason. Without rows the workload as a whole is.
func (l *LeftOut) Add(file, workload, machine string, rows []Row, why string) {
	one := Line{"data": file, "workload": workload, "machine": machine, "why": why}
	if len(rows) == 0 {
		*l = append(*l, one)
		return
	}
	for _, have := range *l {
		if have["data"] == file && have["workload"] == workload && have["machine"] == machine && have["why"] == why && have["rows"] != nil {
			have["rows"] = have["rows"].(int) + len(rows) //nolint:forcetypeassert // written below
			return
		}
	}
	one["rows"], one["line"] = len(rows), rows[0].Line
	*l = append(*l, one)
}
