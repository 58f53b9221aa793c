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
		Use: "classifier --samples FILE...", Short: "Measure whether programs are recognised and strangers are called unknown",
		Long: "Learn classes from recorded runs as the controller does, and ask about whole executions that were held\n" +
			"out, and about each program in turn when it was not learned. With --trials, tables recorded with the samples,\n" +
			"the keys regret.* say what deciding by classes costs. Runs under other core counts, on other machines or\n" +
			"with other counters are never compared: each of these has its own classes.",
		Example: "  pitchpipe evaluate classifier --samples samples.csv.gz",
	}
	f := cmd.Flags()
	f.StringVar(&in.Objective, "objective", "cores", "what a setting costs: time, energy, edp, or cores (the geometric mean of seconds and core-seconds)")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	f.IntVar(&in.Resamples, "resamples", models.DefaultResamples, "how often the stability is asked")
	offer(cmd, "objective", models.Objectives())
	tables := []*tableFlag{needed(&in.Samples, evaluate.Samples), optional(&in.Trials, evaluate.Trials)}
	return evaluation(a, cmd, tables, &in, models.Classifier)
}

func (a *app) evaluateRegret() *cobra.Command {
	var in models.RegretInput
	cmd := &cobra.Command{
		Use: "regret --trials FILE... --samples FILE...", Short: "Measure what the setting of a class costs an input that was never seen",
		Long: "In a factorial that `pitchpipe record` made, leave out each input of each workload in turn: learn classes\n" +
			"from all others, profile the input under its default setting, and let the planner decide, all by the\n" +
			"controller's own code. If no class is worth a move, the input keeps its default and is charged for that.\n" +
			"Where joules are not measured, core-seconds stand for energy. The tables of a recording are in one folder.",
		Example: "  pitchpipe evaluate regret --trials trials.csv --samples samples.csv --default cores=2,threads=2 --json",
	}
	f := cmd.Flags()
	choice(cmd, (*string)(&in.Objective), "objective", string(models.DefaultObjective), "what is minimised", objectives())
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	choice(cmd, &in.Energy, "energy", models.DefaultEnergy, "what stands for energy", models.Energies())
	ownFlag(cmd, &in.Default)
	f.BoolVar(&in.Undisturbed, "undisturbed", false, "leave out the runs that others disturbed")
	var seed uint64
	f.Uint64Var(&seed, "seed", 1, "has no effect: nothing here is random")
	tables := []*tableFlag{needed(&in.Trials, evaluate.Trials), needed(&in.Samples, evaluate.Samples), optional(&in.Curves, evaluate.Curves)}
	return evaluation(a, cmd, tables, &in, models.Regret)
}

func (a *app) evaluateForecast() *cobra.Command {
	var in models.ForecastInput
	cmd := &cobra.Command{
		Use: "forecast --curves FILE...", Short: "Measure how well the ends of learning curves are forecast from their beginnings",
		Long: "Cut recorded learning curves after a share of their epochs and forecast the rest as the controller does.\n" +
			"Runs are taken in the order of the file, as recurring jobs: a forecast learns from the runs before it.\n" +
			"Tables of adaptations are taken, too.",
		Example: "  pitchpipe evaluate forecast --curves curves.csv.gz --seen 0.2,0.3,0.5",
	}
	f := cmd.Flags()
	f.Float64SliceVar(&in.Seen, "seen", []float64{0.2, 0.3, 0.5}, "shares of the epochs that are seen")
	f.StringVar(&in.Measure, "measure", models.Auto, "what is forecast: "+strings.Join(models.Measures(), ", ")+"; auto is the loss where there is one, else the quality")
	offer(cmd, "measure", models.Measures())
	return evaluation(a, cmd, []*tableFlag{needed(&in.Curves, evaluate.Curves, evaluate.Adaptations)}, &in, models.Forecast)
}

func (a *app) evaluateVerify() *cobra.Command {
	in := models.DefaultVerify()
	cmd := &cobra.Command{
		Use: "verify --trials FILE...", Short: "Measure how often verdicts are wrong, and how soon they find a real effect",
		Long: "Replay jobs and pairs of jobs in which nothing was changed, recorded and simulated, and ask for the\n" +
			"controller's verdict after every epoch and every pair; then make the tuned side shorter by 2, 5, 10 and 20 %.\n" +
			"A null that violates an assumption of the interval is marked with that limit and summarised separately.\n" +
			"Without a file only simulated nulls run.",
		Example: "  pitchpipe evaluate verify --trials trials.csv --samples samples.csv.gz --curves curves.csv",
	}
	f := cmd.Flags()
	f.IntVar(&in.Seeds, "seeds", in.Seeds, "replays of each line")
	f.Uint64Var(&in.Seed, "seed", in.Seed, "seed of everything random")
	f.Float64Var(&in.Level, "level", in.Level, "share of false verdicts that is allowed")
	f.IntVar(&in.Untuned, "untuned", in.Untuned, "epochs of a job before its move, without warm-up")
	f.IntVar(&in.Epochs, "epochs", in.Epochs, "epochs of a job after its move, each looked at")
	f.IntVar(&in.Pairs, "pairs", in.Pairs, "pairs of jobs, each looked at")
	f.IntVar(&in.Candidates, "candidates", in.Candidates, "settings that were compared with the same untuned epochs")
	tables := []*tableFlag{optional(&in.Trials, evaluate.Trials), optional(&in.Samples, evaluate.Samples), optional(&in.Curves, evaluate.Curves, evaluate.Adaptations)}
	return evaluation(a, cmd, tables, &in, models.Verify)
}
