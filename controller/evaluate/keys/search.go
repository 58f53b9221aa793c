package keys

func search() Evaluation {
	return Evaluation{
		Command: "evaluate search",
		Rows: []Key{
			{"workload", "name, as in the data"},
			{"machine", "name, as in the data"},
			{"input", "which input of the workload, where the data tell inputs apart"},
			{"outcome", "what was minimised"},
			{"method", "way to search"},
			{"budget", "measurements"},
			{"settings", "recorded settings to choose from"},
			{"seeds", "searches"},
			{"log_ratio_mean", "mean over the seeds of ln(outcome of the setting found over that of the best), each the mean over all recorded runs of the setting; null: the method does not apply, as a warm start without another workload"},
			{"found_over_optimum_mean", "mean over the seeds of that ratio itself"},
			{"failed_share", "share of the measurements that brought no outcome"},
		},
		Summary: append([]Key{
			{"seed", "of everything random"},
			{"means", "one entry for each file, method and budget"},
			{"means[].data", "the file"},
			{"means[].outcome", "what was minimised"},
			{"means[].method", "way to search"},
			{"means[].budget", "measurements"},
			{"means[].problems", "workloads on machines"},
			{"means[].log_ratio_mean", "mean over its workloads"},
			{"means[].found_over_optimum_mean", "mean over its workloads"},
			{"means[].over_random", "log_ratio_mean over that of random; null where random is always right"},
		}, leftOut("workloads with a single setting or without any outcome")...),
	}
}
