package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/evaluate/result"
)

// methodsFlag are the methods of a search.
type methodsFlag struct {
	words []string
	into  *[]replay.Method
}

func (f *methodsFlag) add(cmd *cobra.Command, all []replay.Method) {
	cmd.Flags().StringSliceVar(&f.words, "method", nil, "which methods (default all): "+result.Words(all))
	offer(cmd, "method", strings.Split(result.Words(all), ", "))
}

func (f *methodsFlag) read() {
	for _, m := range f.words {
		*f.into = append(*f.into, replay.Method(m))
	}
}

func (a *app) evaluateSearch() *cobra.Command {
	in := replay.SearchInput{}
	cmd := &cobra.Command{
		Use: "search [FILE...]", Short: "How near to the best do searches come with few measurements?",
		Long: "Replay searches over the settings recorded for each workload and machine: random, grid, Latin\n" +
			"hypercube, Gaussian process (cold, and warm with the other workloads of the file as its history) and\n" +
			"bandit. A measurement brings one recorded run of a setting; a run without an outcome failed. LOG RATIO is\n" +
			"the mean logarithm of the ratio of what was found to the best setting, each by the mean of its runs.\n\n" +
			"What is minimised: of trials the first column there is of joules, seconds, samples_per_second (turned\n" +
			"around) and epoch_seconds; of curves the error (1 - quality) at the end of a run, or the loss.",
		Example: "  pitchpipe evaluate search --trials trials.csv --budget 8,10,12,16\n" +
			"  pitchpipe evaluate search --curves curves.csv.gz --outcome error --json",
	}
	f := cmd.Flags()
	f.IntSliceVar(&in.Budgets, "budget", []int{8, 10, 12, 16}, "how many measurements")
	f.StringVar(&in.Outcome, "outcome", "", "what is minimised: "+strings.Join(replay.Outcomes(), ", ")+" (default as above)")
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	offer(cmd, "outcome", replay.Outcomes())
	methods := methodsFlag{into: &in.Methods}
	methods.add(cmd, replay.SearchMethods())
	tables := []*tableFlag{trialsFlag(&in.Trials, false), curvesFlag(&in.Curves, false)}
	return evaluation(a, cmd, tables, func(ctx context.Context, progress result.Progress) (replay.SearchReport, error) {
		methods.read()
		return replay.Search(ctx, in, progress)
	})
}

func (a *app) evaluateHyper() *cobra.Command {
	in := replay.HyperInput{}
	cmd := &cobra.Command{
		Use: "hyper [FILE...]", Short: "What do hyperparameter searches reach in the same seconds?",
		Long: "Replay searches over the recorded learning curves of each workload and machine, epoch by epoch: random,\n" +
			"grid, Latin hypercube and Gaussian process over full runs, and ASHA, which stops what falls behind, alone,\n" +
			"with a Gaussian process, and with the other workloads of the file as its history. A run that goes on\n" +
			"pays only for its new epochs. REGRET is the least error (1 - quality, or the loss) that a run had when\n" +
			"the seconds ended, less the least of all recorded full runs. A quality above 1 is a percentage.",
		Example: "  pitchpipe evaluate hyper --curves curves.csv.gz --seconds 2000",
	}
	f := cmd.Flags()
	f.Float64Var(&in.Seconds, "seconds", 0, "seconds of computing for each search (default: those of --runs)")
	f.Float64Var(&in.Runs, "runs", 10, "seconds as many as those of so many median full runs of the workload")
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	methods := methodsFlag{into: &in.Methods}
	methods.add(cmd, replay.HyperMethods())
	return evaluation(a, cmd, []*tableFlag{curvesFlag(&in.Curves, true)}, func(ctx context.Context, progress result.Progress) (replay.HyperReport, error) {
		methods.read()
		return replay.Hyper(ctx, in, progress)
	})
}

func (a *app) evaluateSpeed() *cobra.Command {
	in := replay.SpeedInput{}
	cmd := &cobra.Command{
		Use: "speed --trials FILE...", Short: "How well is the speed under unmeasured settings forecast from a few measured ones?",
		Long: "Measure a few recorded settings of each workload, one after the other as the model asks for them, and\n" +
			"forecast the others. ERROR is the mean error over those that were not measured, as a share of the true\n" +
			"outcome; ATTAINED is the outcome of the best setting that was measured over the best there is. Runs\n" +
			"that failed are no part of a mean nor of the error; measuring one is paid for. An outcome whose name ends in\n" +
			"_per_second is a rate, any other a cost.",
		Example: "  pitchpipe evaluate speed --trials trials.csv --outcome samples_per_second --samples 8",
	}
	f := cmd.Flags()
	f.StringVar(&in.Outcome, "outcome", "samples_per_second", "column that is forecast")
	f.IntVar(&in.Samples, "samples", 8, "settings of each workload that are measured")
	return evaluation(a, cmd, []*tableFlag{trialsFlag(&in.Trials, true)}, func(ctx context.Context, progress result.Progress) (replay.SpeedReport, error) {
		return replay.Speed(ctx, in, progress)
	})
}
