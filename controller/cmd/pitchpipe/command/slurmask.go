package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/check"
	slurmcommand "pitchpipe/driver/slurm/command"
	exporterapi "pitchpipe/exporter/api"
)

const commandPatience = 20 * time.Second // for one of Slurm's commands

func (a *app) commands(as *syscall.Credential) slurmcommand.Exec {
	return slurmcommand.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf, Timeout: commandPatience, Credential: as}
}

func credentialOf(u *user.User) (*syscall.Credential, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("the numbers of %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}}, nil
}

func (a *app) askExporter(ctx context.Context, exporters *nodes.Exporters, node string, here bool) check.Exporter {
	e := check.Exporter{Address: strings.ReplaceAll(a.cfg.Exporter.Nodes, nodes.Placeholder, node)}
	if e.Address == "" && here {
		e.Address = a.cfg.Exporter.Socket
	}
	if e.Address == "" {
		return e
	}
	about, err := exporters.Node(ctx, node)
	switch {
	case err == nil:
		e.Answer = check.Present
	case errors.Is(err, exporterapi.ErrDenied), errors.Is(err, fs.ErrPermission):
		e.Answer, e.Text = check.Closed, reason(err)
	default:
		e.Answer, e.Text = check.Absent, reason(err)
	}
	e.Energy = about.EnergySource
	e.Steps = "it does not say how it finds them"
	for _, s := range about.Sources {
		if s.Name == "attrib/slurmstepd" {
			if e.Steps = string(s.Support); s.Support != exporterapi.Supported {
				e.Steps += ": " + s.Reason
			}
		}
	}
	return e
}

// askBroker asks for the script of a job that no cluster has.
func askBroker(ctx context.Context, socket string) (check.Seen, string) {
	client := broker.NewClient(socket)
	client.Timeout = commandPatience
	_, err := client.Script(ctx, "0")
	switch {
	case errors.Is(err, driver.ErrDenied), errors.Is(err, fs.ErrPermission):
		return check.Closed, reason(err)
	case errors.Is(err, driver.ErrTransient):
		return check.Absent, reason(err)
	}
	return check.Present, ""
}

// reason is why a socket or an address gives no answer, as short as it can be said.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no process listens there"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

func (a *app) prove(ctx context.Context, c checking, facts check.Facts, caller *user.User, exporters *nodes.Exporters) (*check.Proof, error) {
	as := caller
	if c.as != "" {
		var err error
		if as, err = user.Lookup(c.as); err != nil {
			return nil, invalid("--as", err)
		}
	}
	home := as.HomeDir
	if as.Username == facts.Controller && facts.Here.Home != "" {
		home = facts.Here.Home // as the task prolog has it
	}
	with := trial{
		Account: as.Username, Runner: a.commands(nil),
		Environ:  []string{"PATH=" + slurmcommand.Path(), "HOME=" + home, "USER=" + as.Username, "LOGNAME=" + as.Username, "LC_ALL=C"},
		Settings: settingsOf(facts),
		Measured: func(ctx context.Context, node, job string) (check.Seen, string) {
			_, err := exporters.Window(ctx, node, "slurm/"+job, 0, ^uint64(0))
			switch {
			case errors.Is(err, exporterapi.ErrNotFound):
				return check.Absent, ""
			case err != nil:
				return check.NotLooked, err.Error()
			}
			return check.Present, ""
		},
	}
	if len(a.cfg.Slurm.Partitions) > 0 {
		with.Partition = a.cfg.Slurm.Partitions[0]
	}
	if as.Uid != caller.Uid {
		credential, err := credentialOf(as)
		if err != nil {
			return nil, err
		}
		with.Runner = a.commands(credential)
	}
	if !a.json {
		fmt.Fprintf(a.Stderr, "submitting two tiny jobs as %s; this takes up to %v\n", as.Username, tryWait)
	}
	p, err := with.run(ctx)
	return &p, err
}

// settingsOf is where the task prolog of the cluster reads for this controller; nil =
// nowhere that is known.
func settingsOf(facts check.Facts) *trialFolder {
	conf := check.ReadPrologConf(facts.PrologConf.Text)
	account := facts.Controller
	if facts.Mode == check.Site {
		account = conf.SiteUser
	}
	dir := conf.SettingsDir(facts.Mode, facts.Here.Home)
	u, err := user.Lookup(account)
	if dir == "" || err != nil {
		return nil
	}
	credential, err := credentialOf(u)
	if err != nil {
		return nil
	}
	return &trialFolder{
		Dir: dir, UID: int(credential.Uid), GID: int(credential.Gid), Account: account, Make: facts.Mode == check.Owner,
	}
}
