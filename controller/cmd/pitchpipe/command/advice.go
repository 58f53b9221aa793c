package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
)

func (a *app) advice() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "advice [JOB…]", Short: "Show the advice about time limits, priorities and nodes",
		Long: "A time limit that is longer than similar jobs need keeps a waiting job out of gaps in the queue.\n" +
			"Where the site's policy says advice: apply, the scheduler gets a shorter one, and a job that\n" +
			"outlives it gets its owner's limit back. Jobs of Nomad prefer the class of nodes on which jobs of\n" +
			"the same user, name and cores ended sooner. `pitchpipe off JOB` gives a job back what its owner asked for.\n\n" +
			"STATE: recommended (the scheduler was not asked), intended, applied, extended, refused, withdrawn, held.",
		Args: cobra.ArbitraryArgs,
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			found, err := client.Advice(ctx)
			if err != nil {
				return err
			}
			found = slices.DeleteFunc(found, func(r advise.Item) bool {
				return !all && r.State == advise.Held || len(args) > 0 && !slices.Contains(args, string(r.Job))
			})
			count := map[advise.State]int{}
			for _, r := range found {
				count[r.State]++
			}
			return a.said(map[string]any{"command": "advice", "rows": found, "summary": count}, "%s", adviceTable(found))
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show jobs of which too little is known, and limits that are short enough")
	return cmd
}

func adviceTable(found []advise.Item) string {
	return report.List(strings.Fields("JOB NAME USER WHAT FROM TO STATE WHY RULE"), found, func(r advise.Item) []string {
		text := func(v float64) string { return fmt.Sprint(v) }
		if r.What == advise.TimeLimit || r.What == advise.Affinity {
			text = report.Duration
		}
		why := r.Why
		if r.Detail != "" {
			why += "; " + r.Detail
		}
		what := string(r.What)
		if r.With != "" {
			what += " with " + string(r.With)
		}
		if r.Class != "" {
			what += " for " + report.Legible(r.Class)
		}
		return []string{string(r.Job), report.Legible(r.Name), r.Owner, what, text(r.From), text(r.To), string(r.State), report.Legible(why), r.Rule}
	})
}
