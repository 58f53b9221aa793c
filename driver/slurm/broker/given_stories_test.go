package broker_test

import (
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/slurmcluster"
)

// whatIsGiven has jobs that get more than they ask for, or would.
func whatIsGiven(t *testing.T, s *site) {
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=15")
	s.run(t, "root", "scontrol", "create", "PartitionName=each", "Nodes="+s.Nodes()[0], "MaxMemPerCPU=150", "MaxTime=INFINITE", "State=UP")
	b := s.broker(t, "given", nil)
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.run(t, "root", "scontrol", "-o", "show", "assoc_mgr", "flags=assoc"), "GrpTRES=cpu=15("); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("slurmctld does not hear of the limit")
		}
	}
	var ids []string
	waiting := func(args ...string) string {
		id := s.submit(t, slurmcluster.Beta, true, append(append([]string{"-c", "2", "--mem=200"}, args...), "--wrap", "#TUNE mode=apply\nsleep 600")...)
		ids = append(ids, id)
		return id
	}
	one := role{Verb: "update", Update: size(1, 0, 0)}
	one.Job = waiting("--begin=now+1hour", "--exclusive")
	refused(t, "one core of a whole node", b.controller(t, one), driver.ErrDenied, "more than the cores that it asks for")
	one.Job = waiting("--begin=now+1hour", "--exclusive=user")
	b.must(t, one)
	one.Job = waiting("--begin=now+1hour", "-p", "each")
	refused(t, "200 MiB of memory for one core", b.controller(t, one), driver.ErrDenied, "partition each has MaxMemPerCPU 150, and the job would have 200")
	one.Job = waiting("--begin=now+1hour", "-t", "10", "--deadline=now+1day")
	refused(t, "a job with a deadline", b.controller(t, one), driver.ErrUnsupported, "deadline")

	// What the broker keeps from happening: with fewer cores Slurm gives the job as many as
	// its memory needs there, whatever it asks for.
	theirs := waiting("-H", "-p", "each")
	s.run(t, slurmcluster.Operator, "scontrol", "update", "JobId="+theirs, "NumCPUs=1", "CpusPerTask=1")
	s.run(t, slurmcluster.Operator, "scontrol", "release", theirs)
	s.until(t, theirs, "JobState", "RUNNING")
	if got := s.field(t, theirs, "NumCPUs"); got != "2" {
		t.Errorf("the job that was told to have one core has %s, want the two that its memory needs: what does Slurm do now?", got)
	}
	s.run(t, slurmcluster.Beta, "scancel", ids...)
	s.until(t, theirs, "JobState", "CANCELLED")
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=-1")
}
