package benchslurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/test/slurmcluster"
)

// plain is a batch script as most users write it, and tuned one with a stanza.
const (
	plain = "#!/bin/sh\n#SBATCH --job-name=plain --output=/dev/null --cpus-per-task=1 --mem=100M --time=01:00:00\nsleep 600\n"
	tuned = `#!/bin/sh
#SBATCH --job-name=tuned --output=/dev/null --cpus-per-task=1 --mem=100M --time=01:00:00
#TUNE mode=apply objective=time
#TUNE knob cores values=1,2,3
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
#TUNE checkpoint signal=USR1 grace=30s exit=85
sleep 600
`
)

// share is one in how many of the queued jobs has a stanza.
const share = 40

// lanes is how many submissions go on at a time.
const lanes = 4

// options are those of the cluster: more jobs than Slurm takes by default, and the
// plugin of this checkout, copied to where slurmctld can read it.
func options(jobs int, root, plugin string) (slurmcluster.Options, error) {
	from := filepath.Join(root, "scripts", "slurm")
	files, err := filepath.Glob(filepath.Join(from, "*.lua"))
	if err != nil {
		return slurmcluster.Options{}, err
	}
	if len(files) == 0 {
		return slurmcluster.Options{}, fmt.Errorf("%s: %w", from, os.ErrNotExist)
	}
	if err := os.Chmod(plugin, 0o755); err != nil { //nolint:gosec // slurmctld reads it
		return slurmcluster.Options{}, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return slurmcluster.Options{}, err
		}
		text = bytes.ReplaceAll(text, []byte(`"/etc/slurm/pitchpipe"`), []byte(strconv.Quote(plugin)))
		if err := os.WriteFile(filepath.Join(plugin, filepath.Base(f)), text, 0o644); err != nil { //nolint:gosec // slurmctld reads it
			return slurmcluster.Options{}, err
		}
	}
	return slurmcluster.Options{
		CPUs: 64, MemoryMB: 1 << 16, Track: slurmcluster.TrackLinux, JobSubmitLua: filepath.Join(plugin, "job_submit.lua"),
		Lines: []string{fmt.Sprintf("MaxJobCount=%d", 2*jobs+10000), "MinJobAge=300"},
	}, nil
}

// fill puts jobs into the queue, held, since a job that Slurm looks at costs
// slurmctld more than any watcher.
func fill(ctx context.Context, c *slurmcluster.Cluster, jobs int) error {
	group, gctx := errgroup.WithContext(ctx)
	users := []string{slurmcluster.Alpha, slurmcluster.Beta}
	for lane := range lanes {
		user := users[lane%len(users)]
		first, end := jobs*lane/lanes, jobs*(lane+1)/lanes
		group.Go(func() error {
			loop := "n=$1; while [ $n -lt $2 ]; do if [ $((n % $3)) -eq 0 ]; then f=$5; else f=$4; fi; " +
				`printf %s "$f" | sbatch -H -Q || exit 1; n=$((n+1)); done >/dev/null`
			_, err := c.Run(gctx, user, "sh", "-c", loop, "sh", strconv.Itoa(first), strconv.Itoa(end), strconv.Itoa(share), plain, tuned)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("fill the queue: %w", err)
	}
	return filled(ctx, c, jobs)
}

var errMissing = errors.New("jobs are missing in the queue")

func filled(ctx context.Context, c *slurmcluster.Cluster, jobs int) error {
	out, err := c.Run(ctx, "root", "squeue", "-h", "-a", "-o", "%A")
	if err != nil {
		return err
	}
	if n := len(strings.Fields(out)); n != jobs {
		return fmt.Errorf("%w: %d of %d", errMissing, n, jobs)
	}
	return nil
}

// submit is one new job with a stanza; it returns its number and when sbatch had
// returned.
func submit(ctx context.Context, c *slurmcluster.Cluster, user, script string) (string, time.Time, error) {
	cmd, err := c.Command(ctx, user, "sbatch", "-H", "--parsable")
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
