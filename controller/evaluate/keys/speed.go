package keys

func speed() Evaluation {
	return Evaluation{
		Command: "evaluate speed",
		Rows: []Key{
			{"workload", "name, as in the data"},
			{"machine", "name, as in the data"},
			{"input", "which input of the workload, where the data tell inputs apart"},
			{"settings", "how many different settings, failed ones included"},
			{"samples", "settings measured, at most as many as asked for"},
			{"failed", "how many of the samples failed"},
			{"unseen", "settings that the errors are over"},
			{"error_mean", "mean error of the outcome of unseen settings, as a share of the true one"},
			{"error_max", "greatest error of an unseen setting"},
			{"attained", "the outcome of the chosen setting over the best, 1 at most"},
			{"chosen", "the best setting measured"},
		},
		Summary: append([]Key{
			{"rows", "how many rows there are"},
			{"error_mean", "mean of the rows"},
			{"error_mean_max", "greatest error_mean of a row"},
			{"attained_min", "least attained of a row"},
		}, leftOut("rows that could not be used")...),
	}
}
