package faultslurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/test/fault"
)

const (
	searchTrials, searchParallel, searchEpochs = 12, 4, 9
	searchEpoch                                = "1s"
)

// onTrial is the outcome of a trial.
type onTrial struct {
	name   string
	wrong  []string
	slurms bool          // a job of it was over, and slurmctld did not come to know it
	again  bool          // a job of it was lost, so that another went on
	took   time.Duration // of the search
}

// TestFaultsChangeNoSearch: searches meet kills of their controller and of Slurm's processes. No trial is lost, none runs
// twice at once, no report counts twice, only work since a checkpoint is done again, and the logged events lead to the
// outcome of the search. slurmctld is ended with SIGTERM: one that is killed forgets what it acknowledged, gives ids again
// and runs ended jobs again, which is Slurm's own (see doc.go).
func TestFaultsChangeNoSearch(t *testing.T) {
	if options.Sample() {
		t.Skip("it takes minutes; scripts/fault search runs it")
	}
	w := newWorld(t, true)
	got := fault.Campaign[onTrial]{
		Options: *options, Owners: 1, Story: w.story, Administer: w.administer,
		Families: []fault.Family{
			{Kind: kindAnywhere, Weight: 6},
			{Kind: kindCtldTerm, Weight: 2},
			{Kind: kindNode, Weight: 2},
			{Kind: kindGiveUp, Weight: 1},
			{Kind: kindRequeue, Weight: 1},
		},
		Begin: func(r *fault.Round) (fault.Jobs[onTrial], error) { return w.search(r) },
		Judge: func(v onTrial) (right bool, failure, note string) {
			if len(v.wrong) > 0 {
				failure = fmt.Sprintf("%s: %q", v.name, v.wrong)
			}
			return failure == "", failure, ""
		},
	}.Run(t)
	w.remains()
	side := fault.Side{Strikes: got.Strikes, Verdicts: map[string]fault.Verdict{}}
	for name, v := range got.Verdicts {
		side.Verdicts[name] = fault.Verdict{Counts: []bool{len(v.wrong) == 0, len(v.wrong) > 0, v.again, v.slurms}, Took: v.took}
	}
	fault.Publish(t, fmt.Sprintf("seed %d, %d trials of searches, %v\n\n%s\njobs: trials that ran when it struck. right: nothing of it was lost or counted twice, it never ran beside itself, and the\n"+
		"log leads to what became of it. again: a job of it was lost. Slurm's: its job was over, and a\n"+
		"slurmctld that had not heard of that took it for running, or ran it again when its owner asked for that. longest: a search.\n",
		options.Seed, len(got.Verdicts), got.Took.Round(time.Second), fault.Table(side, []string{"right", "wrong", "again", "Slurm's"}, "longest")))
}

// searching is a search that faults meet.
type searching struct {
	*fault.Round

	w          *world
	o          *owner
	id, folder string

	mu   sync.Mutex
	last trials.State    // as its controller last said
	put  map[string]bool // trials that their owner put back into the queue
}

// search begins one as the user's own controller runs it.
func (w *world) search(r *fault.Round) (*searching, error) {
	o := w.owners[0]
	s := &searching{Round: r, w: w, o: o, id: fmt.Sprintf("r%d", r.Number), put: map[string]bool{}}
	s.folder = filepath.Join(o.home, s.id)
	if _, err := o.as("mkdir", s.folder); err != nil {
		return nil, err
	}
	more := "#SBATCH --output=" + s.folder + "/%j.out --open-mode=append --requeue --partition=" + o.partition + "\n"
	source := fault.SearchFile(s.id, w.program("faultjob"), s.folder, searchTrials, searchParallel, searchEpochs, searchEpoch, more)
	file := filepath.Join(w.dir, s.id+".sbatch")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil { //nolint:gosec // its owner reads it
		return nil, err
	}
	await(w.t, "the search to begin", func() error { // its controller may have been killed a moment ago
		_, err := o.as(w.program("pitchpipe"), "search", "run", "--socket", filepath.Join(o.dir, "controller.sock"), "--request", s.id, "--dir", s.folder, file)
		return err
	})
	return s, nil
}

// now is the search as its controller says, or said before it was killed.
func (s *searching) now() trials.State {
	x, err := s.o.client.SearchState(s.w.t.Context(), s.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = x
	}
	return s.last
}

// busy are the names of the trials that run, and their jobs.
func (s *searching) busy() (out, jobs []string) {
	for _, t := range s.now().Trials {
		if n := len(t.Jobs); t.Busy && n == t.Attempt {
			out, jobs = append(out, s.name(t.Number)), append(jobs, string(t.Jobs[n-1]))
		}
	}
	return out, jobs
}

func (s *searching) name(trial int) string { return fmt.Sprintf("%s/%d", s.id, trial) }

// Inject does the faults, one at a time.
func (s *searching) Inject(faults []fault.Fault) (left []fault.Fault) {
	return s.Round.Inject(fault.Work{
		Queues: [][]fault.Fault{faults}, Inflict: s.inflict, Moved: func() bool { out, _ := s.busy(); return len(out) > 0 }, Log: s.w.story.Logf,
		Left: func() int { x := s.now(); return searchTrials - len(x.Trials) + x.Searcher().Busy() },
	})
}

func (s *searching) inflict(f *fault.Fault) ([]string, error) {
	time.Sleep(time.Duration(s.Random(1500)) * time.Millisecond)
	touched, jobs := s.busy()
	if len(touched) == 0 {
		return nil, fault.ErrMissed
	}
	pause := time.Duration(s.Random(1500)) * time.Millisecond
	ctx := s.w.t.Context()
	switch f.Kind {
	case kindAnywhere:
		s.o.controller.Crash()
		return touched, nil
	case kindGiveUp, kindRequeue:
		i := s.Random(len(jobs))
		command := []string{"scancel", jobs[i]}
		if f.Kind == kindRequeue {
			command = []string{"scontrol", "requeue", jobs[i]}
		}
		if _, err := s.o.as(command[0], command[1:]...); err != nil { // it has not begun, or has ended
			return nil, fault.ErrMissed
		}
		if f.Kind == kindRequeue { // Slurm lets it wait for two minutes
			s.mu.Lock()
			s.put[touched[i]] = true
			s.mu.Unlock()
			s.Later(pause, func() error { _, _ = s.o.as("scontrol", "update", "JobId="+jobs[i], "StartTime=now"); return nil })
		}
		return touched[i : i+1], nil
	case kindNode:
		i := s.Random(len(s.w.c.Nodes()))
		s.w.c.KillNode(i)
		time.Sleep(pause)
		defer s.w.remind()
		return touched, s.w.c.StartNode(ctx, i)
	}
	s.w.ctld.Lock()
	defer s.w.ctld.Unlock()
	s.w.c.StopCtld()
	time.Sleep(pause)
	return touched, s.w.c.StartCtld(ctx)
}

// Finish waits for the end of the search.
func (s *searching) Finish() (map[string]onTrial, error) {
	s.Settle()
	var x trials.State
	slurms := map[int]bool{}
	for began := time.Now(); ; time.Sleep(time.Second) {
		if x = s.now(); x.Settled() || time.Since(began) > fault.Patience {
			break
		}
		if time.Since(began) > 90*time.Second {
			s.bury(x, slurms)
		}
	}
	// A slurmctld that was killed may forget that a job ended or was cancelled, and put it back into the queue.
	if back, err := s.o.as("squeue", "-h", "--name="+s.id, "-o", "%i"); back != "" || err != nil {
		_, err2 := s.o.as("scancel", "--name="+s.id)
		s.w.story.Logf("jobs of %s came back and are cancelled: %q, %v", s.id, strings.Fields(back), errors.Join(err, err2))
		for end := time.Now().Add(time.Minute); back != "" && time.Now().Before(end); time.Sleep(time.Second) {
			back, _ = s.o.as("squeue", "-h", "--name="+s.id, "-o", "%i")
		}
	}
	out := map[string]onTrial{}
	wrong := fault.Judge(x, s.folder)
	for _, t := range x.Trials {
		v := onTrial{name: s.name(t.Number), wrong: append(wrong[t.Number], wrong[0]...), slurms: slurms[t.Number], took: time.Since(s.Began)}
		if s.put[v.name] && s.told(t.Number).Ends > 0 { // it had ended, and slurmctld had not heard of that
			v.wrong, v.slurms = wrong[0], true
		}
		if t.State == searcher.Failed && s.told(t.Number).left() { // the requeue that ended it was forgotten
			v.wrong, v.slurms = nil, true
		}
		for _, e := range t.Log {
			v.again = v.again || e.End == searcher.Lost
		}
		out[v.name] = v
	}
	return out, nil
}

// bury ends jobs whose program is over and that a slurmctld which was killed takes for running: the listener's step, which
// the controller starts again, is still in them.
func (s *searching) bury(x trials.State, slurms map[int]bool) {
	for _, t := range x.Trials {
		if n := len(t.Jobs); t.Busy && n > 0 && !slurms[t.Number] && s.told(t.Number).Ends > 0 {
			slurms[t.Number] = true
			_, err := s.o.as("scancel", string(t.Jobs[n-1]))
			s.w.story.Logf("job %s of %s ended and runs for Slurm: cancelled: %v", t.Jobs[n-1], s.name(t.Number), err)
		}
	}
}

// journal is what a trial says about itself.
type journal struct{ fault.Told }

func (s *searching) told(trial int) journal {
	text, err := os.ReadFile(filepath.Join(s.folder, fmt.Sprintf("%d.journal", trial)))
	if err != nil {
		return journal{}
	}
	return journal{fault.Read(string(text), searchEpochs)}
}

// left reports whether somebody ended its last attempt.
func (j journal) left() bool {
	n := len(j.Attempts)
	return n > 0 && j.Attempts[n-1].Left
}

// Passive implements fault.Jobs: none happen by themselves.
func (*searching) Passive() []fault.Strike { return nil }

// Clear implements fault.Jobs.
func (s *searching) Clear() error { return os.RemoveAll(s.folder) }
