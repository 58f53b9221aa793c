package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/report"
	"pitchpipe/controller/report/sacct"
	"pitchpipe/controller/tuning"
)

func (a *app) report() *cobra.Command {
	var since, by, file string
	var asCSV bool
	bys := texts(report.Bys())
	cmd := &cobra.Command{
		Use: "report", Short: "Sum up what jobs used and what tuning saved",
		Long: "Seconds, core-hours, joules with their source, restarts, probes and epochs of the jobs that ended\n" +
			"in the period or still run. What was not measured is \"-\", never 0; modelled joules are apart and\n" +
			"support no saving. A saving compares tuned jobs with those that were drawn to stay untuned, in pairs\n" +
			"of the same kind, objective, epochs and request; restarts and probes count on the tuned side. NET SAVED is the\n" +
			"part of what a job is tuned for, such as its cost, that tuning saved; below 0 it lost.\n\n" +
			"--from-sacct asks no controller: it reads how much of their cores and memory jobs used, and which\n" +
			"return. That is what tuning could bring at most, not a saving. JobName comes last and -D shows each run:\n" +
			"    sacct -aPD -S 2026-01-01 -o JobID,User,Account,State,Elapsed,AllocCPUS,NNodes,TotalCPU,ReqMem,MaxRSS,NTasks,JobName",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ago, err := tuning.ParseDuration(since)
			switch {
			case file != "":
				return a.fromSacct(cmd, file, by)
			case !slices.Contains(bys, by):
				return fmt.Errorf("%w --by %q: want one of %s", errInvalid, by, strings.Join(bys, ", "))
			case err != nil || ago == 0 || tuning.ParseValue(since).IsNumber():
				return fmt.Errorf("%w --since %q: want a time above 0 and of at most 146 years with its unit, such as 12h or 30d", errInvalid, since)
			case asCSV && a.json:
				return fmt.Errorf("%w flags: --csv and --json exclude each other", errInvalid)
			}
			client := a.client()
			defer client.Close()
			t, err := client.Report(cmd.Context(), since, report.By(by))
			text := report.Text
			if asCSV {
				text = report.CSV
			}
			return a.answer(err, t, "%s", text(t))
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "30d", "length of the period, up to now, such as 12h or 30d")
	f.StringVar(&by, "by", string(report.ByJob), "what lines are summed over: "+strings.Join(bys, ", ")+"; with --from-sacct "+strings.Join(sacct.Tables(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("by", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if file != "" {
			return sacct.Tables(), cobra.ShellCompDirectiveNoFileComp
		}
		return bys, cobra.ShellCompDirectiveNoFileComp
	})
	f.BoolVar(&asCSV, "csv", false, "print the lines as CSV, the total last")
	f.StringVar(&file, "from-sacct", "", "read what sacct -P printed, gzip or not, - for the standard input, and ask no controller")
	for _, other := range []string{"since", "csv"} {
		cmd.MarkFlagsMutuallyExclusive("from-sacct", other)
	}
	return cmd
}

// mostSacct bounds what is read of an accounting: some ten million lines.
const mostSacct = 1 << 30

func (a *app) fromSacct(cmd *cobra.Command, file, by string) error {
	if !cmd.Flags().Changed("by") {
		by = ""
	}
	if by != "" && !slices.Contains(sacct.Tables(), by) {
		return fmt.Errorf("%w --by %q: with --from-sacct want one of %s", errInvalid, by, strings.Join(sacct.Tables(), ", "))
	}
	in := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return invalid("accounting", err)
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	plain, err := evaluate.Unzipped(file, in)
	if err != nil {
		return invalid("accounting", err)
	}
	text, err := io.ReadAll(io.LimitReader(plain, mostSacct+1))
	if err != nil {
		return fmt.Errorf("read the accounting: %w", err)
	}
	if len(text) > mostSacct {
		return fmt.Errorf("%w accounting: %s is larger than 1 GiB; ask sacct for a shorter period", errInvalid, file)
	}
	h, err := sacct.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%w accounting %s: %w", errInvalid, file, err)
	}
	for _, fault := range h.Faults[:min(10, len(h.Faults))] { // more are likely alike
		fmt.Fprintf(a.Stderr, "pitchpipe: left out: %v\n", fault)
	}
	s := sacct.Summarise(h.Jobs)
	s.Left = len(h.Faults)
	return a.said(s, "%s", sacct.Text(s, by))
}
