package broker_test

import (
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/slurmcluster"
)

// anOverrun: a job waits with a minute instead of half an hour, and each broker that is to give it
// its owner's limit back is gone or dies before it does. Slurm ends the job; the next broker makes
// it run again, with its owner's limit, and it runs to its end.
func anOverrun(t *testing.T, s *site) {
	lets := func(r *role) { r.Advice, r.Raise = []string{"main"}, 40*time.Second }
	first := s.broker(t, "advice", lets)
	id := s.submit(t, slurmcluster.Alpha, false, "-H", "-t", "30", "--requeue", "--wrap", `[ "$SLURM_RESTART_COUNT" ] || sleep 200`)
	refused(t, "advice by another than the controller", first.ask(t, slurmcluster.Alpha, role{Verb: "advise", Job: id, Limit: time.Minute}), driver.ErrDenied, "only the site's controller may ask")
	first.must(t, role{Verb: "advise", Job: id, Limit: time.Minute})
	first.stop()
	s.broker(t, "advice", func(r *role) { lets(r); r.DieAt = "advise-recorded" })
	s.run(t, slurmcluster.Alpha, "scontrol", "release", id)
	for deadline := time.Now().Add(4 * time.Minute); s.field(t, id, "JobState") != "TIMEOUT"; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("the job is %s, want ended at its limit", s.field(t, id, "JobState"))
		}
	}
	s.broker(t, "advice", lets)
	s.until(t, id, "JobState", "COMPLETED")
	for key, want := range map[string]string{"TimeLimit": "00:30:00", "Restarts": "1"} {
		if got := s.field(t, id, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}
