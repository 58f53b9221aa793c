package keys

func hyper() Evaluation {
	return Evaluation{
		Command: "evaluate hyper",
		Rows: []Key{
			{"workload", "name, as in the data"},
			{"machine", "name, as in the data"},
			{"input", "which input of the workload, where the data tell inputs apart"},
			{"method", "way to search"},
			{"seconds", "seconds that the search might use; null: the curves have no seconds"},
			{"seeds", "searches"},
			{"regret_mean", "mean over the seeds of the least error reached less the least error recorded; null: the curves have no seconds, or the method does not apply"},
			{"seconds_used_mean", "of the seconds, how many were spent"},
			{"runs_mean", "runs begun, in the mean"},
		},
		Summary: append([]Key{
			{"seed", "of everything random"},
			{"means", "one entry for each file and method"},
			{"means[].data", "the file"},
			{"means[].method", "way to search"},
			{"means[].problems", "workloads on machines"},
			{"means[].regret_mean", "mean over its workloads"},
			{"means[].over_random", "regret_mean over that of random"},
		}, leftOut("workloads with a single run or without any outcome, and runs without seconds")...),
	}
}
