package nomad_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/e2e/table"
)

// shipped is a job file that ships.
type shipped struct {
	name  string
	vars  []string
	lacks func() error // why it cannot run here
	tuned int          // epochs when it is met for the first time and tuned
}

// all makes every job file run, which takes some minutes more; scripts/e2e-nomad does.
var all = flag.Bool("all", false, "run every job file, not the first alone")

func shippedFiles() []shipped {
	files := []shipped{{name: "jacobi", tuned: 40}, {name: "dense", tuned: 40}, {name: "digits-torch", lacks: noTorch, tuned: 30}}
	if !*all {
		files[0].tuned = 20
		return files[:1]
	}
	return files
}

func noTorch() error {
	if out, err := exec.Command("/usr/bin/python3", "-c", "import torch, sklearn").CombinedOutput(); err != nil { //nolint:noctx // it ends by itself
		return fmt.Errorf("python3-torch or python3-sklearn is missing (scripts/setup-jobs): %w: %.200s", err, out)
	}
	return nil
}

// againEpochs are those of a job that returns: there is nothing to be probed.
const againEpochs = 8

// Each job file runs untuned, is met for the first time and probed, and returns twice.
// First it has to wait for room, since another job has the whole node: it is changed
// there before it starts, unless what suits it better needs more room than what it waits
// for. Then there is room for it, and it begins with what is known.
func TestTheJobFilesThatShipAreTunedOnNomad(t *testing.T) {
	if testing.Short() {
		t.Skip("each job file runs four times: make check runs it")
	}
	s := newStage(t)
	var rows []table.Row
	for _, f := range shippedFiles() {
		t.Run(f.name, func(t *testing.T) {
			if f.lacks != nil {
				if err := f.lacks(); err != nil {
					t.Skip(err)
				}
			}
			rows = append(rows, s.in(t).tune(f)...)
		})
	}
	fmt.Fprintf(&report, "On %s.\n%s", s.agent.Name(), table.Print(rows))
	for _, r := range rows {
		for what, run := range map[string]table.Run{"untuned": r.Untuned, "first": r.First, "tuned": r.Tuned} {
			if run.Lost > 0 || run.Twice > 0 || run.State != "succeeded" || run.Restarts+run.Probes != run.Attempts-1 {
				t.Errorf("%s, %s (job %s): %s, %d epochs lost, %d twice, %d attempts, %d restarts and %d probes", r.Kind, what, run.ID, run.State, run.Lost, run.Twice, run.Attempts, run.Restarts, run.Probes)
			}
		}
		if r.Untuned.Attempts != 1 || !r.Untuned.Current.Equal(r.Untuned.Own) {
			t.Errorf("%s: the untuned job was touched: %d attempts under %v", r.Kind, r.Untuned.Attempts, r.Untuned.Current)
		}
		// What its first run showed is the machine's affair; it is to be used, or why not said.
		// Memory that it did not use is given up without being told as recalled, and the
		// change may have met the moment in which it began.
		// A machine that is slower meanwhile may make the stop-loss take it back.
		used := r.Tuned.Recalled || r.Tuned.Reason == tuning.ReasonRightSized || r.Tuned.Restarts > 0
		used = used && r.Tuned.Reason != tuning.ReasonStopLoss
		if used != !r.Tuned.Current.Equal(r.Tuned.Own) || r.Tuned.Reason == "" {
			t.Errorf("%s: the job that returned has %v, recalled: %v, %q", r.Kind, r.Tuned.Current, r.Tuned.Recalled, r.Tuned.Reason)
		}
	}
}

func (s *stage) tune(f shipped) []table.Row {
	s.t.Helper()
	r := table.Row{Mode: "nomad, it waits", Kind: f.name, Epochs: againEpochs}
	r.Untuned = s.result(s.send(f, againEpochs, "--off"), againEpochs, time.Time{})
	r.First = s.result(s.send(f, f.tuned), f.tuned, r.Untuned.Submitted)
	free := s.occupy()
	again := s.send(f, againEpochs)
	s.await("the controller to decide about the job that waits", func() error {
		j, err := s.client.Job(s.t.Context(), again)
		undecided := j.Phase == string(reconcile.Changing) || !j.Recalled && j.Reason == ""
		if err == nil && (j.Submitted.Equal(r.First.Submitted) || undecided) {
			err = fmt.Errorf("phase %s, %s", j.Phase, j.Sentence)
		}
		return err
	})
	free()
	r.Tuned = s.result(again, againEpochs, r.First.Submitted)
	return []table.Row{r, s.atOnce(f, r)}
}

// atOnce has the job return where there is room for it, so that Nomad starts it as soon
// as it is registered: what is known of it is in that one registration.
func (s *stage) atOnce(f shipped, r table.Row) table.Row {
	s.t.Helper()
	run := s.result(s.send(f, againEpochs), againEpochs, r.Tuned.Submitted)
	changed := run.Recalled || run.RightSized
	if run.State != "succeeded" || run.Lost+run.Twice != 0 || run.Attempts != 1+run.Restarts+run.Probes {
		s.t.Errorf("%s, at once: %s, %d epochs lost, %d twice, %d attempts, %d restarts and %d probes", f.name, run.State, run.Lost, run.Twice, run.Attempts, run.Restarts, run.Probes)
	}
	list := s.allocations(run.ID)
	first := list[max(0, len(list)-run.Attempts)]
	alloc, _, err := s.nomad.Allocations().Info(first.ID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, begun := spec.Begun(alloc.Job); begun != changed {
		s.t.Errorf("%s, at once: its first allocation began with a change: %v, and its story says that it did: %v (%s)", f.name, begun, changed, run.Reason)
	}
	r.Mode, r.Tuned = "nomad, at once", run
	return r
}

// send submits the job file as it ships, under its own id.
func (s *stage) send(f shipped, epochs int, args ...string) string {
	s.t.Helper()
	file := s.path("jobspecs", "nomad", f.name+".nomad.hcl")
	if f.name == "digits-torch" {
		args = append(args, "--var", "script="+s.path("jobspecs", "slurm", "digits.py"))
	} else {
		args = append(args, "--var", "workload="+s.path("workload"))
	}
	state, err := os.MkdirTemp(s.dir, "state-")
	if err != nil {
		s.t.Fatal(err)
	}
	args = append(append([]string{"run"}, args...), "--var", fmt.Sprintf("epochs=%d", epochs), "--var", "state_dir="+state, file)
	return s.run(append(args, f.vars...)...)
}

// occupy makes a job take every core of the node, and returns what ends it.
func (s *stage) occupy() (free func()) {
	s.t.Helper()
	id := fmt.Sprintf("occupy-%d", len(s.allocations("")))
	job := nomadapi.NewBatchJob(id, id, "global", 90)
	job.Datacenters = []string{"*"}
	task := nomadapi.NewTask("sleep", "raw_exec").SetConfig("command", "/bin/sleep").SetConfig("args", []string{"3600"})
	nodes, _, err := s.nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		s.t.Fatalf("%d nodes: %v", len(nodes), err)
	}
	node, _, err := s.nomad.Nodes().Info(nodes[0].ID, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	cores, memory := int(node.NodeResources.Cpu.TotalCpuCores), 64
	task.Resources = &nomadapi.Resources{Cores: &cores, MemoryMB: &memory}
	job.AddTaskGroup(nomadapi.NewTaskGroup("g", 1).AddTask(task))
	if _, _, err := s.nomad.Jobs().Register(job, nil); err != nil {
		s.t.Fatal(err)
	}
	s.await("the node to be full", func() error {
		for _, a := range s.allocations(id) {
			if a.ClientStatus == "running" {
				return nil
			}
		}
		return errors.New("no allocation runs")
	})
	return func() {
		if _, _, err := s.nomad.Jobs().Deregister(id, true, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

// allocations are those of a job, or all, the oldest first.
func (s *stage) allocations(job string) []*nomadapi.AllocationListStub {
	s.t.Helper()
	list, _, err := s.nomad.Allocations().List(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(a *nomadapi.AllocationListStub) bool { return job != "" && a.JobID != job })
	slices.SortFunc(list, func(a, b *nomadapi.AllocationListStub) int { return int(a.CreateIndex) - int(b.CreateIndex) }) //nolint:gosec // indexes are small here
	return list
}

// result waits for a job and reads what it did.
func (s *stage) result(id string, epochs int, before time.Time) table.Run {
	s.t.Helper()
	r := table.Run{Job: s.through(id, before)}
	r.Attempts = r.Attempt
	output := s.run("logs", id)
	story, err := s.client.Explain(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Lost, r.Twice = table.LostAndTwice(output, epochs, table.Discards(story))
	if !strings.Contains(output, "done after") {
		s.t.Logf("%s wrote:\n%s", id, output)
	}
	r.Seconds = s.seconds(id, r.Attempts)
	return r
}

// seconds is from the start of the first to the end of the last of the newest
// allocations of a job.
func (s *stage) seconds(id string, attempts int) float64 {
	s.t.Helper()
	job, _, _ := strings.Cut(id, "@")
	list := s.allocations(job)
	list = list[max(0, len(list)-attempts):]
	if len(list) == 0 {
		s.t.Fatalf("%s has no allocation", id)
	}
	first, last := list[0].TaskStates, list[len(list)-1].TaskStates
	for name, begun := range first {
		if ended, ok := last[name]; ok {
			return ended.FinishedAt.Sub(begun.StartedAt).Seconds()
		}
	}
	s.t.Fatalf("%s has no task", id)
	return 0
}
