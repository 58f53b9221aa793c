package slurmcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"pitchpipe/test/sandbox"
)

// spawn starts a daemon as the user. What it says before it has a log goes to
// log/NAME.out.
func (c *Cluster) spawn(name, owner, program string, args ...string) error {
	path, err := find(program)
	if err != nil {
		return err
	}
	who, err := lookup(owner)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), path, args...) // it lives until it is killed
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: who}
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + c.dir, marker + "=" + c.dir}, c.Env()...)
	d, err := sandbox.Begin(name, c.path("log", name+".out"), cmd)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.daemons[name] = d
	return nil
}

// daemon is nil where there is none of that name.
func (c *Cluster) daemon(name string) *sandbox.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.daemons[name]
}

// await asks until the answer is nil, the daemon is gone or patience ends. One question
// takes seconds at most: Slurm's clients try for a minute until a daemon listens.
func (c *Cluster) await(ctx context.Context, name string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.daemon(name).Await(ctx, ask)
}

func dial(ctx context.Context, network, address string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *Cluster) startMunge(ctx context.Context) error {
	socket := c.path("munge", "s")
	// --force: the folder is below /tmp, which munge rightly warns about.
	err := c.spawn("munged", mungeUser, "munged", "--foreground", "--force", "--num-threads=2", "--socket="+socket, "--key-file="+c.path("munge", "key"),
		"--log-file="+c.path("munge", "log"), "--pid-file="+c.path("munge", "pid"), "--seed-file="+c.path("munge", "seed"))
	if err != nil {
		return err
	}
	return c.await(ctx, "munged", func(ctx context.Context) error { return dial(ctx, "unix", socket) })
}

// startDatabase makes an empty database, which only the user slurm and slurmdbd with
// a password made for this cluster can open.
func (c *Cluster) startDatabase(ctx context.Context) error {
	install, err := find("mariadb-install-db")
	if err != nil {
		return err
	}
	data := c.path("db", "data")
	who, err := lookup(slurmUser)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, install, "--no-defaults", "--datadir="+data, "--tmpdir="+c.path("db"), "--skip-test-db", "--skip-name-resolve",
		"--auth-root-authentication-method=socket", "--auth-root-socket-user="+slurmUser, "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	cmd.Dir = c.path("db")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, out)
	}
	first := c.path("db", "first.sql")
	sql := "CREATE DATABASE slurm_acct;\nCREATE USER slurm@'127.0.0.1' IDENTIFIED BY '" + c.password + "';\nGRANT ALL ON slurm_acct.* TO slurm@'127.0.0.1';\n"
	if err := os.WriteFile(first, []byte(sql), 0o600); err != nil {
		return err
	}
	if err := os.Chown(first, int(who.Uid), int(who.Gid)); err != nil {
		return err
	}
	err = c.spawn("mariadbd", slurmUser, "mariadbd", "--no-defaults", "--datadir="+data, "--tmpdir="+c.path("db"), "--socket="+c.path("db", "s"), "--pid-file="+c.path("db", "pid"),
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(c.ports[2]), "--skip-name-resolve", "--init-file="+first, "--performance-schema=off",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--key-buffer-size=1M", "--aria-pagecache-buffer-size=8M")
	if err != nil {
		return err
	}
	return c.await(ctx, "mariadbd", func(ctx context.Context) error { return dial(ctx, "tcp", sandbox.Loopback(c.ports[2])) })
}

// accounts makes the accounts of the users, so that sacct and limits mean something.
func (c *Cluster) accounts(ctx context.Context) error {
	for _, args := range [][]string{
		{"add", "cluster", clusterName},
		{"add", "account", AlphaAccount + "," + BetaAccount, "cluster=" + clusterName},
		{"add", "user", Alpha, "account=" + AlphaAccount, "cluster=" + clusterName},
		{"add", "user", Beta, "account=" + BetaAccount, "cluster=" + clusterName},
		{"add", "user", Operator, "account=" + AlphaAccount, "cluster=" + clusterName, "adminlevel=operator"},
		{"add", "user", Controller, "account=" + AlphaAccount, "cluster=" + clusterName},
	} {
		if _, err := c.Run(ctx, slurmUser, "sacctmgr", append([]string{"-i", "-Q"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startCtld() error { return c.spawn("slurmctld", slurmUser, "slurmctld", "-D") }

func (c *Cluster) startNode(i int) error {
	return c.spawn(c.nodes[i], "root", "slurmd", "-D", "-N", c.nodes[i])
}

func (c *Cluster) startDbd(ctx context.Context) error {
	if err := c.spawn("slurmdbd", slurmUser, "slurmdbd", "-D"); err != nil {
		return err
	}
	return c.await(ctx, "slurmdbd", func(ctx context.Context) error {
		if err := dial(ctx, "tcp", sandbox.Loopback(c.ports[1])); err != nil {
			return err
		}
		_, err := c.Run(ctx, slurmUser, "sacctmgr", "-n", "-P", "-Q", "show", "cluster")
		return err
	})
}

// running refuses to start what runs.
func (c *Cluster) running(name string) error {
	if c.daemon(name).Alive() {
		return fmt.Errorf("%s runs already", name)
	}
	return nil
}

// StartCtld starts slurmctld after KillCtld or StopCtld and waits until it answers.
func (c *Cluster) StartCtld(ctx context.Context) error {
	if err := c.running("slurmctld"); err != nil {
		return err
	}
	if err := c.startCtld(); err != nil {
		return err
	}
	return c.await(ctx, "slurmctld", func(ctx context.Context) error {
		if err := dial(ctx, "tcp", sandbox.Loopback(c.ports[0])); err != nil {
			return err
		}
		_, err := c.Run(ctx, slurmUser, "squeue", "-h", "-o", "%i")
		return err
	})
}

// StartNode starts the slurmd of a node, counted from 0, after KillNode.
func (c *Cluster) StartNode(_ context.Context, i int) error {
	if err := c.running(c.nodes[i]); err != nil {
		return err
	}
	return c.startNode(i)
}

// KillCtld kills slurmctld with SIGKILL: what it acknowledged within the last seconds
// may be lost.
func (c *Cluster) KillCtld() { c.kill("slurmctld") }

// StopCtld ends slurmctld with SIGTERM: it saves its state.
func (c *Cluster) StopCtld() { c.daemon("slurmctld").End(syscall.SIGTERM, patience) }

// KillNode kills the slurmd of a node; its jobs run on.
func (c *Cluster) KillNode(i int) { c.kill(c.nodes[i]) }

func (c *Cluster) kill(name string) { c.daemon(name).Kill() }

// Ready waits until every node takes jobs.
func (c *Cluster) Ready(ctx context.Context) error {
	return c.await(ctx, "slurmctld", func(ctx context.Context) error {
		if err := dial(ctx, "tcp", sandbox.Loopback(c.ports[0])); err != nil {
			return err
		}
		for _, n := range c.nodes {
			if !c.daemon(n).Alive() {
				return fmt.Errorf("slurmd of %s does not run", n)
			}
		}
		out, err := c.Run(ctx, slurmUser, "sinfo", "-h", "-N", "-o", "%T")
		if err != nil {
			return err
		}
		states := strings.Fields(out)
		if len(states) < len(c.nodes) {
			return fmt.Errorf("nodes are %q", out)
		}
		for _, s := range states {
			if s != "idle" && s != "mixed" && s != "allocated" {
				return fmt.Errorf("nodes are %q", out)
			}
		}
		return nil
	})
}

// Logs are the last lines of what each daemon said, for a failure.
func (c *Cluster) Logs() string {
	found, err := filepath.Glob(c.path("log", "*"))
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, f := range found {
		if said := sandbox.Tail(f, 40); said != "" {
			fmt.Fprintf(&b, "\n== %s\n%s", filepath.Base(f), said)
		}
	}
	return b.String()
}

// Daemons are the processes that the cluster consists of, by name: their ids.
func (c *Cluster) Daemons() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for name, d := range c.daemons {
		if d.Alive() {
			out[name] = d.Cmd.Process.Pid
		}
	}
	return out
}

// Stop ends every process of the cluster, jobs included, and removes its cgroups and
// its folder. A second call finds nothing to do.
func (c *Cluster) Stop(ctx context.Context) error {
	// slurmctld first, so that it starts nothing new; then the nodes, then what ran
	// on them, and last what all of them needed.
	c.kill("slurmctld")
	for _, n := range c.nodes {
		c.kill(n)
	}
	for name := range c.Daemons() {
		c.kill(name)
	}
	return remove(ctx, c.dir, c.nodes)
}
