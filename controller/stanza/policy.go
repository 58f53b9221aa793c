package stanza

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// ErrNone says that the job file has no tuning stanza.
var ErrNone = errors.New("no tuning stanza")

// Policy judges the stanza of a job. The error is ErrNone where there is no
// stanza, and otherwise of type jobfile.Errors with every fault in the order of
// the places.
func Policy(job *jobfile.Job) (tuning.Policy, error) {
	if job == nil || job.Stanza == nil {
		return tuning.Policy{}, ErrNone
	}
	j := &judge{job: job}
	p := tuning.DefaultPolicy()
	j.top(&p, j.read(job.Stanza))
	var knobs []*jobfile.Block
	blocks := map[string]*jobfile.Block{}
	for _, b := range job.Stanza.Blocks {
		switch {
		case b.Type == "" || !slices.Contains(Blocks(), b.Type):
			j.unknownBlock(b, "")
			continue
		case b.Type == "knob":
			knobs = append(knobs, b)
		case blocks[b.Type] != nil:
			j.fail(b.Pos, b.Type+" is given twice", fmt.Sprintf("the first is at %s", blocks[b.Type].Pos))
		default:
			blocks[b.Type] = b
		}
		if b.Type != "knob" && b.Label != "" {
			j.fail(b.LabelPos, fmt.Sprintf("the name %q of the %s block", b.Label, b.Type), "want no name: only knobs have one")
		}
		for _, inner := range b.Blocks {
			j.unknownBlock(inner, b.Type)
		}
	}
	p.Knobs = j.knobs(knobs)
	groups, known := j.progress(&p, blocks["progress"])
	j.quality(&p, blocks["quality"], groups, known)
	j.profile(&p, blocks["profile"])
	j.checkpoint(&p, blocks["checkpoint"])
	j.budget(&p, blocks["budget"])
	if err := j.errs.Err(); err != nil {
		return tuning.Policy{}, err
	}
	return p, nil
}

// Places says where the stanza's keys and blocks stand, file:line by names such as mode,
// knob cores and budget returns.
func Places(job *jobfile.Job) map[string]string {
	out := map[string]string{}
	if job == nil || job.Stanza == nil {
		return out
	}
	note := func(name string, at jobfile.Pos) { out[name] = fmt.Sprintf("%s:%d", at.Filename, at.Line) }
	for _, b := range append([]*jobfile.Block{job.Stanza}, job.Stanza.Blocks...) {
		path := strings.TrimSpace(b.Type + " " + b.Label)
		if path != "" {
			note(path, b.Pos)
			path += " "
		}
		for _, a := range b.Attrs {
			note(path+a.Name, a.Pos)
		}
	}
	return out
}

func (j *judge) top(p *tuning.Policy, f fields) {
	if d, ok := f.get("mode"); ok {
		p.Mode = tuning.Mode(d.text)
	}
	if d, ok := f.get("objective"); ok {
		p.Objective = tuning.Objective(d.text)
	}
	if d, ok := f.get("weight"); ok {
		p.Weight = positiveZero(d.number)
		if p.Objective != tuning.Blend && !f.bad["objective"] {
			j.fail(d.key, "weight with the objective "+string(p.Objective), "want it only with the objective blend")
		}
	}
	if p.Objective != tuning.Time {
		p.MaxSlowdown = tuning.DefaultMaxSlowdown
	}
	if d, ok := f.get("max_slowdown"); ok {
		p.MaxSlowdown = d.number // of none 0, which is no bound
	}
}

// positiveZero turns -0 into 0, which prints and compares alike everywhere.
func positiveZero(f float64) float64 {
	if f == 0 {
		return 0
	}
	return f
}

// progress returns the named groups of the pattern; known is false where faults
// keep them in the dark.
func (j *judge) progress(p *tuning.Policy, b *jobfile.Block) (groups []string, known bool) {
	if b == nil {
		return nil, true
	}
	f := j.read(b)
	pattern, hasPattern := f.get("pattern")
	report, _ := f.get("report")
	file, hasFile := f.get("file")
	total, _ := f.get("total")
	p.Progress = tuning.Progress{Pattern: pattern.text, File: file.text, Report: report.flag, Total: int(total.number)}
	switch {
	case hasPattern && report.flag:
		j.fail(report.key, "report beside pattern", "want one of them")
	case !f.given("pattern") && !report.flag && !f.bad["report"] && !f.strange:
		j.fail(b.Pos, "progress without a source", "want pattern, or report = true")
	case hasFile && report.flag:
		j.fail(file.key, "file beside report", "want file only with pattern")
	}
	if !hasPattern {
		return nil, !f.bad["pattern"] && !f.strange
	}
	allowed := []string{"epoch", "total", "loss", "quality"}
	groups = slices.DeleteFunc(pattern.pattern.SubexpNames(), func(s string) bool { return s == "" })
	for _, g := range groups {
		if !slices.Contains(allowed, g) {
			j.fail(pattern.at, fmt.Sprintf("the pattern has the unknown group %q", g), "want "+oneOf(allowed)+didYouMean(g, allowed))
		}
	}
	if !slices.Contains(groups, "epoch") {
		j.fail(pattern.at, "the pattern has no group epoch", `want one such as (?P<epoch>\d+)`)
	}
	return groups, true
}

func (j *judge) quality(p *tuning.Policy, b *jobfile.Block, groups []string, known bool) {
	if b == nil {
		return
	}
	f := j.read(b)
	p.Quality = &tuning.Quality{MaxLoss: tuning.DefaultMaxLoss}
	if d, ok := f.get("direction"); ok {
		p.Quality.Direction = d.text
	} else if !f.given("direction") && !f.strange {
		j.fail(b.Pos, "quality without a direction", "want direction max or min")
	}
	if d, ok := f.get("max_loss"); ok {
		p.Quality.MaxLoss = positiveZero(d.number)
	}
	if d, ok := f.get("target"); ok {
		p.Quality.Target = new(positiveZero(d.number))
	}
	if known && !slices.Contains(groups, "quality") && !p.Progress.Report {
		j.fail(b.Pos, "quality that the job does not report", "want the group quality in the pattern of progress, or report = true there")
	}
}

func (j *judge) profile(p *tuning.Policy, b *jobfile.Block) {
	if b == nil {
		return
	}
	f := j.read(b)
	if d, ok := f.get("warmup_epochs"); ok {
		p.Profile.WarmupEpochs = int(d.number)
	}
	if d, ok := f.get("epochs"); ok {
		p.Profile.Epochs = int(d.number)
	}
}

func (j *judge) checkpoint(p *tuning.Policy, b *jobfile.Block) {
	if b == nil {
		return
	}
	f := j.read(b)
	c := &tuning.Checkpoint{Signal: tuning.DefaultSignal, Grace: tuning.DefaultGrace}
	if d, ok := f.get("signal"); ok {
		c.Signal = j.signal(d)
	}
	if d, ok := f.get("grace"); ok {
		c.Grace = d.duration
		if d.duration > time.Hour {
			k, _ := keyOf("checkpoint", "grace")
			j.fail(d.at, "grace is "+duration(d.duration), "want "+k.allowed())
		}
	}
	exit, _ := f.get("exit")
	done, _ := f.get("done")
	c.Exit, c.Done = int(exit.number), done.text
	if !f.given("exit") && !f.given("done") && !f.strange {
		j.fail(b.Pos, "checkpoint without a sign that the job has saved", "want exit or done")
	}
	p.Checkpoint = c
}

// signals lists the signals that a job can catch and that mean nothing else.
func signals() []string {
	return []string{
		"SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGCONT",
		"SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH", "SIGIO", "SIGPWR", "SIGXCPU", "SIGXFSZ",
	}
}

func (j *judge) signal(d datum) string {
	name := "SIG" + strings.TrimPrefix(d.text, "SIG")
	switch {
	case slices.Contains(signals(), name):
	case name == "SIGKILL" || name == "SIGSTOP":
		j.fail(d.at, fmt.Sprintf("signal is %q", d.text), "want one that a job can catch, such as SIGUSR1 or SIGTERM")
	default:
		j.fail(d.at, fmt.Sprintf("signal is %q", d.text), "want a known one such as SIGUSR1, SIGUSR2 or SIGTERM"+didYouMean(name, signals()))
	}
	return name
}

func (j *judge) budget(p *tuning.Policy, b *jobfile.Block) {
	if b == nil {
		return
	}
	f := j.read(b)
	energy, _ := f.get("energy")
	limit, _ := f.get("time")
	p.Budget.Energy, p.Budget.Time = energy.energy, limit.duration
	if d, ok := f.get("restarts"); ok {
		p.Budget.Restarts = int(d.number)
	}
	if d, ok := f.get("probes"); ok {
		p.Budget.Probes = int(d.number)
	}
	if d, ok := f.get("returns"); ok {
		p.Budget.Returns = int(d.number)
	}
}
