package faultnomad_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/view"
	stories "pitchpipe/test/e2e/table"
	"pitchpipe/test/fault"
)

// verdict is the outcome of a job.
type verdict struct {
	job       *job
	once      bool // its work was done exactly once, as it had to
	lost      bool
	twice     bool
	epochs    bool
	nomads    bool          // Nomad's own: it started the task twice at once, or told it to end as it ended
	cancelled bool          // its owner's stop was the end
	again     bool          // Nomad began its finished work again
	took      time.Duration // for which its task did that; where it happened twice, the longer
	whole     time.Duration // from when Nomad made the allocation of that until it was over
	why       []string      // empty where all is right
}

// Finish lets the jobs come to their end and says how they ended.
func (r *round) Finish() (map[string]verdict, error) {
	if err := os.WriteFile(r.hurry(), nil, 0o600); err != nil {
		return nil, err
	}
	// All are waited for together: that one never ends says nothing of the others, and
	// a controller may be down in the moment in which one is looked at.
	open := map[*job]error{}
	for waiting, end := slices.Clone(r.jobs), time.Now().Add(fault.Patience); len(waiting) > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		waiting = slices.DeleteFunc(waiting, func(j *job) bool {
			err := j.ended()
			if err != nil && (r.w.beside(j) || j.toldAsItEnded()) {
				err = j.stop(false) // nothing else ever will
			}
			open[j] = err
			return err == nil
		})
	}
	verdicts := map[string]verdict{}
	for _, j := range r.jobs {
		verdicts[j.id()] = r.w.judge(j, open[j])
	}
	return verdicts, nil
}

// ended says why a job has not ended: nothing of it may run or wait, and its controller
// must be through with it.
func (j *job) ended() error {
	list, err := j.allocations()
	if err != nil && !absent(err) {
		return err
	}
	for _, a := range list {
		if !over(a) {
			return fmt.Errorf("allocation %s is %s", a.ID, a.ClientStatus)
		}
	}
	stopped, purged := j.was()
	if purged {
		return nil
	}
	registered, _, err := j.owner.w.nomad.Jobs().Info(j.name, j.owner.read())
	if err != nil {
		return err
	}
	if *registered.Status != "dead" {
		return fmt.Errorf("the job is %s", *registered.Status)
	}
	if j.owner.client == nil {
		if !stopped && slices.Contains(j.owner.moving(), j.id()) {
			return errors.New("its owner is about to register it again")
		}
		return nil
	}
	seen, err := j.owner.client.Job(j.owner.w.t.Context(), j.id())
	if err != nil {
		return err
	}
	if !seen.Ended || !stopped && seen.State != "succeeded" {
		return fmt.Errorf("to its controller it is %s, %s (%s), %s", seen.State, seen.Phase, seen.Reason, seen.Detail)
	}
	return nil
}

// judge returns the outcome of a job that should be through by now; open is why it is not.
func (w *world) judge(j *job, open error) verdict {
	v := verdict{job: j}
	say := func(flag *bool, format string, args ...any) {
		*flag = true
		v.why = append(v.why, fmt.Sprintf(format, args...))
	}
	told := j.told()
	story, err := j.owner.explain(j.id())
	told.Discarded(stories.Discards(story))
	if len(told.Twice) > 0 {
		say(&v.twice, "%s", strings.Join(told.Twice, "; "))
	}
	if len(told.Epochs) > 0 {
		say(&v.epochs, "%s (%v)", strings.Join(told.Epochs, "; "), err)
	}
	stopped, _ := j.was()
	switch {
	case open != nil:
		say(&v.lost, "%v", open)
	case stopped && told.Ends == 0:
		v.cancelled = true
	case told.Ends != 1:
		say(&v.lost, "it came to its end %d times", told.Ends)
	}
	again, err := j.reruns(told)
	if err != nil {
		say(&v.lost, "%v", err)
	}
	down := append(w.down.list(), j.owner.down.list()...)
	for _, rerun := range again {
		v.whole = max(v.whole, outside(rerun, down))
	}
	for _, rerun := range told.Reruns {
		v.took = max(v.took, outside(span{rerun.Began, rerun.Ended}, down))
	}
	v.again, v.whole = len(again)+len(told.Reruns) > 0, max(v.whole, v.took)
	switch {
	case j.marked && len(told.Reruns) > 0:
		say(&v.twice, "it has the completion marker, and its work began again %d times", len(told.Reruns))
	case v.again && !j.marked && !j.reported():
		say(&v.twice, "its work began again, and the controller did not report it")
	case v.again && !j.marked && *withinFlag > 0 && v.took > *withinFlag:
		say(&v.twice, "its work began again, went on for %v and was over after %v", v.took, v.whole)
	}
	v.once = len(v.why) == 0
	v.nomads = !v.once && (w.beside(j) || j.toldAsItEnded())
	return v
}

// toldAsItEnded reports whether the task came to its end when Nomad had told it to end, and
// left with 0 just then. One that answers the signal leaves with 0 too, and no one can tell
// the two apart: with the completion marker it leaves no mark, and its work is begun again.
func (j *job) toldAsItEnded() bool {
	told := j.told()
	list, err := j.allocations()
	if told.Ends == 0 || err != nil {
		return false
	}
	i := slices.IndexFunc(list, func(a *nomadapi.AllocationListStub) bool {
		task := a.TaskStates["main"]
		return task != nil && !task.FinishedAt.Before(told.Ended)
	})
	if i < 0 {
		return false
	}
	t := view.TaskOf(list[i], "main")
	return t.Killed && t.Exit == 0
}

// reruns are the times from when Nomad could begin the work of a job again that was done
// until the allocation of that was over, whether its task had begun or not. Nomad begins no
// allocation before it knows of the end of the one before.
func (j *job) reruns(told fault.Told) ([]span, error) {
	if told.Ends == 0 {
		return nil, nil
	}
	var list []*nomadapi.AllocationListStub
	err := eventually(func() (err error) { // an agent may be down just now
		if list, err = j.allocations(); absent(err) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []span
	var known time.Time // when Nomad knew of the end of those before
	for _, a := range list {
		s := span{time.Unix(0, a.CreateTime), time.Unix(0, a.ModifyTime)}
		again := !s.from.Before(told.Ended)
		if s.from.Before(known) {
			s.from = known
		}
		if task := a.TaskStates["main"]; task != nil && !task.FinishedAt.IsZero() {
			s.to, known = task.FinishedAt, task.FinishedAt
		}
		if again {
			out = append(out, s)
		}
	}
	return out, nil
}

// reported reports whether the controller said that finished work ran again.
func (j *job) reported() bool {
	return strings.Contains(j.owner.logged(j.id()+" "), "finished work was about to run again")
}

// explain is what a person needs who looks for the cause.
func (w *world) explain(v verdict) string {
	var b strings.Builder
	j := v.job
	fmt.Fprintf(&b, "job %s (%s): %s\n-- journal\n%s", j.id(), j.way, strings.Join(v.why, "; "), fault.Shorten(j.journal()))
	story, err := j.owner.explain(j.id())
	fmt.Fprintf(&b, "-- explain %v\n", err)
	for _, l := range story.Lines {
		fmt.Fprintf(&b, "%s %s %v\n", l.At.Format("15:04:05.000"), l.Text, l.Why)
	}
	fmt.Fprintf(&b, "-- controller\n%s", j.owner.logged(j.id()))
	list, err := j.allocations()
	fmt.Fprintf(&b, "-- allocations %v\n", err)
	for _, a := range list {
		fmt.Fprintf(&b, "%s v%d %s/%s %s %s\n", a.ID[:8], a.JobVersion, a.DesiredStatus, a.ClientStatus, a.DesiredDescription, a.ClientDescription)
		for name, task := range a.TaskStates {
			for _, e := range task.Events {
				fmt.Fprintf(&b, "  %s %s %s: %s\n", time.Unix(0, e.Time).Format("15:04:05.000"), name, e.Type, e.DisplayMessage)
			}
		}
	}
	evals, _, err := w.nomad.Jobs().Evaluations(j.name, j.owner.read())
	fmt.Fprintf(&b, "-- evaluations %v\n", err)
	for _, e := range slices.Backward(evals) {
		fmt.Fprintf(&b, "%s %s %s %s %s\n", e.ID[:8], e.Status, e.TriggeredBy, e.StatusDescription, e.PreviousEval)
	}
	return b.String()
}
