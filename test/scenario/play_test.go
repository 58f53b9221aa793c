package scenario

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/trials"
	"pitchpipe/driver"
)

// perform carries a script out.
func (p *play) perform(script []command) {
	p.Helper()
	for _, c := range script {
		if c.at >= 0 {
			if late := time.Since(p.began) - c.at; late > 0 {
				p.Fatalf("line %d: it is %s later than that", c.line, late)
			}
			p.sleep(time.Until(p.began.Add(c.at)))
		}
		p.sleep(c.after)
		p.do(c)
	}
	for _, name := range p.names {
		p.wait(name, "")
	}
}

func (p *play) do(c command) {
	p.Helper()
	ok := http.StatusNoContent
	code := ok
	switch c.verb {
	case "submit":
		s, err := parseSubmission(c.words)
		if err != nil {
			p.Fatal(err)
		}
		p.submit(s)
	case "search":
		p.search(c.words[0], c.words[2])
	case "wait":
		phase := ""
		if len(c.words) == 3 {
			phase = c.words[2]
		}
		p.wait(c.words[0], phase)
	case "off", "stop":
		code = p.ask(p.users[c.words[0]], http.MethodPost, "/v1/"+c.verb+"/"+string(p.id(c.words[0])), nil, nil)
	case "pause":
		scope, name := p.scope(c.words)
		code = p.ask("root", http.MethodPost, api.PathPauses, api.Pause{Scope: scope, Name: name, Why: "the story"}, nil)
	case "resume":
		scope, name := p.scope(c.words)
		code = p.ask("root", http.MethodDelete, api.PathPauses+"?scope="+scope+"&name="+name, nil, nil)
	case "restart":
		p.close()
		p.start()
	case "crash":
		x := &crash{at: c.words[2]}
		if len(c.words) == 4 {
			x.step = driver.StepKind(c.words[3])
		}
		p.crashAt(x)
	case "fault":
		f, err := parseFault(c.words)
		if err != nil {
			p.Fatal(err)
		}
		p.mu.Lock()
		p.faults = append(p.faults, struck{f, time.Now().Add(f.lasts)})
		p.mu.Unlock()
	case "break":
		p.mu.Lock()
		p.broken[p.id(c.words[0])] = true
		p.mu.Unlock()
	}
	if code != ok {
		p.Fatalf("line %d: %s %s: status %d", c.line, c.verb, strings.Join(c.words, " "), code)
	}
}

// crashAt arms the crash, waits for it, and starts the controller again.
func (p *play) crashAt(x *crash) {
	p.Helper()
	p.mu.Lock()
	p.crash = x
	p.mu.Unlock()
	select {
	case <-p.gone:
	case <-time.After(patience):
		p.Fatalf("the controller never made %q %q durable", x.at, x.step)
	}
	if err := p.daemon.Close(); err != nil {
		p.Fatalf("close the controller: %v", err)
	}
	p.start()
}

func (p *play) scope(words []string) (scope, name string) {
	if len(words) == 1 {
		return words[0], ""
	}
	if words[0] == daemon.ScopeJob {
		return words[0], string(p.id(words[1]))
	}
	return words[0], words[1]
}

func (p *play) submit(s submission) {
	p.Helper()
	source, ok := p.files[s.file]
	if !ok {
		p.Fatalf("the story has no file %s", s.file)
	}
	p.users[s.job] = s.user
	if s.directly {
		job, err := p.cluster.Start(p.Context(), driver.RequestID(s.job), driver.Spec{
			Owner: s.user, Filename: s.file, Source: source, Env: s.env, Progress: driver.Progress{Pattern: defaultPattern},
		})
		if err != nil {
			p.Fatalf("submit %s: %v", s.job, err)
		}
		p.introduce(s.job, job.ID)
		return
	}
	var job api.Job
	code := p.ask(s.user, http.MethodPost, api.PathJobs, api.Submission{
		Request: s.job, Filename: s.file, Source: source, Env: s.env, Off: s.off,
	}, &job)
	switch {
	case s.refused && code == http.StatusBadRequest:
	case code != http.StatusOK || s.refused:
		p.Fatalf("submit %s: status %d", s.job, code)
	default:
		p.introduce(s.job, driver.JobID(job.ID))
	}
}

// search waits for the end of a search.
func (p *play) search(file, name string) {
	p.Helper()
	const owner = "alice"
	path, until := api.PathSearches+"/"+name, time.Now().Add(patience)
	code := p.ask(owner, http.MethodPost, api.PathSearches, api.Submission{Request: name, Filename: file, Source: p.files[file], Dir: p.config.State}, nil)
	var x trials.State
	for ; code == http.StatusOK && !x.Settled() && time.Now().Before(until); p.sleep(tick) {
		x = trials.State{}
		code = p.ask(owner, http.MethodGet, path, nil, &x)
	}
	if code != http.StatusOK || !x.Settled() {
		p.Fatalf("search %s: status %d, %d trials", name, code, len(x.Trials))
	}
	for _, t := range x.Trials {
		for i, id := range t.Jobs {
			job := fmt.Sprintf("%s-%d.%d", name, t.Number, i+1)
			p.users[job] = owner
			p.introduce(job, id)
		}
	}
}

// defaultPattern is what a site's prolog listens for where it was not told.
const defaultPattern = `^epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`

func (p *play) introduce(name string, id driver.JobID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, name)
	p.ids[name] = id
}

// wait sleeps until the controller is through with the job, or has it in a phase.
func (p *play) wait(name, phase string) {
	p.Helper()
	id := p.id(name)
	look := 2 * time.Second
	if phase != "" {
		look = 100 * time.Millisecond // phases pass
	}
	told := -1 // as much was durable when the controller was asked for a story that goes on
	for until := time.Now().Add(patience); time.Now().Before(until); p.sleep(look) {
		if p.broken[id] {
			job, err := p.cluster.Get(p.Context(), id)
			if err == nil && job.State.Ended() {
				return
			}
			continue
		}
		saves := p.durable()
		if saves == told {
			continue // it would say the same again
		}
		var job api.Job
		code := p.ask("root", http.MethodGet, "/v1/jobs/"+string(id), nil, &job)
		if code == http.StatusOK && (phase == "" && job.Ended || phase != "" && job.Phase == phase) {
			return
		}
		if code == http.StatusOK && phase != "" && job.Ended {
			p.Fatalf("job %s ended without ever being %s", name, phase)
		}
		if code == http.StatusOK && !reconcile.Phase(job.Phase).Over() {
			told = saves
		}
	}
	p.Fatalf("job %s is not through after %s", name, patience)
}

func (p *play) sleep(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
