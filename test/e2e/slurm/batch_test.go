package slurm_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
	"pitchpipe/test/slurmcluster"
)

// learns is a job script that trains a network. The batch size is that of BATCH_SIZE, and each
// job has its own seed.
func (s *stage) learns() string {
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=batches --output=%%j.out --open-mode=append --requeue
#SBATCH --cpus-per-task=1 --mem=1G --time=02:00:00
#TUNE mode=apply
#TUNE knob batch_size env=BATCH_SIZE values=16,32,64,128 default=16
#TUNE progress pattern='%[1]s'
#TUNE quality direction=max max_loss=0.02
#TUNE budget returns=6
export BATCH_SIZE=${BATCH_SIZE:-16} OMP_NUM_THREADS=1
echo $BATCH_SIZE >>$SLURM_JOB_ID.attempts
exec /usr/bin/python3 %[2]s --epochs 20 --seed $SLURM_JOB_ID
`, pattern, s.w.path("jobspecs", "slurm", "digits.py"))
}

var accuracy = regexp.MustCompile(`epoch 20/20 loss \S+ acc (\S+)`)

// batchStory submits the same training job thirteen times. By the twelfth recurrence its batch
// size has changed for good, and its accuracy stays within the owner's limit.
func (s *stage) batchStory(h deployment) {
	const recurrences, allowed = 12, 0.02
	t, user := s.t, slurmcluster.Alpha
	shipped{lacks: noTorch}.need(t)
	var batches []string
	var own []float64 // the accuracies of the owner's batch
	var last float64
	var reason tuning.Reason
	for range 1 + recurrences {
		sub := s.sbatch(user, "batches", s.learns(), nil, "--partition="+h.partition, "--nodelist="+s.node(2), "--begin=now+6")
		s.follow(h, sub)
		s.seenEnded(h, sub)
		job, err := h.client.Job(t.Context(), sub.id)
		if err != nil {
			t.Fatal(err)
		}
		found := accuracy.FindStringSubmatch(s.read(user, sub.id+".out"))
		if found == nil {
			t.Fatalf("job %s shows no accuracy", sub.id)
		}
		if last, err = strconv.ParseFloat(found[1], 64); err != nil {
			t.Fatal(err)
		}
		batch := strings.TrimSpace(s.read(user, sub.id+".attempts"))
		reason = job.Reason
		t.Logf("batch %s, accuracy %.4f: %s", batch, last, job.Sentence)
		if batches = append(batches, batch); batch == "16" {
			own = append(own, last)
		}
	}
	if batches[recurrences] == "16" || reason != tuning.ReasonRecalled {
		t.Errorf("its batches were %v, the last because %s; want another one, because %s", batches, reason, tuning.ReasonRecalled)
	}
	if want := stat.Mean(own, nil) * (1 - allowed); last < want {
		t.Errorf("it ends with accuracy %.4f, want at least %.4f", last, want)
	}
}
