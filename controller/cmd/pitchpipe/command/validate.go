package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/local"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/slurm"
)

func (a *app) validate() *cobra.Command {
	variables := pairs{}
	cmd := &cobra.Command{
		Use: "validate FILE…", Short: "Check job files and say when each knob can act",
		Long: "Says what of a job can be tuned: for each knob whether it acts now (while the job runs), at the\n" +
			"next start (of a pending job, an array's task, the next run of its kind) or never, and which rule\n" +
			"limits it, with its value and its place. Then follows the policy, defaults included.\n\n" +
			"A running controller answers for its scheduler and its site's policy. Without one, or with --driver,\n" +
			"each scheduler that runs such files is considered under the policy of this machine.\n" +
			"--site FILE tries a site's policy that no controller has yet, and names its errors.",
		Args: cobra.MinimumNArgs(1),
		// A configuration with faults does not matter here: then the defaults count.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.start(cmd); err != nil {
				return err
			}
			cfg, err := config.Load(cmd.Flags(), a.Environ, a.file)
			if f := cmd.Flags().Lookup("driver"); err != nil && f.Changed {
				return invalid("configuration", err)
			}
			a.cfg = cfg
			return nil
		},
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			var err error
			verdicts, bad := []api.Verdict{}, false
			if a.siteToTry() {
				if _, err := a.cfg.LoadSite(); err != nil {
					return invalid("site policy", err)
				}
			}
			for _, path := range args {
				v := a.judge(ctx, client, path, variables)
				verdicts = append(verdicts, v)
				bad = bad || !v.Valid
				switch {
				case a.json:
				case !v.Valid:
					fmt.Fprint(a.Stderr, verdict.Text(v))
				case v.Policy == nil:
					a.printf("%s", verdict.Text(v))
				default:
					a.printf("%s\n%s", verdict.Text(v), v.Text)
				}
			}
			if a.json {
				err = a.printJSON(verdicts)
			}
			if err == nil && bad {
				err = errors.Join(errShown, errInvalid)
			}
			return err
		}),
	}
	cmd.Flags().Var(variables, "var", "`k=v`, a variable of a Nomad job file, before NOMAD_VAR_k of the environment (repeatable)")
	return cmd
}

// siteToTry reports whether a flag names a site's policy: that of a controller does not count then.
func (a *app) siteToTry() bool { return a.cfg.Given["site"] == "--site" }

func (a *app) judge(ctx context.Context, client *api.Client, path string, variables map[string]string) api.Verdict {
	source, err := readFile(ctx, path)
	if err != nil {
		return api.Verdict{File: path, Errors: jobfile.Errors{{Pos: jobfile.Pos{Filename: path}, Found: err.Error()}}}
	}
	variables = a.variables(path, source, variables)
	draft := placed(api.Draft{Filename: path, Source: source, Variables: variables}, a.env)
	if a.cfg.Given["driver"] == "" && !a.siteToTry() {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a controller that hangs keeps no one waiting
		defer cancel()
		if v, err := client.Validate(ctx, draft); err == nil {
			return v
		}
	}
	return verdict.Of(detect.For(a.cfg.Driver), path, source, variables, a.grounds(draft)...)
}

// placed is a draft with what the environment says to sbatch.
func placed(d api.Draft, env func(name string) string) api.Draft {
	d.Partition, d.Account, d.QOS = env("SBATCH_PARTITION"), env("SBATCH_ACCOUNT"), env("SBATCH_QOS")
	return d
}

// grounds are what a job file is checked against without a controller: the scheduler that the
// configuration or a flag names, else each that runs such files.
func (a *app) grounds(d api.Draft) []verdict.Ground {
	site, err := a.cfg.LoadSite()
	policy := verdict.PolicyOf(a.cfg.Site) + " (on this machine)"
	if err != nil {
		site, policy = &config.SitePolicy{}, fmt.Sprintf("site policy: the built-in one counts here, since that of this machine cannot be read: %v", err)
	}
	drivers := []string{a.cfg.Driver}
	if _, given := a.cfg.Given["driver"]; !given {
		drivers = []string{"local", "slurm"}
		if format, err := detect.Format(d.Filename, d.Source); err == nil && format == jobfile.NomadHCL {
			drivers = []string{"local", "nomad"}
		}
	}
	me := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	can := map[string]driver.Capabilities{
		"local": local.Capabilities(), "slurm": slurm.Capabilities(a.cfg.Slurm.TaskProlog, a.cfg.Slurm.Mode == "site"), "nomad": nomad.Capabilities(),
	}
	return tuning.Each(drivers, func(name string) verdict.Ground {
		return verdict.Ground{
			Driver: name, Can: can[name], Given: a.cfg.Given, Site: site, Policy: policy, User: me, Partition: d.Partition, Account: d.Account, QOS: d.QOS,
		}
	})
}
