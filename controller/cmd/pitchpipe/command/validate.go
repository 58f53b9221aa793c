package command

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

func percent(logRatio float64) float64 { return math.Expm1(logRatio) * 100 }

// verdict is what validate says about one file.
type verdict struct {
	File   string         `json:"file"`
	Valid  bool           `json:"valid"`
	Policy *tuning.Policy `json:"policy,omitempty"`
	Errors []fault        `json:"errors,omitempty"`
	Note   string         `json:"note,omitempty"`
}

type fault struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Found  string `json:"found"`
	Want   string `json:"want,omitempty"`
}

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
			verdicts, bad := []verdict{}, false
			for _, path := range args {
				v, text, err := judge(path, variables)
				verdicts = append(verdicts, v)
				bad = bad || err != nil
				switch {
				case a.json:
				case err != nil:
					fmt.Fprintln(a.Stderr, err)
				default:
					a.printf("%s: %s\n%s", path, v.Note, text)
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
	cmd.Flags().StringArrayVar(&vars, "var", nil, "k=v, a variable of a Nomad job file (repeatable)")
	return cmd
}

func judge(path string, variables map[string]string) (verdict, string, error) {
	v := verdict{File: path}
	source, err := os.ReadFile(path)
	if err != nil {
		v.Errors = []fault{{File: path, Found: err.Error()}}
		return v, "", err
	}
	file, err := detect.Parse(path, source, variables)
	var policy tuning.Policy
	if err == nil {
		policy, err = stanza.Policy(file)
	}
	if errors.Is(err, stanza.ErrNone) {
		v.Valid, v.Note = true, "no tuning stanza, so this job is left alone"
		return v, "", nil
	}
	var faults jobfile.Errors
	switch {
	case err == nil:
		v.Valid, v.Policy, v.Note = true, &policy, "valid"
		return v, stanza.Print(policy), nil
	case errors.As(err, &faults):
		for _, f := range faults {
			v.Errors = append(v.Errors, fault{f.Pos.Filename, f.Pos.Line, f.Pos.Column, f.Found, f.Want})
		}
	default:
		v.Errors = []fault{{File: path, Found: err.Error()}}
	}
	return v, "", err
}
