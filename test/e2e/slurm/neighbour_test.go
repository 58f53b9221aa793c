package slurm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/test/slurmcluster"
)

// beside is a batch script that asks for one core and may have two. Its file .times has when it
// began, and when it ended.
func (s *stage) beside(name, command string, tuned bool) string {
	stanza := ""
	if tuned {
		stanza = fmt.Sprintf(`#TUNE mode=apply objective=time max_slowdown=1.5
#TUNE knob cores values=1,2
#TUNE knob threads env=THREADS follows=cores
#TUNE progress pattern='%s'
#TUNE checkpoint signal=USR1 grace=60s done='^saved, and waiting$'
`, pattern)
	}
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%[1]s --output=%%j.out --open-mode=append --requeue
#SBATCH --cpus-per-task=1 --mem=1G --time=02:00:00
%[2]strap : USR1
export THREADS=${THREADS:-1} OMP_NUM_THREADS=${THREADS:-1}
date +%%s.%%N >>$SLURM_JOB_ID.times
while :; do
	%[3]s --state $SLURM_JOB_ID.state
	status=$?
	[ $status -eq 85 ] || break
	echo "saved, and waiting"
	sleep 60
done
date +%%s.%%N >>$SLURM_JOB_ID.times
exit $status
`, name, stanza, command)
}

// busy is a process that computes for as long as the test runs, or until it is stopped.
func (s *stage) busy() (stop func()) {
	s.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), "sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	s.t.Cleanup(stop)
	return stop
}

// lasted is for how many seconds a job took, what lay between its attempts included.
func (s *stage) lasted(sub submission) float64 {
	s.t.Helper()
	s.succeeded(sub)
	times := strings.Fields(s.read(sub.user, sub.id+".times"))
	if len(times) < 2 {
		s.t.Fatalf("%s: times %q", sub.name, times)
	}
	began, err := strconv.ParseFloat(times[0], 64)
	if err != nil {
		s.t.Fatal(err)
	}
	ended, err := strconv.ParseFloat(times[len(times)-1], 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return ended - began
}

// neighbourStory: next to a busy process, programs that must not have a second core lose at
// most a twentieth, however often they are submitted. The twentieth is of the slower of two
// untuned runs, one before and one after. Once it is gone, a program that profits from a second
// core gains, by the epoch, against a shorter untuned run.
func (s *stage) neighbourStory(h deployment) {
	const most = 1.05
	t, user := s.t, slurmcluster.Alpha
	run := func(name, command string, tuned bool) (submission, float64) {
		t.Helper()
		sub := s.sbatch(user, name, s.beside(name, command, tuned), nil, "--partition="+h.partition, "--nodelist="+s.node(2))
		if tuned {
			s.follow(h, sub)
		}
		return sub, s.lasted(sub)
	}
	workload := s.w.path("workload")
	programs := []struct{ name, command string }{
		{"spins", workload + " wave --epochs 40"},
		{"learns", "/usr/bin/python3 " + s.w.path("jobspecs", "slurm", "digits.py") + " --epochs 40"},
	}
	if err := noTorch(); err != nil && os.Getenv("PITCHPIPE_REQUIRE_TOOLS") == "" {
		t.Logf("only the program that waits actively runs: %v", err)
		programs = programs[:1]
	}
	stop := s.busy()
	for _, p := range programs {
		_, before := run(p.name+"-untuned", p.command, false)
		var tuned []float64
		for range 3 {
			_, took := run(p.name, p.command, true)
			tuned = append(tuned, took)
		}
		_, after := run(p.name+"-untuned", p.command, false)
		untuned := max(before, after)
		t.Logf("%s beside a busy process: untuned %.1f s and %.1f s, tuned %.1f s", p.name, before, after, tuned)
		for i, took := range tuned {
			if took > most*untuned {
				t.Errorf("%s, submission %d: %.2f of the untuned time, want at most %g", p.name, i+1, took/untuned, most)
			}
		}
	}
	stop()
	const epochs, fewer = 300, 60 // long enough for a probe to cost less than a twentieth
	dense := func(epochs int) string { return fmt.Sprintf("%s dense --epochs %d", workload, epochs) }
	_, untuned := run("gains-untuned", dense(fewer), false)
	sub, took := run("gains", dense(epochs), true)
	share := took / epochs / (untuned / fewer)
	t.Logf("alone: untuned %.2f s an epoch, tuned %.2f of it", untuned/fewer, share)
	job, err := h.client.Job(t.Context(), sub.id)
	if err != nil {
		t.Fatal(err)
	}
	if got := job.Current[tuning.Cores].Int(); got != 2 || !(share < 1) {
		t.Errorf("alone it ended on %d cores after %.2f of the untuned time (%s); want 2, and less than 1", got, share, job.Sentence)
	}
}
