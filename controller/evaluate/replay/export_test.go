package replay

// PlanJobs are the whole jobs that Plan replays, in its order.
func PlanJobs(in PlanInput) ([]Job, error) {
	all, _, err := in.read()
	var out []Job
	for _, p := range all {
		for seed := range in.Seeds {
			out = append(out, in.job(p.recorded, p.epochs, seed))
		}
	}
	return out, err
}
