package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
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
	notBefore time.Time

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
	file, err := c.cfg.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	act, err := ParseBehaviour(spec.Filename, spec.Source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	j := &job{act: act, spec: spec, noRequeue: file.NoRequeue, live: file.Live(), notBefore: spec.NotBefore}
	if spec.Progress.Pattern != "" {
		if j.progress, err = regexp.Compile(spec.Progress.Pattern); err != nil {
			return nil, fmt.Errorf("%w: progress pattern: %w", driver.ErrInvalid, err)
		}
	}
	j.env = make(map[string]string)
	maps.Copy(j.env, file.Env)
	maps.Copy(j.env, spec.Env)
	j.fixed = make(map[string]string)
	for name := range file.Fixed {
		j.fixed[name] = file.Env[name]
	}
	maps.Copy(j.env, j.fixed)
	j.view = driver.Job{
		Request: request, Name: file.Name, Owner: spec.Owner, Partition: file.Partition, Account: file.Account,
		ExitCode: -1, Fingerprint: fingerprint(spec.Source, spec.Variables),
		Filename: spec.Filename, Source: slices.Clone(spec.Source), Variables: maps.Clone(spec.Variables),
		Resources: requested(file, j.env),
	}
	return j, c.canHold(j.view.Resources)
}

func requested(file *jobfile.Job, env map[string]string) driver.Resources {
	return driver.Resources{
		Cores: max(1, file.Cores), MemoryBytes: file.MemoryBytes, TimeLimit: file.TimeLimit,
		Env: maps.Clone(env), Args: slices.Clone(file.Argv), Command: file.Command,
	}
}

// fingerprint identifies what the owner wrote.
func fingerprint(src []byte, vars map[string]string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n%s", len(src), src)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		_, _ = fmt.Fprintf(h, "%q=%q\n", name, vars[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// resources is what an attempt under the change asks for.
func (j *job) resources(change driver.Change) driver.Resources {
	r := j.view.Resources
	if change.Cores != 0 {
		r.Cores = change.Cores
	}
	if change.MemoryBytes != 0 {
		r.MemoryBytes = change.MemoryBytes
	}
	if change.TimeLimit != 0 {
		r.TimeLimit = change.TimeLimit
	}
	return r
}

// environment is what an attempt under the change sees. A name in its settings
// file counts before the variable of that name.
func (j *job) environment(change driver.Change) map[string]string {
	env := maps.Clone(j.env)
	maps.Copy(env, change.Env)
	maps.Copy(env, j.fixed)
	maps.Copy(env, change.Live)
	return env
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

// snapshot is the job as the outside sees it. Nothing in it changes later.
func (j *job) snapshot() driver.Job {
	v := j.view
	v.Source = slices.Clone(v.Source)
	v.Variables = maps.Clone(v.Variables)
	v.Change = v.Change.Clone()
	v.Resources.Env = maps.Clone(v.Resources.Env)
	v.Resources.Args = slices.Clone(v.Resources.Args)
	v.Attempts = slices.Clone(v.Attempts)
	for i := range v.Attempts {
		v.Attempts[i].Change = v.Attempts[i].Change.Clone()
	}
	return v
}

// print appends one line to the job's output.
func (j *job) print(line string) { j.log = append(append(j.log, line...), '\n') }

// printNote writes the intent's note, on one line whatever it holds.
func (j *job) printNote() {
	if note := strings.Join(strings.Fields(j.note), " "); note != "" {
		j.print("pitchpipe: " + note)
	}
	j.note = ""
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
