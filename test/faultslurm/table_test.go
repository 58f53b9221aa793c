package faultslurm_test

import (
	"time"

	"pitchpipe/test/fault"
)

// verdict is the outcome of a job.
type verdict struct {
	job     *job
	once    bool // it ended exactly once, as it had to
	lost    bool
	twice   bool
	epochs  bool
	waited  bool          // sbatch --wait returned something else
	dependa bool          // its dependant did not run once and after it
	again   bool          // it ended between its save and the requeue, and did the rest again
	slurms  bool          // slurmctld forgot what it had acknowledged, and this is what Slurm made of it
	fine    bool          // nothing here is our fault
	took    time.Duration // from when it was told to come to its end until Slurm was through with it
	why     []string
}

// right tells of a job that ended once for Slurm and all who wait.
func (v verdict) right() bool { return v.fine && !v.slurms }

func columns() []string {
	return []string{"once", "lost", "twice", "epochs", "wait", "after", "again", "Slurm's"}
}

func side(r *fault.Result[verdict]) fault.Side {
	out := fault.Side{Strikes: r.Strikes, Verdicts: map[string]fault.Verdict{}}
	for id, v := range r.Verdicts {
		out.Verdicts[id] = fault.Verdict{Counts: []bool{v.once, v.lost, v.twice, v.epochs, v.waited, v.dependa, v.again, v.slurms}, Took: v.took}
	}
	return out
}

// beside has the faults that met Slurm itself, with a tuner and without.
func beside(tuned, byHand *fault.Result[verdict]) string {
	return "The same jobs and kills without a tuner: their owners ask them to save, requeue, change and release them by hand, as the\n" +
		"tuner does.\n\n" + fault.Beside(side(tuned), side(byHand), [2]string{"tuned", "by hand"}, columns(), "longest")
}

// table is printed at the end: a row a kind, and one of all jobs, touched or not.
func table(r *fault.Result[verdict]) string {
	return fault.Table(side(r), columns(), "longest") + "\n" +
		"jobs: that were in the middle of a move when it struck. once: ended exactly once, as they had to. lost: never ended.\n" +
		"twice: ran beside themselves or again after their end. epochs: missing or repeated. wait: sbatch --wait returned something\n" +
		"else. after: a dependant did not run once and after it. again: for Slurm and all who wait it ended once; it had saved and\n" +
		"came to its end before the requeue reached it, so that the work since the save was done again. Slurm's: not once, since a\n" +
		"killed slurmctld forgot what it had acknowledged and not saved. longest: from when a job was told to come to its end\n" +
		"until Slurm was through with it.\n"
}
