package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate/figure"
)

func (a *app) durations() *cobra.Command {
	var format, folder string
	cmd := &cobra.Command{
		Use: "durations LOG --format FORMAT", Short: "Forecast how long the jobs of a log run, and show why",
		Long: "Forecast each job of a log from the jobs that had ended before, week by week, and compare that with simple\n" +
			"medians. The forecast is the median of the model, which has the least absolute error. Then fit the model on the\n" +
			"whole log and print its terms: by which factor each user, name, size, limit or hour makes a job longer or shorter.\n" +
			"LOG is a file, gzip or not, as `pitchpipe simulate` takes it; for venus it is the folder of that data set.\n" +
			"controller/evaluate/KEYS.md explains the keys of --json.",
		Example: "  pitchpipe durations jobs.csv.gz --format csv --plot terms",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.readLog(joblog.Format(format), args[0])
			if err != nil {
				return err
			}
			if err := ready(folder); err != nil {
				return err
			}
			jobs := durations.History(l)
			arrivals := durations.Count(jobs)
			r, m, err := durations.Rolling(cmd.Context(), jobs, a.progress())
			if err != nil {
				return err
			}
			r.Data, r.Summary["lines_left_out"] = args, len(l.Broken)
			r.Summary["arrivals"] = durations.JudgeArrivals(arrivals, len(arrivals.Jobs)*3/4)
			for _, t := range m.Terms() {
				if folder == "" {
					break
				}
				sheet, err := figure.Term(t)
				if err == nil {
					err = drawn(folder, strings.NewReplacer(" ", "-", ",", "").Replace(t.Name), sheet)
				}
				if err != nil {
					return err
				}
			}
			return a.said(r, "%s", r.Text())
		},
	}
	logFormat(cmd, &format)
	cmd.Flags().StringVar(&folder, "plot", "", "folder for a picture of each term (SVG)")
	return cmd
}

// logFormat adds the flag that says how a log is written.
func logFormat(cmd *cobra.Command, into *string) {
	choice(cmd, into, "format", "", "how the log is written", texts(joblog.Formats()))
	_ = cmd.MarkFlagRequired("format")
}

// openLog reads a log from a file, or from the standard input for -.
func (a *app) openLog(format joblog.Format, file string) (joblog.Log, error) {
	if file == "-" {
		return joblog.Parse(format, "the standard input", a.Stdin)
	}
	return joblog.Read(format, file)
}

// readLog is openLog that names the first lines that it leaves out.
func (a *app) readLog(format joblog.Format, file string) (joblog.Log, error) {
	l, err := a.openLog(format, file)
	for _, b := range l.Broken[:min(10, len(l.Broken))] { // more are likely alike
		fmt.Fprintf(a.Stderr, "pitchpipe: left out: line %d: %s\n", b.Line, b.Why)
	}
	return l, err
}
