package command

import (
	"errors"
	"fmt"
	"math"
	"os/user"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm/broker"
	slurmcommand "pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

// broker runs under the account that has Slurm's administrator level Operator.
func (a *app) broker() *cobra.Command {
	return settings(&cobra.Command{
		Use: "broker", Short: "Change Slurm jobs on behalf of a site's controller",
		Long: "Runs under an account with Slurm's administrator level Operator and answers the site's\n" +
			"controller alone. It acts only for jobs with an accepted stanza and, in the partitions of\n" +
			"broker.advice, on time limits and priorities. It never gives a job more than its owner asked\n" +
			"for, except in the partitions of broker.above, and restores a lowered time limit by itself.",
		Args: cobra.NoArgs,
		// The broker has its own file, which the package installs.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("config") {
				a.file = config.File(a.Environ, "/etc/pitchpipe/broker.yaml")
			}
			return a.configure(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := a.newBroker()
			if err != nil {
				return err
			}
			a.logger().Info("broker starts", "config", a.file, "socket", a.cfg.Broker.Socket, "state", a.cfg.Broker.Dir)
			return server.Run(cmd.Context())
		},
	}, "broker.", "slurm.bin", "slurm.conf", "log.")
}

func (a *app) newBroker() (*broker.Server, error) {
	with := a.cfg.Broker
	controllers, err := uids(with.Controller)
	if err != nil {
		return nil, invalid("configuration: broker.controller", err)
	}
	log := a.logger().With("service", "broker")
	run := slurmcommand.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}
	s, err := broker.New(broker.Config{
		Socket: with.Socket, Dir: with.Dir, Actor: slurmctl.Commands{Runner: run, Logger: log}, Runner: run,
		Controllers: controllers, Above: with.Above, Restarts: with.Restarts, Advice: with.Advice, Raise: with.Raise, Scripts: with.Accept == "script",
		Script: writtenStanza, Logger: log,
	})
	if errors.Is(err, broker.ErrConfig) {
		err = fmt.Errorf("%w %w", errInvalid, err)
	}
	return s, err
}

func uids(names []string) ([]uint32, error) {
	var out []uint32
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, err
		}
		c, err := credentialOf(u)
		if err != nil {
			return nil, err
		}
		out = append(out, c.Uid)
	}
	return out, nil
}

func writtenStanza(name string, script []byte) (broker.Stanza, error) {
	job, err := detect.For("slurm")(name, script, nil)
	if err != nil {
		return broker.Stanza{}, err
	}
	policy, err := stanza.Policy(job)
	if err != nil {
		return broker.Stanza{}, err
	}
	out := broker.Stanza{
		Apply: policy.Mode == tuning.Apply,
		Cores: allowed(policy, tuning.Cores, 1), Memory: allowed(policy, tuning.Memory, mebibyte),
	}
	if c := policy.Checkpoint; c != nil {
		out.Signal, out.Exit, out.Done = c.Signal, c.Exit, c.Done != ""
	}
	return out, nil
}

const mebibyte = 1 << 20

// allowed is what the stanza allows of a knob, in whole units as the driver rounds its
// values up. A knob that follows another is allowed what that one is.
func allowed(p tuning.Policy, name string, unit float64) broker.Knob {
	k, _ := p.Knob(name)
	open := func() bool { return len(k.Values) == 0 && !k.Min.IsSet() && !k.Max.IsSet() }
	if k.Follows != "" && open() {
		k, _ = p.Knob(k.Follows) // which follows none
	}
	whole := func(v tuning.Value) int64 {
		const most = 1 << 62 // far above what there is, and a whole number of units
		return int64(min(math.Ceil(v.Float()/unit)*unit, most))
	}
	var out broker.Knob
	for _, v := range k.Values {
		if v.IsNumber() {
			out.Values = append(out.Values, whole(v))
		}
	}
	if len(k.Values) > 0 || open() {
		return out
	}
	out.Min, out.Max = 1, math.MaxInt64
	if k.Min.IsSet() {
		out.Min = whole(k.Min)
	}
	if k.Max.IsSet() {
		out.Max = whole(k.Max)
	}
	return out
}
