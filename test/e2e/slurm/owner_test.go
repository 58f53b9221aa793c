package slurm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/slurmcluster"
)

// A user's own controller, with that user's rights, tunes that user's jobs.
func TestAUsersControllerTunesHisJobsAndNothingIsLost(t *testing.T) {
	s := newStage(t)
	alpha, beta := slurmcluster.Alpha, slurmcluster.Beta
	good := s.submit(job{user: alpha, name: "good", epochs: 100})
	before := s.record(good.id)
	after := s.submit(job{user: alpha, name: "after", epochs: 2, untuned: true}, "--dependency=afterok:"+good.id)
	bad := s.submit(job{user: alpha, name: "bad", epochs: 100, status: 3})
	gone := s.submit(job{user: alpha, name: "gone", epochs: 100000})
	other := s.submit(job{user: beta, name: "other", epochs: 60})
	t.Cleanup(func() {
		for _, sub := range []submission{good, bad, gone} {
			s.tell(sub)
		}
	})

	// Until a job runs the others have its time limit to wait for.
	for _, sub := range []submission{good, bad, gone, other} {
		s.await(sub.name+" to run", func() error {
			if s.read(sub.user, sub.name+".attempts") == "" {
				return errors.New("it waits")
			}
			return nil
		})
	}
	s.await("the first move of the job that is cancelled", func() error {
		if r := s.record(gone.id); r["Restarts"] == "0" {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
	out, err := s.c.Run(t.Context(), beta, "scancel", gone.id)
	if state := s.record(gone.id)["JobState"]; state == "CANCELLED" || state == "COMPLETING" {
		t.Errorf("another user cancelled the job: %v, %q", err, out)
	}
	s.as(alpha, "scancel", gone.id)

	for _, c := range []struct {
		sub  submission
		want int
	}{{good, 0}, {bad, 3}, {after, 0}, {other, 0}} {
		if got := s.status(c.sub); got != c.want {
			t.Errorf("sbatch --wait of %s ended with %d, want %d", c.sub.name, got, c.want)
		}
		s.whole(c.sub.job)
	}
	// What sbatch --wait returns of a cancelled job is Slurm's affair: 0 where it was
	// between two attempts just then.
	s.status(gone)

	t.Run("what identifies the job is the same before and after", func(t *testing.T) {
		now := s.record(good.id)
		for _, key := range []string{"JobId", "JobName", "UserId", "GroupId", "Account", "Partition", "StdOut", "WorkDir", "TimeLimit"} {
			if before[key] == "" || before[key] != now[key] {
				t.Errorf("%s was %q and is %q", key, before[key], now[key])
			}
		}
		if now["Restarts"] == "0" {
			t.Error("the job was never moved, so that nothing was shown")
		}
		if tried := s.read(alpha, "good.attempts"); !strings.Contains(tried, "on 2") && !strings.Contains(tried, "on 3") {
			t.Errorf("no attempt had other cores:\n%s", tried)
		}
	})
	t.Run("accounting has one record a run, all of one job and owner", func(t *testing.T) {
		var lines []string
		s.await("accounting", func() error {
			lines = strings.Split(s.as(alpha, "sacct", "-D", "-X", "-n", "-P", "-j", good.id, "-o", "jobid,user,account,state"), "\n")
			if !strings.HasSuffix(lines[len(lines)-1], "|COMPLETED") {
				return fmt.Errorf("%q", lines)
			}
			return nil
		})
		if len(lines) < 2 {
			t.Errorf("sacct shows %q, want a record a run", lines)
		}
		for i, l := range lines {
			want := good.id + "|" + alpha + "|" + slurmcluster.AlphaAccount + "|"
			if state, ok := strings.CutPrefix(l, want); !ok || state != "REQUEUED" && i < len(lines)-1 {
				t.Errorf("record %d is %q, want %s…", i, l, want)
			}
		}
	})
	t.Run("the dependant ran once and after the last attempt", func(t *testing.T) {
		if got := s.read(alpha, "after.attempts"); strings.Count(got, "\n") != 1 {
			t.Errorf("attempts of the dependant: %q", got)
		}
		if ended, began := s.record(good.id)["EndTime"], s.record(after.id)["StartTime"]; began < ended {
			t.Errorf("the job ended at %s, its dependant began at %s", ended, began)
		}
	})
	t.Run("a job that its owner cancelled stays cancelled", func(t *testing.T) {
		s.await("the controller to be through with it", func() error {
			j, err := s.client.Job(t.Context(), gone.id)
			if err == nil && !j.Ended {
				err = fmt.Errorf("phase %s", j.Phase)
			}
			return err
		})
		if r := s.record(gone.id); r["JobState"] != "CANCELLED" {
			t.Errorf("state %s", r["JobState"])
		}
	})
	t.Run("another user's job is neither seen nor touched", func(t *testing.T) {
		if r := s.record(other.id); r["Restarts"] != "0" || r["NumCPUs"] != "1" {
			t.Errorf("restarts %s, CPUs %s", r["Restarts"], r["NumCPUs"])
		}
		if _, err := s.client.Job(t.Context(), other.id); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("the controller knows it: %v", err)
		}
	})
}
