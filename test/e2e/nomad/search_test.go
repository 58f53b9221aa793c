package nomad_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/test/fault"
)

const (
	searchTrials, searchParallel, searchEpochs = 6, 2, 6
	learner                                    = "faults" // a search of jobs that learn nothing
)

// learns is its job file.
func (s *stage) learns(folder string) string {
	return fmt.Sprintf(`job "%[1]s" {
  type = "batch"
  group "work" {
    tuning {
      search {
        trials = %[2]d
        parallel = %[3]d
        epochs = %[4]d
        min_epochs = 2
        seed = 7
        system = "fixed"
      }
      knob "learning_rate" {
        env = "LEARNING_RATE"
        min = 0.01
        max = 1
        scale = "linear"
      }
      progress {
        pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)"
      }
      quality {
        direction = "max"
      }
      checkpoint {
        signal = "SIGUSR1"
        grace = "30s"
        exit = 85
      }
    }
    task "learn" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args = ["-c", "exec %[5]s --term --journal %[6]s/$PITCHPIPE_TRIAL.journal --epochs %[4]d --epoch 300ms"]
      }
      resources {
        cores = 1
        memory = 64
      }
    }
  }
}
`, learner, searchTrials, searchParallel, searchEpochs, s.path("faultjob"), folder)
}

// The search runs as jobs of Nomad, few at one time and each once: jobs that learn nothing, and where there is PyTorch
// the digits, whose best trial has its checkpoint.
func TestASearchRunsAsJobsOfNomad(t *testing.T) {
	s := newStage(t)
	t.Run(learner, func(t *testing.T) {
		s := s.in(t)
		folder := s.folder(learner)
		file := s.path(learner + ".nomad.hcl")
		if err := os.WriteFile(file, []byte(s.learns(folder)), 0o600); err != nil {
			t.Fatal(err)
		}
		for n, wrong := range fault.Judge(s.searched(learner, folder, file), folder) {
			t.Errorf("trial %d: %q", n, wrong)
		}
	})
	t.Run("digits", func(t *testing.T) {
		if testing.Short() {
			t.Skip("trains networks: make check runs it")
		}
		if err := noTorch(); err != nil {
			t.Skip(err)
		}
		s := s.in(t)
		file := s.path("jobspecs", "nomad", "digits-search.nomad.hcl")
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		short := strings.NewReplacer("trials     = 18", fmt.Sprint("trials = ", searchTrials), "epochs     = 18", fmt.Sprint("epochs = ", searchEpochs)).Replace(string(source))
		if err := os.WriteFile(file, []byte(short), 0o600); err != nil {
			t.Fatal(err)
		}
		x := s.searched("digits", s.folder("digits"), file, "--var", "script="+s.path("jobspecs", "slurm", "digits.py"), "--var", fmt.Sprint("epochs=", searchEpochs),
			"--var", "state_dir="+s.folder("marks"))
		if len(x.Trials) != searchTrials {
			t.Errorf("%d trials, want %d", len(x.Trials), searchTrials)
		}
		best := x.Searcher().Ranking()[0]
		folder := trials.Folder(x.Job.Dir, x.Name, x.ID, best.Number)
		if found, err := os.ReadDir(folder); err != nil || len(found) != 1 || best.State != searcher.Done {
			t.Errorf("the best trial is %s, and in %s is %v, %v", best.State, folder, found, err)
		}
	})
}

func (s *stage) folder(name string) string {
	s.t.Helper()
	dir := s.path(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// searched runs a search to its end.
func (s *stage) searched(id, dir, file string, args ...string) trials.State {
	s.t.Helper()
	began := time.Now()
	s.t.Logf("%s", s.run(append([]string{"search", "run", "--wait", "--request", id, "--dir", dir, file}, args...)...))
	x, err := s.client.SearchState(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("on %s: %d trials, %.0f s", s.agent.Name(), len(x.Trials), time.Since(began).Seconds())
	for n, wrong := range fault.Decided(x) {
		s.t.Errorf("trial %d: %q", n, wrong)
	}
	if most := s.most(x); most < 1 || most > searchParallel {
		s.t.Errorf("%d jobs ran at one time, want %d at most", most, searchParallel)
	}
	return x
}

// most is how many jobs of a search ran at one time, as their allocations say. Each had one.
func (s *stage) most(x trials.State) (most int) {
	s.t.Helper()
	type span struct{ from, to time.Time }
	var all []span
	for _, t := range x.Trials {
		for _, id := range t.Jobs {
			list := s.allocations(string(id))
			if len(list) != 1 {
				s.t.Errorf("job %s had %d allocations", id, len(list))
			}
			for _, a := range list {
				for _, task := range a.TaskStates {
					all = append(all, span{task.StartedAt, task.FinishedAt})
				}
			}
		}
	}
	for _, a := range all {
		n := 0
		for _, b := range all {
			if !b.from.After(a.from) && b.to.After(a.from) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
