package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm/command"
)

// slurmWith is a Slurm whose sbatch takes a job, and whose scontrol says whether it may be
// put back into the queue.
type slurmWith struct{ requeue int }

func (s slurmWith) Run(_ context.Context, c command.Call) (command.Output, error) {
	if c.Name == "sbatch" {
		return command.Output{Stdout: []byte("7\n")}, nil
	}
	return command.Output{Stdout: fmt.Appendf(nil, "JobId=7 JobName=a UserId=a(1) GroupId=g(1) Priority=1 Account=(null) QOS=normal JobState=PENDING Reason=None "+
		"Dependency=(null) Requeue=%d Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 TimeLimit=UNLIMITED SubmitTime=2026-01-01T00:00:00 "+
		"EligibleTime=2026-01-01T00:00:00 StartTime=Unknown EndTime=Unknown Partition=main NodeList= NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 "+
		"MinMemoryNode=100M Command=(null) WorkDir=/ StdErr=/o StdIn=/dev/null StdOut=/o Power= \n", s.requeue)}, nil
}

func TestAJobThatIsOnlyObservedOnceItRunsIsSaidToBe(t *testing.T) {
	t.Parallel()
	const moved = "#!/bin/sh\n#TUNE mode=apply\n#TUNE checkpoint signal=USR1 exit=85\ntrue\n"
	for _, c := range []struct {
		name, script string
		requeue      int
		off, said    bool
	}{
		{"where restarts are forbidden", moved, 0, false, true},
		{"where they are not", moved, 1, false, false},
		{"of a job that stays untuned nothing is said", moved, 0, true, false},
		{"nor of one without a checkpoint", "#!/bin/sh\n#TUNE mode=apply\ntrue\n", 0, false, false},
		{"nor of one without a stanza", "#!/bin/sh\ntrue\n", 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			a := &app{World: World{Stderr: &stderr}}
			file, err := detect.For("slurm")("a.sh", []byte(c.script), nil)
			if err != nil {
				t.Fatal(err)
			}
			id, err := a.submitToSlurm(slurmWith{c.requeue})(t.Context(), file, driver.Spec{Filename: "a.sh", Source: []byte(c.script), Off: c.off})
			if err != nil || id != "7" {
				t.Fatalf("job %q, %v", id, err)
			}
			if said := strings.Contains(stderr.String(), "job 7 is only observed once it runs"); said != c.said {
				t.Errorf("said %q", stderr.String())
			}
		})
	}
}
