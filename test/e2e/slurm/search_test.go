package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/test/fault"
)

const (
	searchTrials, searchParallel, searchEpochs = 6, 2, 6
	trialMark                                  = "search=" // begins the line of each trial's job in squeue
)

// searchFile is the job file of a search, small enough for every test run: the digits, or without PyTorch a job that
// learns nothing.
func (s *stage) searchFile(dir string) (file string, args []string) {
	s.t.Helper()
	name, text := "faults", fault.SearchFile("faults", s.w.path("faultjob"), dir, searchTrials, searchParallel, searchEpochs, "200ms", "")
	if noTorch() == nil {
		name = "digits-search"
		source, err := os.ReadFile(s.w.path("jobspecs", "slurm", name+".sbatch"))
		if err != nil {
			s.t.Fatal(err)
		}
		short := fmt.Sprintf("search trials=%d parallel=%d epochs=%d ", searchTrials, searchParallel, searchEpochs)
		if text = strings.Replace(string(source), "search trials=18 parallel=2 epochs=18 ", short, 1); text == string(source) {
			s.t.Fatal("the search block of the job file is another")
		}
		args = []string{"--env", "PITCHPIPE_DIGITS=" + s.w.path("jobspecs", "slurm", "digits.py"), "--env", fmt.Sprintf("EPOCHS=%d", searchEpochs)}
	}
	text = strings.Replace(text, "#TUNE", "#SBATCH --output=%j.out --partition="+ownerPartition+" --nodelist="+s.node(2)+"\n#TUNE", 1)
	file = filepath.Join(s.w.dir, name+".sbatch")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // its user reads it
		s.t.Fatal(err)
	}
	return file, args
}

// searchStory: a user's search runs as his jobs, few at one time, each once; the best trial has its checkpoint.
func (s *stage) searchStory(h deployment) {
	dir := filepath.Join(s.c.Home(h.user), "search")
	s.as(h.user, "mkdir", dir)
	file, args := s.searchFile(dir)
	stop := s.crowd(h.user, strings.TrimSuffix(filepath.Base(file), ".sbatch"))
	began := time.Now()
	pitchpipe := func(args ...string) string {
		return s.as(h.user, s.w.path("pitchpipe"), append(args, "--socket", h.socket)...)
	}
	said := pitchpipe(append([]string{"search", "run", "--wait", "--request", "slurm", "--dir", dir, file}, args...)...)
	s.t.Logf("%.0f s:\n%s", time.Since(began).Seconds(), said)
	if most := stop(); most < 1 || most > searchParallel {
		s.t.Errorf("%d jobs waited or ran at one time, want %d at most", most, searchParallel)
	}
	x, err := h.client.SearchState(s.t.Context(), "slurm")
	if err != nil {
		s.t.Fatal(err)
	}
	for n, wrong := range fault.Decided(x) {
		s.t.Errorf("trial %d: %q", n, wrong)
	}
	s.eachOnce(h.user, x)
	best := x.Searcher().Ranking()[0]
	folder := trials.Folder(x.Job.Dir, x.Name, x.ID, best.Number)
	if found, err := os.ReadDir(folder); noTorch() == nil && (err != nil || len(found) != 1) || best.State != searcher.Done {
		s.t.Errorf("the best trial is %s, and in %s is %v, %v", best.State, folder, found, err)
	}
	s.plots(x.ID, h.user, pitchpipe)
}

// crowd counts how many jobs of a name wait or run at one time, until it is stopped.
func (s *stage) crowd(user, name string) (stop func() int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var most int
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if out, err := s.c.Run(ctx, user, "squeue", "-h", "--name="+name, "--states=PENDING,RUNNING", "-o", trialMark+"%i"); err == nil {
				most = max(most, strings.Count(out, trialMark))
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return most
	}
}

// eachOnce compares the accounting's jobs with those of the search: each is there, and no other is.
func (s *stage) eachOnce(user string, x trials.State) {
	s.t.Helper()
	ours := map[string]bool{}
	for _, t := range x.Trials {
		for _, id := range t.Jobs {
			ours[string(id)] = true
		}
	}
	s.await("accounting", func() error {
		lines := strings.Fields(s.as(user, "sacct", "-X", "-n", "-P", "-S", "now-1hour", "--name="+x.Name, "-o", "jobid,state"))
		seen := map[string]bool{}
		for _, l := range lines {
			if f := strings.Split(l, "|"); len(f) == 2 {
				id, state := f[0], f[1]
				if !ours[id] || state != "COMPLETED" && !strings.HasPrefix(state, "CANCELLED") && state != "FAILED" {
					return fmt.Errorf("%s, and the jobs of the search are %v", l, ours)
				}
				seen[id] = true
			}
		}
		if len(seen) != len(ours) {
			return fmt.Errorf("%v, want %v", seen, ours)
		}
		return nil
	})
}

// plots draws what the search did. They are kept in the folder that E2E_PLOTS names.
func (s *stage) plots(id, user string, pitchpipe func(args ...string) string) {
	s.t.Helper()
	dir := s.w.path("plots")
	s.as("root", "install", "-d", "-o", user, dir)
	for _, kind := range []string{"best-time", "parallel", "rungs"} {
		pitchpipe("search", "plot", kind, id, "-o", filepath.Join(dir, kind+".svg"))
	}
	if keep := os.Getenv("E2E_PLOTS"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
			s.t.Error(err)
		}
	}
}
