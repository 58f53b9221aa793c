package faultslurm_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	stories "pitchpipe/test/e2e/table"
	"pitchpipe/test/fault"
)

// fates are jobs that a killed slurmctld had acknowledged something of and forgot, and what
// that was.
type fates struct {
	mu  sync.Mutex
	why map[string][]string
}

func (f *fates) add(id, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.why == nil {
		f.why = map[string][]string{}
	}
	f.why[id] = append(f.why[id], why)
}

func (f *fates) of(id string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.why[id])
}

// judge returns the outcome of a job that should be through by now.
func (w *world) judge(j *job, r record) verdict {
	v := verdict{job: j}
	say := func(flag *bool, format string, args ...any) {
		*flag = true
		v.why = append(v.why, fmt.Sprintf(format, args...))
	}
	told := fault.Read(j.journal(), j.epochs)
	if j.plain && j.after != nil && j.after.status != 0 {
		return v
	}
	story, err := j.owner.explain(j.id)
	told.Discarded(stories.Discards(story))
	if len(told.Twice) > 0 {
		say(&v.twice, "%s", strings.Join(told.Twice, "; "))
	}
	if len(told.Epochs) > 0 {
		say(&v.epochs, "%s (%v)", strings.Join(told.Epochs, "; "), err)
	}
	var state bool
	switch {
	case !r.ended():
		say(&v.lost, "it has not ended: %s", r.show())
	case j.cancelled.Load() && r["JobState"] == "CANCELLED":
		state = true
	case r["JobState"] == "COMPLETED" && j.status == 0, r["JobState"] == "FAILED" && j.status != 0 && r["ExitCode"] == fmt.Sprintf("%d:0", j.status):
		if state = told.Ends == 1+told.Again; !state {
			say(&v.lost, "Slurm says %s, and the job came to its end %d times", r["JobState"], told.Ends)
		}
	default:
		say(&v.lost, "it ended as %s", r.show())
	}
	if j.limit != "" && r.ended() && r["TimeLimit"] != j.limit {
		v.why = append(v.why, fmt.Sprintf("its owner set the time limit %s, and it is %s", j.limit, r["TimeLimit"]))
		state = false
	}
	if told.Again > 0 {
		say(&v.again, "it came to its end between its save and the requeue: the rest was done again")
	}
	w.judgeRecords(j, r, say, &v)
	if j.wait {
		code, ok := j.code(fault.Patience)
		if !ok {
			say(&v.waited, "sbatch --wait does not end")
		} else if code == 85 && j.way == wayLeave {
			w.early.Add(1)
		} else if code != j.status && !j.cancelled.Load() {
			say(&v.waited, "sbatch --wait returned %d, want %d", code, j.status)
		}
	}
	if j.after != nil {
		w.judgeAfter(j, told, say, &v)
	}
	right := state && !v.lost && !v.twice && !v.epochs && !v.waited && !v.dependa
	v.once = right && !v.again
	if w.requeueForgotten(r) {
		w.fates.add(j.id, "that it had requeued the job, whose processes were told to end")
	}
	if j.sealed {
		w.fates.add(j.id, "that accounting gave its run an index, and refuses each change of it")
	}
	// A job that is left behind is our fault, unless not even root can change it.
	if why := w.fates.of(j.id); !right && (r.ended() || j.sealed) && len(why) > 0 {
		v.slurms = true
		v.why = append(v.why, "slurmctld forgot: "+strings.Join(why, "; "))
	}
	v.fine = right || v.slurms
	return v
}

// judgeRecords holds what accounting remembers against the job's state.
func (w *world) judgeRecords(j *job, r record, say func(*bool, string, ...any), v *verdict) {
	var runs []run
	for end := time.Now().Add(2 * time.Minute); r.ended(); time.Sleep(300 * time.Millisecond) {
		out, err := w.run("slurm", "sacct", "-D", "-X", "-n", "-P", "-j", j.id, "-o", "state,start")
		runs = runsOf(out)
		if n := len(runs); err == nil && n > 0 && strings.HasPrefix(runs[n-1].state, r["JobState"]) {
			break
		}
		if j.cancelled.Load() && leftRequeued(runs, r) {
			w.unwritten.Add(1)
			break
		}
		if time.Now().After(end) {
			say(&v.lost, "accounting says %v of a job that is %s (%v)", runs, r["JobState"], err)
			return
		}
	}
	for i, run := range runs {
		if i < len(runs)-1 && run.state != "REQUEUED" {
			say(&v.twice, "accounting has the runs %v", runs)
			return
		}
	}
}

// run is what accounting has of one run of a job.
type run struct{ state, start string }

func runsOf(out string) []run {
	var runs []run
	for line := range strings.Lines(out) {
		state, start, _ := strings.Cut(strings.TrimSpace(line), "|")
		runs = append(runs, run{state, start})
	}
	return runs
}

// leftRequeued tells of a job that was cancelled while the processes of a run that had been
// put back into the queue were still being ended (COMPLETING), so that it never began
// again. Seen on 22.05.8, with requeue and requeuehold, by its owner and by root, with and
// without a tuner: scontrol says CANCELLED, with the start and the end of that run, and sacct
// says REQUEUED of it for good (looked at for minutes; sacctmgr finds nothing amiss): the run
// that would be cancelled was never made. One that is PENDING when it is cancelled, be it
// held or waiting for its begin, has a row for that within a second.
func leftRequeued(runs []run, r record) bool {
	n := len(runs)
	return n > 0 && n == r.restarts() && r["JobState"] == "CANCELLED" && runs[n-1] == run{"REQUEUED", r["StartTime"]}
}

// judgeAfter reports whether a dependant ran once and after what it depends on.
func (w *world) judgeAfter(j *job, own fault.Told, say func(*bool, string, ...any), v *verdict) {
	before := fault.Read(j.after.journal(), j.after.epochs)
	switch {
	case len(own.Attempts) != 1:
		say(&v.dependa, "a dependant ran %d times", len(own.Attempts))
	case before.Ends != 1+before.Again:
		say(&v.dependa, "what it depends on came to its end %d times", before.Ends)
	case own.Attempts[0].Began.Before(before.Ended):
		say(&v.dependa, "it began %v before the end of what it depends on", before.Ended.Sub(own.Attempts[0].Began))
	}
}

// explain is what a person needs who looks for the cause.
func (w *world) explain(v verdict) string {
	var b strings.Builder
	j := v.job
	fmt.Fprintf(&b, "job %s (%s, %s of %s): %s\n-- journal\n%s-- output\n%s", j.id, j.name, j.way, j.owner.name, strings.Join(v.why, "; "), fault.Shorten(j.journal()), j.said())
	story, err := j.owner.explain(j.id)
	fmt.Fprintf(&b, "-- explain %v\n", err)
	for _, l := range story.Lines {
		fmt.Fprintf(&b, "%s %s %v\n", l.At.Format("15:04:05.000"), l.Text, l.Why)
	}
	for _, name := range []string{"slurmctld.log", w.c.Nodes()[0] + ".log", w.c.Nodes()[1] + ".log"} {
		fmt.Fprintf(&b, "-- %s\n%s", name, fault.Grep(w.c.Dir()+"/log/"+name, j.id))
	}
	if w.tuned {
		fmt.Fprintf(&b, "-- controller\n%s", fault.Grep(j.owner.log(), j.id))
	}
	return b.String()
}
