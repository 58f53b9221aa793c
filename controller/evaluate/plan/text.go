package plan

import (
	"fmt"
	"strings"

	"pitchpipe/controller/evaluate"
)

// Text prints a report as a table.
func Text(rep Report) string {
	rows := make([][]string, 0, len(rep.Rows))
	for _, r := range rep.Rows {
		rows = append(rows, []string{
			r.Workload, orDash(r.Machine), orDash(r.Part), fmt.Sprintf("%.4g", r.Epochs), percent(r.Moved), percent(r.Paid), percent(r.Hurt),
			figure(r.Ratio), figure(r.Worst), figure(r.NeverRatio), figure(r.AlwaysRatio), figure(r.AlwaysWorst), figure(r.OracleRatio), figure(r.Regret),
			fmt.Sprintf("%.1f", r.Restarts), r.again(), r.Final,
		})
	}
	heads := []string{
		"WORKLOAD", "MACHINE", "PART", "EPOCHS", "MOVED", "PAID", "HURT", "COST", "WORST", "NEVER", "ALWAYS", "ITS WORST", "ORACLE", "REGRET",
		"RESTARTS", "AGAIN", "SETTINGS",
	}
	return evaluate.Columns(heads, rows) + "\n" + rep.Summary.text()
}

func (s Summary) text() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("Minimised: %s. A move takes %g s and waits %g s. Costs are of whole jobs, relative to never moving.", s.Objective, s.Restart, s.Wait)
	say("What the controller sees varies by %g between attempts and by %g between epochs, where what was recorded does not; costs are told without.",
		s.Attempts, s.Varying)
	say("%d jobs in %d rows (%d tables have nothing to move, or lack a number that is needed).", s.Jobs, s.Rows, s.Skipped)
	if s.Jobs == 0 {
		return b.String()
	}
	say("Moved %s, paid %s (their cost in the mean %s), hurt %s (%s).", percent(s.Moved), percent(s.Paid), evaluate.Number(s.PaidRatio, 3),
		percent(s.Hurt), evaluate.Number(s.HurtRatio, 3))
	say("All jobs %.3f, the worst %.3f: %s.", s.Ratio, s.Worst, s.WorstAt)
	if s.Slower > 0 {
		say("Left slower than allowed: %s.", percent(s.Slower))
	}
	say("Always going to the best that was seen: %.3f, hurt %s, the worst %.3f. The best settings from the start: %.3f; regret %.3f.",
		s.AlwaysRatio, percent(s.AlwaysHurt), s.AlwaysWorst, s.OracleRatio, s.Regret)
	if r := s.Returned; r != nil {
		say("Of %d runs of jobs that came again %s began changed: paid %s (%s), hurt %s (%s), all %.3f, the last of each %.3f, the worst %.3f: %s.",
			r.Jobs, percent(r.Changed), percent(r.Paid), evaluate.Number(r.PaidRatio, 3), percent(r.Hurt), evaluate.Number(r.HurtRatio, 3),
			r.Ratio, r.Last, r.Worst, r.WorstAt)
	}
	return b.String()
}

// again is what the runs that came again cost.
func (r Row) again() string {
	if r.Returned == nil {
		return "-"
	}
	return figure(r.Returned.Ratio)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

func figure(v float64) string { return fmt.Sprintf("%.3f", v) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
