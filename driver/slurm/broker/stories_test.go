package broker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/test/slurmcluster"
)

func aGroupLimit(t *testing.T, s *site) {
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=2")
	b := s.broker(t, "limit", func(r *role) { r.Above = []string{"main"} })
	ours := s.submit(t, slurmcluster.Beta, true, "--begin=now+1hour", "-c", "2", "--wrap", "#TUNE mode=apply\nsleep 600")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.run(t, "root", "scontrol", "-o", "show", "assoc_mgr", "flags=assoc"), "GrpTRES=cpu=2("); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("slurmctld does not hear of the limit")
		}
	}
	four := role{Verb: "update", Job: ours, Update: size(4, 200, 0)} // not twice the memory by CPU
	refused(t, "four cores of two", b.controller(t, four), driver.ErrDenied, "user "+slurmcluster.Beta+" in account beta has GrpTRES=cpu 2, of which other jobs use 0, and the job would add 4")
	if got := s.field(t, ours, "NumCPUs"); got != "2" {
		t.Errorf("the job has %s CPUs, want 2", got)
	}

	// What the broker kept from happening: Slurm takes it from an Operator, and runs it.
	theirs := s.submit(t, slurmcluster.Beta, true, "-H", "-c", "2", "--wrap", "#TUNE mode=apply\nsleep 600")
	s.run(t, slurmcluster.Operator, "scontrol", "update", "JobId="+theirs, "NumCPUs=4", "CpusPerTask=4")
	s.run(t, slurmcluster.Operator, "scontrol", "release", theirs)
	s.until(t, theirs, "JobState", "RUNNING")
	if got := s.field(t, theirs, "NumCPUs"); got != "4" {
		t.Errorf("the job that an Operator changed by hand has %s CPUs, want 4: does Slurm look at the limit now?", got)
	}

	// A smaller size is not harmless either: the limit is used up, and an Operator's update
	// would let the job start all the same.
	refused(t, "one core of none that is left", b.controller(t, role{Verb: "update", Job: ours, Update: size(1, 200, 0)}), driver.ErrDenied, "of which other jobs use 4")
	s.run(t, slurmcluster.Beta, "scancel", ours, theirs)
	s.until(t, theirs, "JobState", "CANCELLED")

	// The second of two that wait is refused: the first will start whatever is used.
	first := s.submit(t, slurmcluster.Beta, true, "--begin=now+1hour", "-c", "1", "--mem=100", "--wrap", "#TUNE mode=apply\nsleep 600")
	second := s.submit(t, slurmcluster.Beta, true, "--begin=now+1hour", "-c", "1", "--mem=100", "--wrap", "#TUNE mode=apply\nsleep 600")
	var full error
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until what was cancelled is given back
		if full = b.controller(t, role{Verb: "update", Job: first, Update: size(2, 0, 0)}); full == nil || time.Now().After(deadline) {
			break
		}
	}
	if full != nil {
		t.Errorf("two cores of two: %v", full)
	}
	refused(t, "two cores beside two that wait", b.controller(t, role{Verb: "update", Job: second, Update: size(2, 0, 0)}), driver.ErrDenied, "GrpTRES=cpu 2, of which other jobs use 2, and the job would add 2")
	s.run(t, slurmcluster.Beta, "scancel", first, second)
	s.run(t, "slurm", "sacctmgr", "-i", "-Q", "modify", "user", slurmcluster.Beta, "set", "GrpTRES=cpu=-1")
}

func notAccepted(t *testing.T, s *site) {
	b := s.broker(t, "accept", nil)
	id := s.submit(t, slurmcluster.Beta, false, "--comment", "x AdminComment="+accepted, s.script(t, patient))
	s.until(t, id, "JobState", "RUNNING")
	before := s.run(t, "root", "squeue", "-h", "-j", id, "-O", "State,NumCPUs,MinMemory,TimeLimit,RestartCnt,SubmitTime")
	for _, ask := range []role{
		{Verb: "signal", Signal: "SIGUSR1"}, {Verb: "requeue"}, {Verb: "discard"}, {Verb: "update", Update: size(1, 0, 0)}, {Verb: "release"}, {Verb: "script"},
	} {
		ask.Job = id
		refused(t, ask.Verb+" of a job that pretends to be accepted", b.controller(t, ask), driver.ErrDenied, "imitates")
	}
	// Slurm takes a name that begins another line of what scontrol prints.
	two := s.submit(t, slurmcluster.Beta, true, "--job-name", "x\nand y", s.script(t, patient))
	s.until(t, two, "JobState", "RUNNING")
	refused(t, "a signal to a job with a newline in its name", b.controller(t, role{Verb: "signal", Job: two, Signal: "SIGUSR1"}), driver.ErrDenied, "more than one line")
	s.run(t, slurmcluster.Beta, "scancel", two)
	plain := s.submit(t, slurmcluster.Beta, false, s.script(t, patient))
	refused(t, "script of a job that the plugin did not accept", b.controller(t, role{Verb: "script", Job: plain}), driver.ErrDenied, "accepted no stanza")
	if after := s.run(t, "root", "squeue", "-h", "-j", id, "-O", "State,NumCPUs,MinMemory,TimeLimit,RestartCnt,SubmitTime"); after != before {
		t.Errorf("the job was %q and is %q", before, after)
	}
	marked := s.submit(t, slurmcluster.Beta, true, s.script(t, patient))
	s.until(t, marked, "JobState", "RUNNING")
	for _, account := range []string{slurmcluster.Alpha, slurmcluster.Beta, slurmcluster.Operator} {
		refused(t, account+" asks", b.ask(t, account, role{Verb: "signal", Job: marked, Signal: "SIGUSR1"}), driver.ErrDenied, "only the site's controller may ask")
	}
	b.must(t, role{Verb: "signal", Job: marked, Signal: "SIGUSR1"})
	s.run(t, slurmcluster.Beta, "scancel", id, plain, marked)
}

func aWholeMove(t *testing.T, s *site) {
	b := s.broker(t, "move", nil)
	id := s.submit(t, slurmcluster.Alpha, true, "-c", "2", "--mem=200", "-t", "60", s.script(t, patient))
	s.until(t, id, "JobState", "RUNNING")
	refused(t, "a requeue before the signal", b.controller(t, role{Verb: "requeue", Job: id}), driver.ErrDenied, "not asked to save")
	refused(t, "a discard of its owner's own attempt", b.controller(t, role{Verb: "discard", Job: id}), driver.ErrDenied, "it does not discard its work")
	b.must(t, role{Verb: "signal", Job: id, Signal: "SIGUSR1"})
	b.must(t, role{Verb: "requeue", Job: id})
	s.until(t, id, "JobState", "PENDING")
	refused(t, "half its memory", b.controller(t, role{Verb: "update", Job: id, Update: size(0, 100, 0)}), driver.ErrDenied, "does not allow 100 MiB of memory")
	refused(t, "half its time", b.controller(t, role{Verb: "update", Job: id, Update: size(0, 0, 30)}), driver.ErrDenied, "30m0s is less than the 1h0m0s")
	u := size(1, 0, 0)
	u.Start = start(2 * time.Minute).Start
	b.must(t, role{Verb: "update", Job: id, Update: u})
	for key, want := range map[string]string{"NumCPUs": "1", "CPUs/Task": "1", "MinMemoryNode": "200M", "TimeLimit": "01:00:00", "Restarts": "1"} {
		if got := s.field(t, id, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	refused(t, "three cores of two", b.controller(t, role{Verb: "update", Job: id, Update: size(3, 0, 0)}), driver.ErrDenied, "3 cores are more than the 2")
	b.must(t, role{Verb: "update", Job: id, Update: size(2, 200, 60)})
	s.run(t, slurmcluster.Alpha, "scontrol", "update", "JobId="+id, "TimeLimit=20")
	refused(t, "an hour of twenty minutes", b.controller(t, role{Verb: "update", Job: id, Update: size(0, 0, 60)}), driver.ErrDenied, "more than the 20m0s")
	b.must(t, role{Verb: "update", Job: id, Update: start(3 * time.Second)})
	s.until(t, id, "JobState", "RUNNING")
	if user := s.field(t, id, "UserId"); !strings.HasPrefix(user, slurmcluster.Alpha+"(") {
		t.Errorf("the job runs as %s", user)
	}
	// The attempt is one of the controller's making now.
	b.must(t, role{Verb: "discard", Job: id})
	s.until(t, id, "JobState", "PENDING")
	b.must(t, role{Verb: "update", Job: id, Update: start(3 * time.Second)})
	s.until(t, id, "JobState", "RUNNING")
	if got := s.field(t, id, "Restarts"); got != "2" {
		t.Errorf("the job was put back %s times, want 2", got)
	}
	s.run(t, slurmcluster.Alpha, "scancel", id)
}

func aFinishedJob(t *testing.T, s *site) {
	b := s.broker(t, "finished", nil)
	id := s.submit(t, slurmcluster.Alpha, true, "--wrap", "#TUNE mode=apply\nsleep 3")
	s.until(t, id, "JobState", "RUNNING")
	s.until(t, id, "JobState", "COMPLETED")
	for _, ask := range []role{{Verb: "requeue"}, {Verb: "discard"}, {Verb: "signal", Signal: "SIGUSR1"}, {Verb: "update", Update: start(0)}, {Verb: "release"}} {
		ask.Job = id
		refused(t, ask.Verb+" of a finished job", b.controller(t, ask), driver.ErrConflict, "it has ended")
	}
	if state, restarts := s.field(t, id, "JobState"), s.field(t, id, "Restarts"); state != "COMPLETED" || restarts != "0" {
		t.Errorf("the job is %s after %s restarts", state, restarts)
	}
}

func aHold(t *testing.T, s *site) {
	b := s.broker(t, "hold", nil)
	id := s.submit(t, slurmcluster.Alpha, true, "-H", "--wrap", "#TUNE mode=apply\ntrue")
	later := s.submit(t, slurmcluster.Alpha, true, "--begin=now+1hour", "--wrap", "#TUNE mode=apply\ntrue")
	refused(t, "a release", b.controller(t, role{Verb: "release", Job: id}), driver.ErrDenied, "a hold by its owner or the site stays")
	refused(t, "a start", b.controller(t, role{Verb: "update", Job: later, Update: start(0)}), driver.ErrDenied, "only its owner decides")
	if priority := s.field(t, id, "Priority"); priority != "0" {
		t.Errorf("the priority is %s, want 0: it is held", priority)
	}
	s.run(t, slurmcluster.Alpha, "scancel", id, later)
}

func anExit(t *testing.T, s *site) {
	b := s.broker(t, "exit", nil)
	output := filepath.Join(s.Home(slurmcluster.Alpha), "exit.out")
	id := s.submit(t, slurmcluster.Alpha, true, "-o", output, s.script(t, "#!/bin/bash\n#TUNE mode=apply\ntrap 'exit 85' USR1\necho here\nwhile true; do sleep 0.2; done\n"))
	s.said(t, output, 1)
	b.must(t, role{Verb: "signal", Job: id, Signal: "SIGUSR1"})
	s.until(t, id, "JobState", "SPECIAL_EXIT")
	b.must(t, role{Verb: "update", Job: id, Update: start(3 * time.Second)})
	b.must(t, role{Verb: "release", Job: id})
	s.until(t, id, "JobState", "RUNNING")
	s.run(t, slurmcluster.Alpha, "scancel", id)
	// The same state of another's making stays.
	theirs := s.submit(t, slurmcluster.Alpha, true, s.script(t, "#!/bin/bash\n#TUNE mode=apply\nexit 85\n"))
	s.until(t, theirs, "JobState", "SPECIAL_EXIT")
	refused(t, "the release of a job that left by itself", b.controller(t, role{Verb: "release", Job: theirs}), driver.ErrDenied, "not asked to save")
	s.run(t, slurmcluster.Alpha, "scancel", theirs)
}

func aKill(t *testing.T, s *site) {
	id := s.submit(t, slurmcluster.Alpha, true, "--begin=now+1hour", "-c", "4", "--mem=200", "--wrap", "#TUNE mode=apply\ntrue")
	change := role{Verb: "update", Job: id, Update: size(2, 0, 0)}
	for _, step := range []string{"update-recorded", "update-done"} {
		b := s.broker(t, "kill", func(r *role) { r.DieAt = step })
		if err := b.controller(t, change); !errors.Is(err, driver.ErrUnknown) {
			t.Errorf("killed at %s: %v, want %v", step, err, driver.ErrUnknown)
		}
		b.stop()
		if b.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Linux
			t.Errorf("the broker was not killed at %s", step)
		}
	}
	b := s.broker(t, "kill", nil)
	b.must(t, change)
	refused(t, "more than he asked for, after two kills", b.controller(t, role{Verb: "update", Job: id, Update: size(5, 0, 0)}), driver.ErrDenied, "5 cores are more than the 4")
	b.must(t, role{Verb: "update", Job: id, Update: slurmctl.Update{Cores: new(4)}})
	if got := s.field(t, id, "NumCPUs"); got != "4" {
		t.Errorf("the job has %s CPUs, want the 4 that its owner asked for", got)
	}
	s.run(t, slurmcluster.Alpha, "scancel", id)
}

// aKillForMemory: the broker dies between the two effects of a rerun, and the controller does
// nothing until the next one is asked.
func aKillForMemory(t *testing.T, s *site) {
	if !strings.Contains(s.run(t, "slurm", "scontrol", "show", "config"), "proctrack/cgroup") {
		t.Skip("Slurm limits no memory here, without control groups of version 1; the fake's tests are the same")
	}
	output := filepath.Join(s.Home(slurmcluster.Alpha), "memory.out")
	id := s.submit(t, slurmcluster.Alpha, true, "--begin=now+1hour", "--mem=300", "-o", output, s.script(t,
		"#!/bin/bash\n#TUNE mode=apply\necho \"$SLURM_MEM_PER_NODE\"\nhead -c 150M /dev/zero | tail | wc -c\nexit ${PIPESTATUS[1]}\n"))
	b := s.broker(t, "memory", func(r *role) { r.DieAt = "rerun-queued" })
	after := s.submit(t, slurmcluster.Alpha, false, "--dependency=afterok:"+id, "--wrap", "true")
	refused(t, "less memory of a job with a dependant", b.controller(t, role{Verb: "update", Job: id, Update: size(0, 60, 0)}), driver.ErrUnsupported, "job "+after+" depends on it")
	s.run(t, slurmcluster.Alpha, "scancel", after)
	b.must(t, role{Verb: "update", Job: id, Update: size(0, 60, 0)})
	refused(t, "a rerun of what waits", b.controller(t, role{Verb: "rerun", Job: id}), driver.ErrConflict, "not killed for memory")
	s.run(t, slurmcluster.Alpha, "scontrol", "update", "JobId="+id, "StartTime=now")
	s.until(t, id, "JobState", "OUT_OF_MEMORY")
	refused(t, "a requeue", b.controller(t, role{Verb: "requeue", Job: id}), driver.ErrConflict, "it has ended")
	if err := b.controller(t, role{Verb: "rerun", Job: id}); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("killed within a rerun: %v, want %v", err, driver.ErrUnknown)
	}
	b.stop()
	b = s.broker(t, "memory", nil)
	s.until(t, id, "JobState", "PENDING")
	b.must(t, role{Verb: "update", Job: id, Update: size(0, 300, 0)})
	refused(t, "less memory once more", b.controller(t, role{Verb: "update", Job: id, Update: size(0, 60, 0)}), driver.ErrDenied, "gets no less again")
	b.must(t, role{Verb: "update", Job: id, Update: start(3 * time.Second)})
	s.until(t, id, "JobState", "COMPLETED")
	refused(t, "a rerun of what has succeeded", b.controller(t, role{Verb: "rerun", Job: id}), driver.ErrConflict, "not killed for memory")
	if text, err := os.ReadFile(output); err != nil || !strings.HasPrefix(string(text), "60\n") || !strings.Contains(string(text), "\n300\n") || s.field(t, id, "Restarts") != "1" {
		t.Errorf("the job says %q (%v), after %s restarts", text, err, s.field(t, id, "Restarts"))
	}
}
