package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/forecast"
	"pitchpipe/controller/evaluate/records"
)

func (a *app) evaluateForecast() *cobra.Command {
	var files []string
	var in forecast.Input
	cmd := &cobra.Command{
		Use: "forecast --curves FILE...", Short: "How well are the ends of learning curves told from their beginnings?",
		Long: "Cut recorded learning curves after a share of their epochs and forecast the rest as the controller\n" +
			"does: the value at the end with an interval that should hold it four times out of five, and the epoch\n" +
			"and second at which a target is reached. Runs are taken in the order of the file, as jobs that return: a\n" +
			"forecast learns from the runs before it. ALONE is the error without that. Beside it the last value\n" +
			"and the one model that, in hindsight, was best on the row. RATIO is the error over the better of both.\n" +
			"Errors are shares of the true value. Tables of adaptations are taken, too.",
		Example: "  pitchpipe evaluate forecast --curves curves.csv.gz --seen 0.2,0.3,0.5",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			var err error
			if in.Tables, err = curvesOf(append(files, more...)); err != nil {
				return fmt.Errorf("%w curves: %w", errInvalid, err)
			}
			r, err := forecast.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, forecast.ErrInput):
				return fmt.Errorf("%w forecast: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", forecast.Text(r))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&files, "curves", nil, "tables of curves or adaptations; further ones may follow as arguments")
	f.Float64SliceVar(&in.Seen, "seen", []float64{0.2, 0.3, 0.5}, "shares of the epochs that are seen")
	f.StringVar(&in.Measure, "measure", forecast.Auto, "what is forecast: "+strings.Join(forecast.Measures(), ", ")+"; auto is the loss where there is one, else the quality")
	_ = cmd.MarkFlagRequired("curves")
	offer(cmd, "measure", forecast.Measures())
	return cmd
}

// curvesOf reads tables of curves; one that is of adaptations is read as such.
func curvesOf(files []string) ([]records.Table, error) {
	var out []records.Table
	for _, file := range files {
		t, err := records.Read(file, records.Curves)
		if err != nil {
			adaptations, other := records.Read(file, records.Adaptations)
			if other != nil {
				return nil, err
			}
			t = adaptations
		}
		out = append(out, t)
	}
	return out, nil
}
