package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/searchertest"
	"pitchpipe/controller/trials"
	"pitchpipe/driver"
)

// SearchFile is a job file whose trials are faultjobs: what one learns depends on its hyperparameter alone. The
// journals are in the folder, and more lines follow the first.
func SearchFile(name, program, folder string, trials, parallel, epochs int, epoch, more string) string {
	return fmt.Sprintf(`#!/bin/sh
#SBATCH --job-name=%s --cpus-per-task=1 --mem=256M --time=01:00:00
%s#TUNE search trials=%d parallel=%d epochs=%d min_epochs=2 seed=7 system=fixed
#TUNE knob learning_rate env=LEARNING_RATE min=0.01 max=1 scale=linear
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'
#TUNE quality direction=max
#TUNE checkpoint signal=USR1 grace=30s exit=85
exec %s --term --journal %s/$PITCHPIPE_TRIAL.journal --epochs %d --epoch %s
`, name, more, trials, parallel, epochs, program, folder, epochs, epoch)
}

// Wrong is what is wrong with a search, by trial; 0 is the search itself.
type Wrong map[int][]string

func (w Wrong) add(trial int, format string, args ...any) {
	w[trial] = append(w[trial], fmt.Sprintf(format, args...))
}

// Judge returns what is wrong with a search that is over, whatever met it meanwhile. Besides what Decided finds, that is a
// trial that ran twice at once, or that repeated work other than a lost job's since its checkpoint. The journals of its
// trials are in the folder.
func Judge(x trials.State, folder string) Wrong {
	wrong := Decided(x)
	for _, t := range x.Trials {
		text, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("%d.journal", t.Number)))
		if errors.Is(err, fs.ErrNotExist) && t.Last().Epoch == 0 && t.State == searcher.Stopped { // cancelled before it began
			continue
		}
		told := Read(string(text), x.Plan.Epochs)
		lost := lost(t)
		told.Discarded(lost)
		if lost > 0 && !strings.Contains(string(text), " beside") { // it may also have ended
			told.Twice = nil
		}
		ended := t.State != searcher.Done || told.Ends >= 1 && told.Ends <= 1+lost
		if err != nil || len(told.Twice)+len(told.Epochs) > 0 || told.reached() < t.Last().Epoch || !ended {
			wrong.add(t.Number, "%s after %d epochs and %d jobs: %v: %d attempts, %d ends: %q %q\n%s", t.State, t.Last().Epoch, len(t.Jobs), err,
				len(told.Attempts), told.Ends, told.Twice, told.Epochs, Shorten(string(text)))
		}
	}
	return wrong
}

// Decided returns what is wrong with a search that is over: a trial that was lost, an epoch that counts twice, a job too
// many, or decisions that the logged events do not lead to.
func Decided(x trials.State) Wrong {
	wrong := Wrong{}
	if s := x.Searcher(); !x.Over || s.Busy() > 0 || x.Closing == "" && len(x.Trials) != x.Plan.Search.Trials {
		wrong.add(0, "it is not over: %d of %d trials, %d busy, %q", len(x.Trials), x.Plan.Search.Trials, s.Busy(), x.Closing)
	}
	plan, err := searcher.PlanOf(x.Policy) // of a search that is shown it lacks what may be tried
	if err != nil {
		wrong.add(0, "%v", err)
	}
	x.Plan.Settings = plan.Settings
	actions, err := searchertest.Replay(x.Plan, x.Searcher().Snapshot)
	if err != nil {
		wrong.add(0, "replay: %v", err)
	}
	jobs, owner := map[int]int{}, map[driver.JobID]trials.Trial{}
	for _, a := range actions {
		if a.Kind == searcher.Create || a.Kind == searcher.Resume {
			jobs[a.Trial]++
		}
	}
	for _, t := range x.Trials {
		if t.Todo != "" || t.State == searcher.Failed || t.State == searcher.Diverged {
			wrong.add(t.Number, "%s, %q, and %q is to be done", t.State, t.Reason, t.Todo)
		}
		if jobs[t.Number] != t.Attempt || len(t.Jobs) > t.Attempt {
			wrong.add(t.Number, "%d jobs for %d attempts, and %d were decided on", len(t.Jobs), t.Attempt, jobs[t.Number])
		}
		for _, id := range t.Jobs {
			if other, ok := owner[id]; ok && lost(t)+lost(other) == 0 { // a scheduler that forgot one gives its id again
				wrong.add(t.Number, "job %s is of trial %d too", id, other.Number)
			}
			owner[id] = t
		}
		last := 0
		for _, r := range t.Reports {
			if r.Epoch <= last {
				wrong.add(t.Number, "epoch %d is reported after epoch %d", r.Epoch, last)
			}
			last = r.Epoch
		}
	}
	return wrong
}

// lost is how many jobs of a trial were.
func lost(t trials.Trial) (n int) {
	for _, e := range t.Log {
		if e.End == searcher.Lost {
			n++
		}
	}
	return n
}

// reached is the last epoch that was done.
func (t Told) reached() (out int) {
	for _, a := range t.Attempts {
		out = max(out, a.Done)
	}
	return out
}
