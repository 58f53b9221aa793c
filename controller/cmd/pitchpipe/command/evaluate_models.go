package command

import (
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluateClassifier() *cobra.Command {
	var in models.ClassifierInput
	cmd := &cobra.Command{
		Use: "classifier --samples FILE...", Short: "Are programs recognised, and strangers called unknown?",
		Long: "Learn classes from recorded runs as the controller does and ask about whole executions that were\n" +
			"held out, and about each program in turn when it was not learned. The number of classes is not given.\n" +
			"RECOGNISED is the share that gets a class, PRECISION the share of those that get their own, UNKNOWN AREA\n" +
			"how well distance over radius separates a program that was left out from those that were learned.\n\n" +
			"With --trials, tables that were recorded with the samples, the keys regret.* say what deciding by classes\n" +
			"costs: each input of each program is left out in turn, and gets the setting that is best for the class\n" +
			"that it is recognised as, relative to its own best setting; and the best single setting for all.\n\n" +
			"Runs under other core counts, on other machines or with other counters are never compared, so each of\n" +
			"these has classes of its own; K is that of the one that has most.",
		Example: "  pitchpipe evaluate classifier --samples samples.csv.gz",
	}
	f := cmd.Flags()
	f.StringVar(&in.Objective, "objective", "cores", "what a setting costs: time, energy, edp, or cores (the geometric mean of seconds and core-seconds)")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	f.IntVar(&in.Resamples, "resamples", models.DefaultResamples, "how often the stability is asked")
	offer(cmd, "objective", models.Objectives())
	tables := []*tableFlag{samplesFlag(&in.Samples, true), trialsFlag(&in.Trials, false)}
	return evaluation(a, cmd, tables, &in, models.Classifier, nil)
}

func (a *app) evaluateRegret() *cobra.Command {
	var in models.RegretInput
	cmd := &cobra.Command{
		Use: "regret --trials FILE... --samples FILE...", Short: "What does the setting of its class cost an input that was never seen?",
		Long: "Leave each input of each workload out in turn, of a factorial that `pitchpipe record` made: learn classes\n" +
			"from the profiles of all others (neither how many there are nor what belongs together is given), derive\n" +
			"what each setting does to a class from their raw observations, profile the input that was left out under\n" +
			"its default setting, and let the planner decide, all by the controller's own code. Where there is no class,\n" +
			"or its class knows nothing that is worth a move, the input keeps its default, and that is what it costs.\n\n" +
			"REGRET is the cost of what it got over that of its own optimum, in a repeat that chose neither and was not\n" +
			"profiled; HINDSIGHT the same over what was cheapest in all repeats together, which is a little too large as\n" +
			"the other is a little too small. SINGLE is the setting that is cheapest for all others together, DEFAULT the\n" +
			"one that it came with. Where joules are not measured, core-seconds stand for energy: cores that were\n" +
			"allotted, times seconds.",
		Example: "  pitchpipe evaluate regret --trials trials.csv --samples samples.csv --curves curves.csv\n" +
			"  pitchpipe evaluate regret --trials trials.csv --samples samples.csv --objective blend --weight 0.5 --default cores=2,threads=2 --json",
	}
	f := cmd.Flags()
	f.StringVar((*string)(&in.Objective), "objective", string(models.DefaultObjective), "what is minimised: "+strings.Join(objectives(), ", "))
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.StringVar(&in.Energy, "energy", models.DefaultEnergy, "what stands for energy: "+strings.Join(models.Energies(), ", "))
	ownFlag(cmd, &in.Default)
	f.BoolVar(&in.Undisturbed, "undisturbed", false, "leave out the runs that others disturbed")
	var seed uint64
	f.Uint64Var(&seed, "seed", 1, "has no effect: nothing here is random")
	offer(cmd, "objective", objectives())
	offer(cmd, "energy", models.Energies())
	tables := []*tableFlag{trialsFlag(&in.Trials, true), samplesFlag(&in.Samples, true), curvesFlag(&in.Curves, false)}
	return evaluation(a, cmd, tables, &in, models.Regret, nil)
}

func (a *app) evaluateForecast() *cobra.Command {
	var in models.ForecastInput
	cmd := &cobra.Command{
		Use: "forecast --curves FILE...", Short: "How well are the ends of learning curves forecast from their beginnings?",
		Long: "Cut recorded learning curves after a share of their epochs and forecast the rest as the controller\n" +
			"does: the value at the end with an interval that should hold it four times out of five, and the epoch\n" +
			"and second at which a target is reached. Runs are taken in the order of the file, as jobs that return: a\n" +
			"forecast learns from the runs before it. ALONE is the error without that. LAST VALUE forecasts that\n" +
			"nothing changes any more; BEST SINGLE is the one model that, in hindsight, was best on the row.\n" +
			"Errors are shares of the true value. Tables of adaptations are taken, too.",
		Example: "  pitchpipe evaluate forecast --curves curves.csv.gz --seen 0.2,0.3,0.5",
	}
	f := cmd.Flags()
	f.Float64SliceVar(&in.Seen, "seen", []float64{0.2, 0.3, 0.5}, "shares of the epochs that are seen")
	f.StringVar(&in.Measure, "measure", models.Auto, "what is forecast: "+strings.Join(models.Measures(), ", ")+"; auto is the loss where there is one, else the quality")
	offer(cmd, "measure", models.Measures())
	return evaluation(a, cmd, []*tableFlag{curvesFlag(&in.Curves, true, evaluate.Adaptations)}, &in, models.Forecast, nil)
}

func (a *app) evaluateVerify() *cobra.Command {
	in := models.DefaultVerify()
	cmd := &cobra.Command{
		Use: "verify --trials FILE...", Short: "How often do verdicts claim what is not so, and how soon do they find what is?",
		Long: "Replay jobs and pairs of jobs in which nothing was changed, and ask for the controller's verdict after\n" +
			"every epoch and every pair. Recorded nulls are repeats of one setting, runs whose settings stand for\n" +
			"unknown inputs, slices of equal work of a sampled run, and the epochs of a run; simulated ones\n" +
			"have independent, autocorrelated and heavy-tailed noise, variance between runs, and drift. FALSE is the\n" +
			"share whose verdict was wrong at any look, COVERED that whose interval held the truth at every look.\n" +
			"Then the tuned side is made shorter by 2, 5, 10 and 20 %: POWER is the share that finds it, AFTER the\n" +
			"median of epochs or pairs until then. Where a null breaks what an interval relies on, as curves do whose\n" +
			"epochs shrink, its LIMIT says so and it is summed up apart. Without a file the simulated nulls stand alone.",
		Example: "  pitchpipe evaluate verify --trials trials.csv --samples samples.csv.gz --curves curves.csv\n" +
			"  pitchpipe evaluate verify --seeds 1000 --candidates 4 --json",
	}
	f := cmd.Flags()
	f.IntVar(&in.Seeds, "seeds", in.Seeds, "replays of each line")
	f.Uint64Var(&in.Seed, "seed", in.Seed, "seed of everything random")
	f.Float64Var(&in.Level, "level", in.Level, "share of false verdicts that is allowed")
	f.IntVar(&in.Untuned, "untuned", in.Untuned, "epochs of a job before its move, without warm-up")
	f.IntVar(&in.Epochs, "epochs", in.Epochs, "epochs of a job after its move, each looked at")
	f.IntVar(&in.Pairs, "pairs", in.Pairs, "pairs of jobs, each looked at")
	f.IntVar(&in.Candidates, "candidates", in.Candidates, "settings that were compared with the same untuned epochs")
	tables := []*tableFlag{trialsFlag(&in.Trials, false), samplesFlag(&in.Samples, false), curvesFlag(&in.Curves, false, evaluate.Adaptations)}
	return evaluation(a, cmd, tables, &in, models.Verify, nil)
}
