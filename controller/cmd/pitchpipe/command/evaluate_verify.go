package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/verify"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluateVerify() *cobra.Command {
	var trials, samples, curves []string
	var in verify.Input
	cmd := &cobra.Command{
		Use: "verify --trials FILE...", Short: "How often do verdicts claim what is not so, and how soon do they find what is?",
		Long: "Replay jobs and pairs of jobs in which nothing was changed, and ask for the controller's verdict after\n" +
			"every epoch and every pair. Recorded nulls are repeats of one setting, runs whose settings stand for\n" +
			"inputs that nobody knows, slices of equal work of a sampled run, and the epochs of a run; simulated ones\n" +
			"have independent, autocorrelated and heavy-tailed noise, variance between runs, and drift. FALSE is the\n" +
			"share whose verdict was wrong at any look, COVERED that whose interval held the truth at every look.\n" +
			"Then the tuned side is made shorter by 2, 5, 10 and 20 %: the share that finds it, and the median of\n" +
			"epochs or pairs until then. Where a null breaks what an interval relies on, as curves do whose epochs\n" +
			"shrink, it is marked and summed up apart. Without a file the simulated nulls stand alone.",
		Example: "  pitchpipe evaluate verify --trials trials.csv --samples samples.csv.gz --curves curves.csv\n" +
			"  pitchpipe evaluate verify --seeds 1000 --candidates 4 --json",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			if err := following(more, trialsFlag(&trials), samplesFlag(&samples), curvesFlag(&curves)); err != nil {
				return err
			}
			var errs [3]error
			in.Trials, errs[0] = tablesOf(trials, records.Trials)
			in.Samples, errs[1] = tablesOf(samples, records.Samples)
			in.Curves, errs[2] = curvesOf(curves)
			for _, err := range errs {
				if err != nil {
					return fmt.Errorf("%w records: %w", errInvalid, err)
				}
			}
			r, err := verify.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, verify.ErrInput), errors.Is(err, records.ErrInvalid):
				return fmt.Errorf("%w data: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", verify.Text(r))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&trials, "trials", nil, "tables of trials; further tables of any kind may follow as arguments")
	f.StringSliceVar(&samples, "samples", nil, "tables of samples")
	f.StringSliceVar(&curves, "curves", nil, "tables of curves or adaptations")
	f.IntVar(&in.Seeds, "seeds", verify.DefaultSeeds, "replays of each line")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	f.Float64Var(&in.Level, "level", verify.DefaultLevel, "share of false verdicts that is allowed")
	f.IntVar(&in.Untuned, "untuned", tuning.DefaultEpochs, "epochs of a job before its move, without warm-up")
	f.IntVar(&in.Epochs, "epochs", verify.DefaultEpochs, "epochs of a job after its move, each looked at")
	f.IntVar(&in.Pairs, "pairs", verify.DefaultPairs, "pairs of jobs, each looked at")
	f.IntVar(&in.Candidates, "candidates", 1, "settings that were compared with the same untuned epochs")
	return cmd
}
