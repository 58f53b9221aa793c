package look

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

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
	// Exporter asks the exporter of a node; here tells that this machine is the node.
	Exporter func(ctx context.Context, node string, here bool) check.Exporter
	// AskBroker asks the broker for nothing that has an effect.
	AskBroker func(ctx context.Context, socket string) (check.Answer, string)
}

// Cluster gathers the facts. Only where slurmctld does not answer there is an error:
// of what else cannot be had, the facts say so.
func Cluster(ctx context.Context, c Config) (check.Facts, error) {
	f := check.Facts{Mode: c.Mode, Caller: c.Caller, Controller: c.Controller, Config: c.Told}
	if err := c.settings(ctx, &f); err != nil {
		return f, err
	}
	var err error
	if f.Shipped, err = shipped(c.Shipped); err != nil {
		return f, err
	}
	if out, err := c.ask(ctx, "sinfo", "-h", "-a", "-N", "-o", check.NodesFormat); err == nil {
		if f.Nodes, err = check.Nodes(out); err != nil {
			return f, err
		}
	}
	if out, err := c.ask(ctx, "scontrol", "-a", "-o", "show", "partition"); err == nil {
		if f.Partitions, err = check.Partitions(out); err != nil {
			return f, err
		}
	}
	f.Here = here(f)
	f.Here.Home, f.Here.UID = c.Home, c.UID
	c.jobs(ctx, &f)
	c.brokers(ctx, &f)
	if err := c.accounts(ctx, &f); err != nil {
		return f, err
	}
	c.files(ctx, &f)
	c.exporters(ctx, &f)
	return f, nil
}

func (c Config) ask(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := c.Runner.Run(ctx, command.Call{Name: name, Args: args})
	return out.Stdout, err
}

// settings asks slurmctld for its configuration, without which there is nothing.
func (c Config) settings(ctx context.Context, f *check.Facts) error {
	before := time.Now()
	out, err := c.ask(ctx, "scontrol", "show", "config")
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: scontrol is missing; run this where Slurm's commands are, or name their folder by --slurm.bin", ErrNoSlurm)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	after := time.Now()
	f.Slurm = parse.Config(out)
	if f.Slurm["SLURM_VERSION"] == "" {
		return fmt.Errorf("%w: scontrol show config names no SLURM_VERSION", check.ErrFormat)
	}
	if at := check.Clock(out); !at.IsZero() {
		skew := between(before, after, at)
		f.Skew = &skew
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

func shipped(files fs.FS) (check.Shipped, error) {
	s := check.Shipped{Modules: map[string]string{}}
	names, err := fs.Glob(files, "pitchpipe*.lua")
	if err != nil {
		return s, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return s, err
		}
		s.Modules[name] = string(text)
	}
	prolog, err := fs.ReadFile(files, "task_prolog")
	s.Prolog = string(prolog)
	return s, err
}

// here tells what this machine is to the cluster.
func here(f check.Facts) check.Here {
	var h check.Here
	name, err := os.Hostname()
	if err != nil {
		return h
	}
	h.Host = short(name)
	for key, value := range f.Slurm {
		if strings.HasPrefix(key, "SlurmctldHost[") {
			host, _, _ := strings.Cut(value, "(")
			h.Ctld = h.Ctld || short(host) == h.Host
		}
	}
	for _, n := range f.Nodes {
		if short(n.Host) == h.Host {
			h.Nodes = append(h.Nodes, n.Name)
		}
	}
	return h
}

func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// jobs counts those that are seen, also by the controller's account.
func (c Config) jobs(ctx context.Context, f *check.Facts) {
	call := command.Call{Name: "squeue", Args: []string{"-h", "-a", "-t", "all", "-o", "%A"}}
	out, err := c.Runner.Run(ctx, call)
	if err != nil {
		return
	}
	f.Jobs = &check.Jobs{Seen: strings.Count(string(out.Stdout), "\n")}
	if c.AsController == nil {
		return
	}
	if out, err = c.AsController.Run(ctx, call); err == nil {
		f.Jobs.BySite, f.Jobs.ByController = strings.Count(string(out.Stdout), "\n"), true
	}
}

// accounts asks for those of the controller and of the broker alone: a site has
// thousands.
func (c Config) accounts(ctx context.Context, f *check.Facts) error {
	if f.Slurm["AccountingStorageType"] != "accounting_storage/slurmdbd" {
		return nil
	}
	f.Accounts.Asked = true
	names := c.Controller
	if f.Broker.Account != "" {
		names += "," + f.Broker.Account
	}
	users, err := c.ask(ctx, "sacctmgr", "-nP", "show", "user", "where", "name="+names, "format="+check.UsersFields)
	if err == nil {
		var assocs []byte
		if assocs, err = c.ask(ctx, "sacctmgr", "-nP", "show", "assoc", "where", "user="+names, "cluster="+f.Slurm["ClusterName"], "format="+check.AssocsFields); err == nil {
			var err2 error
			f.Accounts.Users, err = check.Users(users)
			f.Accounts.Assocs, err2 = check.Associations(assocs)
			return errors.Join(err, err2)
		}
	}
	f.Accounts.Denied = err.Error()
	return nil
}

// files looks at those that the cluster names.
func (c Config) files(ctx context.Context, f *check.Facts) {
	f.Submit = file(ctx, path.Join(path.Dir(f.Slurm["SLURM_CONF"]), "job_submit.lua"))
	folder := check.ReadSubmit(f.Submit.Text).Folder
	if folder == "" {
		folder = check.PluginFolder
	}
	if f.Submit.Seen == check.Present {
		for name := range f.Shipped.Modules {
			f.Modules = append(f.Modules, file(ctx, path.Join(folder, name)))
		}
		slices.SortFunc(f.Modules, func(a, b check.File) int { return strings.Compare(a.Path, b.Path) })
	}
	if f.Slurm["TaskProlog"] == "" {
		return
	}
	f.Prolog = file(ctx, f.Slurm["TaskProlog"])
	conf := check.ConfOf(f.Prolog.Text)
	if conf == "" {
		conf = check.PrologConfPlace
	}
	f.PrologConf = file(ctx, conf)
	said := check.ReadPrologConf(f.PrologConf.Text)
	f.Listener = file(ctx, said.Listener)
	f.Folder = file(ctx, said.SettingsDir(c.Mode, c.Home))
}

func (c Config) brokers(ctx context.Context, f *check.Facts) {
	if c.Mode != check.Site {
		return
	}
	f.Broker = check.Broker{Socket: file(ctx, c.Broker), Account: c.BrokerUser}
	if f.Broker.Account == "" && f.Broker.Socket.Seen == check.Present {
		f.Broker.Account = f.Broker.Socket.Owner
	}
	if f.Broker.Socket.Seen == check.Present && c.AskBroker != nil {
		f.Broker.Answer, f.Broker.Text = c.AskBroker(ctx, c.Broker)
	}
}

const (
	atATime         = 16 // exporters that are asked
	exporterOptions = "/etc/default/pitchpipe-exporter"
)

// exporters asks that of each node.
func (c Config) exporters(ctx context.Context, f *check.Facts) {
	if c.Exporter == nil {
		return
	}
	if len(f.Here.Nodes) > 0 {
		f.Options = file(ctx, exporterOptions)
	}
	f.Exporters = make([]check.Exporter, len(f.Nodes))
	turns := make(chan struct{}, atATime)
	var wg sync.WaitGroup
	for i, n := range f.Nodes {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			f.Exporters[i] = c.Exporter(ctx, n.Name, slices.Contains(f.Here.Nodes, n.Name))
		})
	}
	wg.Wait()
}
