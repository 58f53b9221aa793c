package stanza

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// ErrNone says that the job file has no tuning stanza.
var ErrNone = errors.New("no tuning stanza")

// subject is what the keys of a block set: a policy, and the parts of it that it may lack.
type subject struct {
	*tuning.Policy
	knob   *tuning.Knob
	guard  *tuning.Quality
	save   *tuning.Checkpoint
	search *tuning.Search
	action *tuning.Offer
}

// Policy judges the stanza of a job. The error is ErrNone without a stanza, otherwise
// jobfile.Errors with every fault in the order of the places.
func Policy(job *jobfile.Job) (tuning.Policy, error) {
	if job == nil || job.Stanza == nil {
		return tuning.Policy{}, ErrNone
	}
	j := &judge{job: job}
	p := tuning.DefaultPolicy()
	search := tuning.DefaultSearch()
	s := subject{
		Policy: &p, search: &search, guard: &tuning.Quality{MaxLoss: tuning.DefaultMaxLoss},
		save: &tuning.Checkpoint{Signal: tuning.DefaultSignal, Grace: tuning.DefaultGrace},
	}
	top := j.read(job.Stanza, s)
	j.top(&p, top)
	var knobs, actions []*jobfile.Block
	blocks := map[string]fields{}
	for _, b := range job.Stanza.Blocks {
		old, twice := blocks[b.Type]
		switch {
		case b.Type == "" || !slices.Contains(Blocks(), b.Type):
			j.unknownBlock(b, "")
			continue
		case b.Type == "knob":
			knobs = append(knobs, b)
		case b.Type == "action":
			actions = append(actions, b)
		case twice:
			j.fail(b.Pos, b.Type+" is given twice", fmt.Sprintf("the first is at %s", old.block.Pos))
		default:
			blocks[b.Type] = j.read(b, s)
		}
		if !hasNames(b.Type) && b.Label != "" {
			j.fail(b.LabelPos, fmt.Sprintf("the name %q of the %s block", b.Label, b.Type), "want no name: only knobs and actions have one")
		}
		for _, inner := range b.Blocks {
			j.unknownBlock(inner, b.Type)
		}
	}
	if blocks["search"].block != nil {
		p.Search = &search
	}
	j.knobs(&p, knobs)
	j.actions(&p, actions, blocks)
	groups, known := []string(nil), true
	if f, ok := blocks["progress"]; ok {
		groups, known = j.progress(p.Progress, f)
	}
	if f, ok := blocks["quality"]; ok {
		p.Quality = s.guard
		f.need("quality without a direction", "want direction max or min", "direction")
		if known && !slices.Contains(groups, "quality") && !p.Progress.Report {
			j.fail(f.block.Pos, "quality that the job does not report", "want the group quality in the pattern of progress, or report = true there")
		}
		switch d, ok := f.get("measures"); {
		case ok && p.Search == nil:
			j.fail(d.key, "measures without a search block", "want it only with one: a single job is compared with none")
		case ok && s.guard.Measures[0] != tuning.ByQuality:
			j.fail(d.at, "measures begins with "+s.guard.Measures[0], "want quality first")
		}
	}
	if f, ok := blocks["checkpoint"]; ok {
		p.Checkpoint = s.save
		j.checkpoint(s.save, f)
	}
	if p.Search != nil {
		if p.Search.System == tuning.Pipelined && !top.given("mode") {
			p.Mode = tuning.Apply
		} else if !top.given("mode") {
			p.Mode = tuning.Observe
		}
		j.search(&p, blocks, groups, known)
		if len(p.Knobs) == len(knobs) && len(p.Searched()) == 0 {
			j.fail(blocks["search"].block.Pos, "a search without a hyperparameter", "want a knob that changes what the job learns, or with system=searched cores, threads or one with quality=same")
		}
	}
	if err := j.errs.Err(); err != nil {
		return tuning.Policy{}, err
	}
	return p, nil
}

// Places says where the stanza's keys and blocks are, file:line by names such as mode,
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
	if d, ok := f.get("weight"); ok && p.Objective != tuning.Blend && !f.data["objective"].bad {
		j.fail(d.key, "weight with the objective "+string(p.Objective), "want it only with the objective blend")
	}
	if p.Objective != tuning.Time && !f.given("max_slowdown") {
		p.MaxSlowdown = tuning.DefaultMaxSlowdown
	}
}

// progress returns the named groups of the pattern; known is false where faults hide them.
func (j *judge) progress(p tuning.Progress, f fields) (groups []string, known bool) {
	pattern, hasPattern := f.get("pattern")
	report, _ := f.get("report")
	file, hasFile := f.get("file")
	switch {
	case hasPattern && p.Report:
		j.fail(report.key, "report with pattern", "want one of them")
	case !p.Report && !f.data["report"].bad:
		f.need("progress without a source", "want pattern, or report = true", "pattern")
	case hasFile && p.Report:
		j.fail(file.key, "file with report", "want file only with pattern")
	}
	if !hasPattern {
		return nil, !f.data["pattern"].bad && !f.strange
	}
	allowed := []string{"epoch", "total", "loss", "quality"}
	groups = slices.DeleteFunc(regexp.MustCompile(pattern.text).SubexpNames(), func(s string) bool { return s == "" })
	for _, g := range groups {
		if !slices.Contains(allowed, g) {
			j.fail(pattern.at, fmt.Sprintf("the pattern has the unknown group %q", g), "want "+oneOf(allowed)+jobfile.Suggestion(g, allowed))
		}
	}
	if !slices.Contains(groups, "epoch") {
		j.fail(pattern.at, "the pattern has no group epoch", `want one such as (?P<epoch>\d+)`)
	}
	return groups, true
}

// search judges the search block by what the stanza says about progress and quality.
func (j *judge) search(p *tuning.Policy, blocks map[string]fields, groups []string, known bool) {
	f, search := blocks["search"], p.Search
	switch {
	case blocks["progress"].block == nil:
		j.fail(f.block.Pos, "a search without progress", "want a progress block: trials are compared by what they report")
	case !known || !p.Progress.IsSet():
	case p.Quality == nil && !slices.Contains(groups, "loss"):
		j.fail(f.block.Pos, "a search of trials that report neither quality nor loss", "want a quality block, or the group loss in the pattern of progress")
	case !f.given("epochs") && p.Progress.Total == 0 && !slices.Contains(groups, "total"):
		j.fail(f.block.Pos, "a search of trials of unknown length", "want epochs here, total in the progress block, or the group total in its pattern")
	}
	if d, ok := f.get("epochs"); ok && p.Progress.Total > 0 && search.Epochs > p.Progress.Total {
		j.fail(d.at, fmt.Sprintf("epochs is %d and the total of progress is %d", search.Epochs, p.Progress.Total), "want no more epochs than the job runs")
	}
	search.Epochs = cmp.Or(search.Epochs, p.Progress.Total)
	if d, ok := f.get("min_epochs"); ok && search.Epochs > 0 && search.MinEpochs >= search.Epochs {
		j.fail(d.at, fmt.Sprintf("min_epochs is %d and a whole trial has %d epochs", search.MinEpochs, search.Epochs), "want min_epochs below that")
	}
}

func (j *judge) checkpoint(c *tuning.Checkpoint, f fields) {
	if d, ok := f.get("signal"); ok {
		c.Signal = "SIG" + strings.TrimPrefix(d.text, "SIG")
		switch {
		case slices.Contains(signals(), c.Signal):
		case c.Signal == "SIGKILL" || c.Signal == "SIGSTOP":
			j.fail(d.at, fmt.Sprintf("signal is %q", d.text), "want one that a job can catch, such as SIGUSR1 or SIGTERM")
		default:
			j.fail(d.at, fmt.Sprintf("signal is %q", d.text), "want a known one such as SIGUSR1, SIGUSR2 or SIGTERM"+jobfile.Suggestion(c.Signal, signals()))
		}
	}
	if d, ok := f.get("grace"); ok && c.Grace > time.Hour {
		k, _ := keyOf("checkpoint", "grace")
		j.fail(d.at, "grace is "+duration(c.Grace), "want "+k.allowed())
	}
	f.need("checkpoint without a sign that the job has saved", "want exit or done", "exit", "done")
}

// signals lists the signals that a job can catch and that mean nothing else.
func signals() []string {
	return []string{
		"SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGCONT",
		"SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH", "SIGIO", "SIGPWR", "SIGXCPU", "SIGXFSZ",
	}
}
