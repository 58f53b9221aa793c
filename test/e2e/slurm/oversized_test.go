package slurm_test

import (
	"errors"
	"fmt"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/test/slurmcluster"
)

// oversized is a batch script that asks for four cores and computes on one. Its work goes by
// its name: another name is another kind of job.
func (s *stage) oversized(name string, epochs int, checkpoint bool) string {
	save := ""
	if checkpoint {
		save = "#TUNE checkpoint signal=USR1 grace=60s done='^saved, and waiting$'\n"
	}
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%%j.out --open-mode=append --requeue
#SBATCH --cpus-per-task=4 --mem=256M --time=02:00:00
#TUNE mode=apply objective=cost
#TUNE knob cores values=1,2,4
#TUNE progress pattern='%[2]s'
%[3]strap : USR1
echo "attempt ${SLURM_RESTART_COUNT:-0} on $SLURM_CPUS_ON_NODE" >>$SLURM_JOB_ID.attempts
while :; do
	%[4]s pack --epochs %[5]d --scale 0.5 --state $SLURM_JOB_ID.state
	status=$?
	[ $status -eq 85 ] || break
	echo "saved, and waiting"
	sleep 60
done
exit $status
`, name, pattern, save, s.w.path("workload"), epochs)
}

// oversizedStory: at the default policy but for the control group, a job that computes on one
// of its four cores ends on one; a second one that asks for two cores begins on one, and so do
// the later tasks of an array without a checkpoint. Of these one tries, and those that begin
// after it has ended know: the third begins as it ends.
func (s *stage) oversizedStory(h deployment) {
	t := s.t
	user := slurmcluster.Alpha
	here := []string{"--partition=" + h.partition, "--nodelist=" + s.node(2)}
	first := s.sbatch(user, "oversized", s.oversized("oversized", 240, true), nil, append(here, "--wait")...)
	second := s.sbatch(user, "oversized", s.oversized("oversized", 8, true), nil,
		append(here, "--cpus-per-task=2", "--dependency=afterany:"+first.id)...)
	tasks := s.sbatch(user, "tasks", s.oversized("tasks", 30, false), nil, append(here, "--array=1-4%1", "--output=%A-%a.out")...)
	s.follow(h, first, second)

	if got := s.status(first); got != 0 {
		t.Errorf("the oversized job ended with %d", got)
	}
	job, err := h.client.Job(t.Context(), first.id)
	if err != nil {
		t.Fatal(err)
	}
	if got := job.Current[tuning.Cores].Int(); got != 1 {
		t.Errorf("the oversized job ended on %d cores (%s), want 1, which costs least", got, job.Sentence)
	}
	s.succeeded(second)
	if got := s.read(user, second.id+".attempts"); got != "attempt 0 on 1\n" {
		t.Errorf("the second, which asked for 2 cores: %q, want one attempt, on 1", got)
	}
	s.succeeded(tasks)
	began := map[string]string{}
	s.await("what the tasks of the array began with", func() error {
		for _, task := range []string{"1", "2", "4"} {
			j, err := h.client.Job(t.Context(), tasks.id+"_"+task)
			if err != nil {
				return err
			}
			if !j.Ended {
				return errors.New(j.Phase)
			}
			began[task] = j.Current[tuning.Cores].String()
		}
		return nil
	})
	if got := strings.Join([]string{began["1"], began["2"], began["4"]}, " "); got != "4 1 1" {
		t.Errorf("tasks 1, 2 and 4 ran on %s cores, want the first as its owner has it, and the others on 1", got)
	}
}
