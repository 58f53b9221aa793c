package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// grows is a batch script that asks for much memory and takes as much in each epoch as a file
// next to it says. It waits for a while, as jobs do in a queue.
func (s *stage) grows() string {
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=grows --output=%%j.out --open-mode=append --requeue
#SBATCH --cpus-per-task=1 --mem=%[1]dM --time=02:00:00
#TUNE mode=apply objective=cost
#TUNE knob memory min=16M max=%[1]dM
#TUNE progress pattern='%[2]s'
echo "${SLURM_RESTART_COUNT:-0} $SLURM_MEM_PER_NODE" >>$SLURM_JOB_ID.attempts
exec %[3]s tick --epochs 8 --epoch-seconds 1 --grow $(cat grow)
`, asked, pattern, s.w.path("workload"))
}

// asked is what its owner asks for, in MiB.
const asked = 2048

// memoryStory: after one run, the memory of a pending job of the kind is lowered. One that
// outgrows it is killed while no controller runs; the next controller makes it run again,
// once, with its owner's memory, and lowers none of the kind for a while. It kills the
// controller of the deployment, and is the last story of it.
func (s *stage) memoryStory(h deployment) {
	s.t.Helper()
	t, user := s.t, h.user
	if !strings.Contains(s.as("slurm", "scontrol", "show", "config"), "proctrack/cgroup") {
		t.Skip("Slurm limits no memory here, without control groups of version 1; driver/slurm tests the same with a simulated Slurm")
	}
	submit := func(grow string) submission {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.c.Home(user), "grow"), []byte(grow), 0o644); err != nil { //nolint:gosec // the job reads it
			t.Fatal(err)
		}
		sub := s.sbatch(user, "grows", s.grows(), nil, "--partition="+h.partition, "--nodelist="+s.node(2), "--begin=now+8")
		s.follow(h, sub)
		return sub
	}
	attempts := func(sub submission) (memory []int) {
		t.Helper()
		for i, line := range strings.Split(strings.TrimSpace(s.read(user, sub.id+".attempts")), "\n") {
			restart, mib, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(mib)
			if err != nil || restart != strconv.Itoa(i) {
				t.Fatalf("job %s: attempt %d is %q", sub.id, i, line)
			}
			memory = append(memory, n)
		}
		return memory
	}
	first := submit("4")
	s.seenEnded(h, first)
	if got := attempts(first); len(got) != 1 || got[0] != asked {
		t.Errorf("the first of its kind ran with %v MiB, want its owner's %d", got, asked)
	}
	second := submit("4")
	s.seenEnded(h, second)
	got := attempts(second)
	if len(got) != 1 || got[0] >= asked/4 {
		t.Fatalf("the second ran with %v MiB, want once, with much less than %d", got, asked)
	}
	third := submit("100")
	s.await("the third begins", func() error {
		if s.read(user, third.id+".attempts") == "" {
			return fmt.Errorf("it is %s", s.record(third.id)["JobState"])
		}
		return nil
	})
	h.kill()
	s.await("the third is killed for its memory", func() error {
		if state := s.record(third.id)["JobState"]; state != "OUT_OF_MEMORY" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	h = h.again(s)
	s.follow(h, first, second, third)
	s.await("the third runs again", func() error {
		if lines := strings.Count(s.read(user, third.id+".attempts"), "\n"); lines != 2 {
			return fmt.Errorf("%d attempts, and it is %s", lines, s.record(third.id)["JobState"])
		}
		return nil
	})
	s.seenEnded(h, third)
	if got := attempts(third); len(got) != 2 || got[0] >= asked/4 || got[1] != asked {
		t.Errorf("the third ran with %v MiB, want less, and then its owner's %d", got, asked)
	}
	fourth := submit("4")
	s.seenEnded(h, fourth)
	if got := attempts(fourth); len(got) != 1 || got[0] != asked {
		t.Errorf("after a kill the next ran with %v MiB, want its owner's %d", got, asked)
	}
}
