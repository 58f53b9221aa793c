package command

import (
	"context"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
)

func (a *app) evaluateVerify() *cobra.Command {
	in := models.DefaultVerify()
	cmd := &cobra.Command{
		Use: "verify --trials FILE...", Short: "How often do verdicts claim what is not so, and how soon do they find what is?",
		Long: "Replay jobs and pairs of jobs in which nothing was changed, and ask for the controller's verdict after\n" +
			"every epoch and every pair. Recorded nulls are repeats of one setting, runs whose settings stand for\n" +
			"unknown inputs, slices of equal work of a sampled run, and the epochs of a run; simulated ones\n" +
			"have independent, autocorrelated and heavy-tailed noise, variance between runs, and drift. FALSE is the\n" +
			"share whose verdict was wrong at any look, COVERED that whose interval held the truth at every look.\n" +
			"Then the tuned side is made shorter by 2, 5, 10 and 20 %: POWER is the share that finds it, AFTER the\n" +
			"median of epochs or pairs until then. Where a null breaks what an interval relies on, as curves do whose\n" +
			"epochs shrink, its LIMIT says so and it is summed up apart. Without a file the simulated nulls stand alone.",
		Example: "  pitchpipe evaluate verify --trials trials.csv --samples samples.csv.gz --curves curves.csv\n" +
			"  pitchpipe evaluate verify --seeds 1000 --candidates 4 --json",
	}
	f := cmd.Flags()
	f.IntVar(&in.Seeds, "seeds", in.Seeds, "replays of each line")
	f.Uint64Var(&in.Seed, "seed", in.Seed, "seed of everything random")
	f.Float64Var(&in.Level, "level", in.Level, "share of false verdicts that is allowed")
	f.IntVar(&in.Untuned, "untuned", in.Untuned, "epochs of a job before its move, without warm-up")
	f.IntVar(&in.Epochs, "epochs", in.Epochs, "epochs of a job after its move, each looked at")
	f.IntVar(&in.Pairs, "pairs", in.Pairs, "pairs of jobs, each looked at")
	f.IntVar(&in.Candidates, "candidates", in.Candidates, "settings that were compared with the same untuned epochs")
	tables := []*tableFlag{trialsFlag(&in.Trials, false), samplesFlag(&in.Samples, false), curvesFlag(&in.Curves, false, records.Adaptations)}
	return evaluation(a, cmd, tables, func(ctx context.Context, progress result.Progress) (models.VerifyReport, error) {
		return models.Verify(ctx, in, progress)
	})
}
