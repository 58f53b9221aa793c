package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// PluginFolder is where the shipped job_submit.lua looks for the module.
const PluginFolder = "/etc/slurm/pitchpipe"

// packageFolder is where the package pitchpipe puts it.
const (
	packageFolder = "/usr/share/pitchpipe/slurm"
	pluginWhy     = "With it a faulty #TUNE line is refused at sbatch with its line and column, and the controller knows the jobs that have a stanza without reading the scripts of others."
)

// submission judges the submission plugin.
func (j *judge) submission() {
	needed := j.pluginNeeded()
	load := Finding{
		Name: "slurm.job_submit_plugins", Where: j.conf(), Looked: j.said("JobSubmitPlugins"), Verdict: OK, Needed: needed, Why: pluginWhy,
		Change: []string{j.with("JobSubmitPlugins", "lua")},
		Then:   fmt.Sprintf("%s; but only once %s exists on %s (see below): without it slurmctld does not start", restartCtld, j.beside("job_submit.lua"), j.ctld()),
	}
	on := j.has("JobSubmitPlugins", "lua") || j.has("JobSubmitPlugins", "job_submit/lua")
	if !on {
		load.Verdict = Missing
		if j.Mode == Site && !j.Config.Scripts {
			load.Change = append(load.Change, "or do without: broker.accept: script in "+brokerConf+" (and --broker.accept=script for this check)")
		}
	}
	j.add(load)
	f := Finding{Name: "plugin.job_submit", Where: j.Submit.Path, Verdict: OK, Needed: needed, Why: pluginWhy}
	if f.Where == "" {
		f.Where = j.beside("job_submit.lua")
	}
	switch j.Submit.Seen {
	case Absent:
		f.Verdict, f.Looked = Missing, "there is no such file on this machine"
		f.Change = []string{
			fmt.Sprintf("install -D -m 644 -t %s %s/pitchpipe*.lua", PluginFolder, packageFolder),
			fmt.Sprintf("install -m 644 %s/job_submit.lua %s", packageFolder, f.Where),
		}
		if !j.Here.Ctld {
			f.Verdict, f.Looked = Unknown, "the file is read on "+j.ctld()+", which is not this machine"
			f.Change = []string{"run `pitchpipe slurm check` there, or `pitchpipe slurm check --try` here"}
		} else if on {
			f.Needed = both()
			f.Why = "slurm.conf says JobSubmitPlugins=lua, and without this file slurmctld does not start again."
		}
	case Closed, NotLooked:
		f.Verdict, f.Looked, f.Change = Unknown, "the file cannot be seen by "+j.Caller, []string{"run this as root on " + j.ctld()}
	case Present:
		j.calls(&f)
	}
	j.add(f)
	if j.Submit.Seen == Present {
		j.modules(needed)
	}
}

// pluginNeeded tells who cannot do without: a site whose broker believes only what the
// plugin recorded, and whoever told the controller that there is one.
func (j *judge) pluginNeeded() []Mode {
	switch {
	case j.Config.Plugin:
		return both()
	case j.Config.Scripts:
		return advice()
	}
	return []Mode{Site}
}

// calls judges what a job_submit.lua that is there does with the module.
func (j *judge) calls(f *Finding) {
	s := ReadSubmit(j.Submit.Text)
	take := []string{
		"take over both parts between `>>> pitchpipe` and `<<< pitchpipe` of " + packageFolder + "/job_submit.lua:",
		"the first at the top of the file, the second at the start of slurm_job_submit",
	}
	f.Then = "nothing: slurmctld reads the file again at the next submission"
	switch {
	case !s.Loads && !s.Calls:
		f.Verdict, f.Looked, f.Change = Missing, "it is the site's own and does not call pitchpipe", take
	case !s.Loads || !s.Calls:
		f.Verdict, f.Looked, f.Change = Wrong, "it has one of the two parts of pitchpipe only", take
	case s.Fault != "" && s.Fault != "reject" && s.Fault != "warn":
		f.Verdict, f.Looked = Wrong, fmt.Sprintf("pitchpipe_on_fault is %q, which is neither reject nor warn, and counts as warn", s.Fault)
		f.Change = []string{`local pitchpipe_on_fault = "reject"`}
	case s.Fault == "warn":
		f.Looked = "it calls pitchpipe, and a job with a faulty stanza is submitted untuned, with a warning"
	case s.Fault == "reject":
		f.Looked = "it calls pitchpipe, and a job with a faulty stanza is refused"
	default:
		f.Looked = "it calls pitchpipe"
	}
}

// modules compares the files of the plugin with those of this version.
func (j *judge) modules(needed []Mode) {
	folder := ReadSubmit(j.Submit.Text).Folder
	if folder == "" {
		folder = PluginFolder
	}
	f := Finding{
		Name: "plugin.modules", Where: folder, Verdict: OK, Needed: needed,
		Looked: fmt.Sprintf("the %d files of the plugin are those of this version", len(j.Shipped.Modules)),
		Why:    "A file that is missing, or of another version, is logged by slurmctld, and every job is then accepted untuned, or judged by other rules than the controller's.",
		Change: []string{fmt.Sprintf("install -D -m 644 -t %s %s/pitchpipe*.lua", folder, packageFolder)},
		Then:   "touch " + j.Submit.Path,
	}
	if folder == packageFolder {
		f.Change = []string{"install the package pitchpipe on " + j.ctld() + " in this version"}
	}
	var missing, other, closed, unread []string
	have := map[string]File{}
	for _, m := range j.Modules {
		have[path.Base(m.Path)] = m
	}
	for _, name := range slices.Sorted(maps.Keys(j.Shipped.Modules)) {
		switch m := have[name]; {
		case m.Seen == Closed || m.Seen == NotLooked:
			unread = append(unread, name)
		case m.Seen == Absent:
			missing = append(missing, name)
		case m.Text != j.Shipped.Modules[name]:
			other = append(other, name)
		case m.Mode&0o004 == 0 || !m.Open:
			closed = append(closed, name)
		}
	}
	switch {
	case len(missing) > 0:
		f.Verdict, f.Looked = Missing, "not there: "+strings.Join(missing, ", ")
	case len(other) > 0:
		f.Verdict, f.Looked = Wrong, "not those of this version: "+strings.Join(other, ", ")
	case len(closed) > 0:
		f.Verdict, f.Looked = Wrong, "the user of slurmctld may not be able to read "+strings.Join(closed, ", ")
		f.Change = append(f.Change, "chmod a+x "+folder+" and the folders above it")
	case len(unread) > 0:
		f.Verdict, f.Looked, f.Change, f.Then = Unknown, "cannot be seen by "+j.Caller+": "+strings.Join(unread, ", "), []string{"run this as root on " + j.ctld()}, ""
	}
	j.add(f)
}
