package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func (a *app) with(run func(ctx context.Context, client *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client := a.client()
		defer client.Close()
		return run(cmd.Context(), client, args)
	}
}

func (a *app) status() *cobra.Command {
	var watch bool
	var user, state string
	cmd := &cobra.Command{
		Use: "status [JOB…]", Short: "Show jobs, what they use, and what tuning does for them", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: a.jobIDs(false, anyJob),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			wanted, states := strings.Split(strings.ToLower(state), ","), texts(driver.States())
			if i := slices.IndexFunc(wanted, func(s string) bool { return !slices.Contains(states, s) }); state != "" && i >= 0 {
				return fmt.Errorf("%w --state %q: want some of %s", errInvalid, wanted[i], strings.Join(states, ", "))
			}
			for show := a.screen(); ; {
				jobs, err := fetch(ctx, client, args)
				jobs = slices.DeleteFunc(jobs, func(j api.Job) bool {
					return user != "" && j.Owner != user || state != "" && !slices.Contains(wanted, j.State)
				})
				switch {
				case err != nil:
					return err
				case watch && !a.json:
					show.update(jobs)
				default:
					var pauses []api.Pause
					pauses, err = client.Pauses(ctx)
					err = a.answer(err, jobs, "%s", jobTable(jobs)+pauseList(pauses))
				}
				if err != nil || !watch || !slices.ContainsFunc(jobs, notEnded) || driver.Pause(ctx, 500*time.Millisecond) != nil {
					return err
				}
			}
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&watch, "watch", false, "refresh the list until every job has ended")
	f.StringVar(&user, "user", "", "only the jobs of this user")
	f.StringVar(&state, "state", "", "only jobs in these states, with commas between them, such as running,pending")
	return cmd
}

func fetch(ctx context.Context, client *api.Client, ids []string) ([]api.Job, error) {
	if len(ids) == 0 {
		return client.Jobs(ctx)
	}
	jobs := []api.Job{}
	for _, id := range ids {
		j, err := client.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func jobTable(jobs []api.Job) string {
	return report.List(strings.Fields("JOB NAME USER STATE TUNING EPOCH TIME ENERGY COST MOVES SETTINGS WHY"), jobs, func(j api.Job) []string {
		return []string{
			j.ID, named(j.Name, j.Lineage), j.Owner, j.State, tuningText(j), epochs(j.Epoch, j.Total), ran(j), joules(j.Joules, j.Source), cost(j), moves(j),
			cmp.Or(j.Current.String(), "-"), j.Sentence,
		}
	})
}

// tuningText says what tuning does for a job, in words that no scheduler has: Slurm holds a
// job to keep it from starting.
func tuningText(j api.Job) string {
	return cmp.Or(map[string]string{
		"seen": "-", "ended": "-", "ignored": "left alone", "waiting": "to be measured", "profiling": "measuring", "held": "unchanged",
	}[j.Phase], j.Phase)
}

func epochs(done, total int) string {
	if total <= 0 {
		return fmt.Sprintf("%d/?", done)
	}
	return fmt.Sprintf("%d/%d", done, total)
}

// ran is how long a job ran, and of one that waits how long it waits.
func ran(j api.Job) string {
	if j.State == string(driver.Pending) {
		return "queued " + report.Duration(j.Waited)
	}
	return report.Duration(j.Seconds)
}

// joules prints energy with its source; missing is not zero.
func joules(v *float64, source string) string {
	if v == nil {
		return report.Unknown
	}
	return fmt.Sprintf("%s (%s)", report.Joules(*v), source)
}

// cost prints what a job was charged, and says where energy has a price and is left out.
func cost(j api.Job) string {
	switch {
	case j.Cost == nil:
		return "-"
	case j.FreeEnergy:
		return report.Amount(*j.Cost) + " " + j.CostUnit + " without energy"
	}
	return report.Amount(*j.Cost) + " " + j.CostUnit
}

// moves counts what was done to a job while it ran, and names what was done before.
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

func (a *app) logs() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs JOB", Short: "Print a job's output",
		Long: "On Nomad, what an attempt wrote to its standard error follows its output once the attempt is over.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.jobIDs(true, anyJob),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			var all strings.Builder
			out := a.Stdout
			if a.json {
				out = &all
			}
			for offset := int64(0); ; {
				job, err := client.Job(ctx, args[0]) // before the output: what it writes at last is read
				if err != nil {
					return err
				}
				n, err := client.Logs(ctx, args[0], offset, out)
				if offset += n; err != nil || !follow || job.Ended || driver.Pause(ctx, 500*time.Millisecond) != nil {
					return a.answer(err, map[string]string{"job": args[0], "output": all.String()}, "")
				}
			}
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what the job writes until it ends")
	return cmd
}

func (a *app) history() *cobra.Command {
	return &cobra.Command{
		Use: "history [JOB]", Short: "Show what happened to all jobs, or to one, newest last", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.jobIDs(true, anyJob),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			if len(args) > 0 { // a job that does not exist has no history
				if _, err := client.Job(ctx, args[0]); err != nil {
					return err
				}
			}
			events, err := client.History(ctx)
			events = slices.DeleteFunc(events, func(e api.Event) bool { return len(args) > 0 && e.Job != args[0] })
			return a.answer(err, events, "%s", report.Columns(tuning.Each(events, func(e api.Event) []string {
				return []string{e.At.Local().Format(time.DateTime), cmp.Or(e.Job, "-"), named(e.Name, e.Lineage), e.Text}
			})...))
		}),
	}
}

// jobIDs completes ids of jobs from a running controller. Without one, or where it is slow,
// there is nothing to complete and no message.
func (a *app) jobIDs(once bool, worth func(api.Job) bool) cobra.CompletionFunc {
	return ids(a, once, (*api.Client).Jobs, func(j api.Job) (id, what string, ok bool) {
		return j.ID, report.Legible(j.Name) + ", " + j.State, worth(j)
	})
}

// ids completes ids from a list of a running controller, the newest first: each that is not named yet, or only the first.
func ids[T any](a *app, once bool, ask func(*api.Client, context.Context) ([]T, error), describe func(T) (id, what string, ok bool)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) (out []cobra.Completion, how cobra.ShellCompDirective) {
		if once && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		how = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		// A completion skips configure, whose errors would end up in the shell.
		var err error
		if a.cfg, err = config.Load(cmd.Flags(), a.Environ, a.file); err != nil {
			return nil, how
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 500*time.Millisecond)
		defer cancel()
		client := a.client()
		defer client.Close()
		all, err := ask(client, ctx)
		if err != nil { // there was no answer in time
			return nil, how
		}
		for _, x := range slices.Backward(all) {
			if id, what, ok := describe(x); ok && !slices.Contains(args, id) && strings.HasPrefix(id, word) {
				out = append(out, cobra.CompletionWithDesc(id, what))
			}
		}
		return out, how
	}
}

// named is a name with the search and the trial that it belongs to.
func named(name string, of trials.Lineage) string {
	switch name = report.Legible(name); {
	case of.Search == "":
		return name
	case of.Trial == 0:
		return fmt.Sprintf("%s (search %s)", name, of.Search)
	}
	return fmt.Sprintf("%s (%s, trial %d)", name, of.Search, of.Trial)
}

func anyJob(api.Job) bool     { return true }
func notEnded(j api.Job) bool { return !j.Ended }

// screen draws one line per job: in place on a terminal, else a plain line whenever a job's
// state or a tenth of its epochs changed.
type screen struct {
	app   *app
	lines int
	last  map[string]string // what the last line of a job showed
	why   map[string]string // and its reason
}

func (a *app) screen() *screen {
	return &screen{app: a, last: map[string]string{}, why: map[string]string{}}
}

func (p *screen) update(jobs []api.Job) {
	if width, height, live := p.app.terminal(); live {
		p.app.printf("%s", p.picture(jobs, width, height))
		return
	}
	for _, j := range jobs {
		done := j.Epoch
		if j.Total > 0 {
			done = 10 * j.Epoch / j.Total
		}
		mark := fmt.Sprintf("%s %s %s %d", j.State, j.Phase, j.Reason, done)
		if p.last[j.ID] != mark {
			line, why := summary(j), j.Sentence
			if why != "" && why != p.why[j.ID] {
				line += "  (" + why + ")"
			}
			p.app.printf("%s\n", line)
			p.why[j.ID] = why
		}
		p.last[j.ID] = mark
	}
}

// picture draws over the list before. Lines that scroll away could not be drawn over: of a list
// that is longer than the terminal the newest jobs are shown.
func (p *screen) picture(jobs []api.Job, width, height int) string {
	var b strings.Builder
	if p.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", p.lines)
	}
	p.lines = len(jobs)
	if most := max(height-1, 1); len(jobs) > most {
		older := len(jobs) - most + 1
		fmt.Fprintf(&b, "and %d older\n", older)
		jobs, p.lines = jobs[older:], most
	}
	for _, j := range jobs {
		b.WriteString(p.line(j, width) + "\n")
	}
	return b.String()
}

// close leaves the lines where they are and continues below them.
func (p *screen) close() { p.lines = 0 }

func (p *screen) line(j api.Job, width int) string {
	text := []rune(summary(j))
	if j.Sentence != "" && !j.Ended {
		text = append(text, []rune("  ("+j.Sentence+")")...)
	}
	bar := min(24, width-len(text)-3)
	if j.Total <= 0 || bar < 6 {
		return string(text[:min(len(text), max(0, width-1))])
	}
	full := bar * min(j.Epoch, j.Total) / j.Total
	return p.app.colour("32", strings.Repeat("█", full)) + strings.Repeat("░", bar-full) + " " + string(text)
}

func summary(j api.Job) string {
	parts := []string{j.ID + " " + report.Legible(j.Name), "epoch " + strings.TrimSuffix(epochs(j.Epoch, j.Total), "/?"), j.State}
	if text := tuningText(j); text != "-" {
		parts[2] += ", " + text
	}
	parts = append(parts, ran(j), joules(j.Joules, j.Source), j.Current.String())
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "-" }), "  ")
}
