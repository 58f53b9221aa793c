package command

import (
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/hyper"
	"pitchpipe/controller/evaluate/records"
)

func (a *app) evaluateHyper() *cobra.Command {
	var curves, methods []string
	in := hyper.Input{}
	cmd := &cobra.Command{
		Use: "hyper [FILE...]", Short: "What do hyperparameter searches reach in the same seconds?",
		Args: cobra.ArbitraryArgs,
		Long: "Replay searches over the recorded learning curves of each workload and machine, epoch by epoch: random,\n" +
			"grid, Latin hypercube and Gaussian process over full runs, and ASHA, which stops what falls behind, alone,\n" +
			"with a Gaussian process, and with the other workloads of the file as its history. A run that goes on\n" +
			"pays only for its new epochs. Told is the regret: the least error (1 - quality, or the loss) that a run\n" +
			"had when the seconds ended, less the least of all recorded full runs. A quality above 1 is a percentage.",
		Example: "  pitchpipe evaluate hyper --curves curves.csv.gz --seconds 2000",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, m := range methods {
				in.Methods = append(in.Methods, hyper.Method(m))
			}
			for _, path := range append(curves, args...) {
				t, err := records.Read(path, records.Curves)
				if err != nil {
					return err
				}
				in.Tables = append(in.Tables, t)
			}
			report, err := hyper.Run(cmd.Context(), in, a.progress())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(report)
			}
			a.printf("%s", hyper.Text(report))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&curves, "curves", nil, "files of curves; further ones may follow as arguments")
	f.Float64Var(&in.Seconds, "seconds", 0, "seconds of computing for each search (default: those of --runs)")
	f.Float64Var(&in.Runs, "runs", 10, "seconds as many as those of so many median full runs of the workload")
	f.StringSliceVar(&methods, "method", nil, "which methods (default all): "+joined(hyper.Methods()))
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	offer(cmd, "method", strings.Split(joined(hyper.Methods()), ", "))
	return cmd
}
