package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// Batch scripts as most users write them, and with a stanza.
const (
	plainScript = "#!/bin/sh\n#SBATCH --job-name=plain --output=/dev/null --cpus-per-task=1 --mem=100M --time=01:00:00\nsleep 600\n"
	tunedScript = `#!/bin/sh
#SBATCH --job-name=tuned --output=/dev/null --cpus-per-task=1 --mem=100M --time=01:00:00
#TUNE mode=apply objective=time
#TUNE knob cores values=1,2,3
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
#TUNE checkpoint signal=USR1 grace=30s exit=85
sleep 600
`
)

// slurmBench is a private cluster, and the pitchpipe program on it as a site runs it.
type slurmBench struct {
	options

	c     *slurmcluster.Cluster
	dir   string // of the program, the plugin and the site
	added atomic.Int64
}

// watchSlurm measures on its own cluster. Without Slurm the error is
// slurmcluster.ErrUnavailable.
func watchSlurm(ctx context.Context, o options) (r report, err error) {
	b := &slurmBench{options: o}
	if b.dir, err = os.MkdirTemp("", "pitchpipe-bench-"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	settings, err := b.settings()
	if err != nil {
		return r, err
	}
	if err := slurmcluster.Available(settings); err != nil {
		return r, err
	}
	if err := sandbox.Build(ctx, b.dir, sandbox.Pitchpipe); err != nil {
		return r, err
	}
	if b.c, err = slurmcluster.Start(ctx, settings); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.c.Stop(context.WithoutCancel(ctx))) }()
	version, err := b.c.Run(ctx, "root", "squeue", "--version")
	if err != nil {
		return r, err
	}
	return watch(ctx, o, cluster{
		name: version, verb: "submit", server: b.c.Daemons()["slurmctld"], settle: true, fill: b.fill, add: b.add, start: b.start,
		asked: func(r report) string {
			return fmt.Sprintf("at most 2 s to seen and at most 3 %% of a core; found: %.2f s and %.2f %%",
				r.slowest(), max(r.ours[0].share(r.ours[0].cpu), r.ours[1].share(r.ours[1].cpu)))
		},
	})
}

// settings are those of the cluster: more jobs than Slurm takes by default, and the plugin
// of this checkout, copied to where slurmctld can read it.
func (b *slurmBench) settings() (slurmcluster.Options, error) {
	from := filepath.Join(b.root, "scripts", "slurm")
	files, err := filepath.Glob(filepath.Join(from, "*.lua"))
	if err != nil || len(files) == 0 {
		return slurmcluster.Options{}, errors.Join(err, fmt.Errorf("%s: %w", from, os.ErrNotExist))
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // slurmctld reads it
		return slurmcluster.Options{}, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return slurmcluster.Options{}, err
		}
		text = bytes.ReplaceAll(text, []byte(`"/etc/slurm/pitchpipe"`), []byte(strconv.Quote(b.dir)))
		if err := os.WriteFile(filepath.Join(b.dir, filepath.Base(f)), text, 0o644); err != nil { //nolint:gosec // slurmctld reads it
			return slurmcluster.Options{}, err
		}
	}
	return slurmcluster.Options{
		CPUs: 64, MemoryMB: 1 << 16, Track: slurmcluster.TrackLinux, JobSubmitLua: filepath.Join(b.dir, "job_submit.lua"),
		Lines: []string{fmt.Sprintf("MaxJobCount=%d", 2*b.jobs+10000), "MinJobAge=300"},
	}, nil
}

// lanes is how many submissions go on at a time while the queue is filled.
const lanes = 4

// fill submits held jobs of two users: a job that Slurm looks at costs slurmctld more than
// any watcher.
func (b *slurmBench) fill(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	every := max(b.jobs/b.stanzas, 1)
	for lane := range lanes {
		user := []string{slurmcluster.Alpha, slurmcluster.Beta}[lane%2]
		first, end := b.jobs*lane/lanes, b.jobs*(lane+1)/lanes
		group.Go(func() error {
			loop := "n=$1; while [ $n -lt $2 ]; do if [ $((n % $3)) -eq 0 ]; then f=$5; else f=$4; fi; " +
				`printf %s "$f" | sbatch -H -Q || exit 1; n=$((n+1)); done >/dev/null`
			_, err := b.c.Run(gctx, user, "sh", "-c", loop, "sh", strconv.Itoa(first), strconv.Itoa(end), strconv.Itoa(every), plainScript, tunedScript)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	out, err := b.c.Run(ctx, "root", "squeue", "-h", "-a", "-o", "%A")
	if n := len(strings.Fields(out)); err == nil && n != b.jobs {
		err = fmt.Errorf("%d of %d jobs are in the queue", n, b.jobs)
	}
	return err
}

// add submits one new job and returns its number and when sbatch had returned.
func (b *slurmBench) add(ctx context.Context, stanza bool) (string, time.Time, error) {
	user, script := slurmcluster.Beta, plainScript
	if stanza {
		user, script = []string{slurmcluster.Alpha, slurmcluster.Beta}[b.added.Add(1)%2], tunedScript
	}
	cmd, err := b.c.Command(ctx, user, "sbatch", "-H", "--parsable")
	if err != nil {
		return "", time.Time{}, err
	}
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.Output()
	at := time.Now()
	if err != nil {
		return "", at, fmt.Errorf("sbatch: %w", err)
	}
	id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
	return id, at, nil
}

// start runs the controller under its own ordinary account, and the broker as root, since a
// cluster without accounting has no operators.
func (b *slurmBench) start(ctx context.Context) (*site, error) {
	s := &site{}
	at := func(name string) string { return filepath.Join(b.dir, name) }
	if err := b.folders(at); err != nil {
		return nil, err
	}
	common := []string{"--slurm.conf", b.c.Conf(), "--listen=", "--log.level", "warn", "--exporter.socket", at("no-exporter.sock")}
	socket := filepath.Join(at("controller"), "controller.sock")
	for _, p := range []struct {
		name, user string
		args       []string
	}{
		{"broker", "root", []string{"broker", "--broker.socket", at("broker.sock"), "--broker.dir", at("broker"), "--broker.controller", slurmcluster.Controller}},
		{"controller", slurmcluster.Controller, []string{
			"controller", "--driver", "slurm", "--slurm.mode", "site", "--slurm.plugin", "true", "--slurm.broker", at("broker.sock"),
			"--socket", socket, "--state", at("controller"), "--site", at("site.yaml"),
		}},
	} {
		cmd, err := b.c.Command(context.WithoutCancel(ctx), p.user, at("pitchpipe"), append(p.args, common...)...) // stop ends it
		if err == nil {
			err = s.run(p.name, cmd, b.trace)
		}
		if err != nil {
			return nil, errors.Join(err, s.stop(nil))
		}
	}
	s.client = api.NewClient(socket)
	return s, nil
}

// folders makes the site's policy, and the folders of the controller and the broker.
func (b *slurmBench) folders(at func(string) string) error {
	u, err := user.Lookup(slurmcluster.Controller)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return errors.Join(
		err, err2, os.WriteFile(at("site.yaml"), []byte(policy), 0o644), //nolint:gosec // the controller's account reads it
		os.Mkdir(at("controller"), 0o700), os.Chown(at("controller"), uid, gid), os.Mkdir(at("broker"), 0o700),
	)
}
