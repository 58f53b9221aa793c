package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// recallWait is how long a tunable job waits for the tuner before its start, at most.
const recallWait = time.Second

// beginsAt is until when a job waits for the tuner, which may change it before its start at no cost; zero: it begins at once.
func (d *Daemon) beginsAt(p tuning.Policy, owner string) (at time.Time) {
	site := d.site.For("", "", "", owner)
	if _, can := d.driver.(driver.Releaser); can && p.Mode.AtMost(site.MaxMode) == tuning.Apply && !site.DryRun && len(p.Knobs) > 0 {
		at = time.Now().Add(recallWait)
	}
	return at
}

// earlier are the searches of a user's job so far.
func (d *Daemon) earlier(owner, name string) []*searcher.Searcher {
	var out []*searcher.Searcher
	for _, x := range d.searches.List(func(o string) bool { return o == owner }) {
		if x.Name == name {
			out = append(out, x.Searcher())
		}
	}
	return out
}

// newSearch begins a search.
func (r request) newSearch() (any, error) {
	s, file, policy, err := r.submission()
	if errors.Is(err, stanza.ErrNone) || err == nil && policy.Search == nil {
		return nil, fmt.Errorf("%w: %s has no search block: want one such as #TUNE search trials=%d", errInput, s.Filename, tuning.DefaultTrials)
	}
	if err != nil {
		return nil, err
	}
	// A controller of everybody's jobs starts none for others. Under Nomad it can for its own user.
	if own := r.d.driver.Name() == "nomad" && r.who.Privileged(); r.d.driver.Capabilities().UsersSubmit && !own {
		return nil, fmt.Errorf("%w: this controller submits no jobs for others: run one of your own for searches (pitchpipe controller)", errInput)
	}
	plan, err := searcher.PlanOf(policy)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	plan.EnforceModel = r.siteOf(file).EnforceModel
	if err := plan.Warm(r.d.earlier(r.who.Name, file.Name)); err != nil {
		r.d.log.Warn("earlier searches teach this one nothing", "job", file.Name, "error", err)
	}
	policy.Sources = stanza.Places(file)
	id := cmp.Or(s.Request, newRequestID()[:8])
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" { // it is part of paths
		return nil, fmt.Errorf("%w: request: %q: want letters, digits, - and _ only", errInput, id)
	}
	obs, err := r.d.store.All()
	if err != nil {
		return nil, err
	}
	restart, _ := knowledge.RestartCost(obs, r.kind(file))
	x, err := r.d.searches.Begin(r.Context(), trials.Search{
		ID: id, Name: file.Name, Owner: r.who.Name, UID: r.who.UID, Created: time.Now(), Policy: policy, Plan: plan,
		Job: trials.JobFile{Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: s.Env, Namespace: s.Namespace},
	}, restart)
	if err == nil && x.Owner != r.who.Name {
		return nil, errDenied
	}
	return shown(x), err
}

// shown is a search as it is answered: what may be tried is of no use to anybody else.
func shown(x trials.State) trials.State {
	x.Plan.Settings, x.Plan.History = nil, nil
	return x
}

func (r request) searchList() (any, error) {
	out := r.d.searches.List(r.who.May)
	for i := range out {
		out[i] = shown(out[i])
		out[i].Job.Source = nil
	}
	return out, nil
}

// search is the search that the path names, where the caller may see it.
func (r request) search() (trials.State, error) {
	x, err := r.d.searches.Get(r.PathValue("search"))
	switch {
	case errors.Is(err, trials.ErrNotFound):
		return x, fmt.Errorf("%w: %s; pitchpipe search status lists yours", err, r.PathValue("search"))
	case err == nil && !r.who.May(x.Owner):
		return x, errDenied
	}
	return shown(x), err
}

func (r request) oneSearch() (any, error) { return r.search() }

func (r request) stopSearch() (any, error) {
	x, err := r.search()
	if err != nil || x.Over {
		return nil, err
	}
	return nil, errors.Join(r.audit("stop search", x.ID, tuning.ReasonCancelled), r.d.searches.Stop(r.Context(), x.ID, r.who.Name))
}

func (r request) resumeSearch() (any, error) {
	x, err := r.search()
	if err != nil {
		return nil, err
	}
	n := 0
	if text := r.URL.Query().Get("trials"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < len(x.Trials) {
			return nil, fmt.Errorf("%w: trials: want a whole number of at least %d", errInput, len(x.Trials))
		}
	}
	return nil, errors.Join(r.audit("resume search", x.ID, tuning.ReasonNone), r.d.searches.Resume(r.Context(), x.ID, n))
}

// searchEvents are the begin and the end of a search in the history.
func searchEvents(x trials.State) []api.Event {
	event := func(at time.Time, text string) api.Event {
		return api.Event{Lineage: trials.Lineage{Search: x.ID}, At: at, Name: x.Name, Text: text}
	}
	out := []api.Event{event(x.Created, fmt.Sprintf("A search began: %d trials by %s, %d at one time.", x.Plan.Trials, x.Plan.Method, x.Plan.Parallel))}
	if !x.Over {
		return out
	}
	text := fmt.Sprintf("It ended after %d trials", len(x.Trials))
	if x.Closing != "" {
		text += ", since " + x.Closing
	}
	s := x.Searcher()
	if r := s.Ranking(); len(r) > 0 {
		text += fmt.Sprintf("; the best is %.4g in trial %d", s.Best(r[0]).Value, r[0].Number)
	}
	return append(out, event(x.Ended, text+"."))
}

// kind is that of the caller's jobs of a file.
func (r request) kind(file *jobfile.Job) tuning.JobKind {
	out := tuning.JobKind{Owner: r.who.Name, Name: file.Name, Fingerprint: file.Command}
	if r.d.driver.Name() == "nomad" { // whose owners are namespaces
		out.Owner = cmp.Or(file.Partition, "default")
	}
	return out
}

func (r request) siteOf(file *jobfile.Job) tuning.Site {
	return r.d.siteFor(driver.Job{Partition: file.Partition, Account: file.Account, Owner: r.kind(file).Owner})
}

// epoch is what an epoch of jobs of the draft's kind took, under their owner's settings of all
// hyperparameters, else in earlier searches of that name; nil: none has run.
func (r request) epoch(d api.Draft) (*preview.Estimate, error) {
	file, err := r.d.parse(d.Filename, d.Source, d.Variables)
	if err != nil {
		return nil, err
	}
	obs, err := r.d.observations(r.who.May)
	if err != nil {
		return nil, err
	}
	kind := r.kind(file)
	measured := tuning.Each(knowledge.References(obs, kind), func(t tuning.Trial) searcher.Report {
		return searcher.Report{Epoch: 1, Seconds: t.Seconds, Joules: (*float64)(t.Joules), Source: t.Source, Cores: t.Settings[tuning.Cores].Float()}
	})
	if len(measured) == 0 {
		for _, s := range r.d.earlier(r.who.Name, file.Name) {
			measured = append(measured, tuning.Each(s.Trials, func(t searcher.Trial) searcher.Report { return t.Last() })...)
		}
	}
	var seconds, joules, cores []float64
	computed := false
	for _, m := range measured {
		if m.Epoch == 0 {
			continue
		}
		seconds, cores = append(seconds, m.Seconds/float64(m.Epoch)), append(cores, m.Cores)
		if m.Joules != nil {
			joules, computed = append(joules, *m.Joules/float64(m.Epoch)), computed || tuning.IsModelled(m.Source)
		}
	}
	if len(seconds) == 0 {
		return nil, nil //nolint:nilnil // no job of the kind has run
	}
	start, _ := knowledge.RestartCost(obs, kind)
	return &preview.Estimate{
		Seconds: preview.Spread(seconds), Joules: preview.Spread(joules), Cores: cores[len(cores)-1], Start: start.Seconds(),
		Unenforced: computed && !r.siteOf(file).EnforceModel,
	}, nil
}
