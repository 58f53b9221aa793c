package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/search"
)

func (a *app) evaluateSearch() *cobra.Command {
	var trials, curves, methods []string
	in := search.Input{}
	cmd := &cobra.Command{
		Use: "search [FILE...]", Short: "How near to the best do searches come with few measurements?",
		Args: cobra.ArbitraryArgs,
		Long: "Replay searches over the settings recorded for each workload and machine: random, grid, Latin\n" +
			"hypercube, Gaussian process (cold, and warm with the other workloads of the file as its history) and\n" +
			"bandit. A measurement brings one recorded run of a setting; a run without an outcome failed. Told is the\n" +
			"mean logarithm of the ratio of what was found to the best setting, each by the mean of its runs.\n\n" +
			"What is minimised: of trials the first column there is of joules, seconds, samples_per_second (turned\n" +
			"around) and epoch_seconds; of curves the error (1 - quality) at the end of a run, or the loss.",
		Example: "  pitchpipe evaluate search --trials trials.csv --budget 8,10,12,16\n" +
			"  pitchpipe evaluate search --curves curves.csv.gz --outcome error --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, m := range methods {
				in.Methods = append(in.Methods, search.Method(m))
			}
			report, err := a.searched(cmd, in, append(trials, args...), curves)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(report)
			}
			a.printf("%s", search.Text(report))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&trials, "trials", nil, "files of trials; further ones may follow as arguments, and files of curves are taken, too")
	f.StringSliceVar(&curves, "curves", nil, "files of curves, whose ends count as trials")
	f.IntSliceVar(&in.Budgets, "budget", []int{8, 10, 12, 16}, "how many measurements")
	f.StringVar(&in.Outcome, "outcome", "", "what is minimised: "+strings.Join(search.Outcomes(), ", ")+" (default as above)")
	f.StringSliceVar(&methods, "method", nil, "which methods (default all): "+joined(search.Methods()))
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	offer(cmd, "outcome", search.Outcomes())
	offer(cmd, "method", strings.Split(joined(search.Methods()), ", "))
	return cmd
}

// searched reads the files and runs the evaluation.
func (a *app) searched(cmd *cobra.Command, in search.Input, trials, curves []string) (search.Report, error) {
	for _, path := range slices.Concat(trials, curves) {
		format := records.Trials
		if slices.Contains(curves, path) {
			format = records.Curves
		}
		t, err := records.Read(path, format)
		if err != nil {
			return search.Report{}, err
		}
		if t.Has("run") && t.Has("epoch") { // curves among the trials
			t.Format = records.Curves
		}
		in.Tables = append(in.Tables, t)
	}
	return search.Run(cmd.Context(), in, a.progress())
}

// joined lines up words of any kind.
func joined[T ~string](list []T) string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}

// offer completes words for a flag.
func offer(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
