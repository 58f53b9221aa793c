package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/report"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/figure"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/searcher/results"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
)

func (a *app) searchPreview() *cobra.Command {
	variables := pairs{}
	validate := a.validate()
	cmd := &cobra.Command{
		Use: "preview FILE", Short: "Say how many trials would train how long; nothing runs",
		Long: "The numbers are those of simulated searches whose trials differ by luck alone. A running controller knows\n" +
			"what an epoch takes where jobs of this kind have run; without one, time, joules and core-hours are unknown.",
		Args: cobra.ExactArgs(1), PersistentPreRunE: validate.PersistentPreRunE,
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			v := a.judge(ctx, client, args[0], variables)
			if !v.Valid {
				fmt.Fprint(a.Stderr, verdict.Text(v))
				return errors.Join(errShown, errInvalid)
			}
			if v.Policy == nil || v.Policy.Search == nil {
				return fmt.Errorf("%w job file: %s has no search block: want one such as #TUNE search trials=%d", errInvalid, args[0], tuning.DefaultTrials)
			}
			plan, err := searcher.PlanOf(*v.Policy)
			if err != nil {
				return invalid("job file", err)
			}
			asked, length := plan.Parallel, "as many epochs as the job says"
			if plan.Epochs > 0 {
				length = report.Count(plan.Epochs, "epoch")
			}
			plan.Parallel = min(asked, a.atOneTime(args[0], variables, v))
			p, err := preview.Of(plan, *cmp.Or(v.Epoch, &preview.Estimate{}))
			if err != nil {
				return invalid("job file", err)
			}
			if plan.Trials < v.Policy.Search.Trials {
				p.Notes = append(p.Notes, fmt.Sprintf("The knobs have no more than %s.", report.Count(plan.Trials, "combination")))
			}
			if v.Epoch == nil {
				p.Notes = append(p.Notes, "What an epoch takes is unknown: no controller that answers here has measured a job of this kind while its node did nothing else.")
			}
			p.Notes = append(p.Notes, searchWarnings(v, asked, plan.Parallel)...)
			return a.said(p, "%s: %s by %s, %d at one time, of %s each\n\n%s\nnext    pitchpipe search run %s\n", args[0], report.Count(plan.Trials, "trial"), plan.Method,
				plan.Parallel, length, preview.Text(p), args[0])
		}),
	}
	cmd.Flags().Var(variables, "var", "`k=v`, a variable of a Nomad job file; overrides NOMAD_VAR_k")
	return cmd
}

// atOneTime is how many trials run at one time at most, where it is sure that the local scheduler runs them:
// this machine has only so many cores.
func (a *app) atOneTime(path string, variables map[string]string, v api.Verdict) int {
	source, err := os.ReadFile(path)
	if err != nil || len(v.Prospects) != 1 || v.Prospects[0].Scheduler != "local" {
		return math.MaxInt
	}
	file, err := detect.For(a.cfg.Driver)(path, source, a.variables(path, source, variables))
	if err != nil {
		return math.MaxInt
	}
	return max(runtime.NumCPU()/max(file.Cores, 1), 1)
}

func (a *app) searchBest() *cobra.Command {
	var file string
	cmd := a.ofSearch(&cobra.Command{
		Use: "best [SEARCH]", Short: "Show the best trial, its checkpoint, and write its job file",
		Long: "The job file is that of the search with the hyperparameters of the best trial. It is an ordinary job,\n" +
			"whose system knobs are tuned as those of the trials were, or as the mode of the stanza says.",
	}, anySearch, func(_ context.Context, _ *api.Client, x trials.State) error {
		s := x.Searcher()
		ranking := s.Ranking()
		if len(ranking) == 0 {
			return fmt.Errorf("%w: no trial of %s has ended an epoch yet: pitchpipe search status %s", api.ErrNotFound, x.ID, x.ID)
		}
		t := ranking[0]
		out := struct {
			Search   string          `json:"search"`
			Trial    int             `json:"trial"`
			Settings tuning.Settings `json:"settings"`
			Best     searcher.Report `json:"best"`
			Folder   string          `json:"folder"` // of its checkpoint
			File     string          `json:"file,omitempty"`
		}{x.ID, t.Number, t.Settings, s.Best(t), trials.Folder(x.Job.Dir, x.Name, x.ID, t.Number), file}
		next := "pitchpipe search best " + x.ID + " -o FILE writes a job file with these values"
		if file != "" {
			text, err := fixed(x, t.Settings)
			if err != nil {
				return invalid("-o", err)
			}
			if err := a.into(file, os.O_EXCL, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil { // it may be that of the search
				return err
			}
			next = "pitchpipe run " + file
		}
		kept := ""
		if found, err := os.ReadDir(out.Folder); len(found) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
			kept = " (empty: the program keeps no checkpoint in $PITCHPIPE_TRIAL_DIR)"
		}
		return a.said(out, "best    %s\nfolder  %s%s\nnext    %s\n", foundText(x, s, t), out.Folder, kept, next)
	})
	cmd.Flags().StringVarP(&file, "output", "o", "", "write a job file `FILE` with the best values, ready to run")
	return cmd
}

// fixed is the job file of a search with the settings of one trial.
func fixed(x trials.State, s tuning.Settings) ([]byte, error) {
	fix, err := trials.FixOf(x.Policy, s)
	if err != nil {
		return nil, err
	}
	fix.Env = driver.Merge(x.Job.Env, fix.Env)
	return detect.Fix(x.Job.Filename, x.Job.Source, x.Job.Variables, fix)
}

func (a *app) searchImportance() *cobra.Command {
	return a.ofSearch(&cobra.Command{
		Use: "importance [SEARCH]", Short: "Show which hyperparameters mattered, and how sure that is",
		Long: "Compares trials after the same epochs. A share is the part of the differences between trials that a\n" +
			"hyperparameter explains by itself; \"by luck\" is how often chance alone shows as much. Trials that failed\n" +
			"before are left out and listed with their values.",
	}, anySearch, func(_ context.Context, _ *api.Client, x trials.State) error {
		i := results.Weigh(x.Searcher())
		return a.said(i, "%s", i.Text())
	})
}

func (a *app) searchExport() *cobra.Command {
	var format, file string
	var epochs bool
	cmd := a.ofSearch(&cobra.Command{
		Use: "export [SEARCH]", Short: "Print or write all trials as CSV or JSON",
	}, anySearch, func(_ context.Context, _ *api.Client, x trials.State) error {
		return a.into(file, os.O_TRUNC, func(w io.Writer) error {
			if format == "json" || a.json {
				return results.JSON(w, x.Searcher())
			}
			return results.CSV(w, x.Searcher(), epochs)
		})
	})
	formats := []string{"csv", "json"}
	f := cmd.Flags()
	f.StringVar(&format, "format", formats[0], "csv or json")
	f.BoolVar(&epochs, "epochs", false, "a line of CSV for each epoch of each trial")
	f.StringVarP(&file, "output", "o", "", "write to `FILE` (default: standard output)")
	offer(cmd, "format", formats)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats, format) {
			return fmt.Errorf("%w --format %q: want csv or json", errInvalid, format)
		}
		return nil
	}
	return cmd
}

func (a *app) searchPlot() *cobra.Command {
	var file string
	kinds, formats := texts(figure.Kinds()), texts(picture.Formats())
	searches := a.searchIDs(anySearch)
	cmd := &cobra.Command{
		Use: "plot KIND [SEARCH] -o FILE", Short: "Draw a search as SVG or PNG",
		Long: "KIND is best-time or best-energy (the best value so far), parallel (the hyperparameters of each trial),\n" +
			"front-energy, front-time or front-cost (the value against what it took), or rungs (the life of each trial).\n" +
			"The end of FILE, .svg or .png, says which format it is.",
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return kinds, cobra.ShellCompDirectiveNoFileComp
			}
			return searches(cmd, args[1:], word)
		},
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			format := strings.TrimPrefix(filepath.Ext(file), ".")
			switch {
			case !slices.Contains(kinds, args[0]):
				return fmt.Errorf("%w plot %q: want one of %s", errInvalid, args[0], strings.Join(kinds, ", "))
			case !slices.Contains(formats, format):
				return fmt.Errorf("%w -o %q: want a file that ends in .%s", errInvalid, file, strings.Join(formats, " or ."))
			}
			x, err := a.theSearch(ctx, client, args[1:], anySearch)
			if err != nil {
				return err
			}
			var b bytes.Buffer // a file is written only where there is something to draw
			if err := figure.Draw(&b, figure.Kind(args[0]), picture.Format(format), x.Searcher()); err != nil {
				return fmt.Errorf("%s of %s: %w", args[0], x.ID, err)
			}
			if err := a.into(file, os.O_TRUNC, func(w io.Writer) error { _, err := b.WriteTo(w); return err }); err != nil {
				return err
			}
			return a.said(map[string]string{"search": x.ID, "file": file}, "%s of %s: %s\n", args[0], x.ID, file)
		}),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`")
	return cmd
}

// into writes to a file, or to the standard output where none is named. With os.O_EXCL it replaces no file.
func (a *app) into(file string, flag int, write func(io.Writer) error) error {
	if file == "" {
		return write(a.Stdout)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|flag, 0o644) //nolint:gosec // for others to read
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists: name another file", file)
	}
	if err != nil {
		return invalid("-o", err)
	}
	return errors.Join(write(f), f.Close())
}
