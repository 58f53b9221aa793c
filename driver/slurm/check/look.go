package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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
	// Facts are those that are known before: Mode, Caller, Controller, Config, the Home and UID of
	// Here, and of Broker the path of its socket and its account, where it is not the socket's owner.
	Facts

	Shipped fs.FS          // the files of this version: pitchpipe*.lua and task_prolog
	Runner  command.Runner // runs Slurm's commands as the caller
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
	for _, look := range []func(context.Context) error{c.settings, c.nodes, c.partitions, c.jobs, c.broker, c.accounts, c.files, c.exporters} {
		if err := look(ctx); err != nil {
			return c.Facts, err
		}
	}
	return c.Facts, nil
}

// rows runs a command that prints lines of so many fields with | between them.
func rows(ctx context.Context, run command.Runner, fields int, name string, args ...string) ([][]string, error) {
	return command.Read(ctx, run, func(said []byte) ([][]string, error) { return parse.Rows(name, said, fields) }, name, args...)
}

// settings asks slurmctld for its configuration, without which there is nothing. It is asked
// with TZ=UTC, so that its clock can be compared with this machine's.
func (c *Looker) settings(ctx context.Context) error {
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
	c.Slurm = parse.Config(out)
	if c.Slurm["SLURM_VERSION"] == "" {
		return fmt.Errorf("%w: scontrol show config names no SLURM_VERSION", parse.ErrFormat)
	}
	if m := regexp.MustCompile(`(?m)^Configuration data as of (\S+)`).FindSubmatch(out); m != nil {
		if at, err := parse.Instant("Configuration data", string(m[1])); err == nil && !at.IsZero() {
			// That clock shows whole seconds, and was read between two looks at ours.
			c.Skew = new(max(0, before.Sub(at.Add(time.Second)), time.Until(at)).Round(time.Second))
		}
	}
	return nil
}

// nodes asks for the nodes (each has a line for each of its partitions) and finds out what this
// machine is to the cluster.
func (c *Looker) nodes(ctx context.Context) error {
	list, err := rows(ctx, c.Runner, 3, "sinfo", "-h", "-a", "-N", "-o", "%N|%T|%n")
	if errors.Is(err, parse.ErrFormat) {
		return err
	}
	name, _ := os.Hostname()
	here := short(name)
	for key, value := range c.Slurm {
		host, _, _ := strings.Cut(value, "(")
		c.Here.Ctld = c.Here.Ctld || strings.HasPrefix(key, "SlurmctldHost[") && short(host) == here
	}
	for _, row := range list {
		n := Node{Name: row[0], State: row[1], Host: row[2]}
		if slices.ContainsFunc(c.Nodes, func(have Node) bool { return have.Name == n.Name }) {
			continue
		}
		c.Nodes = append(c.Nodes, n)
		if short(n.Host) == here {
			c.Here.Nodes = append(c.Here.Nodes, n.Name)
		}
	}
	return nil
}

func short(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

func (c *Looker) partitions(ctx context.Context) error {
	out, err := command.Ask(ctx, c.Runner, "scontrol", "-a", "-o", "show", "partition")
	if err != nil || strings.HasPrefix(string(out), "No partitions") {
		return nil //nolint:nilerr // the facts say what is missing
	}
	c.Partitions, err = parse.PartitionRecords(out)
	return err
}

// jobs counts those that are seen, also by the controller's account.
func (c *Looker) jobs(ctx context.Context) error {
	all := []string{"-h", "-a", "-t", "all", "-o", "%A"}
	seen, err := rows(ctx, c.Runner, 1, "squeue", all...)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	c.Jobs = &Jobs{Seen: len(seen)}
	if c.AsController != nil {
		seen, err = rows(ctx, c.AsController, 1, "squeue", all...)
		c.Jobs.BySite, c.Jobs.ByController = len(seen), err == nil
	}
	return nil
}

// accounts asks for those of the controller and of the broker alone: a site has thousands.
// An association of an account has no user.
func (c *Looker) accounts(ctx context.Context) error {
	if c.Accounts.Asked = c.Slurm.Accounts(); !c.Accounts.Asked {
		return nil
	}
	names := strings.Trim(c.Controller+","+c.Broker.Account, ",")
	users, err := rows(ctx, c.Runner, 2, "sacctmgr", "-nP", "show", "user", "where", "name="+names, "format=User,AdminLevel")
	var assocs [][]string
	if err == nil {
		assocs, err = rows(ctx, c.Runner, 2, "sacctmgr", "-nP", "show", "assoc", "where", "user="+names, "cluster="+c.Slurm["ClusterName"], "format=Account,User")
	}
	switch {
	case errors.Is(err, parse.ErrFormat):
		return err
	case err != nil:
		c.Accounts.Denied = err.Error()
		return nil
	}
	c.Accounts.Levels = map[string]string{}
	for _, row := range users {
		c.Accounts.Levels[row[0]] = row[1]
	}
	for _, row := range assocs {
		c.Accounts.Assocs = append(c.Accounts.Assocs, Association{Account: row[0], User: row[1]})
	}
	return nil
}

// files looks at those that the cluster names.
func (c *Looker) files(ctx context.Context) error {
	c.Submit = file(ctx, path.Join(path.Dir(cmp.Or(c.Slurm["SLURM_CONF"], "/etc/slurm/slurm.conf")), "job_submit.lua"))
	folder := cmp.Or(readSubmit(c.Submit.Text).Folder, PluginFolder)
	names, _ := fs.Glob(c.Shipped, "pitchpipe*.lua") // it is a pattern
	for _, name := range names {
		c.Modules = append(c.Modules, c.installed(ctx, path.Join(folder, name), name))
	}
	if c.Slurm["TaskProlog"] == "" {
		return nil
	}
	c.Prolog = c.installed(ctx, c.Slurm["TaskProlog"], "task_prolog")
	c.PrologConf = file(ctx, cmp.Or(confOf(c.Prolog.Text), PrologConfPlace))
	said := ReadPrologConf(c.PrologConf.Text)
	c.Listener, c.Settings = file(ctx, said.Listener), file(ctx, said.SettingsDir(c.Mode, c.Here.Home))
	return nil
}

// installed looks at a file that this version ships under a name.
func (c *Looker) installed(ctx context.Context, at, name string) File {
	text, _ := fs.ReadFile(c.Shipped, name) // it is part of the program
	f := file(ctx, at)
	f.Shipped = string(text)
	return f
}

func (c *Looker) broker(ctx context.Context) error {
	if c.Mode != Site {
		c.Broker = Broker{}
		return nil
	}
	socket := file(ctx, c.Broker.Socket.Path)
	c.Broker.Socket, c.Broker.Account = socket, cmp.Or(c.Broker.Account, socket.Owner)
	if socket.Seen == Present {
		c.Broker.Answer, c.Broker.Text = c.AskBroker(ctx, socket.Path)
	}
	return nil
}

// exporters asks that of each node, 16 at a time.
func (c *Looker) exporters(ctx context.Context) error {
	if len(c.Here.Nodes) > 0 {
		c.Options = file(ctx, "/etc/default/pitchpipe-exporter")
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i, n := range c.Nodes {
		group.Go(func() error {
			c.Nodes[i].Exporter = c.Exporter(ctx, n.Name, slices.Contains(c.Here.Nodes, n.Name))
			return nil
		})
	}
	return group.Wait()
}

const (
	mostText     = 1 << 20         // of a script; longer ones are not ours
	filePatience = 5 * time.Second // for a filesystem that does not answer
)

// file looks at one path. A look that hangs, as on a server of files that is away, is
// given up.
func file(ctx context.Context, path string) File {
	if path == "" {
		return File{}
	}
	ctx, cancel := context.WithTimeout(ctx, filePatience)
	defer cancel()
	done := make(chan File, 1)
	go func() {
		f, err := lookAt(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Seen = Absent
		case err != nil:
			f.Seen = Closed
		}
		done <- f
	}()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		return File{Path: path, Seen: Closed}
	}
}

func lookAt(path string) (File, error) {
	f := File{Path: path, Seen: Present}
	info, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	target, err := filepath.EvalSymlinks(path)
	f.Mode, f.Open, f.FS = info.Mode(), err == nil && open(target), filesystem(target)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.Owner = account(st.Uid)
	}
	if !info.Mode().IsRegular() {
		return f, nil
	}
	r, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(r, mostText))
	f.Text = string(text)
	return f, err
}

// open reports whether every account can enter the folders above.
func open(path string) bool {
	for dir := path; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

func account(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// filesystem names the kind of a filesystem: that of the last mount on the folder nearest above.
func filesystem(path string) string {
	mounts, _ := procfs.GetMounts() // without them it is unknown
	kind, nearest := "a filesystem that does not say what it is", 0
	for _, m := range mounts {
		point := strings.TrimSuffix(m.MountPoint, "/") + "/"
		if strings.HasPrefix(path+"/", point) && len(point) >= nearest {
			kind, nearest = m.FSType, len(point)
		}
	}
	return kind
}
