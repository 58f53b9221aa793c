package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/slurmcluster"
)

// The job files that users copy, submitted as their comments say.
func TestJobFilesThatShipRunOnSlurm(t *testing.T) {
	c := shared.cluster.Get(t)
	programs := shared.programs(t)
	for _, file := range []struct {
		name  string
		args  []string
		tasks int
		needs string
	}{
		{name: "jacobi", tasks: 1},
		{name: "sweep", args: []string{"--array=1-3%2"}, tasks: 3},
		{name: "hpcc-mpi", tasks: 1, needs: "hpcc"},
	} {
		t.Run(file.name, func(t *testing.T) {
			if file.needs != "" {
				if _, err := exec.LookPath(file.needs); err != nil {
					t.Skip(err)
				}
			}
			source, err := os.ReadFile(filepath.Join("../../../jobspecs/slurm", file.name+".sbatch"))
			if err != nil {
				t.Fatal(err)
			}
			// Less memory and time than the files ask for: the node is shared by all tests.
			args := append([]string{"--parsable", "--mem=1G", "--time=00:10:00", "--output=" + file.name + "-%a.out"}, file.args...)
			if file.tasks == 1 {
				args[3] = "--output=" + file.name + "-1.out"
			}
			cmd, err := c.Command(t.Context(), slurmcluster.Beta, "sbatch", args...)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdin = strings.NewReader(string(source))
			cmd.Env = append(cmd.Env, "PITCHPIPE_WORKLOAD="+filepath.Join(programs, "workload"), "EPOCHS=2", "SIZE=200", "RANKS=2")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("sbatch: %v: %s", err, out)
			}
			id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
			deadline := time.Now().Add(2 * time.Minute)
			for {
				states, err := c.Run(t.Context(), slurmcluster.Beta, "sacct", "-X", "-n", "-P", "-j", id, "-o", "state")
				if err != nil {
					t.Fatal(err)
				}
				if strings.Count(states, "COMPLETED") == file.tasks {
					break
				}
				if strings.Contains(states, "FAILED") || time.Now().After(deadline) {
					said, err := os.ReadFile(filepath.Join(c.Home(slurmcluster.Beta), file.name+"-1.out"))
					t.Fatalf("job %s: states %q, said %q, %v", id, states, said, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			for task := range file.tasks {
				name := fmt.Sprintf("%s-%d.out", file.name, task+1)
				said, err := os.ReadFile(filepath.Join(c.Home(slurmcluster.Beta), name))
				if err != nil || !strings.HasSuffix(strings.TrimSpace(string(said)), "done after 2 epochs") || strings.Count(string(said), "epoch 2/2 loss ") != 1 {
					t.Errorf("%s: %q, %v", name, said, err)
				}
			}
		})
	}
}
