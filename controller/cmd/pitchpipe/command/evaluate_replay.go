package command

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluateTuner() *cobra.Command {
	in := replay.TunerInput{}
	var objective string
	// cores stands for the cost: as little of the machine as will do.
	const cores = "cores"
	words := append(slices.DeleteFunc(objectives(), func(o string) bool { return o == string(tuning.Cost) }), cores)
	cmd := &cobra.Command{
		Use: "tuner --trials FILE...", Short: "Measure what the tuner saves over the runs of a recurring job, learning included",
		Long: "Replay recurring jobs on recorded trials. At each run the tuner picks settings, pays what they were\n" +
			"measured to cost and learns; it sees nothing else. System knobs are measured within a run, one epoch each,\n" +
			"as part of that run. A run stopped for costing twice the best is charged, and so is the run that repeats it.\n" +
			"The controller decides between runs as the whole_* keys show, and within a run as `evaluate plan` does.\n" +
			"\n" +
			"Figures are relative to the owner's settings: those in a targets.csv next to the data, else the reference of\n" +
			"relative_speed, else the highest value of every knob. targets.csv also has the epochs after which a run\n" +
			"has failed; reference.csv says how often a job returns. What a policy saved by breaking the limits is not\n" +
			"counted. Objective cores asks for the fewest core-seconds that --max-slowdown and --max-joules allow, or, with\n" +
			"--attain, for the fewest cores that attain that share of full speed.",
		Example: "  pitchpipe evaluate tuner --trials trials.csv --objective energy --max-slowdown 1.10 --recurrences 10",
	}
	f := cmd.Flags()
	choice(cmd, &objective, "objective", string(tuning.Energy), "what is minimised", words)
	f.Float64Var(&in.Goal.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.Float64Var(&in.Goal.MaxSlowdown, "max-slowdown", 0, "maximum time, in multiples of the owner's (0: no limit)")
	f.Float64Var(&in.Goal.MaxJoules, "max-joules", 0, "with cores: maximum joules, in multiples of the owner's (0: no limit)")
	f.Float64Var(&in.Goal.Attain, "attain", 0, "with cores: the share of full speed to attain, in place of the limits")
	f.IntVar(&in.Recurrences, "recurrences", 0, fmt.Sprintf("how often a job returns (0: as in reference.csv, else %d)", replay.Recurrences))
	f.IntVar(&in.Probes, "probes", 0, "settings besides the owner's that may be tried (0: no limit)")
	f.IntVar(&in.Seeds, "seeds", 10, "replays of each table, each with other luck")
	ownFlag(cmd, &in.Default)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(words, objective) {
			return evaluate.Invalid("objective %q: want one of %s", objective, strings.Join(words, ", "))
		}
		if in.Goal.Cores = objective == cores; !in.Goal.Cores {
			in.Goal.Objective = tuning.Objective(objective)
			if in.Goal.Attain != 0 || in.Goal.MaxJoules != 0 {
				return evaluate.Invalid("--attain and --max-joules go with --objective %s", cores)
			}
		}
		return nil
	}
	return evaluation(a, cmd, []*tableFlag{needed(&in.Trials, evaluate.Trials)}, &in, replay.Tuner)
}

func (a *app) evaluatePlan() *cobra.Command {
	in := replay.PlanInput{}
	var site string
	var restart, wait float64
	var noise []float64
	cmd := &cobra.Command{
		Use: "plan --trials FILE...", Short: "Measure what moving whole jobs saves, and how often it hurts",
		Long: "Replay whole jobs through the controller itself, on recorded trials: a job starts under its owner's settings,\n" +
			"each epoch costs what the table measured under the present ones, and each move costs a restart and a wait in\n" +
			"the queue. What the controller sees varies as the recorded repeats do (with --curves as recorded epochs do),\n" +
			"and by --noise where these do not vary; costs are in expectation.\n" +
			"\n" +
			"A row of trials without epochs is one epoch; where a table has only rates, an epoch is a minute of work under\n" +
			"the owner's settings (see tuner). Moved within a job are cores, threads, power limits, frequencies, nodes,\n" +
			"replicas and placement, or what --knob names; all else stays as its owner has it.",
		Example: "  pitchpipe evaluate plan --trials trials.csv --objective energy --max-slowdown 1.1 --epochs 5,20,100",
	}
	f := cmd.Flags()
	choice(cmd, (*string)(&in.Objective), "objective", string(tuning.Energy), "what is minimised", objectives())
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.Float64Var(&in.MaxSlowdown, "max-slowdown", 0, "maximum epoch time, in multiples of the owner's (0: no limit)")
	f.Float64Var(&restart, "restart-cost", 30, "seconds that a move takes: to save, to leave and to start again")
	f.Float64Var(&wait, "wait", 0, "seconds in the queue at each move")
	usual := replay.UsualNoise()
	f.Float64SliceVar(&noise, "noise", []float64{usual.Attempt, usual.Epoch}, "standard deviations between attempts and between epochs, as shares, where the data have none that differ (0: none)")
	f.IntVar(&in.Probes, "probes", tuning.DefaultProbes, "settings that a job may try")
	f.IntSliceVar(&in.Epochs, "epochs", []int{0}, fmt.Sprintf("lengths of the jobs (0: as recorded, else %d)", replay.Recorded))
	f.IntVar(&in.Seeds, "seeds", 10, "jobs of each table and length, each with other luck")
	f.IntVar(&in.Returns, "returns", 2, "how often each job recurs, at a site that remembers its earlier runs")
	f.IntVar(&in.Tries, "tries", 0, "of these, runs that may try a setting from their start (budget returns of the stanza)")
	ownFlag(cmd, &in.Default)
	f.StringSliceVar(&in.Knobs, "knob", nil, "which knobs may move (default: those that leave alone what a job learns)")
	f.StringVar(&site, "site", "", "file of a site's policy, whose default block applies (default: the built-in policy)")
	f.BoolVar(&in.Above, "above-request", false, "jobs may be given more than their owners asked for")
	tables := []*tableFlag{needed(&in.Trials, evaluate.Trials), optional(&in.Curves, evaluate.Curves)}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(noise) < 1 || len(noise) > 2 {
			return evaluate.Invalid("--noise: %d numbers: want that between attempts and that between epochs", len(noise))
		}
		if site != "" {
			policy, err := config.LoadSite(site)
			if err != nil {
				return invalid("site policy", err)
			}
			forAll := policy.For("", "", "", "")
			in.Site = &forAll
		}
		in.Restart, in.Wait = seconds(restart), seconds(wait)
		in.Noise = replay.Noise{Attempt: noise[0], Epoch: noise[len(noise)-1]}
		return nil
	}
	return evaluation(a, cmd, tables, &in, replay.Plan)
}

// seconds is a duration of so many; more than a duration holds is the longest there is.
func seconds(v float64) time.Duration {
	if !(math.Abs(v) < time.Duration(math.MaxInt64).Seconds()) {
		return math.MaxInt64
	}
	return time.Duration(v * float64(time.Second))
}

func methodFlag(cmd *cobra.Command, into *[]replay.Method, all []replay.Method) {
	cmd.Flags().StringSliceVar(into, "method", nil, "which methods (default all): "+strings.Join(all, ", "))
	offer(cmd, "method", all)
}

func (a *app) evaluateSearch() *cobra.Command {
	in := replay.SearchInput{}
	cmd := &cobra.Command{
		Use: "search [FILE...]", Short: "Measure how close searches come to the best setting with few measurements",
		Long: "Replay searches over the settings recorded for each workload and machine: random, grid, Latin hypercube and\n" +
			"Gaussian process (cold, and warm with the other workloads of the file as its history). A\n" +
			"measurement brings one recorded run of a setting; a run without an outcome failed. For trials it minimises the\n" +
			"first column present of joules, seconds, samples_per_second (inverted) and epoch_seconds; for curves the\n" +
			"error (1 - quality) at the end of a run, or the loss.",
		Example: "  pitchpipe evaluate search --trials trials.csv --budget 8,10,12,16",
	}
	f := cmd.Flags()
	f.IntSliceVar(&in.Budgets, "budget", []int{8, 10, 12, 16}, "how many measurements")
	f.StringVar(&in.Outcome, "outcome", "", "what is minimised: "+strings.Join(replay.Outcomes(), ", ")+" (default as above)")
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	offer(cmd, "outcome", replay.Outcomes())
	methodFlag(cmd, &in.Methods, replay.SearchMethods())
	tables := []*tableFlag{optional(&in.Trials, evaluate.Trials, evaluate.Curves), optional(&in.Curves, evaluate.Curves)}
	return evaluation(a, cmd, tables, &in, replay.Search)
}

func (a *app) evaluateHyper() *cobra.Command {
	in := replay.HyperInput{}
	cmd := &cobra.Command{
		Use: "hyper [FILE...]", Short: "Measure what hyperparameter searches reach in the same time",
		Long: "Play the code that decides in a search over the recorded learning curves of each workload and machine, on a\n" +
			"simulated clock: random, grid, Latin hypercube and Gaussian process over full runs; ASHA, which pauses what falls\n" +
			"behind, or stops it for good (asha_stopping); and ASHA with a Gaussian process, alone and with the other workloads\n" +
			"of the file as its history.\n\n" +
			"The rules are those of Syne Tune's simulator: an event queue for all workers, 0.05 s to start and to end a job, a\n" +
			"run that goes on pays only for its new epochs, the first five runs of a seed are the same for all methods, and what\n" +
			"counts is the best error at any epoch until the clock ends. The rules differ in three points: the clock ends after\n" +
			"the seconds of --runs median full runs, so that more workers train more; a report takes no time; and each run has\n" +
			"one recorded curve. A quality above 1 is a percentage.",
		Example: "  pitchpipe evaluate hyper --curves curves.csv.gz --seconds 2000\n" +
			"  pitchpipe evaluate hyper --curves curves.csv.gz --workers 4 --method random,asha",
	}
	f := cmd.Flags()
	f.Float64Var(&in.Seconds, "seconds", 0, "seconds of the clock for each search (default: those of --runs)")
	f.Float64Var(&in.Runs, "runs", 10, "length of the clock, in median full runs of the workload")
	f.IntVar(&in.Workers, "workers", 1, "runs that train side by side")
	f.IntVar(&in.Seeds, "seeds", 20, "searches of each workload and method")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	methodFlag(cmd, &in.Methods, replay.HyperMethods())
	return evaluation(a, cmd, []*tableFlag{needed(&in.Curves, evaluate.Curves)}, &in, replay.Hyper)
}

func (a *app) evaluateSpeed() *cobra.Command {
	in := replay.SpeedInput{}
	cmd := &cobra.Command{
		Use: "speed --trials FILE...", Short: "Measure how well a few measured settings forecast the speed of the others",
		Long: "Measure a few recorded settings of each workload, one after the other as the model asks for them, and forecast\n" +
			"the others. Failed runs enter no mean and no error, but measuring one counts as a sample. An outcome\n" +
			"whose name ends in _per_second is a rate, any other a cost. The controller does not decide by this model.",
		Example: "  pitchpipe evaluate speed --trials trials.csv --outcome samples_per_second --samples 8",
	}
	f := cmd.Flags()
	f.StringVar(&in.Outcome, "outcome", "samples_per_second", "column that is forecast")
	f.IntVar(&in.Samples, "samples", 8, "settings of each workload that are measured")
	return evaluation(a, cmd, []*tableFlag{needed(&in.Trials, evaluate.Trials)}, &in, replay.Speed)
}

func (a *app) evaluateAllocation() *cobra.Command {
	in := replay.AllocationInput{}
	cmd := &cobra.Command{
		Use: "allocation FILE...", Short: "Measure how soon elastic jobs end when they share a cluster",
		Long: "Let jobs of the recorded workloads arrive at a simulated cluster, and divide its workers or cores among them: by the\n" +
			"rule of the controller, by Optimus's, by fair shares (drf), by packing what was asked for (tetris), and first come\n" +
			"first served (fcfs). The trials need seconds to a target by number of replicas, GPUs or cores; where they have a\n" +
			"batch_size, pitchpipe-with-batch may change it. A policy knows the epochs that a job still needs at its owner's\n" +
			"batch, and the speeds that jobs of the kind have shown in a minute of work, and forecasts others from these.",
		Example: "  pitchpipe evaluate allocation trials_to_target.csv --units 64 --load 0.5,1,2",
	}
	f := cmd.Flags()
	f.IntVar(&in.Units, "units", 64, "workers or cores of the cluster")
	f.IntVar(&in.Jobs, "jobs", 60, "jobs that arrive in each seed")
	f.Float64SliceVar(&in.Loads, "load", []float64{1}, "unit-seconds asked for, over those of the cluster while jobs arrive")
	f.Float64Var(&in.Restart, "restart-cost", 30, "seconds that a change of a running job takes")
	f.IntVar(&in.Seeds, "seeds", 20, "sets of jobs")
	f.Uint64Var(&in.Seed, "seed", 1, "the first of their seeds")
	return evaluation(a, cmd, []*tableFlag{needed(&in.Trials, evaluate.Trials), optional(&in.Curves, evaluate.Curves)}, &in, replay.Allocation)
}

func (a *app) evaluateAdapt() *cobra.Command {
	var in replay.AdaptInput
	cmd := &cobra.Command{
		Use: "adapt FILE...", Short: "Measure which actions a running job takes, and what they bring",
		Long: "Learn from recorded runs what changing a running job brings, and decide in a held-out scenario; if the files\n" +
			"have several workloads, also in a held-out workload. The quality of a run is the mean of its last three\n" +
			"epochs. The baseline never is the longest run before a scenario, which goes on unchanged, else the runs\n" +
			"without an action.\n" +
			"A policy that does nothing scores the baseline, one that acts scores as the recorded run that did the same.\n" +
			"The oracle is the best recorded run, partly by luck: expected_share compares without that luck.",
		Example: "  pitchpipe evaluate adapt adaptations.csv --json",
	}
	return evaluation(a, cmd, []*tableFlag{needed(&in.Tables, evaluate.Adaptations)}, &in, replay.Adapt)
}
