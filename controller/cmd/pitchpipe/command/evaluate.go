package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"pitchpipe/controller/evaluate"
)

// evaluate is the parent of the evaluations, each of which has a file of its own.
func (a *app) evaluate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "evaluate", Short: "Measure the models on recorded runs",
		Long: "Run the code that the controller decides by over recorded runs, so that a site can judge it on\n" +
			"its own history. The files are CSV, gzip or not, in four formats: trials, curves, samples and\n" +
			"adaptations. Nothing is written and no controller is asked; the same data and seed give the same\n" +
			"output. With --json one object: {\"command\", \"data\", \"rows\": [...], \"summary\": {...}}. Files are named by\n" +
			"repeated flags, by lists with commas, or one after the other. Rows that cannot be used are told.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.evaluateRegret(), a.evaluateTuner(), a.evaluateSearch(), a.evaluateHyper(), a.evaluateClassifier(), a.evaluateForecast(), a.evaluateSpeed(), a.evaluatePlan(), a.evaluateVerify())
	return cmd
}

// progress tells on the standard error how far an evaluation is: in one line that is
// written anew on a terminal, in a line for each part elsewhere.
func (a *app) progress() evaluate.Progress {
	_, terminal := a.terminal()
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
