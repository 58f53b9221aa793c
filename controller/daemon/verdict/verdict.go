package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// Ground is a scheduler, a site's policy and a user that a job file is checked against.
type Ground struct {
	Driver string
	Can    driver.Capabilities
	Given  map[string]string // where the controller's settings were given, see config.Config
	Site   *config.SitePolicy
	Policy string // says which policy Site is
	User   string
	Spaces []string                // namespaces that the controller watches; nil: unknown
	Fits   func(driver.Room) error // why its nodes could never run a job of this size; nil: unknown

	Partition, Account, QOS string        // of the job, whatever its file says; empty: the file says it
	Default                 func() string // partition of a job that names none; nil, or empty: unknown
}

// PolicyOf says which policy the file at path is; empty: none.
func PolicyOf(path string) string {
	if path == "" {
		return "site policy: none, so the built-in one counts"
	}
	return "site policy: " + path
}

// Of judges a job file as read by parse. A file without a stanza is valid.
func Of(parse detect.Parser, filename string, source []byte, variables map[string]string, grounds ...Ground) api.Verdict {
	v := api.Verdict{File: filename}
	file, err := parse(filename, source, variables)
	var policy tuning.Policy
	if err == nil {
		policy, err = stanza.Policy(file)
		v.Warnings = file.Warnings
		room := driver.Room{Cores: max(file.Cores, 1), Memory: file.MemoryBytes}
		for _, g := range grounds {
			if g.Fits != nil && (err == nil || errors.Is(err, stanza.ErrNone)) {
				if large := g.Fits(room); large != nil {
					err = fmt.Errorf("%s: %w", filename, large)
				}
			}
		}
	}
	switch {
	case errors.Is(err, stanza.ErrNone):
		v.Valid, v.Note = true, "no tuning stanza, so this job is left alone"
	case errors.As(err, &v.Errors):
	case err != nil:
		v.Errors = jobfile.Errors{{Pos: jobfile.Pos{Filename: filename}, Found: err.Error()}}
	default:
		v.Valid, v.Policy, v.Note, v.Text = true, &policy, "valid", stanza.Print(policy)
		for _, g := range grounds {
			p := g.prospects(file, policy.Trial())
			if policy.Search != nil {
				p.Notes = append(p.Notes, fmt.Sprintf("this holds for each trial; pitchpipe search run %s starts the search for %s", filename, strings.Join(tuning.Each(policy.Searched(), func(k tuning.Knob) string { return k.Name }), ", ")),
					"submitted directly, it runs as one job")
			}
			v.Prospects = append(v.Prospects, p)
		}
		if len(v.Prospects) > 0 && !slices.ContainsFunc(v.Prospects, func(p tuning.Prospects) bool { return !alike(v.Prospects[0], p) }) {
			v.Note = v.Prospects[0].Headline
		} else if len(v.Prospects) > 0 {
			v.Note = "valid; what can act depends on the scheduler:"
		}
	}
	return v
}

func (g Ground) prospects(file *jobfile.Job, asked tuning.Policy) tuning.Prospects {
	site := g.Site.For("", "", "", g.User)
	var unknown []string
	switch {
	case g.Can.Accounts:
		partition, account, qos := cmp.Or(g.Partition, file.Partition), cmp.Or(g.Account, file.Account), cmp.Or(g.QOS, file.QOS)
		if partition == "" && g.Default != nil {
			partition = g.Default()
		}
		site, unknown = g.Site.For(partition, account, qos, g.User), g.Site.Unknown(partition, account, qos)
	case g.Driver == "nomad": // whose owners are namespaces
		site = g.Site.For("", "", "", cmp.Or(file.Partition, "default"))
	}
	asked.Sources = stanza.Places(file)
	out := site.Prospects(asked, g.reach(file), stanza.Own(file, asked))
	for _, k := range out.Knobs {
		if c := asked.Checkpoint; k.When == tuning.Now && g.Driver == "slurm" && c != nil && c.Done == "" {
			out.Notes = append(out.Notes, fmt.Sprintf("knobs act while the job runs only if RequeueExit of the cluster names %d: see pitchpipe slurm check", c.Exit))
			break
		}
	}
	if len(unknown) > 0 {
		out.Headline = fmt.Sprintf("valid; the site's policy has rules for its %s, which its scheduler chooses and is not known here; without such a rule: %s",
			strings.Join(unknown, " and "), strings.TrimPrefix(strings.TrimPrefix(out.Headline, "valid; "), "valid, but "))
		for i := range out.Knobs {
			if k := &out.Knobs[i]; k.Otherwise != "" && asked.Mode != asked.Mode.AtMost(site.MaxMode) {
				k.When = tuning.Unknown
			}
		}
	}
	if g.Policy != "" {
		out.Notes = append(out.Notes, g.Policy)
	}
	return out
}

func (g Ground) reach(file *jobfile.Job) tuning.Reach {
	r := Reach(g.Driver, g.Can)
	r.Limit = file.TimeLimit
	if r.Lacks.Name != "" {
		r.Lacks.From = cmp.Or(g.Given[r.Lacks.Name], tuning.FromDefault)
	}
	if file.NoRequeue && g.Driver != "nomad" {
		r.Stays = "its script forbids restarts (--no-requeue)"
	}
	if file.Observed != "" && g.Driver != "local" {
		r.Observed = "jobs with " + file.Observed + " are observed, not changed"
	}
	if ns := file.Partition; g.Driver == "nomad" && ns != "" && g.Spaces != nil && !slices.Contains(g.Spaces, ns) && !slices.Contains(g.Spaces, "*") {
		r.Observed = fmt.Sprintf("the controller does not watch namespace %s, which nomad.namespaces does not name", ns)
	}
	for name, at := range file.Follow {
		r.Follow = driver.Merge(r.Follow, map[string]string{name: fmt.Sprintf("line %d", at.Line)})
	}
	if file.Whole && g.Driver == "slurm" {
		r.Whole = "it has its node to itself (--exclusive), however many cores it asks for"
	}
	return r
}

// Reach is what a scheduler of this name and these capabilities can bring to a job.
func Reach(name string, can driver.Capabilities) tuning.Reach {
	r := tuning.Reach{Scheduler: name, Env: can.Env, Args: can.Args, Live: can.Live, Memory: can.MemoryReturns}
	if name == "slurm" && !can.Env {
		r.Lacks = tuning.Rule{Name: "slurm.task_prolog", Value: "false"}
	}
	return r
}

// Text is the verdict for people: the errors of an invalid file, else when each knob can act.
func Text(v api.Verdict) string {
	var b strings.Builder
	for _, f := range v.Errors {
		text := f.Error()
		if f.Line == 0 { // it names the file itself
			text = f.Found
		}
		b.WriteString(text + "\n")
	}
	if v.Valid {
		fmt.Fprintf(&b, "%s: %s\n", v.File, v.Note)
	}
	for _, w := range v.Warnings { // one may be why there are errors
		fmt.Fprintf(&b, "%s: warning: %s; %s\n", w.Pos, w.Found, w.Want)
	}
	if !v.Valid {
		return b.String()
	}
	for i, p := range v.Prospects {
		if i > 0 && alike(v.Prospects[0], p) {
			continue
		}
		indent := "  "
		if v.Note != p.Headline {
			fmt.Fprintf(&b, "  %s: %s\n", p.Scheduler, p.Headline)
			indent = "    "
		}
		var rows [][]string
		for _, k := range p.Knobs {
			name, at := k.Knob, when(k.When)
			for _, line := range lines(k) {
				rows = append(rows, []string{indent + name, at, line})
				name, at = "", ""
			}
		}
		b.WriteString(report.Columns(rows...))
		for _, n := range p.Notes {
			fmt.Fprintf(&b, "%s%s\n", indent, n)
		}
	}
	return b.String()
}

// alike reports whether all is the same under two schedulers.
func alike(a, b tuning.Prospects) bool {
	b.Scheduler = a.Scheduler
	return reflect.DeepEqual(a, b)
}

func when(w tuning.When) string { return strings.ReplaceAll(string(w), "-", " ") }

// lines are what a knob may get, and a line for each thing that limits it.
func lines(k tuning.Prospect) []string {
	var out []string
	k.Values = strings.ReplaceAll(k.Values, ",", ", ")
	switch {
	case k.Values == "":
	case k.Own == "" || k.Own == k.Values || k.Knob == tuning.Memory:
		out = append(out, k.Values)
	default:
		out = append(out, k.Values+" instead of "+k.Own)
	}
	out = append(out, tuning.Each(k.Why, tuning.Cause.String)...)
	if k.Otherwise != "" {
		out[0] = "otherwise " + when(k.Otherwise) + ": " + out[0]
	}
	return out
}
