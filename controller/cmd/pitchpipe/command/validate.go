package command

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/local"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/slurm"
)

func percent(logRatio float64) float64 { return math.Expm1(logRatio) * 100 }

func (a *app) validate() *cobra.Command {
	var vars []string
	cmd := &cobra.Command{
		Use: "validate FILE…", Short: "Check job files and say when each knob can act",
		Long: "Says what of a job can be tuned: for each knob whether it acts now (while the job runs), at the\n" +
			"next start (of a pending job, an array's task, the next run of its kind) or never, and which rule\n" +
			"keeps it from more, with its value and where that stands. Then the policy that is understood\n" +
			"follows, defaults included.\n\n" +
			"It asks no controller. The scheduler is the one that --driver or the configuration names, else each\n" +
			"that runs such files. The site's policy is that of this machine.",
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
				case v.Policy == nil:
					a.printf("%s", verdict.Text(v))
				default:
					a.printf("%s\n%s", verdict.Text(v), v.Text)
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
	return verdict.Of(detect.For(a.cfg.Driver), path, source, a.variables(path, source, variables), a.grounds(path, source)...)
}

// grounds are what a job file is held against without a controller: the scheduler that the
// configuration or a flag names, else each that runs such files.
func (a *app) grounds(path string, source []byte) []verdict.Ground {
	site, err := a.cfg.LoadSite()
	policy := verdict.PolicyOf(a.cfg.Site) + " (on this machine)"
	if err != nil {
		site, policy = &config.SitePolicy{}, fmt.Sprintf("site policy: the built-in one counts here, since that of this machine cannot be read: %v", err)
	}
	drivers := []string{a.cfg.Driver}
	if _, given := a.cfg.Given["driver"]; !given {
		drivers = []string{"local", "slurm"}
		if format, err := detect.Format(path, source); err == nil && format == jobfile.NomadHCL {
			drivers = []string{"local", "nomad"}
		}
	}
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	var out []verdict.Ground
	for _, d := range drivers {
		can := local.Capabilities()
		switch d {
		case "slurm":
			can = slurm.Capabilities(a.cfg.Slurm.TaskProlog, a.cfg.Slurm.Mode == "site")
		case "nomad":
			can = nomad.Capabilities()
		}
		out = append(out, verdict.Ground{Driver: d, Can: can, Given: a.cfg.Given, Site: site, Policy: policy, User: name})
	}
	return out
}
