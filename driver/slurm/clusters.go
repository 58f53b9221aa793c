package slurm

import (
	"context"
	"fmt"
	"strings"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// oneCluster refuses a job that names the cluster it is for, in its script or in the
// environment that sbatch gets: what is looked at and changed is one cluster, and a job
// of another would be looked for here and never found, or a stranger of its number taken
// for it.
func oneCluster(file *jobfile.Job, env map[string]string) error {
	const want = "want none: a job goes to the cluster whose controller it is given to, and is followed there alone"
	if file.Clusters != (jobfile.Pos{}) {
		return fmt.Errorf("%w: %w", driver.ErrInvalid, jobfile.Errors{{Pos: file.Clusters, Found: "clusters are named", Want: want}})
	}
	for _, name := range []string{"SBATCH_CLUSTERS", "SLURM_CLUSTERS"} {
		if v := env[name]; v != "" {
			return fmt.Errorf("the variable %s names clusters (%.60q); %s: %w", name, v, want, driver.ErrInvalid)
		}
	}
	return nil
}

// here reports whether what sbatch --parsable printed, NUMBER or NUMBER;CLUSTER, is a job
// of this cluster, and returns its number. One of another cluster, as where clusters are
// federated, is driver.ErrUnknown: it is there, and nobody here can say what becomes of it.
func here(ctx context.Context, run command.Runner, answer string) (driver.JobID, error) {
	number, cluster, named := strings.Cut(answer, ";")
	if !digits(number) {
		return "", fmt.Errorf("sbatch printed %.100q: %w", answer, driver.ErrUnknown)
	}
	if !named {
		return driver.JobID(number), nil
	}
	conf, err := slurmctl.Config(ctx, run)
	if err != nil {
		return "", fmt.Errorf("job %s was submitted to cluster %.60q, and which one this is is not known: %w: %w", number, cluster, driver.ErrUnknown, err)
	}
	if own := conf["ClusterName"]; own == "" || !strings.EqualFold(own, cluster) {
		return "", fmt.Errorf("job %s was submitted to cluster %.60q, and this is %.60q: it runs there and is not followed; look with squeue -M %.60s, and do not submit it again: %w",
			number, cluster, own, cluster, driver.ErrUnknown)
	}
	return driver.JobID(number), nil
}
