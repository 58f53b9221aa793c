package slurm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/slurmcluster"
)

// ownerStory: a user's own controller, with that user's rights, tunes that user's jobs
// and nothing is lost.
func (s *stage) ownerStory(h deployment) {
	t := s.t
	alpha, beta := slurmcluster.Alpha, slurmcluster.Beta
	here := []string{"--partition=" + h.partition, "--nodelist=" + s.node(2)}
	goodJob, badJob := ticks{user: alpha, name: "good", epochs: movedEpochs}, ticks{user: alpha, name: "bad", epochs: movedEpochs, status: 3, live: true}
	afterJob, otherJob := ticks{user: alpha, name: "after", epochs: 2, untuned: true}, ticks{user: beta, name: "other", epochs: 8}
	good := s.submit(goodJob, here...)
	before := s.record(good.id)
	after := s.submit(afterJob, "--partition="+laterPartition, "--dependency=afterok:"+good.id)
	bad := s.submit(badJob, here...)
	gone := s.submit(ticks{user: alpha, name: "gone", epochs: 100000}, here...)
	other := s.submit(otherJob, here...)
	s.follow(h, good, bad, gone)

	s.await("the first move of the job that is cancelled", func() error { return s.moved(gone) })
	s.onlyTheOwnerCancels(gone, beta)
	s.ended(h, good, goodJob, 0)
	s.ended(h, bad, badJob, 3)
	s.ended(h, after, afterJob, 0)
	s.ended(h, other, otherJob, 0)
	s.returns(h, goodJob, good)
	// What sbatch --wait returns of a cancelled job is Slurm's affair: 0 where it was
	// between two attempts just then.
	s.status(gone)

	t.Run("what identifies the job is the same before and after", func(t *testing.T) { s.in(t).same(before, good) })
	t.Run("what was chosen reached the job by its environment", func(t *testing.T) { s.in(t).reached(good, "team %s live none") })
	t.Run("what was chosen reached the job by its file of live settings", func(t *testing.T) { s.in(t).reached(bad, `"threads":%s}`) })
	t.Run("accounting has one record a run, all of one job and owner", func(t *testing.T) {
		s.in(t).accounted(good, slurmcluster.AlphaAccount)
	})
	t.Run("the dependant ran once and after the last attempt", func(t *testing.T) { s.in(t).onceAfter(good, after) })
	t.Run("a job that its owner cancelled stays cancelled", func(t *testing.T) { s.in(t).staysCancelled(h, gone) })
	t.Run("another user's job is neither seen nor touched", func(t *testing.T) {
		s.in(t).untouched(other)
		if _, err := h.client.Job(t.Context(), other.id); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the controller knows it: %v", err)
		}
	})
}

// moved is nil when a job was put back into the queue; one that ended before that fails
// the test at once.
func (s *stage) moved(sub submission) error {
	s.t.Helper()
	r := s.record(sub.id)
	switch {
	case r["Restarts"] != "0":
		return nil
	case r["JobState"] == "COMPLETED" || r["JobState"] == "FAILED":
		s.t.Fatalf("%s ended and was never moved: %v", sub.name, r)
	}
	return fmt.Errorf("%v", r)
}

// onlyTheOwnerCancels cancels a job, as somebody else first.
func (s *stage) onlyTheOwnerCancels(sub submission, somebody string) {
	s.t.Helper()
	out, err := s.c.Run(s.t.Context(), somebody, "scancel", sub.id)
	if state := s.record(sub.id)["JobState"]; err == nil || state == "CANCELLED" {
		s.t.Errorf("another user cancelled the job: %v, %q", err, out)
	}
	s.as(sub.user, "scancel", sub.id)
}

// ended waits for a job: its sbatch has the right status, and every epoch was done.
func (s *stage) ended(h deployment, sub submission, j ticks, want int) {
	s.t.Helper()
	got := s.status(sub)
	if got != want {
		s.t.Errorf("sbatch --wait of %s ended with %d, want %d", sub.name, got, want)
	}
	s.whole(sub, j, s.discards(h, sub.id))
}

// returns submits a job again, which waits for another, and expects that it is given
// meanwhile what it was found to need, so that it pays nothing: one attempt. Where the
// noise of a busy machine left nothing found that is better than its owner's settings,
// it is to say so and to keep those.
func (s *stage) returns(h deployment, j ticks, first submission) {
	s.t.Helper()
	if err := s.moved(first); err != nil {
		s.t.Fatalf("%s has taught nothing: %v", first.name, err)
	}
	wait := s.sbatch(j.user, "wait", "#!/bin/sh\nsleep 600\n", nil, "--partition="+laterPartition, "--mem=64M")
	j.epochs = returnEpochs
	again := s.submit(j, "--partition="+h.partition, "--nodelist="+s.node(2), "--dependency=afterany:"+wait.id)
	s.follow(h, again)
	var kept bool
	s.await("the job that returned to be changed while it waits", func() error {
		now, err := h.client.Job(s.t.Context(), again.id)
		if err != nil {
			return err
		}
		kept = now.Reason == tuning.ReasonAlreadyBest
		if !kept && (!now.Recalled || s.record(again.id)["NumCPUs"] == "1") {
			return fmt.Errorf("phase %s, %s", now.Phase, now.Sentence)
		}
		return nil
	})
	if kept {
		s.t.Logf("%s: its first run, among what else this machine did, showed nothing better than its owner's settings", j.name)
	}
	if r := s.record(again.id); r["JobState"] != "PENDING" || kept && r["NumCPUs"] != "1" {
		s.t.Errorf("state %s of a job that waits for another, %s CPUs", r["JobState"], r["NumCPUs"])
	}
	s.as(j.user, "scancel", wait.id)
	s.ended(h, again, j, 0)
	if kept {
		return
	}
	got := s.read(j.user, again.id+".attempts")
	if was := strings.Split(s.read(j.user, first.id+".attempts"), "\n"); strings.Count(got, "\n") != 1 || strings.HasPrefix(got, "attempt 0 on 1 ") {
		s.t.Errorf("attempts of the job that returned: %q, of the first: %q", got, was)
	}
}

// same compares what identifies a job with what it was before.
func (s *stage) same(before map[string]string, sub submission) {
	s.t.Helper()
	now := s.record(sub.id)
	for _, key := range []string{"JobId", "JobName", "UserId", "GroupId", "Account", "Partition", "StdOut", "WorkDir", "TimeLimit"} {
		if before[key] == "" || before[key] != now[key] {
			s.t.Errorf("%s was %q and is %q", key, before[key], now[key])
		}
	}
	if now["Restarts"] == "0" {
		s.t.Error("the job was never moved, so that nothing was shown")
	}
}

// reached looks for an attempt under other cores that was told so.
func (s *stage) reached(sub submission, told string) {
	s.t.Helper()
	tried := s.read(sub.user, sub.id+".attempts")
	for line := range strings.Lines(tried) {
		for _, n := range []string{"2", "3"} {
			if strings.Contains(line, " on "+n+" ") && strings.Contains(line, fmt.Sprintf(told, n)) {
				return
			}
		}
	}
	s.t.Errorf("no attempt had other cores and was told of them:\n%s", tried)
}

// accounted looks at the accounting's records of a job.
func (s *stage) accounted(sub submission, account string) {
	s.t.Helper()
	var lines []string
	s.await("accounting", func() error {
		lines = strings.Split(s.as(sub.user, "sacct", "-D", "-X", "-n", "-P", "-j", sub.id, "-o", "jobid,user,account,state"), "\n")
		if !strings.HasSuffix(lines[len(lines)-1], "|COMPLETED") {
			return fmt.Errorf("%q", lines)
		}
		return nil
	})
	if len(lines) < 2 {
		s.t.Errorf("sacct shows %q, want a record a run", lines)
	}
	for i, l := range lines {
		want := sub.id + "|" + sub.user + "|" + account + "|"
		if state, ok := strings.CutPrefix(l, want); !ok || state != "REQUEUED" && i < len(lines)-1 {
			s.t.Errorf("record %d is %q, want %s…", i, l, want)
		}
	}
}

func (s *stage) onceAfter(first, after submission) {
	s.t.Helper()
	if got := s.read(after.user, after.id+".attempts"); strings.Count(got, "\n") != 1 {
		s.t.Errorf("attempts of the dependant: %q", got)
	}
	if ended, began := s.record(first.id)["EndTime"], s.record(after.id)["StartTime"]; began < ended {
		s.t.Errorf("the job ended at %s, its dependant began at %s", ended, began)
	}
}

func (s *stage) staysCancelled(h deployment, sub submission) {
	s.t.Helper()
	s.await("the controller to be through with it", func() error {
		j, err := h.client.Job(s.t.Context(), sub.id)
		if err == nil && !j.Ended {
			err = fmt.Errorf("phase %s", j.Phase)
		}
		return err
	})
	if r := s.record(sub.id); r["JobState"] != "CANCELLED" {
		s.t.Errorf("state %s", r["JobState"])
	}
}

// untouched: the job ran once, with what its owner asked for.
func (s *stage) untouched(sub submission) {
	s.t.Helper()
	if r := s.record(sub.id); r["Restarts"] != "0" || r["NumCPUs"] != "1" {
		s.t.Errorf("%s: restarts %s, CPUs %s", sub.name, r["Restarts"], r["NumCPUs"])
	}
}
