package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

func (a *app) evaluate() *cobra.Command {
	return family(&cobra.Command{
		Use: "evaluate", Short: "Measure the models on recorded runs",
		Long: "Run the code that the controller decides by over recorded runs, so that a site can judge it on\n" +
			"its own history; commands that also measure other models say so. The files are CSV, gzip or not, in\n" +
			"four formats: trials, curves, samples and adaptations. Nothing is written and no controller is asked;\n" +
			"the same data and seed give the same output. controller/evaluate/KEYS.md explains the columns and the\n" +
			"keys of --json. Files are named by repeated flags, by lists with commas, or one after the other. Rows\n" +
			"that cannot be used are listed.",
	}, a.evaluateRegret(), a.evaluateTuner(), a.evaluateSearch(), a.evaluateHyper(), a.evaluateClassifier(), a.evaluateForecast(), a.evaluateSpeed(), a.evaluatePlan(), a.evaluateVerify(), a.evaluateAllocation(), a.evaluateAdapt())
}

// tableFlag is named as the first of its formats.
type tableFlag struct {
	formats  []evaluate.Format // that it takes
	into     *[]evaluate.Table
	required bool
	files    []string
}

func needed(into *[]evaluate.Table, formats ...evaluate.Format) *tableFlag {
	return &tableFlag{formats: formats, into: into, required: true}
}

func optional(into *[]evaluate.Table, formats ...evaluate.Format) *tableFlag {
	return &tableFlag{formats: formats, into: into}
}

func (f *tableFlag) name() string { return string(f.formats[0]) }

// evaluation completes a subcommand: it gets its flags of tables, loads them, and prints the
// report. A PreRunE may have filled in the rest of the input.
func evaluation[In any](
	a *app, cmd *cobra.Command, tables []*tableFlag, in *In, run func(context.Context, In, evaluate.Progress) (evaluate.Report, error),
) *cobra.Command {
	for _, f := range tables {
		cmd.Flags().StringSliceVar(&f.files, f.name(), nil, "tables of "+strings.Join(texts(f.formats), " or ")+"; further files may follow as arguments")
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, more []string) error {
		if err := load(tables, more); err != nil {
			return err
		}
		r, err := run(cmd.Context(), *in, a.progress())
		return a.answer(err, r, "%s", r.Text())
	}
	return cmd
}

// load reads the tables. Arguments after the flags go to the flag that takes tables with
// such columns: which flag each of them followed is unknown, as in --samples a b --trials c d.
func load(tables []*tableFlag, more []string) error {
	for _, f := range tables {
		for _, file := range f.files {
			t, err := evaluate.Read(file, f.formats...)
			if err := cmp.Or(err, f.add(t)); err != nil {
				return err
			}
		}
	}
	for _, file := range more {
		t, err := evaluate.Read(file, evaluate.Records)
		if err != nil {
			return err
		}
		f, takes := tuning.First(tables, func(f *tableFlag) bool { return slices.Contains(f.formats, t.Format) })
		if !takes {
			flags := tuning.Each(tables, func(f *tableFlag) string { return "--" + f.name() })
			return fmt.Errorf("%w command line: %s is a table of %s: want those of %s", errInvalid, file, t.Format, strings.Join(flags, ", "))
		}
		if err := f.add(t); err != nil {
			return err
		}
	}
	if f, lacks := tuning.First(tables, func(f *tableFlag) bool { return f.required && len(*f.into) == 0 }); lacks {
		return fmt.Errorf("%w command line: no file: want --%s FILE", errInvalid, f.name())
	}
	return nil
}

func (f *tableFlag) add(t evaluate.Table) error {
	if slices.ContainsFunc(*f.into, func(o evaluate.Table) bool { return o.File == t.File }) {
		return fmt.Errorf("%w: %s is named twice", evaluate.ErrInvalid, t.File)
	}
	*f.into = append(*f.into, t)
	return nil
}

// progress shows on the standard error how far an evaluation is: in one line that is
// rewritten on a terminal, in a line for each part elsewhere.
func (a *app) progress() evaluate.Progress {
	_, _, terminal := a.beside().terminal()
	return func(done, total int, what string) {
		line := fmt.Sprintf("%d of %d %s", done, total, what)
		if terminal {
			fmt.Fprintf(a.Stderr, "\r\x1b[K%s", line)
			if done == total {
				fmt.Fprint(a.Stderr, "\r\x1b[K")
			}
			return
		}
		fmt.Fprintln(a.Stderr, line)
	}
}

func ownFlag(cmd *cobra.Command, into *tuning.Settings) {
	cmd.Flags().Func("default", "the owner's `settings`, such as cores=3,memory_gib=62.5", func(text string) error {
		for pair := range strings.SplitSeq(text, ",") {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("%q: want NAME=VALUE", pair)
			}
			*into = into.With(name, tuning.ParseValue(value))
		}
		return nil
	})
}

func objectives() []string { return texts(tuning.Objectives()) }

// choice adds a flag that takes one of some words, which its usage lists.
func choice(cmd *cobra.Command, into *string, flag, usual, usage string, words []string) {
	cmd.Flags().StringVar(into, flag, usual, usage+": "+strings.Join(words, ", "))
	offer(cmd, flag, words)
}

func offer(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
