package command

import (
	"context"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/evaluate/result"
)

func (a *app) evaluateClassifier() *cobra.Command {
	var in models.ClassifierInput
	cmd := &cobra.Command{
		Use: "classifier --samples FILE...", Short: "Are programs recognised, and strangers called unknown?",
		Long: "Learn classes from recorded runs as the controller does and ask about whole executions that were\n" +
			"held out, and about each program in turn when it was not learned. The number of classes is not given.\n" +
			"RECOGNISED is the share that gets a class, PRECISION the share of those that get their own, UNKNOWN AREA\n" +
			"how well distance over radius separates a program that was left out from those that were learned.\n\n" +
			"With --trials, tables that were recorded with the samples, the keys regret.* say what deciding by classes\n" +
			"costs: each input of each program is left out in turn, and gets the setting that is best for the class\n" +
			"that it is recognised as, relative to its own best setting; and the best single setting for all.\n\n" +
			"Runs under other core counts, on other machines or with other counters are never compared, so each of\n" +
			"these has classes of its own; K is that of the one that has most.",
		Example: "  pitchpipe evaluate classifier --samples samples.csv.gz",
	}
	f := cmd.Flags()
	f.StringVar(&in.Objective, "objective", "cores", "what a setting costs: time, energy, edp, or cores (the geometric mean of seconds and core-seconds)")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	f.IntVar(&in.Resamples, "resamples", models.DefaultResamples, "how often the stability is asked")
	offer(cmd, "objective", models.Objectives())
	tables := []*tableFlag{samplesFlag(&in.Samples, true), trialsFlag(&in.Trials, false)}
	return evaluation(a, cmd, tables, func(ctx context.Context, progress result.Progress) (models.ClassifierReport, error) {
		return models.Classifier(ctx, in, progress)
	})
}
