package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluateTuner() *cobra.Command {
	in := replay.TunerInput{}
	var objective string
	// cores stands for the cost: as little of the machine as will do.
	const cores = "cores"
	objectives := []string{}
	for _, o := range tuning.Objectives() {
		if o != tuning.Cost {
			objectives = append(objectives, string(o))
		}
	}
	objectives = append(objectives, cores)
	cmd := &cobra.Command{
		Use: "tuner --trials FILE...", Short: "What does the tuner save over the returns of a job, learning included?",
		Long: "Replay jobs that return, on recorded trials. At each return the tuner picks settings, pays what they\n" +
			"were measured to cost and learns; it sees nothing else. System knobs (cores, memory, power limit) are\n" +
			"measured within a run, one epoch each, as part of that run. A run that is stopped for costing twice the\n" +
			"best is paid, and so is the run under the best settings that follows it.\n\n" +
			"ORACLE is the best setting that keeps the limits, FINAL the one that the tuner ends with, both in\n" +
			"expectation; ALL RUNS is what all returns cost, learning included, and so are the simpler policies beside\n" +
			"it: the best tuner of one knob alone, successive halving, a grid, random. WHOLE is a job that cannot be\n" +
			"moved while it runs. JOULES of all returns stand beside the published REFERENCE. All are relative to the\n" +
			"owner's settings: those of a targets.csv beside the data, else the setting that relative_speed is\n" +
			"relative to, else the most of everything. targets.csv also has the epochs after which a run has failed;\n" +
			"reference.csv says how often a job returns. A policy that breaks the limits may cost less than the\n" +
			"oracle; what was saved so is not counted, and BROKEN is the share of the seeds. Settings that lack a\n" +
			"number which the objective needs are absent.\n\n" +
			"Objective cores asks for the fewest core-seconds that --max-slowdown and --max-joules allow, or, with\n" +
			"--attain, for the fewest cores at that share of full speed. Threads count where nothing is called cores.",
		Example: "  pitchpipe evaluate tuner --trials trials.csv --objective blend --weight 0.5\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective energy --max-slowdown 1.10 --recurrences 10\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective cores --max-slowdown 1.05 --max-joules 1.02 --probes 6\n" +
			"  pitchpipe evaluate tuner --trials trials.csv --objective cores --attain 0.98 --probes 8 --json",
	}
	f := cmd.Flags()
	f.StringVar(&objective, "objective", string(tuning.Energy), "what is minimised: "+result.Words(objectives))
	f.Float64Var(&in.Goal.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.Float64Var(&in.Goal.MaxSlowdown, "max-slowdown", 0, "seconds at most so many times the owner's (0: no limit)")
	f.Float64Var(&in.Goal.MaxJoules, "max-joules", 0, "with cores: joules at most so many times the owner's (0: no limit)")
	f.Float64Var(&in.Goal.Attain, "attain", 0, "with cores: the share of full speed to attain, in place of the limits")
	f.IntVar(&in.Recurrences, "recurrences", 0, fmt.Sprintf("how often a job returns (0: as in reference.csv, else %d)", replay.Recurrences))
	f.IntVar(&in.Probes, "probes", 0, "settings besides the owner's that may be tried (0: no limit)")
	f.IntVar(&in.Seeds, "seeds", 10, "replays of each table, each with other luck")
	ownFlag(cmd, &in.Default)
	offer(cmd, "objective", objectives)
	return evaluation(a, cmd, []*tableFlag{trialsFlag(&in.Trials, true)}, func(ctx context.Context, progress result.Progress) (replay.TunerReport, error) {
		if !slices.Contains(objectives, objective) {
			return replay.TunerReport{}, result.Invalid("objective %q: want one of %s", objective, result.Words(objectives))
		}
		if in.Goal.Cores = objective == cores; !in.Goal.Cores {
			in.Goal.Objective = tuning.Objective(objective)
			if in.Goal.Attain != 0 || in.Goal.MaxJoules != 0 {
				return replay.TunerReport{}, result.Invalid("--attain and --max-joules go with --objective %s", cores)
			}
		}
		return replay.Tuner(ctx, in, progress)
	})
}
