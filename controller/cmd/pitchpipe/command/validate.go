package command

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/driver/jobfile/detect"
)

func percent(logRatio float64) float64 { return math.Expm1(logRatio) * 100 }

func (a *app) validate() *cobra.Command {
	var vars []string
	cmd := &cobra.Command{
		Use: "validate FILE…", Short: "Check job files and print the policy that is understood, defaults included",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			variables, err := pairs("--var", vars)
			if err != nil {
				return err
			}
			verdicts, bad := []api.Verdict{}, false
			for _, path := range args {
				v, err := a.judge(path, variables)
				verdicts = append(verdicts, v)
				bad = bad || err != nil
				switch {
				case a.json:
				case err != nil:
					fmt.Fprintln(a.Stderr, err)
				default:
					a.printf("%s: %s\n%s", path, v.Note, v.Text)
				}
			}
			if a.json {
				if err := a.printJSON(verdicts); err != nil {
					return err
				}
			}
			if bad {
				return errors.Join(errShown, errInvalid)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&vars, "var", nil, "k=v, a variable of a Nomad job file, before NOMAD_VAR_k of the environment (repeatable)")
	return cmd
}

func (a *app) judge(path string, variables map[string]string) (api.Verdict, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return api.Verdict{File: path, Errors: []api.Fault{{File: path, Found: err.Error()}}}, err
	}
	return verdict.Of(detect.For(a.cfg.Driver), path, source, a.variables(path, source, variables))
}
