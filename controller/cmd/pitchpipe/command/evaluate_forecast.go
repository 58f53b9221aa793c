package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
)

func (a *app) evaluateForecast() *cobra.Command {
	var in models.ForecastInput
	cmd := &cobra.Command{
		Use: "forecast --curves FILE...", Short: "How well are the ends of learning curves forecast from their beginnings?",
		Long: "Cut recorded learning curves after a share of their epochs and forecast the rest as the controller\n" +
			"does: the value at the end with an interval that should hold it four times out of five, and the epoch\n" +
			"and second at which a target is reached. Runs are taken in the order of the file, as jobs that return: a\n" +
			"forecast learns from the runs before it. ALONE is the error without that. LAST VALUE forecasts that\n" +
			"nothing changes any more; BEST SINGLE is the one model that, in hindsight, was best on the row.\n" +
			"Errors are shares of the true value. Tables of adaptations are taken, too.",
		Example: "  pitchpipe evaluate forecast --curves curves.csv.gz --seen 0.2,0.3,0.5",
	}
	f := cmd.Flags()
	f.Float64SliceVar(&in.Seen, "seen", []float64{0.2, 0.3, 0.5}, "shares of the epochs that are seen")
	f.StringVar(&in.Measure, "measure", models.Auto, "what is forecast: "+strings.Join(models.Measures(), ", ")+"; auto is the loss where there is one, else the quality")
	offer(cmd, "measure", models.Measures())
	return evaluation(a, cmd, []*tableFlag{curvesFlag(&in.Curves, true, records.Adaptations)}, func(ctx context.Context, progress result.Progress) (models.ForecastReport, error) {
		return models.Forecast(ctx, in, progress)
	})
}
