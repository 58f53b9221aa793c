package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/tuner"
	"pitchpipe/controller/tuning"
)

// evaluateTuner replays jobs that return.
func (a *app) evaluateTuner() *cobra.Command {
	in := tuner.Input{Default: nil}
	var objective string
	var own map[string]string
	cmd := &cobra.Command{
		Use: "tuner --trials FILE...", Short: "What does the tuner save over the returns of a job, learning included?",
		Long: "Replay jobs that return, on recorded trials. At each return the tuner picks settings, pays what they\n" +
			"were measured to cost and learns; it sees nothing else. System knobs (cores, memory, power limit) are\n" +
			"measured within a run, one epoch each, as part of that run. A run that is stopped for costing twice the\n" +
			"best is paid, and so is the run under the best settings that follows it.\n\n" +
			"ORACLE is the best setting that keeps the limits, FINAL the one that the tuner ends with, both in\n" +
			"expectation; ALL RUNS is what all returns cost, learning included, and so are the simpler policies beside\n" +
			"it: the best tuner of one knob alone, successive halving, a grid, random. JOULES of all returns stand\n" +
			"beside the published REFERENCE. All are relative to the owner's settings: those of a targets.csv beside\n" +
			"the data, else the setting that relative_speed is relative to, else the most of everything. From\n" +
			"targets.csv come also the epochs after which a run has failed; a reference.csv tells how often a job\n" +
			"returns. A policy that breaks the limits may cost less than the oracle; what was saved so is not counted,\n" +
			"and BROKEN is the share of the seeds. Settings that lack a number which the objective needs are absent.\n\n" +
			"Objective cores asks for the fewest core-seconds that --max-slowdown and --max-joules allow, or, with\n" +
			"--attain, for the fewest cores at that share of full speed. Threads count where nothing is called cores.",
		Example: "  pitchpipe evaluate tuner --trials trials.csv --objective blend --weight 0.5\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective energy --max-slowdown 1.10 --recurrences 10\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective cores --max-slowdown 1.05 --max-joules 1.02 --probes 6\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective cores --attain 0.98 --probes 8 --json",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, more []string) error {
			in.Files = slices.Concat(in.Files, more)
			if !slices.Contains(tunerObjectives(), objective) {
				return fmt.Errorf("%w objective %q: want one of %s", errInvalid, objective, joined(tunerObjectives()))
			}
			in.Goal.Cores = objective == tunerCores
			if !in.Goal.Cores {
				in.Goal.Objective = tuning.Objective(objective)
				if in.Goal.Attain != 0 || in.Goal.MaxJoules != 0 {
					return fmt.Errorf("%w flags: --attain and --max-joules go with --objective %s", errInvalid, tunerCores)
				}
			}
			for name, v := range own {
				in.Default = in.Default.With(name, tuning.ParseValue(v))
			}
			r, err := tuner.Run(cmd.Context(), in, a.progress())
			switch {
			case errors.Is(err, tuner.ErrInput), errors.Is(err, records.ErrInvalid):
				return fmt.Errorf("%w data: %w", errInvalid, err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(r)
			}
			a.printf("%s", tuner.Text(r))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&in.Files, "trials", nil, "tables of trials; further ones may follow as arguments")
	f.StringVar(&objective, "objective", string(tuning.Energy), "what is minimised: "+joined(tunerObjectives()))
	f.Float64Var(&in.Goal.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.Float64Var(&in.Goal.MaxSlowdown, "max-slowdown", 0, "seconds at most so many times the owner's (0: no limit)")
	f.Float64Var(&in.Goal.MaxJoules, "max-joules", 0, "with cores: joules at most so many times the owner's (0: no limit)")
	f.Float64Var(&in.Goal.Attain, "attain", 0, "with cores: the share of full speed to attain, in place of the limits")
	f.IntVar(&in.Recurrences, "recurrences", 0, fmt.Sprintf("how often a job returns (0: as in reference.csv, else %d)", tuner.Recurrences))
	f.IntVar(&in.Probes, "probes", 0, "settings besides the owner's that may be tried (0: no limit)")
	f.IntVar(&in.Seeds, "seeds", 10, "replays of each table, each with other luck")
	f.StringToStringVar(&own, "default", nil, "the owner's settings, such as cores=3,memory_gib=62.5")
	_ = cmd.MarkFlagRequired("trials")
	offer(cmd, "objective", tunerObjectives())
	return cmd
}

// tunerCores stands for the cost: as little of the machine as will do.
const tunerCores = "cores"

func tunerObjectives() []string {
	var out []string
	for _, o := range tuning.Objectives() {
		if o != tuning.Cost {
			out = append(out, string(o))
		}
	}
	return append(out, tunerCores)
}
