package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/slurm/check"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/scripts"
)

func (a *app) slurm() *cobra.Command {
	return family(&cobra.Command{Use: "slurm", Short: "Look after a Slurm cluster"}, a.slurmCheck())
}

type checking struct {
	mode, user, broker, as string
	try                    bool
}

func (a *app) slurmCheck() *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use: "check", Short: "Find what a Slurm cluster lacks, and what to change in which file", Args: cobra.NoArgs,
		Long: "Looks at the settings of the cluster, the submission plugin, the task prolog, the accounts, the\n" +
			"exporter of each node, the broker, and the configuration of the controller, and prints what to\n" +
			"change, grouped by file. It changes nothing. Any user may run it: what he may not see counts as\n" +
			"unseen, not as wrong. Run it as root on the machine of slurmctld and on a node to see all.\n\n" +
			"With --try it submits two tiny jobs, one with a faulty stanza and one with a good one, reports\n" +
			"their fate, and cancels what is left of them. The good one takes one core for some seconds.\n\n" +
			"It exits with 0 where nothing is missing or wrong that the mode needs, else with 1.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := a.facts(cmd.Context(), c)
			if err != nil {
				return err
			}
			report := check.Judge(facts)
			if err = a.said(report, "%s", checkText(report)); err == nil && !report.Passed {
				err = errShown
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.mode, "mode", "", "owner or site: what the cluster is checked for (default: slurm.mode)")
	f.StringVar(&c.user, "user", "", "account that the controller runs under (default: the caller; in mode site the site_user of the task prolog, else broker.controller)")
	f.StringVar(&c.broker, "broker-user", "", "account that the broker runs under (default: the owner of its socket)")
	f.BoolVar(&c.try, "try", false, "submit two tiny jobs and report their fate")
	f.StringVar(&c.as, "as", "", "account that submits the jobs of --try; only root has a choice (default: the caller)")
	offer(cmd, "mode", texts([]check.Mode{check.Owner, check.Site}))
	return settings(cmd, "slurm.bin", "slurm.conf")
}

func (a *app) facts(ctx context.Context, c checking) (check.Facts, error) {
	mode := check.Mode(cmp.Or(c.mode, a.cfg.Slurm.Mode))
	if mode != check.Owner && mode != check.Site {
		return check.Facts{}, fmt.Errorf("%w --mode %q: want owner or site", errInvalid, c.mode)
	}
	caller, err := user.Current()
	if err != nil {
		return check.Facts{}, fmt.Errorf("who runs this: %w", err)
	}
	if c.as != "" && (!c.try || caller.Uid != "0" && c.as != caller.Username) {
		return check.Facts{}, fmt.Errorf("%w --as %q: it goes with --try, and only root can submit as another", errInvalid, c.as)
	}
	shipped, err := scripts.Slurm()
	if err != nil {
		return check.Facts{}, fmt.Errorf("the files of this version: %w", err)
	}
	exporters, err := a.exporters(slog.New(slog.DiscardHandler))
	if err != nil {
		return check.Facts{}, err
	}
	defer exporters.Close()
	with := check.Looker{
		Facts: check.Facts{
			Mode: mode, Caller: caller.Username, Controller: a.controllerOf(mode, c.user, caller), Config: a.configured(caller),
			Broker: check.Broker{Socket: check.File{Path: a.cfg.Slurm.Broker}, Account: c.broker},
		},
		Shipped: shipped, Runner: a.commands(nil), AskBroker: askBroker,
		Exporter: func(ctx context.Context, node string, here bool) check.Exporter {
			return a.askExporter(ctx, exporters, node, here)
		},
	}
	if u, err := user.Lookup(with.Controller); err == nil {
		with.Here.Home, with.Here.UID = u.HomeDir, u.Uid
		if caller.Uid == "0" && u.Uid != "0" {
			credential, err := credentialOf(u)
			if err != nil {
				return check.Facts{}, err
			}
			with.AsController = a.commands(credential)
		}
	}
	if home := a.env("HOME"); home != "" && with.Controller == caller.Username {
		with.Here.Home = home // as the task prolog has it
	}
	facts, err := check.Cluster(ctx, with)
	facts.Config.Policy = a.policy(facts)
	if err == nil && c.try {
		facts.Proof, err = a.prove(ctx, c, facts, caller, exporters)
	}
	return facts, err
}

// controllerOf is the account that the controller runs under, as far as one can know. That
// of a site is never guessed to be the caller, whom the broker would then have to accept.
func (a *app) controllerOf(mode check.Mode, given string, caller *user.User) string {
	if given != "" {
		return given
	}
	if mode == check.Site {
		if text, err := os.ReadFile(check.PrologConfPlace); err == nil {
			if name := check.ReadPrologConf(string(text)).SiteUser; name != "" {
				return name
			}
		}
		if names := a.cfg.Broker.Controller; len(names) > 0 {
			return names[0]
		}
	}
	return caller.Username
}

// policy is what the site lets stanzas do, by default and in what the cluster has.
func (a *app) policy(facts check.Facts) check.Policy {
	p := check.Policy{File: a.cfg.Site, Read: true}
	site, err := a.cfg.LoadSite()
	if errors.Is(err, fs.ErrPermission) {
		return check.Policy{}
	}
	if err != nil {
		p.Fault = strings.ReplaceAll(err.Error(), "\n", "; ")
		return p
	}
	for _, partition := range append(slices.Clone(facts.Partitions), parse.Partition{}) {
		for _, assoc := range append(slices.Clone(facts.Accounts.Assocs), check.Association{}) {
			s := site.For(partition.Name, assoc.Account, "", assoc.User)
			p.Apply = p.Apply || s.MaxMode == tuning.Apply && !s.DryRun
		}
	}
	return p
}

func (a *app) configured(caller *user.User) check.Config {
	file := a.file
	if file == "" {
		file = "/etc/pitchpipe/controller.yaml"
		if caller.Uid != "0" {
			file = filepath.Join(cmp.Or(a.env("HOME"), caller.HomeDir), ".config", "pitchpipe", "controller.yaml")
		}
		file += " (not there yet)"
	}
	s := a.cfg.Slurm
	return check.Config{
		File: file, Driver: a.cfg.Driver, Mode: check.Mode(s.Mode), Scripts: a.cfg.Broker.Accept == "script", Plugin: s.Plugin, TaskProlog: s.TaskProlog, State: a.cfg.State, Settings: s.Settings, Partitions: s.Partitions,
		Exporter: a.cfg.Exporter.Socket,
	}
}
