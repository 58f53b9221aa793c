package command

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
)

func (a *app) status() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status [JOB…]", Short: "Show jobs and where they are on their way",
		ValidArgsFunction: a.jobIDs(false, anyJob),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			if !watch {
				jobs, err := fetch(cmd.Context(), client, args)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(jobs)
				}
				return a.table(jobs)
			}
			show := a.screen()
			for {
				jobs, err := fetch(cmd.Context(), client, args)
				if err != nil {
					return err
				}
				if a.json {
					err = a.printJSON(jobs)
				} else {
					show.update(jobs)
				}
				if err != nil || allEnded(jobs) {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(500 * time.Millisecond):
				}
			}
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "keep showing until every job has ended")
	return cmd
}

func allEnded(jobs []api.Job) bool {
	for _, j := range jobs {
		if !j.Ended {
			return false
		}
	}
	return true
}

func fetch(ctx context.Context, client *api.Client, ids []string) ([]api.Job, error) {
	if len(ids) == 0 {
		return client.Jobs(ctx)
	}
	var jobs []api.Job
	for _, id := range ids {
		j, err := client.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func (a *app) table(jobs []api.Job) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tNAME\tSTATE\tPHASE\tEPOCH\tSECONDS\tCORE-HOURS\tENERGY\tCOST\tCLASS\tMOVES\tSETTINGS\tREASON")
	for _, j := range jobs {
		class := "–"
		if j.Class != nil {
			class = "unknown"
			if j.Class.Known() {
				class = j.Class.ID
			}
		}
		hours := "–"
		if j.CoreHours != nil {
			hours = fmt.Sprintf("%.2f", *j.CoreHours)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d/%s\t%.1f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.ID, j.Name, j.State, j.Phase, j.Epoch,
			total(j.Total), j.Seconds, hours, joules(j.Joules, j.Source), cost(j), class, moves(j), j.Current, j.Reason)
	}
	return w.Flush()
}

// cost prints what a job was charged, and says where energy has a price and is left out.
func cost(j api.Job) string {
	switch {
	case j.Cost == nil:
		return "–"
	case j.FreeEnergy:
		return fmt.Sprintf("%.2f %s without energy", *j.Cost, j.CostUnit)
	}
	return fmt.Sprintf("%.2f %s", *j.Cost, j.CostUnit)
}

// moves counts what was done to a job while it ran, and says what was done before.
func moves(j api.Job) string {
	n := fmt.Sprint(j.Restarts + j.Probes)
	switch {
	case j.RightSized:
		return n + ", right-sized"
	case j.Recalled:
		return n + ", recalled"
	}
	return n
}

func total(n int) string {
	if n <= 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

func (a *app) explain() *cobra.Command {
	var replay bool
	cmd := &cobra.Command{
		Use: "explain JOB", Short: "Tell the story of a job, with the numbers behind each decision",
		Long: "With --replay each decision of which the state is kept is made again by that state, and it is said whether the same comes of it.\n" +
			"With --json every decision is there in full: class, forecast, prices, budgets, and each alternative with what it would have cost.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.jobIDs(true, anyJob),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			ask := client.Explain
			if replay {
				ask = client.Replay
			}
			s, err := ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case a.json:
				return a.printJSON(s)
			case replay:
				a.replays(s)
			default:
				a.story(s)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&replay, "replay", false, "make its decisions again and tell whether they are the same")
	return cmd
}

func (a *app) story(s api.Story) {
	if len(s.Lines) == 0 {
		a.printf("nothing has happened to %s yet\n", s.Job)
	}
	for _, l := range s.Lines {
		a.printf("%s  %s\n", a.colour("2", l.At.Local().Format("15:04:05.0")), l.Text)
		for _, why := range l.Why {
			a.printf("            %s\n", a.colour("2", why))
		}
	}
	if s.Spent != "" {
		a.printf("%s\n", s.Spent)
	}
}

func (a *app) replays(s api.Story) {
	if s.Dropped > 0 {
		a.printf("the first %d decisions about %s are not kept in full any more\n", s.Dropped, s.Job)
	}
	if len(s.Replays) == 0 {
		a.printf("nothing was decided about %s yet that could be made again\n", s.Job)
	}
	for _, r := range s.Replays {
		a.printf("%s  %s\n", a.colour("2", r.At.Local().Format("15:04:05.0")), r.Text)
	}
}

func (a *app) history() *cobra.Command {
	return &cobra.Command{
		Use: "history", Short: "Show what happened to all jobs, newest last", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := a.client()
			defer client.Close()
			events, err := client.History(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(events)
			}
			for _, e := range events {
				a.printf("%s  %s %s: %s\n", e.At.Local().Format(time.DateTime), e.Job, e.Name, e.Text)
			}
			return nil
		},
	}
}

func (a *app) logs() *cobra.Command {
	return &cobra.Command{
		Use: "logs JOB", Short: "Print a job's output", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.jobIDs(true, anyJob),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			if !a.json {
				_, err := client.Logs(cmd.Context(), args[0], 0, a.Stdout)
				return err
			}
			var output strings.Builder
			if _, err := client.Logs(cmd.Context(), args[0], 0, &output); err != nil {
				return err
			}
			return a.printJSON(map[string]string{"job": args[0], "output": output.String()})
		},
	}
}
