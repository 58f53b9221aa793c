package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/speed"
)

func (a *app) evaluateSpeed() *cobra.Command {
	var files []string
	in := speed.Input{}
	cmd := &cobra.Command{
		Use: "speed --trials FILE...", Short: "How well is the speed under unmeasured settings told from a few measured ones?",
		Long: "Measure a few recorded settings of each workload, one after the other as the model asks for them, and\n" +
			"forecast the others. ERROR is the mean error over those that were not measured, as a share of the true\n" +
			"outcome; ATTAINED is the outcome of the best setting that was measured over the best there is. Runs\n" +
			"that failed are no part of a mean nor of the error; measuring one is paid for. An outcome whose name ends in\n" +
			"_per_second is a rate, any other a cost.",
		Example: "  pitchpipe evaluate speed --trials trials.csv --outcome samples_per_second --samples 8",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			var err error
			if in.Tables, err = tablesOf(append(files, more...), records.Trials); err != nil {
				return fmt.Errorf("%w trials: %w", errInvalid, err)
			}
			r, err := speed.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, speed.ErrInput):
				return fmt.Errorf("%w speed: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", speed.Text(r))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&files, "trials", nil, "tables of trials; further ones may follow as arguments")
	f.StringVar(&in.Outcome, "outcome", "samples_per_second", "column that is forecast")
	f.IntVar(&in.Samples, "samples", 8, "settings of each workload that are measured")
	_ = cmd.MarkFlagRequired("trials")
	return cmd
}
