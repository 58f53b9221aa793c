package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/slurm/check"
	slurmcommand "pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

const (
	tryWait = 90 * time.Second // for the good job

	// tryBad is refused in line 2, column 7.
	tryBad = "#!/bin/sh\n#TUNE mod=apply\nexit 0\n"

	// tryGood runs some seconds, and its exit status says whether it got the variable.
	tryGood = `#!/bin/sh
#TUNE mode=apply
#TUNE budget restarts=0 probes=0
#TUNE knob try env=TUNE_TRY values=1,2 default=1
i=0
while [ $i -lt 8 ]; do sleep 1; i=$((i + 1)); done
[ "$TUNE_TRY" = 2 ] || exit 3
`
)

// trialFolder is where the task prolog reads, and whose files it believes there.
type trialFolder struct {
	Dir      string
	UID, GID int    // of whose files it believes
	Account  string // the same as a name
	Make     bool   // make the folder where it is missing: it is the account's own
}

// trial says who tries, and how.
type trial struct {
	Account   string              // that submits the jobs
	Runner    slurmcommand.Runner // runs Slurm's commands as that account
	Environ   []string            // of the jobs; they get nothing else
	Partition string              // empty = the cluster's default
	Settings  *trialFolder        // nil = the task prolog is not tried
	Wait      time.Duration       // 0 = tryWait
	// Measured asks the exporter of a node for the job, and says why that is not known.
	Measured func(ctx context.Context, node, job string) (check.Seen, string)
}

// run submits the two jobs and says what came of them. An error says that something of them
// may be left.
func (c trial) run(ctx context.Context) (p check.Proof, err error) {
	name := "pitchpipe-check-" + strings.ToLower(rand.Text()[:10])
	defer func() { // what was submitted is cancelled, also after an interrupt
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slurmcommand.DefaultTimeout)
		defer cancel()
		if _, failed := slurmcommand.Ask(ctx, c.Runner, "scancel", "--quiet", "--user="+c.Account, "--name="+name); failed != nil {
			err = errors.Join(err, fmt.Errorf("cancel the jobs %s: %w", name, failed))
		}
	}()
	job, said := c.submit(ctx, name, tryBad)
	p.Accepted, p.Bad = job != "", said
	if p.Job, said = c.submit(ctx, name, tryGood); p.Job == "" {
		p.Failed = said
		return p, nil
	}
	given, why := c.give(p.Job)
	if given != "" {
		defer func() { err = errors.Join(err, os.Remove(given)) }()
	}
	if _, failed := slurmcommand.Ask(ctx, c.Runner, "scontrol", "release", p.Job); failed != nil {
		return p, fmt.Errorf("release job %s: %w", p.Job, failed)
	}
	status, err := c.watch(ctx, &p)
	p.Unstarted = cmp.Or(p.Unstarted, why)
	if err == nil && why == "" {
		p.Variable = map[string]check.Seen{"0:0": check.Present, "3:0": check.Absent}[status]
	}
	return p, err
}

// submit hands in a held job and returns its number, empty where there is none, and what
// sbatch says to the user. The mark is what users without the plugin give their jobs.
func (c trial) submit(ctx context.Context, name, script string) (job, said string) {
	args := []string{
		"--parsable", "--hold", "--job-name=" + name, "--time=2", "--ntasks=1", "--cpus-per-task=1", "--mem=64M", "--chdir=/",
		"--output=/dev/null", "--error=/dev/null",
	}
	if c.Partition != "" {
		args = append(args, "--partition="+c.Partition)
	}
	env := append([]string{"PITCHPIPE_JOB=2::TUNE_TRY=#"}, c.Environ...)
	out, err := c.Runner.Run(ctx, slurmcommand.Call{Name: "sbatch", Args: args, Stdin: []byte(script), Effect: true, Env: env})
	if m := regexp.MustCompile(`(?m)^(\d+)(;\S+)?$`).FindSubmatch(out.Stdout); m != nil && err == nil {
		job = string(m[1])
	}
	if said = sentences(string(out.Stderr)); said == "" && err != nil {
		said = err.Error()
	}
	return job, said
}

// sentences makes one line of what sbatch printed.
func sentences(stderr string) string {
	var out []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "sbatch:"), " error:"))
		if line != "" && !strings.HasPrefix(line, "Batch job submission failed") || strings.Contains(line, ": ") && len(out) == 0 {
			out = append(out, line)
		}
	}
	const most = 400
	text := strings.Join(out, "; ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// give makes the file that the task prolog reads. Where it cannot, it says why.
func (c trial) give(job string) (path, why string) {
	s, self := c.Settings, os.Geteuid()
	switch {
	case s == nil:
		return "", "there is no folder of settings to try"
	case self != 0 && self != s.UID:
		return "", "only " + s.Account + " may write in " + s.Dir
	}
	if s.Make && self == s.UID { // where it cannot be made, the file cannot either
		_ = os.MkdirAll(s.Dir, 0o755) //nolint:gosec // the task prolog of each node reads it
	}
	path = filepath.Join(s.Dir, job)
	err := durable.WriteWith(path, []byte("TUNE_TRY=2\n"), 0o644, func(f *os.File) error {
		if self != 0 {
			return nil // it is the account's own
		}
		return f.Chown(s.UID, s.GID)
	})
	if err != nil {
		return "", err.Error()
	}
	return path, ""
}

// watch follows the good job to its end, asks the exporter while it runs, and returns
// its exit status.
func (c trial) watch(ctx context.Context, p *check.Proof) (status string, err error) {
	wait := cmp.Or(c.Wait, tryWait)
	for began := time.Now(); ; {
		record, err := slurmcommand.Ask(ctx, c.Runner, "scontrol", "-o", "show", "job", p.Job)
		if err != nil {
			return "", fmt.Errorf("look at job %s: %w", p.Job, err)
		}
		state, exit := parse.Word(string(record), "JobState"), parse.Word(string(record), "ExitCode")
		p.Comment = parse.Word(string(record), "AdminComment")
		switch state {
		case "RUNNING", "COMPLETING":
			if node := parse.Word(string(record), "BatchHost"); node != "" && p.Measured != check.Present {
				seen, why := c.Measured(ctx, node, p.Job)
				p.Measured, p.Unstarted = cmp.Or(seen, p.Measured), cmp.Or(why, p.Unstarted)
			}
		case "PENDING", "CONFIGURING":
		default:
			if state != "COMPLETED" && exit != "3:0" {
				p.Unstarted = fmt.Sprintf("job %s ended as %s", p.Job, state)
			}
			return exit, nil
		}
		if time.Since(began) >= wait {
			p.Unstarted = fmt.Sprintf("job %s was %s (%s) for %v and was cancelled", p.Job, state, parse.Word(string(record), "Reason"), wait)
			return "", nil
		}
		if err := driver.Pause(ctx, 500*time.Millisecond); err != nil {
			return "", err
		}
	}
}
