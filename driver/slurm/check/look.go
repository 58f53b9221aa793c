package check

import (
	"cmp"
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

// Looker says who looks, and how.
type Looker struct {
	Mode       Mode
	Caller     string // the account that looks
	Controller string // the account that the controller runs under
	Home, UID  string // its home and its number
	BrokerUser string // the account that the broker runs under; empty = the owner of its socket
	Config     Config // what the controller's says
	Broker     string // path of the broker's socket
	Shipped    fs.FS  // the files of this version: pitchpipe*.lua and task_prolog

	Runner command.Runner // runs Slurm's commands as the caller
	// AsController runs them as the controller's account; nil = it cannot be done.
	AsController command.Runner
	// Exporter asks the exporter of a node; here says that this machine is the node.
	Exporter func(ctx context.Context, node string, here bool) Exporter
	// AskBroker asks the broker for nothing that has an effect.
	AskBroker func(ctx context.Context, socket string) (Seen, string)
}

// Cluster gathers the facts. There is an error only where slurmctld does not answer, or not
// as known; the facts say what else is missing.
func Cluster(ctx context.Context, c Looker) (Facts, error) {
	f := Facts{Mode: c.Mode, Caller: c.Caller, Controller: c.Controller, Config: c.Config}
	for _, look := range []func(context.Context, *Facts) error{c.settings, c.shipped, c.nodes, c.partitions, c.jobs, c.broker, c.accounts, c.files, c.exporters} {
		if err := look(ctx, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// rows runs a command that prints lines of so many fields with | between them.
func rows(ctx context.Context, run command.Runner, fields int, name string, args ...string) ([][]string, error) {
	return command.Read(ctx, run, func(said []byte) ([][]string, error) { return parse.Rows(name, said, fields) }, name, args...)
}

// settings asks slurmctld for its configuration, without which there is nothing. It is asked
// with TZ=UTC, so that its clock can be compared with this machine's.
func (c Looker) settings(ctx context.Context, f *Facts) error {
	before := time.Now()
	out, err := command.Ask(ctx, c.Runner, "scontrol", "show", "config")
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: scontrol is missing; run this where Slurm's commands are, or name their folder by --slurm.bin", ErrNoSlurm)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	f.Slurm = parse.Config(out)
	if f.Slurm["SLURM_VERSION"] == "" {
		return fmt.Errorf("%w: scontrol show config names no SLURM_VERSION", parse.ErrFormat)
	}
	if m := regexp.MustCompile(`(?m)^Configuration data as of (\S+)`).FindSubmatch(out); m != nil {
		if at, err := parse.Instant("Configuration data", string(m[1])); err == nil && !at.IsZero() {
			// That clock shows whole seconds, and was read between two looks at ours.
			f.Skew = new(max(0, before.Sub(at.Add(time.Second)), time.Until(at)))
		}
	}
	return nil
}

func (c Looker) shipped(_ context.Context, f *Facts) error {
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
func (c Looker) nodes(ctx context.Context, f *Facts) error {
	list, err := rows(ctx, c.Runner, 3, "sinfo", "-h", "-a", "-N", "-o", "%N|%T|%n")
	if errors.Is(err, parse.ErrFormat) {
		return err
	}
	name, _ := os.Hostname()
	f.Here = Here{Host: short(name), Home: c.Home, UID: c.UID}
	for key, value := range f.Slurm {
		host, _, _ := strings.Cut(value, "(")
		f.Here.Ctld = f.Here.Ctld || strings.HasPrefix(key, "SlurmctldHost[") && short(host) == f.Here.Host
	}
	for _, row := range list {
		n := Node{Name: row[0], State: row[1], Host: row[2]}
		if slices.ContainsFunc(f.Nodes, func(have Node) bool { return have.Name == n.Name }) {
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

func (c Looker) partitions(ctx context.Context, f *Facts) error {
	out, err := command.Ask(ctx, c.Runner, "scontrol", "-a", "-o", "show", "partition")
	if err != nil || strings.HasPrefix(string(out), "No partitions") {
		return nil //nolint:nilerr // the facts say what is missing
	}
	f.Partitions, err = parse.PartitionRecords(out)
	return err
}

// jobs counts those that are seen, also by the controller's account.
func (c Looker) jobs(ctx context.Context, f *Facts) error {
	all := []string{"-h", "-a", "-t", "all", "-o", "%A"}
	seen, err := rows(ctx, c.Runner, 1, "squeue", all...)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	f.Jobs = &Jobs{Seen: len(seen)}
	if c.AsController != nil {
		seen, err = rows(ctx, c.AsController, 1, "squeue", all...)
		f.Jobs.BySite, f.Jobs.ByController = len(seen), err == nil
	}
	return nil
}

// accounts asks for those of the controller and of the broker alone: a site has thousands.
// An association of an account has no user.
func (c Looker) accounts(ctx context.Context, f *Facts) error {
	if f.Accounts.Asked = f.Slurm.Accounts(); !f.Accounts.Asked {
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
	f.Accounts.Levels = map[string]string{}
	for _, row := range users {
		f.Accounts.Levels[row[0]] = row[1]
	}
	for _, row := range assocs {
		f.Accounts.Assocs = append(f.Accounts.Assocs, Association{Account: row[0], User: row[1]})
	}
	return nil
}

// files looks at those that the cluster names.
func (c Looker) files(ctx context.Context, f *Facts) error {
	f.Submit = file(ctx, path.Join(path.Dir(cmp.Or(f.Slurm["SLURM_CONF"], "/etc/slurm/slurm.conf")), "job_submit.lua"))
	folder := cmp.Or(readSubmit(f.Submit.Text).Folder, PluginFolder)
	if f.Submit.Seen == Present {
		for name := range f.Shipped.Modules {
			f.Modules = append(f.Modules, file(ctx, path.Join(folder, name)))
		}
	}
	if f.Slurm["TaskProlog"] == "" {
		return nil
	}
	f.Prolog = file(ctx, f.Slurm["TaskProlog"])
	f.PrologConf = file(ctx, cmp.Or(confOf(f.Prolog.Text), PrologConfPlace))
	said := ReadPrologConf(f.PrologConf.Text)
	f.Listener, f.Settings = file(ctx, said.Listener), file(ctx, said.SettingsDir(c.Mode, c.Home))
	return nil
}

func (c Looker) broker(ctx context.Context, f *Facts) error {
	if c.Mode != Site {
		return nil
	}
	f.Broker = Broker{Socket: file(ctx, c.Broker), Account: c.BrokerUser}
	if f.Broker.Account == "" && f.Broker.Socket.Seen == Present {
		f.Broker.Account = f.Broker.Socket.Owner
	}
	if f.Broker.Socket.Seen == Present && c.AskBroker != nil {
		f.Broker.Answer, f.Broker.Text = c.AskBroker(ctx, c.Broker)
	}
	return nil
}

// exporters asks that of each node, 16 at a time.
func (c Looker) exporters(ctx context.Context, f *Facts) error {
	if c.Exporter == nil {
		return nil
	}
	if len(f.Here.Nodes) > 0 {
		f.Options = file(ctx, "/etc/default/pitchpipe-exporter")
	}
	f.Exporters = make([]Exporter, len(f.Nodes))
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
