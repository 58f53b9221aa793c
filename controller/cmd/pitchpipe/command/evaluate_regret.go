package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/regret"
	"pitchpipe/controller/tuning"
)

// evaluateRegret asks what a decision by class costs an input that was never seen.
func (a *app) evaluateRegret() *cobra.Command {
	var in regret.Input
	var trials, samples, curves []string
	var objective string
	var own map[string]string
	cmd := &cobra.Command{
		Use: "regret --trials FILE... --samples FILE...", Short: "What does the setting of its class cost an input that was never seen?",
		Long: "Leave each input of each workload out in turn, of a factorial that `pitchpipe record` made: learn classes\n" +
			"from the profiles of all others, nobody being told how many there are or what belongs together, derive\n" +
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
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			if err := following(more, trialsFlag(&trials), samplesFlag(&samples), curvesFlag(&curves)); err != nil {
				return err
			}
			if len(trials) == 0 || len(samples) == 0 {
				return fmt.Errorf("%w command line: want --trials FILE and --samples FILE", errInvalid)
			}
			for _, of := range []struct {
				files  []string
				format records.Format
				tables *[]records.Table
			}{{trials, records.Trials, &in.Trials}, {samples, records.Samples, &in.Samples}, {curves, records.Curves, &in.Curves}} {
				tables, err := tablesOf(of.files, of.format)
				if err != nil {
					return fmt.Errorf("%w %s: %w", errInvalid, of.format, err)
				}
				*of.tables = tables
			}
			in.Objective = tuning.Objective(objective)
			for name, v := range own {
				in.Default = in.Default.With(name, tuning.ParseValue(v))
			}
			r, err := regret.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, records.ErrInvalid), errors.Is(err, regret.ErrTooLittle), errors.Is(err, regret.ErrChoice):
				return fmt.Errorf("%w data: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", regret.Text(r))
			return nil
		},
	}
	var objectives []string
	for _, o := range tuning.Objectives() {
		objectives = append(objectives, string(o))
	}
	f := cmd.Flags()
	f.StringSliceVar(&trials, "trials", nil, "tables of trials; further tables of any kind may follow as arguments")
	f.StringSliceVar(&samples, "samples", nil, "tables of samples of the same runs")
	f.StringSliceVar(&curves, "curves", nil, "tables of curves of the same runs: where epochs end")
	f.StringVar(&objective, "objective", string(regret.DefaultObjective), "what is minimised: "+joined(objectives))
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.StringVar(&in.Energy, "energy", regret.DefaultEnergy, "what stands for energy: "+joined(regret.Energies()))
	f.StringToStringVar(&own, "default", nil, "the settings that inputs come with, such as cores=2,threads=2; default the most of everything")
	f.BoolVar(&in.Undisturbed, "undisturbed", false, "leave out the runs that others disturbed")
	f.Uint64Var(&in.Seed, "seed", 1, "seed of everything random")
	offer(cmd, "objective", objectives)
	offer(cmd, "energy", regret.Energies())
	return cmd
}
