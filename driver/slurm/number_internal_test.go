package slurm

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// shown is a record of scontrol, with a comment of its user's choice.
func shown(id int, user, comment string) string {
	return fmt.Sprintf("JobId=%d JobName=n UserId=%s(1) GroupId=g(1) Priority=1 Account=(null) QOS=normal JobState=RUNNING Reason=None "+
		"Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 TimeLimit=UNLIMITED SubmitTime=2026-01-02T03:04:05 "+
		"EligibleTime=2026-01-02T03:04:05 StartTime=2026-01-02T03:04:05 EndTime=Unknown Partition=main NodeList=n1 BatchHost=n1 NumNodes=1 "+
		"NumCPUs=1 NumTasks=1 CPUs/Task=1 MinMemoryNode=100M Command=(null) WorkDir=/ Comment=%s StdErr=/o StdIn=/dev/null StdOut=/o Power= \n", id, user, comment)
}

func TestATextOfOneUserNeverStandsForAnothersJob(t *testing.T) {
	t.Parallel()
	d := &Driver{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	forged := "x\n" + shown(999, "mallory", "y")
	out := shown(999, "alice", "mine") + shown(1000, "mallory", forged) + shown(1001, "bob", "")
	got := map[string]parse.Job{}
	d.pick([]byte(out), map[string]bool{"999": true, "1001": true}, got)
	if j, ok := got["999"]; ok {
		t.Errorf("job 999 was read as %s's, want it left to be read by itself", j.User)
	}
	if got["1001"].User != "bob" {
		t.Errorf("job 1001 is %+v, want bob's", got["1001"])
	}
}

func TestAJobUnderANumberThatCameRoundIsAnother(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	ended := &driver.Job{Ended: first.Add(time.Hour)}
	one := []driver.Attempt{{Number: 1}}
	for _, c := range []struct {
		name string
		j    parse.Job
		r    Record
		want bool
	}{
		{"the same job, waiting again", parse.Job{User: "a", State: "PENDING", Restarts: 1, Submitted: first.Add(time.Minute)}, Record{User: "a", Submitted: first, Attempts: one}, false},
		{"the same job, ended", parse.Job{User: "a", State: "COMPLETED", Submitted: first}, Record{User: "a", Submitted: first, Attempts: one, Last: ended}, false},
		{"the same job, whose end slurmctld forgot", parse.Job{User: "a", State: "RUNNING", Submitted: first}, Record{User: "a", Submitted: first, Attempts: one, Last: ended}, false},
		{"another user's", parse.Job{User: "b", State: "PENDING", Submitted: first}, Record{User: "a", Submitted: first}, true},
		{"the same user's, submitted after the end of the first", parse.Job{User: "a", State: "PENDING", Submitted: first.Add(2 * time.Hour)}, Record{User: "a", Submitted: first, Attempts: one, Last: ended}, true},
		{"one that was submitted before", parse.Job{User: "a", State: "PENDING", Submitted: first.Add(-time.Hour)}, Record{User: "a", Submitted: first}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := another(c.j, &c.r); got != c.want {
				t.Errorf("another is %v, want %v", got, c.want)
			}
		})
	}
}

func TestAnOlderReadingNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	d := &Driver{seen: map[driver.JobID]seen{}, doubted: map[driver.JobID]time.Time{}}
	now := time.Now()
	d.remember("1", seen{at: now, job: parse.Job{State: "RUNNING"}})
	d.remember("1", seen{at: now.Add(-time.Second), job: parse.Job{State: "PENDING"}})
	if got := d.seen["1"].job.State; got != "RUNNING" {
		t.Errorf("state %s, want that of the newer reading", got)
	}
}
