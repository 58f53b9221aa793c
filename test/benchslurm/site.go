package benchslurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/slurmcluster"
)

// policy lets the tuner do what it wants.
const policy = "default:\n  max_mode: apply\n  control: 0\n"

// site is a controller and its broker, each in a process of its own: the pitchpipe
// program as a site runs it.
type site struct {
	dir                string
	broker, controller *exec.Cmd
	client             *api.Client
}

// build makes the program where every user can reach it.
func build(ctx context.Context, root, dir string) (string, error) {
	program := filepath.Join(dir, "pitchpipe")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./controller/cmd/pitchpipe")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// start runs the controller under its own ordinary account, and the broker as root,
// since a cluster without accounting has no operators. Rest is the socket of a slurmrestd,
// or empty.
func start(ctx context.Context, c *slurmcluster.Cluster, program, rest string, trace io.Writer) (s *site, err error) {
	s = &site{}
	if s.dir, err = os.MkdirTemp("", "pitchpipe-bench-site-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(nil))
		}
	}()
	state, err := s.folders()
	if err != nil {
		return s, err
	}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	common := []string{"--slurm.conf", c.Conf(), "--listen=", "--log.level", "warn", "--exporter.socket", at("no-exporter.sock")}
	ctx = context.WithoutCancel(ctx) // they are ended by stop
	s.broker, err = c.Command(ctx, "root", program, append([]string{
		"broker", "--broker.socket", at("broker.sock"), "--broker.dir", at("broker"), "--broker.controller", slurmcluster.Controller,
	}, common...)...)
	if err != nil {
		return s, err
	}
	s.controller, err = c.Command(ctx, slurmcluster.Controller, program, append([]string{
		"controller", "--driver", "slurm", "--slurm.mode", "site", "--slurm.plugin", "true", "--slurm.broker", at("broker.sock"),
		"--socket", filepath.Join(state, "controller.sock"), "--state", state, "--site", at("site.yaml"),
		"--slurm.rest", rest,
	}, common...)...)
	if err != nil {
		return s, err
	}
	for _, cmd := range []*exec.Cmd{s.broker, s.controller} {
		cmd.Stdout, cmd.Stderr = trace, trace
		if err := cmd.Start(); err != nil {
			return s, err
		}
	}
	s.client = api.NewClient(filepath.Join(state, "controller.sock"))
	return s, nil
}

// folders makes the site's policy and the controller's folder, which it returns.
func (s *site) folders() (string, error) {
	state := filepath.Join(s.dir, "controller")
	u, err := user.Lookup(slurmcluster.Controller)
	if err != nil {
		return "", err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return state, errors.Join(
		err, err2, os.Chmod(s.dir, 0o755), //nolint:gosec // the controller's account reaches what is in it
		os.WriteFile(filepath.Join(s.dir, "site.yaml"), []byte(policy), 0o644), //nolint:gosec // and reads this
		os.Mkdir(state, 0o700), os.Chown(state, uid, gid), os.Mkdir(filepath.Join(s.dir, "broker"), 0o700),
	)
}

// stop ends both. Of a process that was waited for the kernel tells the peak memory
// of it or of the largest of its children.
func (s *site) stop(r *Report) error {
	var errs []error
	if s.client != nil {
		s.client.Close()
	}
	for _, cmd := range []*exec.Cmd{s.controller, s.broker} {
		if cmd == nil || cmd.Process == nil {
			continue
		}
		errs = append(errs, cmd.Process.Signal(syscall.SIGTERM))
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		errs = append(errs, cmd.Wait())
		late.Stop()
	}
	if r != nil {
		if u, ok := s.controller.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.Largest = u.Maxrss << 10
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
