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
		hours, used := "-", "-"
		if l.Timed > 0 {
			hours = fmt.Sprintf("%.1f", l.CoreHours) + of(l.Timed, l.Runs)
		}
		if l.CPURuns > 0 {
			used = fmt.Sprintf("%.1f", l.Used) + of(l.CPURuns, l.Runs)
		}
		memory := share(l.Needed())
		if l.MemoryRuns > 0 {
			memory += of(l.MemoryRuns, l.Runs)
		}
		return []string{report.Legible(l.Key), strconv.Itoa(l.Runs), hours, used, share(l.Efficiency()), memory, share(l.ReturningShare())}
	}))
	if more := len(lines) - mostLines; more > 0 {
		fmt.Fprintf(b, "and %d more, with fewer unused core-hours\n", more)
	}
}

// of says of how many runs a number is, where that is not all.
func of(n, all int) string {
	if n == all {
		return ""
	}
	return fmt.Sprintf(" in %d of %d", n, all)
}

func share(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// could says in words what there is to gain at most, and what it does not mean.
func could(l Line) string {
	var b strings.Builder
	if l.CPURuns > 0 {
		fmt.Fprintf(&b, "%.1f of %.1f core-hours were allocated and not used. Fewer cores could free a part of them;\n"+
			"they also include waits for memory or input, and accounting does not show how much.\n", l.Unused(), l.Allocated)
	} else {
		b.WriteString("Processor time is not known: ask sacct for Elapsed, AllocCPUS and TotalCPU.\n")
	}
	if l.MemoryRuns > 0 {
		fmt.Fprintf(&b, "%.1f of %.1f GiB-hours were asked for above 1.25 times the peak, and could be asked for less.\n", l.Spare, l.Asked)
	} else {
		b.WriteString("Memory is not known: ask sacct for ReqMem and MaxRSS of jobs and steps, since only steps have a peak.\n")
	}
	if v, ok := l.ReturningShare(); ok {
		fmt.Fprintf(&b, "%.0f %% of the core-hours are of runs whose user and name ran before: these could be recognised and\n"+
			"changed before they start.\n", 100*v)
	}
	b.WriteString("None of this is a saving: that is measured only against jobs that stay untuned.\n")
	return b.String()
}
