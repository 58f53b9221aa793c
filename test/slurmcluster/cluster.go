package slurmcluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"pitchpipe/test/sandbox"
)

const (
	slurmUser   = "slurm"
	mungeUser   = "munge"
	clusterName = "pitchpipe"

	// The folder is where every user can reach it, with a name that leaves room for
	// the sockets below it: their paths have 107 bytes at most.
	parent = "/tmp"
	prefix = "ppslurm"

	patience = 90 * time.Second // for a daemon to answer, on a machine that is busy
)

// Cluster is a running Slurm. Its methods may be called at the same time, but for
// Stop and the faults, which one goroutine calls.
type Cluster struct {
	opts     Options
	dir      string
	nodes    []string
	ports    []int // slurmctld, slurmdbd, mariadbd, then one a node
	password string

	mu      sync.Mutex
	daemons map[string]*sandbox.Process
}

// Start brings a cluster up and returns when its nodes are idle. The context bounds
// the bring-up; the cluster runs until Stop. Where that cannot be done here the error
// is ErrUnavailable. What is left of clusters whose owners died is cleared away first.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := Available(o); err != nil {
		return nil, err
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := sweep(ctx); err != nil {
		return nil, fmt.Errorf("clear away a dead cluster: %w", err)
	}
	for {
		c, err := start(ctx, o)
		// A port may be taken between the look and the daemon's own attempt.
		if err != nil && strings.Contains(err.Error(), "Address already in use") && ctx.Err() == nil {
			continue
		}
		return c, err
	}
}

func start(ctx context.Context, o Options) (*Cluster, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	c := &Cluster{opts: o, dir: dir, daemons: map[string]*sandbox.Process{}, password: rand.Text()}
	c.nodes = nodeNames(dir, o.Nodes)
	if err := c.up(ctx); err != nil {
		err = fmt.Errorf("%w%s", err, c.Logs())
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// nodeNames are unlike those of any other cluster on the machine, because the cgroups
// are named after them.
func nodeNames(dir string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, "pp"+strings.TrimPrefix(filepath.Base(dir), prefix)+"n"+strconv.Itoa(i+1))
	}
	return out
}

// up does the bring-up in the order in which the daemons need each other.
func (c *Cluster) up(ctx context.Context) (err error) {
	if err := sandbox.Own(c.dir); err != nil {
		return err
	}
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return err
	}
	if c.ports, err = sandbox.Ports(3 + c.opts.Nodes); err != nil {
		return err
	}
	if err := errors.Join(c.folders(), c.files()); err != nil {
		return err
	}
	if err := c.startMunge(ctx); err != nil {
		return err
	}
	if c.opts.Accounting {
		if err := c.startDatabase(ctx); err != nil {
			return err
		}
		if err := c.startDbd(ctx); err != nil {
			return err
		}
		if err := c.accounts(ctx); err != nil {
			return err
		}
	}
	if err := c.startCtld(); err != nil {
		return err
	}
	for i := range c.nodes {
		if err := c.startNode(i); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

// Dir is the cluster's folder.
func (c *Cluster) Dir() string { return c.dir }

// Conf is the path of slurm.conf, which clients find through SLURM_CONF. Its folder
// holds job_submit.lua too, which slurmctld reads again when it changes.
func (c *Cluster) Conf() string { return c.path("etc", "slurm.conf") }

// Nodes are the names of the nodes.
func (c *Cluster) Nodes() []string { return append([]string(nil), c.nodes...) }

// Home is a folder only for the user. It is where Command runs.
func (c *Cluster) Home(name string) string { return c.path("home", name) }

// Env is what clients need in their environment. munge needs nothing: slurm.conf names
// its socket.
func (c *Cluster) Env() []string { return []string{"SLURM_CONF=" + c.Conf()} }

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// Command is a command that runs in the cluster as the user: with his ids alone, in
// his home, and with a small environment that says where Slurm is. "root" and
// "slurm" are users too, with the cluster's folder as their home.
func (c *Cluster) Command(ctx context.Context, name, program string, args ...string) (*exec.Cmd, error) {
	who, err := lookup(name)
	if err != nil {
		return nil, err
	}
	home := c.Home(name)
	if _, err := os.Stat(home); err != nil {
		home = c.dir
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = append(
		[]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + home, "USER=" + name, "LOGNAME=" + name, "SHELL=/bin/sh"},
		c.Env()...,
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

// Run runs a command as the user and returns what it wrote, without the last line's
// end. The error holds what it wrote to standard error.
func (c *Cluster) Run(ctx context.Context, name, program string, args ...string) (string, error) {
	cmd, err := c.Command(ctx, name, program, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return string(out), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, exit.Stderr)
		}
		return string(out), fmt.Errorf("%s: %w", program, err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// lookup are the ids of a user, without the groups of the user who runs this.
func lookup(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}}, nil
}
