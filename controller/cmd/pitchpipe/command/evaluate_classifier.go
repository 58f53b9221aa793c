package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/classifier"
	"pitchpipe/controller/evaluate/records"
)

func (a *app) evaluateClassifier() *cobra.Command {
	var files, trials []string
	var in classifier.Input
	cmd := &cobra.Command{
		Use: "classifier --samples FILE...", Short: "Are programs recognised, and strangers called unknown?",
		Long: "Learn classes from recorded runs as the controller does and ask about whole executions that were\n" +
			"held out, and about each program in turn when it was not learned. Nobody tells how many classes there\n" +
			"are. Recognised is the share that gets a class, precision the share of those that get their own, area\n" +
			"how well distance over radius tells a program that was left out from those that were learned.\n\n" +
			"With --trials, tables that were recorded with the samples, it tells what deciding by classes costs:\n" +
			"each input of each program is left out in turn, and gets the setting that is best for the class that\n" +
			"it is recognised as, relative to its own best setting; beside it the best single setting for all.\n\n" +
			"Runs under other core counts, on other machines or with other counters are never compared, so each of\n" +
			"these has classes of its own; K is that of the one that has most.",
		Example: "  pitchpipe evaluate classifier --samples samples.csv.gz",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			if err := following(more, samplesFlag(&files), trialsFlag(&trials)); err != nil {
				return err
			}
			if len(files) == 0 {
				return fmt.Errorf("%w command line: want --samples FILE", errInvalid)
			}
			var err error
			if in.Tables, err = tablesOf(files, records.Samples); err != nil {
				return fmt.Errorf("%w samples: %w", errInvalid, err)
			}
			if in.Trials, err = tablesOf(trials, records.Trials); err != nil {
				return fmt.Errorf("%w trials: %w", errInvalid, err)
			}
			r, err := classifier.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, records.ErrInvalid), errors.Is(err, classifier.ErrTooLittle), errors.Is(err, classifier.ErrObjective):
				return fmt.Errorf("%w data: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", classifier.Text(r))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&files, "samples", nil, "tables of samples; further ones may follow as arguments")
	f.StringSliceVar(&trials, "trials", nil, "tables of trials of the same runs, for the cost of deciding by classes")
	f.StringVar(&in.Objective, "objective", classifier.DefaultObjective, "what a setting costs: time, energy, edp, or cores (the geometric mean of seconds and core-seconds)")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	f.IntVar(&in.Resamples, "resamples", classifier.DefaultResamples, "how often the stability is asked")
	return cmd
}

func tablesOf(files []string, f records.Format) ([]records.Table, error) {
	var out []records.Table
	for _, file := range files {
		t, err := records.Read(file, f)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
