package slurm_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pitchpipe/test/e2e/table"
	"pitchpipe/test/slurmcluster"
)

var all = flag.Bool("all", false, "tune every job file that is meant to be, not the first alone, and oversized jobs")

// shipped is a job file that ships, submitted as its comment says.
type shipped struct {
	name  string
	args  []string
	tasks int // of its array, 0 = it is none
	env   []string
	lacks func() error // why it cannot run here
	tuned int          // epochs when it is met for the first time and tuned, 0 = it is not
	modes []string     // in which
}

func shippedFiles() []shipped {
	list := []shipped{
		{name: "jacobi", tuned: 40, modes: []string{"owner", "site"}},
		{name: "hpcc-mpi", env: []string{"SIZE=600"}, lacks: noHPCC, tuned: 30, modes: []string{"site"}},
		{name: "digits-torch", lacks: noTorch, tuned: 30, modes: []string{"owner"}},
		{name: "sweep", args: []string{"--array=1-3%2"}, tasks: 3},
	}
	for _, kind := range []string{"dense", "bfs", "kmeans", "sort", "stream", "hash", "pack"} {
		list = append(list, shipped{name: kind})
	}
	return list
}

func noTorch() error {
	if out, err := exec.Command("/usr/bin/python3", "-c", "import torch, sklearn").CombinedOutput(); err != nil { //nolint:noctx // it ends by itself
		return fmt.Errorf("python3-torch or python3-sklearn is missing (scripts/setup-jobs): %w: %.200s", err, out)
	}
	return nil
}

func noHPCC() error {
	for _, program := range []string{"hpcc", "mpirun"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the packages hpcc and openmpi-bin are missing: %w", err)
		}
	}
	return nil
}

func (f shipped) need(t *testing.T) {
	t.Helper()
	if f.lacks == nil {
		return
	}
	if err := f.lacks(); err != nil {
		if os.Getenv("PITCHPIPE_REQUIRE_TOOLS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// send submits the job file with its text as it ships. Its output goes to files that
// carry its job's number. Less memory and time than it asks for: a node is shared.
func (s *stage) send(f shipped, user string, env []string, args ...string) submission {
	s.t.Helper()
	source, err := os.ReadFile(s.w.path("jobspecs", "slurm", f.name+".sbatch"))
	if err != nil {
		s.t.Fatal(err)
	}
	output := "%j.out"
	if f.tasks > 0 {
		output = "%A-%a.out"
	}
	args = append(append([]string{"--mem=2G", "--time=00:20:00", "--output=" + output}, f.args...), args...)
	env = append([]string{"PITCHPIPE_WORKLOAD=" + s.w.path("workload"), "PITCHPIPE_DIGITS=" + s.w.path("jobspecs", "slurm", "digits.py")}, append(f.env, env...)...)
	return s.sbatch(user, f.name, string(source), env, args...)
}

// outputs are those of a job, one a task.
func (s *stage) outputs(f shipped, sub submission) []string {
	s.t.Helper()
	if f.tasks == 0 {
		return []string{s.read(sub.user, sub.id+".out")}
	}
	var out []string
	for task := range f.tasks {
		out = append(out, s.read(sub.user, fmt.Sprintf("%s-%d.out", sub.id, task+1)))
	}
	return out
}

// jobFiles runs each job file for two epochs, where no controller looks.
func (s *stage) jobFiles() {
	for _, f := range shippedFiles() {
		s.t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.need(t)
			s := s.in(t)
			const epochs = 2
			sub := s.send(f, slurmcluster.Beta, []string{fmt.Sprintf("EPOCHS=%d", epochs)}, "--partition="+plainPartition)
			s.succeeded(sub)
			for i, output := range s.outputs(f, sub) {
				lost, twice := table.LostAndTwice(output, epochs, 0)
				if lost+twice > 0 || !strings.HasSuffix(strings.TrimSpace(output), fmt.Sprintf("done after %d epochs", epochs)) {
					t.Errorf("output %d: %q", i+1, output)
				}
			}
		})
	}
}
