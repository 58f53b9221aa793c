package command

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluatePlan() *cobra.Command {
	in := replay.PlanInput{}
	var objective, site string
	var restart, wait float64
	var noise []float64
	cmd := &cobra.Command{
		Use: "plan --trials FILE...", Short: "Does moving whole jobs pay, and how often does it hurt?",
		Long: "Replay whole jobs through the controller itself, on recorded trials: a job starts under its owner's\n" +
			"settings, each epoch costs what the table measured under the present ones, and each move costs a restart\n" +
			"and a wait in the queue. What the controller sees varies as the recorded repeats do (and, with --curves,\n" +
			"as recorded epochs do), and by --noise where these do not vary; costs are in expectation.\n\n" +
			"COST is that of the whole job relative to never moving it: PAID and HURT are the shares of jobs below\n" +
			"and above 1. NEVER is the same controller when it may only look, ALWAYS a tuner that goes to the best\n" +
			"settings that it saw without asking whether that pays, ORACLE the best allowed settings from the first\n" +
			"epoch on, and REGRET how far above that the jobs are. All that is about jobs that are met for the first\n" +
			"time; the keys returned.* are about their later runs, which use what the earlier ones taught.\n\n" +
			"A row of trials without epochs is one epoch; where a table has only rates, an epoch is a minute of work\n" +
			"under the owner's settings. Those are what a targets.csv beside the data says, else what relative_speed\n" +
			"is relative to, else the most of everything. Moved within a job are cores, threads, power limits,\n" +
			"frequencies, nodes, replicas and placement, or what --knob names; all else stays as its owner has it.",
		Example: "  pitchpipe evaluate plan --trials trials.csv --objective time --epochs 5,20,100\n" +
			"  pitchpipe evaluate plan --trials trials.csv --objective energy --max-slowdown 1.1 --restart-cost 60 --json",
	}
	f := cmd.Flags()
	objectives := strings.Split(result.Words(tuning.Objectives()), ", ")
	f.StringVar(&objective, "objective", string(tuning.Energy), "what is minimised: "+result.Words(objectives))
	f.Float64Var(&in.Weight, "weight", tuning.DefaultWeight, "share of energy in blend")
	f.Float64Var(&in.MaxSlowdown, "max-slowdown", 0, "seconds of an epoch at most so many times the owner's (0: no limit)")
	f.Float64Var(&restart, "restart-cost", 30, "seconds that a move takes: to save, to leave and to start again")
	f.Float64Var(&wait, "wait", 0, "seconds in the queue at each move")
	usual := replay.UsualNoise()
	f.Float64SliceVar(&noise, "noise", []float64{usual.Attempt, usual.Epoch}, "standard deviations between attempts and between epochs, as shares, where the data have none that differ (0: none)")
	f.IntVar(&in.Probes, "probes", tuning.DefaultProbes, "settings that a job may try")
	f.IntSliceVar(&in.Epochs, "epochs", []int{0}, fmt.Sprintf("lengths of the jobs (0: as recorded, else %d)", replay.Recorded))
	f.IntVar(&in.Seeds, "seeds", 10, "jobs of each table and length, each with other luck")
	f.IntVar(&in.Returns, "returns", 2, "times that each job comes again, to a site that knows what its earlier runs taught")
	f.IntVar(&in.Tries, "tries", 0, "of these, runs that may try a setting from their start (budget returns of the stanza)")
	ownFlag(cmd, &in.Default)
	f.StringSliceVar(&in.Knobs, "knob", nil, "which knobs may move (default: those that leave alone what a job learns)")
	f.StringVar(&site, "site", "", "the site's policy, whose defaults bound what is done (default: that of a site that wrote none)")
	f.BoolVar(&in.Above, "above-request", false, "jobs may be given more than their owners asked for")
	offer(cmd, "objective", objectives)
	tables := []*tableFlag{trialsFlag(&in.Trials, true), curvesFlag(&in.Curves, false)}
	return evaluation(a, cmd, tables, func(ctx context.Context, progress result.Progress) (replay.PlanReport, error) {
		if len(noise) < 1 || len(noise) > 2 {
			return replay.PlanReport{}, result.Invalid("--noise: %d numbers: want that between attempts and that between epochs", len(noise))
		}
		if site != "" {
			policy, err := config.LoadSite(site)
			if err != nil {
				return replay.PlanReport{}, fmt.Errorf("%w site policy: %w", errInvalid, err)
			}
			forAll := policy.For("", "", "", "")
			in.Site = &forAll
		}
		in.Objective, in.Restart, in.Wait = tuning.Objective(objective), seconds(restart), seconds(wait)
		in.Noise = replay.Noise{Attempt: noise[0], Epoch: noise[len(noise)-1]}
		return replay.Plan(ctx, in, progress)
	})
}

// seconds is a duration of so many; more than a duration holds is the longest there is.
func seconds(v float64) time.Duration {
	if !(math.Abs(v) < time.Duration(math.MaxInt64).Seconds()) {
		return math.MaxInt64
	}
	return time.Duration(v * float64(time.Second))
}
