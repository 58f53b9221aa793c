package faultnomad_test

import (
	"fmt"
	"time"

	"pitchpipe/test/fault"
)

func columns() []string {
	return []string{"once", "lost", "twice", "epochs", "ended", "again", "Nomad's"}
}

func side(r *fault.Result[verdict]) fault.Side {
	out := fault.Side{Strikes: r.Strikes, Verdicts: map[string]fault.Verdict{}}
	for id, v := range r.Verdicts {
		out.Verdicts[id] = fault.Verdict{Counts: []bool{v.once, v.lost, v.twice, v.epochs, v.cancelled, v.again, v.nomads}, Took: v.whole}
	}
	return out
}

// beside has the kills of Nomad itself, with a tuner and without.
func beside(tuned, byHand *fault.Result[verdict]) string {
	return "The same jobs and kills without a tuner: their owners ask them to save and register them anew by hand.\n\n" +
		fault.Beside(side(tuned), side(byHand), [2]string{"tuned", "by hand"}, columns(), "longest")
}

// table is printed at the end: a row a kind, and one of all jobs, touched or not.
func table(r *fault.Result[verdict]) string {
	again, ran := 0, 0
	took, whole := time.Duration(0), time.Duration(0)
	for _, v := range r.Verdicts {
		if !v.again || v.job.marked {
			continue
		}
		again++
		if v.took > 0 {
			ran++
		}
		took, whole = max(took, v.took), max(whole, v.whole)
	}
	return fault.Table(side(r), columns(), "longest") + "\n" +
		fmt.Sprintf("Without the completion marker the finished work of %d jobs was begun again by Nomad, and all of that stopped. In %d of\n"+
			"them the task had begun; it ran for %.2f s at most. From when Nomad could begin it until it was over it took %.2f s at most.\n\n", again, ran, took.Seconds(), whole.Seconds()) +
		"jobs: that were in the middle of a move when it struck. once: their work was done exactly once, as it had to be, or until\n" +
		"their owner stopped them (ended). lost: never ended. twice: ran beside themselves or again after their end, and that was\n" +
		"not stopped in time and reported. epochs: missing or repeated, beyond what a checkpoint explains. again: Nomad began\n" +
		"their finished work again, which the completion marker ended at once or the controller stopped and reported. longest:\n" +
		"from when Nomad could begin it until it was over, less the time in which the harness had the controller or the agent down.\n" +
		"Nomad's: not once, since a client that was killed while it started their task started it again beside itself, or\n" +
		"since a task left with 0 just when Nomad had told it to end, so that nobody can tell whether its work was done.\n"
}
