package look

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/driver/slurm/check"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// Errors of Cluster.
var (
	// ErrNoSlurm says that Slurm's commands are not on this machine.
	ErrNoSlurm = errors.New("there is no Slurm on this machine")
	// ErrSilent says that slurmctld does not answer.
	ErrSilent = errors.New("the cluster does not answer")
)

// Config says who looks, and how.
type Config struct {
	Mode       check.Mode
	Caller     string // the account that looks
	Controller string // the account that the controller runs under
	Home, UID  string // its home and its number
	BrokerUser string // the account that the broker runs under; empty = the owner of its socket
	Told       check.Config
	Broker     string // path of the broker's socket
	Shipped    fs.FS  // the files of this version: pitchpipe*.lua and task_prolog

	Runner command.Runner // runs Slurm's commands as the caller
	// AsController runs them as the controller's account; nil = it cannot be done.
	AsController command.Runner
	// Exporter asks the exporter of a node; here says that this machine is the node.
	Exporter func(ctx context.Context, node string, here bool) check.Exporter
	// AskBroker asks the broker for nothing that has an effect.
	AskBroker func(ctx context.Context, socket string) (check.Answer, string)
}

// Cluster gathers the facts. There is an error only where slurmctld does not answer, or not
// as known; the facts say what else is missing.
func Cluster(ctx context.Context, c Config) (check.Facts, error) {
	f := check.Facts{Mode: c.Mode, Caller: c.Caller, Controller: c.Controller, Config: c.Told}
	for _, look := range []func(context.Context, *check.Facts) error{c.settings, c.shipped, c.nodes, c.partitions, c.jobs, c.broker, c.accounts, c.files, c.exporters} {
		if err := look(ctx, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// rows runs a command that prints lines of so many fields with | between them.
func rows(ctx context.Context, run command.Runner, fields int, name string, args ...string) ([][]string, error) {
	said, err := run.Run(ctx, command.Call{Name: name, Args: args})
	if err != nil {
		return nil, err
	}
	return parse.Rows(name, said.Stdout, fields)
}

// settings asks slurmctld for its configuration, without which there is nothing. It is asked
// with TZ=UTC, so that its clock can be compared with this machine's.
func (c Config) settings(ctx context.Context, f *check.Facts) error {
	before := time.Now()
	out, err := c.Runner.Run(ctx, command.Call{Name: "scontrol", Args: []string{"show", "config"}})
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: scontrol is missing; run this where Slurm's commands are, or name their folder by --slurm.bin", ErrNoSlurm)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	f.Slurm = parse.Config(out.Stdout)
	if f.Slurm["SLURM_VERSION"] == "" {
		return fmt.Errorf("%w: scontrol show config names no SLURM_VERSION", parse.ErrFormat)
	}
	if m := regexp.MustCompile(`(?m)^Configuration data as of (\S+)`).FindSubmatch(out.Stdout); m != nil {
		if at, err := parse.Instant("Configuration data", string(m[1])); err == nil && !at.IsZero() {
			skew := between(before, time.Now(), at)
			f.Skew = &skew
		}
	}
	return nil
}

// between is how far a clock that showed whole seconds is outside the time in which it
// was asked; 0 where it is inside.
func between(before, after, at time.Time) time.Duration {
	switch {
	case at.Add(time.Second).Before(before):
		return before.Sub(at.Add(time.Second))
	case at.After(after):
		return after.Sub(at)
	}
	return 0
}

func (c Config) shipped(_ context.Context, f *check.Facts) error {
	f.Shipped.Modules = map[string]string{}
	names, err := fs.Glob(c.Shipped, "pitchpipe*.lua")
	for _, name := range append(names, "task_prolog") {
		text, failed := fs.ReadFile(c.Shipped, name)
		err = errors.Join(err, failed)
		f.Shipped.Modules[name], f.Shipped.Prolog = string(text), string(text)
	}
	delete(f.Shipped.Modules, "task_prolog")
	return err
}

// nodes asks for the nodes, of which each has a line for each of its partitions, and finds
// out what this machine is to the cluster.
func (c Config) nodes(ctx context.Context, f *check.Facts) error {
	list, err := rows(ctx, c.Runner, 3, "sinfo", "-h", "-a", "-N", "-o", "%N|%T|%n")
	if errors.Is(err, parse.ErrFormat) {
		return err
	}
	name, _ := os.Hostname()
	f.Here = check.Here{Host: short(name), Home: c.Home, UID: c.UID}
	for key, value := range f.Slurm {
		host, _, _ := strings.Cut(value, "(")
		f.Here.Ctld = f.Here.Ctld || strings.HasPrefix(key, "SlurmctldHost[") && short(host) == f.Here.Host
	}
	for _, row := range list {
		n := check.Node{Name: row[0], State: row[1], Host: row[2]}
		if slices.ContainsFunc(f.Nodes, func(have check.Node) bool { return have.Name == n.Name }) {
			continue
		}
		f.Nodes = append(f.Nodes, n)
		if short(n.Host) == f.Here.Host {
			f.Here.Nodes = append(f.Here.Nodes, n.Name)
		}
	}
	return nil
}

func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

func (c Config) partitions(ctx context.Context, f *check.Facts) error {
	out, err := c.Runner.Run(ctx, command.Call{Name: "scontrol", Args: []string{"-a", "-o", "show", "partition"}})
	if err != nil || strings.HasPrefix(string(out.Stdout), "No partitions") {
		return nil //nolint:nilerr // the facts say what is missing
	}
	list, err := parse.PartitionRecords(out.Stdout)
	for _, p := range list {
		f.Partitions = append(f.Partitions, check.Partition{Name: p.Name, Hidden: p.Hidden, Exclusive: p.Exclusive})
	}
	return err
}

// jobs counts those that are seen, also by the controller's account.
func (c Config) jobs(ctx context.Context, f *check.Facts) error {
	all := []string{"-h", "-a", "-t", "all", "-o", "%A"}
	seen, err := rows(ctx, c.Runner, 1, "squeue", all...)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	f.Jobs = &check.Jobs{Seen: len(seen)}
	if c.AsController != nil {
		seen, err = rows(ctx, c.AsController, 1, "squeue", all...)
		f.Jobs.BySite, f.Jobs.ByController = len(seen), err == nil
	}
	return nil
}

// accounts asks for those of the controller and of the broker alone: a site has thousands.
// An association of an account has no user.
func (c Config) accounts(ctx context.Context, f *check.Facts) error {
	if f.Accounts.Asked = f.Slurm["AccountingStorageType"] == "accounting_storage/slurmdbd"; !f.Accounts.Asked {
		return nil
	}
	names := strings.Trim(c.Controller+","+f.Broker.Account, ",")
	users, err := rows(ctx, c.Runner, 2, "sacctmgr", "-nP", "show", "user", "where", "name="+names, "format=User,AdminLevel")
	var assocs [][]string
	if err == nil {
		assocs, err = rows(ctx, c.Runner, 2, "sacctmgr", "-nP", "show", "assoc", "where", "user="+names, "cluster="+f.Slurm["ClusterName"], "format=Account,User")
	}
	switch {
	case errors.Is(err, parse.ErrFormat):
		return err
	case err != nil:
		f.Accounts.Denied = err.Error()
		return nil
	}
	for _, row := range users {
		f.Accounts.Users = append(f.Accounts.Users, check.User{Name: row[0], Level: row[1]})
	}
	for _, row := range assocs {
		if row[1] != "" {
			f.Accounts.Assocs = append(f.Accounts.Assocs, check.Association{Account: row[0], User: row[1]})
		}
	}
	return nil
}

// files looks at those that the cluster names.
func (c Config) files(ctx context.Context, f *check.Facts) error {
	f.Submit = file(ctx, path.Join(path.Dir(f.Slurm["SLURM_CONF"]), "job_submit.lua"))
	folder := check.ReadSubmit(f.Submit.Text).Folder
	if folder == "" {
		folder = check.PluginFolder
	}
	if f.Submit.Seen == check.Present {
		for name := range f.Shipped.Modules {
			f.Modules = append(f.Modules, file(ctx, path.Join(folder, name)))
		}
	}
	if f.Slurm["TaskProlog"] == "" {
		return nil
	}
	f.Prolog = file(ctx, f.Slurm["TaskProlog"])
	conf := check.ConfOf(f.Prolog.Text)
	if conf == "" {
		conf = check.PrologConfPlace
	}
	f.PrologConf = file(ctx, conf)
	said := check.ReadPrologConf(f.PrologConf.Text)
	f.Listener, f.Folder = file(ctx, said.Listener), file(ctx, said.SettingsDir(c.Mode, c.Home))
	return nil
}

func (c Config) broker(ctx context.Context, f *check.Facts) error {
	if c.Mode != check.Site {
		return nil
	}
	f.Broker = check.Broker{Socket: file(ctx, c.Broker), Account: c.BrokerUser}
	if f.Broker.Account == "" && f.Broker.Socket.Seen == check.Present {
		f.Broker.Account = f.Broker.Socket.Owner
	}
	if f.Broker.Socket.Seen == check.Present && c.AskBroker != nil {
		f.Broker.Answer, f.Broker.Text = c.AskBroker(ctx, c.Broker)
	}
	return nil
}

// exporters asks that of each node, 16 at a time.
func (c Config) exporters(ctx context.Context, f *check.Facts) error {
	if c.Exporter == nil {
		return nil
	}
	if len(f.Here.Nodes) > 0 {
		f.Options = file(ctx, "/etc/default/pitchpipe-exporter")
	}
	f.Exporters = make([]check.Exporter, len(f.Nodes))
	var group errgroup.Group
	group.SetLimit(16)
	for i, n := range f.Nodes {
		group.Go(func() error {
			f.Exporters[i] = c.Exporter(ctx, n.Name, slices.Contains(f.Here.Nodes, n.Name))
			return nil
		})
	}
	return group.Wait()
}
