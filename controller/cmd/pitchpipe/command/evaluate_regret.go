package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluateRegret() *cobra.Command {
	var in models.RegretInput
	var objective string
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
	objectives := strings.Split(result.Words(tuning.Objectives()), ", ")
	f.StringVar(&objective, "objective", string(models.DefaultObjective), "what is minimised: "+result.Words(objectives))
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.StringVar(&in.Energy, "energy", models.DefaultEnergy, "what stands for energy: "+result.Words(models.Energies()))
	ownFlag(cmd, &in.Default)
	f.BoolVar(&in.Undisturbed, "undisturbed", false, "leave out the runs that others disturbed")
	var seed uint64
	f.Uint64Var(&seed, "seed", 1, "has no effect: nothing here is random")
	offer(cmd, "objective", objectives)
	offer(cmd, "energy", models.Energies())
	tables := []*tableFlag{trialsFlag(&in.Trials, true), samplesFlag(&in.Samples, true), curvesFlag(&in.Curves, false)}
	return evaluation(a, cmd, tables, func(ctx context.Context, progress result.Progress) (models.RegretReport, error) {
		in.Objective = tuning.Objective(objective)
		return models.Regret(ctx, in, progress)
	})
}
