package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
)

func (a *app) explain() *cobra.Command {
	var replay, verbose bool
	cmd := &cobra.Command{
		Use: "explain JOB", Short: "Show what tuning did for a job, why, and what it used",
		Long: "Three lines: the verdict, its effect on time, cost and energy, and the next step. Then what the\n" +
			"job used of what it asked for. With -v the story follows, with the numbers behind each decision.\n" +
			"With --json every decision is complete: class, forecast, prices, budgets, and each alternative.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.jobIDs(true, anyJob),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			ask, text := client.Explain, func(s api.Story) string { return a.story(s, verbose) }
			if replay {
				ask, text = client.Replay, a.replays
			}
			s, err := ask(ctx, args[0])
			return a.answer(err, s, "%s", text(s))
		}),
	}
	cmd.Flags().BoolVar(&replay, "replay", false, "make each decision again from its recorded state, and compare")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the dated story and the numbers behind it")
	return cmd
}

func (a *app) story(s api.Story, verbose bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict  %s\neffect   %s\nnext     %s\n", s.Verdict, s.Effect, s.Next)
	if s.Search != "" {
		fmt.Fprintf(&b, "search   trial %d of %s: pitchpipe search status %s\n", s.Trial, s.Search, s.Search)
	}
	if len(s.Usage) > 0 {
		b.WriteString(report.List([]string{"\nRESOURCE", "USED", "REQUESTED", "SHARE"}, s.Usage, func(u api.Usage) []string {
			return []string{u.Resource, u.Text(u.Used), u.Asked(), known(fmt.Sprintf("%.0f %%", 100*u.Used/u.Requested), u.Requested > 0)}
		}))
	}
	if !verbose {
		return b.String()
	}
	b.WriteString("\n")
	for _, l := range s.Lines {
		fmt.Fprintf(&b, "%s  %s\n", a.colour("2", l.At.Local().Format(time.DateTime)), l.Text)
		for _, why := range l.Why {
			fmt.Fprintf(&b, "                     %s\n", a.colour("2", why))
		}
	}
	if s.Spent != "" {
		b.WriteString(s.Spent + "\n")
	}
	return b.String()
}

func (a *app) replays(s api.Story) string {
	var b strings.Builder
	if s.Dropped > 0 {
		fmt.Fprintf(&b, "the first %d decisions about %s are no longer kept in full\n", s.Dropped, s.Job)
	}
	if len(s.Replays) == 0 {
		fmt.Fprintf(&b, "there is no decision about %s yet that can be made again\n", s.Job)
	}
	for _, r := range s.Replays {
		fmt.Fprintf(&b, "%s  %s\n", a.colour("2", r.At.Local().Format(time.DateTime)), r.Text)
	}
	return b.String()
}
