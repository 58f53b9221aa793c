package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/probe"
	"pitchpipe/controller/profile"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/report"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/nomad"
	exporterapi "pitchpipe/exporter/api"
)

type probing struct {
	settings int               // at most so many besides the owner's
	short    map[string]string // variables that make the work short
}

// probe runs a job file of Nomad shortly under several settings, as the caller, and tells
// with which change to submit it. Done forgets what was measured.
func (a *app) probe(ctx context.Context, s api.Submission, with probing) (change driver.Change, done func() error, err error) {
	file, policy, own, err := probed(s, with)
	if err != nil {
		return change, nil, err
	}
	client, err := a.nomadAsCaller()
	if err != nil {
		return change, nil, err
	}
	defer client.Close()
	namespace := cmp.Or(file.Partition, a.env("NOMAD_NAMESPACE"), nomadapi.DefaultNamespace)
	dir, err := a.probeDir(s, with, client.Address(), namespace)
	if err != nil {
		return change, nil, err
	}
	records, err := durable.OpenFolder(filepath.Join(dir, "journal"))
	if err != nil {
		return change, nil, err
	}
	// It is over before the job itself is submitted.
	d, err := nomad.New(ctx, nomad.Config{
		Client: client, Namespaces: []string{namespace}, Journal: records, Logger: a.logger().With("service", "probes"),
	})
	if err != nil {
		return change, nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	exporters, err := a.exporters(a.logger().With("service", "exporters"))
	if err != nil {
		return change, nil, err
	}
	defer exporters.Close()
	env := driver.Merge(s.Env, with.short)
	out, err := probe.Run(ctx, probe.Config{
		Jobs: shortJobs{d}, Policy: policy, Own: own, Probes: with.settings, File: filepath.Join(dir, "probes.json"), Measure: a.joulesOf(exporters), Log: a.logger(),
		Spec:   driver.Spec{Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: env},
		Change: func(target tuning.Settings) (driver.Change, error) { return reconcile.Change(policy, own, target) },
		Tell: func(t probe.Tried) {
			fmt.Fprintf(a.Stderr, "pitchpipe: short job %s under %s: %s\n", cmp.Or(string(t.Job), string(t.Request)), t.Trial.Settings, t.State)
		},
	})
	switch {
	case ctx.Err() != nil:
		return change, nil, fmt.Errorf("%w; nothing was submitted, and the same command resumes after the last measured short job", err)
	case errors.Is(err, probe.ErrPolicy), errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrDenied), errors.Is(err, driver.ErrUnsupported):
		return change, nil, fmt.Errorf("%w: %w", errInvalid, err)
	case err != nil:
		return change, nil, fmt.Errorf("%w; nothing was submitted", err)
	}
	if _, err := fmt.Fprint(a.Stderr, probesText(out, own, policy)); err != nil {
		return change, nil, err
	}
	return out.Change, func() error { return os.RemoveAll(dir) }, nil
}

func (a *app) probeAndSubmit(ctx context.Context, client *api.Client, s api.Submission, with probing) (job api.Job, before time.Time, err error) {
	change, done, err := a.probe(ctx, s, with)
	if err == nil {
		job, before, err = a.submitWith(ctx, client, s, &change)
	}
	if err != nil {
		return job, before, err
	}
	if err := done(); err != nil {
		a.logger().Warn("what the short jobs measured is still there", "err", err)
	}
	return job, before, nil
}

func probed(s api.Submission, with probing) (*jobfile.Job, tuning.Policy, tuning.Settings, error) {
	refuse := func(err error) (*jobfile.Job, tuning.Policy, tuning.Settings, error) {
		return nil, tuning.Policy{}, nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if format, err := detect.Format(s.Filename, s.Source); err != nil || format != jobfile.NomadHCL {
		return refuse(fmt.Errorf("--probe: %s: short jobs are run for Nomad job files; an sbatch script with a checkpoint is probed while it runs", s.Filename))
	}
	file, err := detect.For("nomad")(s.Filename, s.Source, s.Variables)
	if err != nil {
		return refuse(err)
	}
	policy, err := stanza.Policy(file)
	if err != nil {
		return refuse(fmt.Errorf("--probe: %w", err))
	}
	policy = policy.Carried(verdict.Reach("nomad", nomad.Capabilities()))
	for _, k := range policy.Knobs {
		if _, ok := with.short[k.Env]; ok && k.Env != "" {
			return refuse(fmt.Errorf("--probe-env %s: it is the knob %s: want what makes the work short, not what is tried", k.Env, k.Name))
		}
	}
	shown := *file
	shown.Env = driver.Merge(file.Env, s.Env)
	own := stanza.Own(&shown, policy)
	if _, ok := own[tuning.Cores]; !ok {
		own[tuning.Cores] = tuning.Number(float64(max(file.Cores, 1)))
	}
	return file, policy, own, nil
}

// probeDir is where the probes of this very submission are remembered until the job is
// submitted.
func (a *app) probeDir(s api.Submission, with probing, address, namespace string) (string, error) {
	state := a.env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := a.env("HOME")
		if home == "" {
			return "", fmt.Errorf("%w: --probe remembers what was measured below XDG_STATE_HOME or HOME, and neither is set", errInvalid)
		}
		state = filepath.Join(home, ".local", "state")
	}
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{address, namespace, s.Source, s.Variables, s.Env, with.short}); err != nil {
		return "", err
	}
	return filepath.Join(state, "pitchpipe", "probes", hex.EncodeToString(h.Sum(nil)[:10])), nil
}

// shortJobs are those of Nomad, which starts a job with a change at once.
type shortJobs struct{ *nomad.Driver }

func (j shortJobs) Start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	return j.StartWith(ctx, id, s, c)
}

// joulesOf asks the exporter of a short job's node for its joules, where one can be
// reached. Its epochs are those that were read in its output.
func (a *app) joulesOf(exporters *nodes.Exporters) func(ctx context.Context, job driver.Job, epochs []tuning.Epoch) []tuning.Epoch {
	return func(ctx context.Context, job driver.Job, epochs []tuning.Epoch) []tuning.Epoch {
		n := len(job.Attempts)
		if n == 0 || len(epochs) == 0 {
			return epochs
		}
		w, err := exporters.Window(ctx, job.Node, "nomad/"+job.Attempts[n-1].Unit, 1, 0)
		if err != nil {
			a.logger().Debug("no joules of a short job", "job", string(job.ID), "err", err)
			return epochs
		}
		return withJoules(w, epochs)
	}
}

// withJoules are epochs with the joules of a window, which are cut where the epochs ended.
func withJoules(w exporterapi.Window, epochs []tuning.Epoch) []tuning.Epoch {
	w.Samples = slices.DeleteFunc(slices.Clone(w.Samples), func(s exporterapi.Sample) bool { return s.Mark != nil && len(s.Values) == 0 })
	for i := range w.Samples {
		w.Samples[i].Mark = nil
	}
	begin := epochs[0]
	w.Samples = append(w.Samples, exporterapi.Sample{Time: begin.Start, Mark: &exporterapi.Report{Epoch: begin.Number - 1, Time: begin.Start}})
	for _, e := range epochs {
		w.Samples = append(w.Samples, exporterapi.Sample{Time: e.End, Mark: &exporterapi.Report{Epoch: e.Number, Time: e.End}})
	}
	out := slices.Clone(epochs)
	for _, cut := range profile.Epochs(w, profile.Spec{Settings: begin.Settings}) {
		i := slices.IndexFunc(out, func(e tuning.Epoch) bool { return e.Number == cut.Number })
		if i >= 0 && cut.Joules != nil {
			out[i].Joules, out[i].Source = cut.Joules, cut.Source
		}
	}
	return out
}

func probesText(out probe.Result, own tuning.Settings, policy tuning.Policy) string {
	tried := report.List([]string{"SHORT JOB", "SETTINGS", "EPOCHS", "SECONDS", "ENERGY", "RESULT"}, out.Tried, func(t probe.Tried) []string {
		result := "may be used"
		switch {
		case t.Trial.Failed:
			result = string(t.State)
		case t.Trial.Reference:
			result = "its own settings"
		case t.Refused != tuning.ReasonNone:
			result = "not used: " + string(t.Refused)
		}
		return []string{
			cmp.Or(string(t.Job), "-"), t.Trial.Settings.String(), strconv.Itoa(t.Trial.Epochs), fmt.Sprintf("%.2f", t.Trial.Seconds),
			joules((*float64)(t.Trial.Joules), t.Trial.Source), result,
		}
	})
	text := "none could be used: the job keeps its own settings"
	if g := out.Gain; g != nil {
		text = fmt.Sprintf("%s: %+.1f %% of %s by measurement, %+.1f %% without the luck of the best of %d", g.Trial.Settings, 100*g.LogRatio, policy.Objective, 100*g.Expected, g.Candidates)
		if out.Better() {
			text = "chosen " + text
		} else {
			text = "the job keeps its own settings (" + own.String() + "); the best was " + text + ", which is not beyond the noise"
		}
	}
	return fmt.Sprintf("%s%s (no more was tried: %s)\n", tried, text, strings.ReplaceAll(string(out.Reason), "-", " "))
}
