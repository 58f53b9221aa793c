package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/results"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func (a *app) search() *cobra.Command {
	return family(&cobra.Command{
		Use: "search", Short: "Search hyperparameters with many runs of one job file",
		Long: "The search block of the job file says how: #TUNE search method=asha trials=27 parallel=4. Each trial is\n" +
			"an ordinary job. SEARCH is the id that `run` prints; without it the newest search counts.",
	}, a.searchPreview(), a.searchRun(), a.searchStatus(), a.searchResults(), a.searchBest(), a.searchImportance(),
		a.searchExport(), a.searchPlot(), a.searchStop(), a.searchResume())
}

func (a *app) searchRun() *cobra.Command {
	variables, environment := pairs{}, pairs{}
	var wait bool
	var dir, request string
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Start a search; its id goes to standard output", Args: cobra.ExactArgs(1),
		Long: "It goes on without this command. With --wait, Ctrl-C ends the watching alone; pitchpipe search stop\n" +
			"ends the search. Each trial keeps its checkpoint in the folder $PITCHPIPE_TRIAL_DIR.",
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			s, err := a.submission(ctx, args[0], dir, variables, environment)
			if err != nil {
				return err
			}
			s.Request, s.Namespace = cmp.Or(request, strings.ToLower(rand.Text())[:8]), a.env("NOMAD_NAMESPACE")
			x, err := submit(ctx, s, client.Search)
			if err != nil {
				return err
			}
			if wait {
				return a.follow(ctx, client, x, a.beside())
			}
			if !a.json {
				fmt.Fprintf(a.Stderr, "%s of %s; pitchpipe search status %s shows them\n", report.Count(x.Plan.Trials, "trial"), report.Legible(x.Name), x.ID)
			}
			return a.said(x, "%s\n", x.ID)
		}),
	}
	f := cmd.Flags()
	f.Var(variables, "var", "`k=v`, a variable of a Nomad job file; overrides NOMAD_VAR_k")
	f.Var(environment, "env", "`K=V`, added to the environment of each trial (repeatable)")
	f.BoolVar(&wait, "wait", false, "show progress on standard error, and the results; exit with 1 if no trial ended an epoch")
	f.StringVar(&dir, "dir", "", "the directory of the jobs (default: that of FILE)")
	identified(f, &request, "repeat safely: the same `id` never starts a second search")
	return cmd
}

// shownTrials is how many trials of a search that is over are shown.
const shownTrials = 5

// follow shows a search until it is over, and then its results.
func (a *app) follow(ctx context.Context, client *api.Client, x trials.State, progress *app) error {
	if err := progress.watch(ctx, client, x); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("no longer watched; the search goes on: pitchpipe search status %s, pitchpipe search stop %s", x.ID, x.ID)
		}
		return err
	}
	x, err := client.SearchState(ctx, x.ID)
	switch {
	case err != nil:
		return err
	case a.json:
		err = a.printJSON(x)
	default:
		err = a.printResults(x, shownTrials, time.Now())
	}
	if s := x.Searcher(); err == nil && len(s.Ranking()) == 0 {
		err = fmt.Errorf("%w: no trial of %s ended an epoch: %s", errJobFailed, x.ID, searchNext(x, s, time.Now()))
	}
	return err
}

// watch shows a search until all of its jobs have ended: in place on a terminal, else with a line for each change.
func (a *app) watch(ctx context.Context, client *api.Client, x trials.State) error {
	drawn, last, rest := 0, [2]string{}, 500*time.Millisecond // last: the line and its mark
	for {
		width, _, live := a.terminal()
		switch line, mark := searchLine(x, time.Now()); {
		case a.json:
		case live:
			text := searchPicture(x, time.Now(), width)
			if drawn > 0 {
				a.printf("\x1b[%dA\x1b[J", drawn)
			}
			a.printf("%s", text)
			drawn = strings.Count(text, "\n")
		case line != last[0] && mark != last[1] && !x.Settled(): // the results say how it ended
			a.printf("%s\n", line)
			last = [2]string{line, mark}
		}
		if x.Settled() {
			if drawn > 0 {
				a.printf("\x1b[%dA\x1b[J", drawn)
			}
			return nil
		}
		if driver.Pause(ctx, rest) != nil {
			return ctx.Err()
		}
		asked := time.Now()
		next, err := client.SearchState(ctx, x.ID)
		rest = max(rest, 20*time.Since(asked)) // a long answer is asked for less often
		switch {
		case err == nil:
			x = next
		case !errors.Is(err, api.ErrUnavailable) || ctx.Err() != nil: // else it may be restarting; the jobs go on
			return err
		}
	}
}

// theSearch is the one that is named, else the newest, where such a one is meant.
func (a *app) theSearch(ctx context.Context, client *api.Client, args []string, meant func(trials.State) bool) (trials.State, error) {
	if len(args) > 0 {
		return client.SearchState(ctx, args[0])
	}
	all, err := client.Searches(ctx)
	if err != nil {
		return trials.State{}, err
	}
	if len(all) == 0 {
		return trials.State{}, fmt.Errorf("%w: there is no search yet; pitchpipe search run FILE starts one", api.ErrNotFound)
	}
	newest, err := client.SearchState(ctx, all[len(all)-1].ID)
	if err == nil && !meant(newest) {
		err = fmt.Errorf("%w: the newest, %s, %s; stop takes one that runs, and resume one that is over; name another: pitchpipe search status lists yours",
			api.ErrNotFound, newest.ID, searchState(newest, newest.Searcher()))
	}
	return newest, err
}

func anySearch(trials.State) bool { return true }
func goesOn(x trials.State) bool  { return !x.Over }
func isOver(x trials.State) bool  { return x.Over }

// searchIDs completes ids of searches from a running controller.
func (a *app) searchIDs(worth func(trials.State) bool) cobra.CompletionFunc {
	return ids(a, true, (*api.Client).Searches, func(x trials.State) (id, what string, ok bool) {
		return x.ID, report.Legible(x.Name) + ", " + searchState(x, x.Searcher()), worth(x)
	})
}

// ofSearch makes a command that shows something of one search.
func (a *app) ofSearch(cmd *cobra.Command, meant func(trials.State) bool, run func(ctx context.Context, client *api.Client, x trials.State) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), a.searchIDs(meant)
	cmd.RunE = a.with(func(ctx context.Context, client *api.Client, args []string) error {
		x, err := a.theSearch(ctx, client, args, meant)
		if err != nil {
			return err
		}
		return run(ctx, client, x)
	})
	return cmd
}

// foreseen is a search with its expected end.
type foreseen struct {
	trials.State
	Ends time.Time `json:"expected_end,omitzero"`
}

func foresee(x trials.State, now time.Time) foreseen {
	out := foreseen{State: x}
	if left, ok := x.Left(now); ok {
		out.Ends = now.Add(left)
	}
	return out
}

func (a *app) searchStatus() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status [SEARCH]", Short: "List the searches, or show one with its trials", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.searchIDs(anySearch),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			if len(args) == 0 && !watch {
				all, err := client.Searches(ctx)
				if err != nil {
					return err
				}
				now, text := time.Now(), "there is no search yet: pitchpipe search run FILE starts one\n"
				if len(all) > 0 {
					text = searchList(all, now)
				}
				return a.said(append([]foreseen{}, tuning.Each(all, func(x trials.State) foreseen { return foresee(x, now) })...), "%s", text)
			}
			x, err := a.theSearch(ctx, client, args, anySearch)
			if err == nil && watch {
				return a.follow(ctx, client, x, a)
			}
			if err != nil {
				return err
			}
			return a.said(foresee(x, time.Now()), "%s\n%s", searchBrief(x, time.Now()), searchTrials(x))
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show one search until it is over")
	return cmd
}

func (a *app) searchResults() *cobra.Command {
	return a.ofSearch(&cobra.Command{
		Use: "results [SEARCH]", Short: "Rank the trials, the best first",
		Long: "Trials that reached the target are ranked by what they used, the others by their best value; AT is the\n" +
			"epoch that had it. Where the quality block names measures, the Pareto front follows: trials that no other\n" +
			"beats in all of them.",
	}, anySearch, func(_ context.Context, _ *api.Client, x trials.State) error {
		return a.printResults(x, len(x.Trials), time.Now())
	})
}

// ranked is a trial among the results.
type ranked struct {
	Rank int             `json:"rank"`
	Best searcher.Report `json:"best"` // its epoch with the best value
	searcher.Trial
}

func (a *app) printResults(x trials.State, most int, now time.Time) error {
	s := x.Searcher()
	out := struct {
		Search string          `json:"search"`
		Over   bool            `json:"over"`
		Trials []ranked        `json:"trials"`
		Front  *results.Pareto `json:"front,omitempty"`
	}{Search: x.ID, Over: x.Settled(), Trials: []ranked{}}
	for i, t := range s.Ranking() {
		out.Trials = append(out.Trials, ranked{i + 1, s.Best(t), *t})
	}
	by := measures(x)
	if by != nil {
		front := results.Front(s, by...)
		out.Front = &front
	}
	n, text := len(out.Trials), searchBrief(x, now)
	if n > 0 {
		text += "\n" + searchResults(out.Trials[:min(most, n)], x.Plan.Epochs)
	}
	if n > most {
		text += fmt.Sprintf("and %d more: pitchpipe search results %s\n", n-most, x.ID)
	}
	rest := searcher.Snapshot{Trials: slices.DeleteFunc(slices.Clone(s.Trials), func(t searcher.Trial) bool { return len(t.Reports) > 0 })}
	if n > 0 && len(rest.Trials) > 0 {
		text += fmt.Sprintf("%s without a value: %s\n", report.Count(len(rest.Trials), "trial"), rest.Counts(searcher.States()...))
	}
	if n > 0 && s.Target != nil {
		text += fmt.Sprintf("Trials that reached the target of %g come first, by what they used up to it (objective=%s).\n", *s.Target, s.Objective)
	}
	if n > 0 && by != nil {
		text += fmt.Sprintf("\nNo other trial is better in all of these (%s):\n%s", strings.Join(by, ", "), out.Front.Text())
	}
	return a.said(out, "%s", text)
}

func (a *app) searchStop() *cobra.Command {
	return a.ofSearch(&cobra.Command{Use: "stop [SEARCH]", Short: "End a search and its jobs"}, goesOn,
		func(ctx context.Context, client *api.Client, x trials.State) error {
			text := x.ID + " is over"
			if goesOn(x) {
				text = "stopping " + x.ID
			}
			if goesOn(x) && (x.Plan.Resumes || resumable(x, x.Plan.Trials)) {
				text += "; pitchpipe search resume " + x.ID + " goes on with it"
			}
			return a.answer(client.StopSearch(ctx, x.ID), map[string]string{"stopped": x.ID}, "%s\n", text)
		})
}

// resumable reports whether a search that is over has trials to begin, of so many in all, or to go on with.
func resumable(x trials.State, most int) bool {
	paused := func(t trials.Trial) bool { return t.State == searcher.Paused }
	return len(x.Trials) < most || x.Closing != "" && slices.ContainsFunc(x.Trials, paused)
}

func (a *app) searchResume() *cobra.Command {
	var more int
	cmd := a.ofSearch(&cobra.Command{
		Use: "resume [SEARCH]", Short: "Go on with a search that is over or was stopped",
		Long: "Trials that the stop interrupted go on from their checkpoints. A search whose trials have all ended\n" +
			"needs --trials to go on. Budgets and failures count from the beginning of the search.",
	}, isOver, func(ctx context.Context, client *api.Client, x trials.State) error {
		if isOver(x) && !resumable(x, max(more, x.Plan.Trials)) {
			return fmt.Errorf("%w resume: all %s of %s ended; --trials N with a larger N adds some", errInvalid, report.Count(len(x.Trials), "trial"), x.ID)
		}
		err := client.ResumeSearch(ctx, x.ID, more)
		if err == nil {
			x, err = client.SearchState(ctx, x.ID)
		}
		if err != nil {
			return err
		}
		return a.said(map[string]string{"resumed": x.ID}, "%s %s\n", x.ID, searchState(x, x.Searcher()))
	})
	cmd.Flags().IntVar(&more, "trials", 0, "trials in all from now on (default: as many as before)")
	return cmd
}
