package keys

func forecast() Evaluation {
	return Evaluation{
		Command: "evaluate forecast",
		Rows: []Key{
			{"workload", "name, as in the data"},
			{"machine", "name, as in the data"},
			{"measure", "loss or quality"},
			{"seen", "share of the epochs that the forecast knew"},
			{"runs", "runs that were cut, those without a forecast included"},
			{"final_error_median", "median error of the value at the end"},
			{"alone_error_median", "the same without learning from earlier runs"},
			{"last_value_error_median", "the same of forecasting that nothing changes any more"},
			{"best_single_error_median", "the same of the model that was best on this row, in hindsight"},
			{"best_single", "the name of that model"},
			{"targets", "runs that have a target: the best value up to the middle of what was not seen, where it was not reached before the cut"},
			{"target_error_median", "median error of the epoch at which a target is reached, as a share of the true epoch"},
			{"target_seconds_error_median", "likewise of the seconds since the job began"},
			{"interval80_coverage", "share of the final values within their interval of 80 %"},
			{"interval80_width_median", "median width of the interval, as a share of the true value"},
			{"unknown_share", "share of the runs of which nothing was forecast"},
		},
		Summary: []Key{
			{"rows", "how many rows there are"},
			{"final_error_ratio_mean", "geometric mean of the error over the better of last value and best single"},
			{"final_error_ratio_max", "the same of the worst row"},
			{"rows_within_1_02", "rows whose ratio is at most 1.02"},
			{"interval80_coverage_min", "least coverage of a row of at least 100 runs"},
			{"interval80_coverage_max", "greatest coverage of a row of at least 100 runs"},
		},
	}
}
