package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/report"
)

// mostLines is how many lines of a table are printed for people.
const mostLines = 20

// Tables are the names of the tables that Text prints.
func Tables() []string { return []string{"user", "account", "kind"} }

// Text prints the summary for people: all tables, or the one that is named.
func Text(s Summary, only string) string {
	var b strings.Builder
	b.WriteString(report.Count(s.Total.Runs, "run") + " that ended")
	if s.Open > 0 {
		fmt.Fprintf(&b, "; %d that have not, or of unknown state, are left out", s.Open)
	}
	if s.Left > 0 {
		fmt.Fprintf(&b, "; %d of the lines cannot be read and are left out", s.Left)
	}
	b.WriteString("\n")
	for i, lines := range [][]Line{s.Users, s.Groups, s.Names} {
		if name := Tables()[i]; only == "" || only == name {
			table(&b, strings.ToUpper(name), lines, s.Total)
		}
	}
	b.WriteString("\n" + could(s.Total))
	return b.String()
}

func table(b *strings.Builder, head string, lines []Line, total Line) {
	b.WriteString("\n")
	heads := []string{head, "RUNS", "CORE-HOURS", "USED", "CPU EFFICIENCY", "MEMORY NEEDED", "RETURNING"}
	b.WriteString(report.List(heads, append(slices.Clip(lines[:min(len(lines), mostLines)]), total), func(l Line) []string {
		return []string{
			report.Legible(l.Key), strconv.Itoa(l.Runs), of(l.Timed, l.Runs, fmt.Sprintf("%.1f", l.CoreHours)),
			of(l.CPURuns, l.Runs, fmt.Sprintf("%.1f", l.Used)), share(l.Used, l.Allocated),
			of(l.MemoryRuns, l.Runs, share(l.Peak, l.Asked)), share(l.ReturningHours, l.CoreHours),
		}
	}))
	if more := len(lines) - mostLines; more > 0 {
		fmt.Fprintf(b, "and %d more, with fewer unused core-hours\n", more)
	}
}

// of says how many runs a number covers, where that is not all.
func of(n, all int, number string) string {
	switch n {
	case 0:
		return report.Unknown
	case all:
		return number
	}
	return fmt.Sprintf("%s in %d of %d", number, n, all)
}

func share(part, whole float64) string {
	if whole <= 0 {
		return report.Unknown
	}
	return fmt.Sprintf("%.0f %%", 100*(part/whole))
}

// could says in words what there is to gain at most, and what it does not mean.
func could(l Line) string {
	var b strings.Builder
	if l.CPURuns > 0 {
		fmt.Fprintf(&b, "%.1f of %.1f core-hours were allocated and not used. Fewer cores could free a part of them;\n"+
			"they also include waits for memory or input, and accounting does not show how much.\n", l.Unused, l.Allocated)
	} else {
		b.WriteString("Processor time is not known: ask sacct for Elapsed, AllocCPUS and TotalCPU.\n")
	}
	if l.MemoryRuns > 0 {
		fmt.Fprintf(&b, "%.1f of %.1f GiB-hours were asked for above 1.25 times the peak, and could be asked for less.\n", l.Spare, l.Asked)
	} else {
		b.WriteString("Memory is not known: ask sacct for ReqMem and MaxRSS of jobs and steps, since only steps have a peak.\n")
	}
	if l.CoreHours > 0 {
		fmt.Fprintf(&b, "%s of the core-hours are of runs whose user and name ran before: these could be recognised and\n"+
			"changed before they start.\n", share(l.ReturningHours, l.CoreHours))
	}
	b.WriteString("None of this is a saving: that is measured only against jobs that stay untuned.\n")
	return b.String()
}
