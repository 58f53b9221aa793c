package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/move"
)

// job is a job and all that the cluster knows about it.
type job struct {
	view      driver.Job
	act       Behaviour
	spec      driver.Spec
	env       map[string]string // of the file and the submission
	fixed     map[string]string // what the script sets whatever its environment says
	noRequeue bool
	live      bool           // its attempts have a settings file
	progress  *regexp.Regexp // nil = no listener

	log     []byte
	saved   int // epochs that need not be done again
	runs    []*run
	intents move.Record
	touched time.Time    // when the last step was taken of the intent in progress
	cause   driver.Cause // of the next attempt
	intent  string       // of the next attempt
	note    string       // for the output, when the next attempt begins
}

// newJob judges a job file. The error is driver.ErrInvalid.
func (c *Cluster) newJob(request driver.RequestID, spec driver.Spec) (*job, error) {
	file, err := detect.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	act, err := ParseBehaviour(spec.Filename, spec.Source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	j := &job{act: act, spec: spec, noRequeue: file.NoRequeue, live: file.Live()}
	if spec.Progress.Pattern != "" {
		if j.progress, err = regexp.Compile(spec.Progress.Pattern); err != nil {
			return nil, fmt.Errorf("%w: progress pattern: %w", driver.ErrInvalid, err)
		}
	}
	j.fixed = map[string]string{}
	for name := range file.Fixed {
		j.fixed[name] = file.Env[name]
	}
	j.env = driver.Merge(driver.Merge(file.Env, spec.Env), j.fixed)
	j.view = driver.Job{
		Request: request, Name: file.Name, Owner: spec.Owner, Partition: file.Partition, Account: file.Account,
		NotBefore: spec.NotBefore, ExitCode: -1, Fingerprint: driver.Fingerprint(spec.Source, spec.Variables),
		Filename: spec.Filename, Source: slices.Clone(spec.Source), Variables: maps.Clone(spec.Variables),
		Resources: driver.Resources{
			Cores: max(1, file.Cores), MemoryBytes: file.MemoryBytes, TimeLimit: file.TimeLimit,
			Env: j.env, Args: slices.Clone(file.Argv), Command: file.Command,
		},
	}
	return j, c.canHold(j.view.Resources)
}

// resources is what an attempt under the change asks for.
func (j *job) resources(change driver.Change) driver.Resources { return j.view.Resources.Under(change) }

// environment is what an attempt under the change sees. A name in its settings
// file counts before the variable of that name.
func (j *job) environment(change driver.Change) map[string]string {
	return driver.Merge(driver.Merge(j.env, change.Env), driver.Merge(j.fixed, change.Live))
}

// printSettings writes what the attempt finds in its settings file. It has one
// where the job file names a live knob, and from the first live change on.
func (j *job) printSettings(r *run) error {
	j.live = j.live || len(j.view.Change.Live) > 0
	if !j.act.ShowSettings {
		return nil
	}
	text := []byte("none")
	if j.live {
		var err error
		if text, err = driver.EncodeSettings(r.number, j.view.Change.Live); err != nil {
			return err
		}
	}
	j.print("settings " + strings.TrimSpace(string(text)))
	return nil
}

// current is the attempt that runs, nil where none does.
func (j *job) current() *run {
	if j.view.State != driver.Running {
		return nil
	}
	return j.runs[len(j.runs)-1]
}

// print appends one line to the job's output.
func (j *job) print(line string) { j.log = append(append(j.log, line...), '\n') }

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
