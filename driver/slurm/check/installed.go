package check

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// submission judges the submission plugin.
func (j *judge) submission() {
	on := j.has("JobSubmitPlugins", "lua", "job_submit/lua")
	which := when(!on, "missing")
	if !on && j.Mode == Site && !j.Config.Scripts {
		which = "missing.site"
	}
	j.say("slurm.job_submit_plugins", which, "with", j.with("JobSubmitPlugins", "lua"))
	s := ReadSubmit(j.Submit.Text)
	switch {
	case j.Submit.Seen == Absent && !j.Here.Ctld:
		which = "unknown.elsewhere"
	case j.Submit.Seen == Absent && on:
		which = "missing.loaded"
	case j.Submit.Seen == Absent:
		which = "missing"
	case j.Submit.Seen != Present:
		which = "unknown.closed"
	case !s.Loads && !s.Calls:
		which = "missing.own"
	case !s.Loads || !s.Calls:
		which = "wrong.half"
	case s.Fault == "":
		which = "ok"
	case s.Fault == "reject" || s.Fault == "warn":
		which = "ok." + s.Fault
	default:
		which = "wrong.fault"
	}
	j.say("plugin.job_submit", which, "fault", s.Fault)
	if j.Submit.Seen == Present {
		j.modules(cmp.Or(s.Folder, PluginFolder))
	}
}

// modules compares the files of the plugin with those of this version.
func (j *judge) modules(folder string) {
	have, names := map[string]File{}, map[string][]string{}
	for _, m := range j.Modules {
		have[path.Base(m.Path)] = m
	}
	for _, name := range slices.Sorted(maps.Keys(j.Shipped.Modules)) {
		which := ""
		switch m := have[name]; {
		case m.Seen == Closed || m.Seen == NotLooked:
			which = "unknown"
		case m.Seen == Absent:
			which = "missing"
		case m.Text != j.Shipped.Modules[name]:
			which = "wrong"
		case m.Mode&0o004 == 0 || !m.Open:
			which = "wrong.closed"
		}
		names[which] = append(names[which], name)
	}
	which := "ok"
	for _, worst := range []string{"unknown", "wrong.closed", "wrong", "missing"} {
		if len(names[worst]) > 0 {
			which = worst
		}
	}
	install := "install -D -m 644 -t " + folder + " " + packageFolder + "/pitchpipe*.lua"
	if folder == packageFolder {
		install = "install the package pitchpipe on " + j.vars["ctld"] + " in this version"
	}
	j.say("plugin.modules", which, "folder", folder, "names", strings.Join(names[which], ", "), "count", strconv.Itoa(len(j.Shipped.Modules)), "install", install)
}

// prolog judges the TaskProlog: its script, who may change it, and who may run it.
func (j *judge) prolog() {
	p, which := j.Prolog, "missing.own"
	if j.say("slurm.task_prolog", when(j.Slurm["TaskProlog"] == "", "missing"), "lines", strings.Join(j.prologLines(), ", ")) != OK {
		return
	}
	switch {
	case p.Seen == Absent && len(j.Here.Nodes) > 0:
		which = "missing.absent"
	case p.Seen != Present:
		which = "unknown"
	case ours(p.Text) && withoutConf(p.Text) != withoutConf(j.Shipped.Prolog):
		which = "wrong"
	case ours(p.Text):
		which = "ok"
	case callsProlog(p.Text):
		which = "ok.calls"
	}
	j.say("prolog.script", which, "unseen", j.notHere(p))
	if p.Seen != Present {
		return
	}
	admin, _, _ := strings.Cut(j.Slurm["SlurmUser"], "(")
	which = when(p.Owner != "root" && p.Owner != admin || p.Mode.Perm()&0o022 != 0 || p.Mode.Perm()&0o005 != 0o005, "wrong")
	if !p.Open {
		which = "wrong.closed"
	}
	j.say("prolog.permissions", which, "script", p.Path, "owner", p.Owner, "mode", mode(p))
}

// notHere says why a file of the nodes is not known.
func (j *judge) notHere(f File) string {
	if f.Seen == Absent {
		return "the file is read on the nodes, and this machine is none"
	}
	return j.vars["unseen"]
}

// prologNamed reports whether the cluster names a TaskProlog that is, or may be, ours.
func (j *judge) prologNamed() bool {
	return j.Slurm["TaskProlog"] != "" && (j.Prolog.Seen != Present || ours(j.Prolog.Text) || callsProlog(j.Prolog.Text))
}

// ours reports whether a script is ours, in any version: by the line at its top.
func ours(prolog string) bool { return strings.Contains(prolog, "# The task prolog of Pitchpipe") }

// callsProlog reports whether a script starts ours: a line, comments left out, has its name.
func callsProlog(prolog string) bool {
	return slices.ContainsFunc(strings.Split(prolog, "\n"), func(line string) bool {
		line, _, _ = strings.Cut(line, "#")
		return strings.Contains(line, "pitchpipe") && strings.Contains(line, "task_prolog")
	})
}

// withoutConf leaves out the line that a site changes.
func withoutConf(text string) string {
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(text)), func(line string) bool { return strings.HasPrefix(line, "conf=") })
	return strings.Join(lines, "")
}

// settings judges task_prolog.conf, and what it names.
func (j *judge) settings() {
	if !j.prologNamed() {
		return // no script reads it
	}
	c, which := ReadPrologConf(j.PrologConf.Text), "ok."+string(j.Mode)
	dir := c.SettingsDir(j.Mode, j.Here.Home)
	switch {
	case j.PrologConf.Seen == Absent && len(j.Here.Nodes) > 0:
		which = "missing.absent"
	case j.PrologConf.Seen != Present:
		which = "unknown"
	case j.Mode == Site && (c.SiteDir == "" || c.SiteUser == ""), j.Mode == Owner && c.OwnerDir == "":
		which = "missing." + string(j.Mode)
	case j.Mode == Site && c.SiteUser != j.Controller:
		which = "wrong"
	}
	shown := dir
	if j.Mode == Owner {
		shown = c.OwnerDir
	}
	if j.say("prolog.conf", which, "unseen", j.notHere(j.PrologConf), "siteUser", c.SiteUser, "dir", shown) != OK {
		return
	}
	if j.Mode == Site { // an owner's controller starts it itself
		j.listener(c)
	}
	j.say("controller.settings", when(path.Clean(dir) != path.Clean(j.Config.Settings), "wrong"), "dir", dir)
	j.folder(dir)
}

// prologLines are those of task_prolog.conf that fit this controller.
func (j *judge) prologLines() []string {
	dir := j.Config.Settings
	if j.Mode == Owner {
		if rest, ok := strings.CutPrefix(dir, j.Here.Home+"/"); ok && j.Here.Home != "" {
			dir = rest
		}
		return []string{"owner_dir=" + dir}
	}
	if strings.HasPrefix(dir, j.Config.State+"/") && j.Config.State != "" { // only the controller enters that
		dir = settingsPlace
	}
	return append([]string{"site_dir=" + cmp.Or(ReadPrologConf(j.PrologConf.Text).SiteDir, dir), "site_user=" + j.Controller}, j.listenerLines()...)
}

func (j *judge) listenerLines() []string {
	return []string{"exporter=" + j.Config.Exporter, "listener=" + listenerPlace}
}

// listener judges what reports the progress of a site's jobs.
func (j *judge) listener(c PrologConf) {
	l, which := j.Listener, "ok"
	switch {
	case !strings.HasPrefix(c.Exporter, "/") || !strings.HasPrefix(c.Listener, "/"):
		which = "missing"
	case l.Seen == Absent:
		which = "missing.absent"
	case l.Seen == Present && (l.Owner != "root" || l.Mode.Perm()&0o022 != 0 || l.Mode.Perm()&0o001 == 0 || !l.Open):
		which = "wrong"
	}
	j.say("prolog.listener", which, "exporter", c.Exporter, "listener", c.Listener, "owner", l.Owner, "mode", mode(l), "lines", strings.Join(j.listenerLines(), "\n"))
}

// folder judges the folder of the settings.
func (j *judge) folder(dir string) {
	d, which := j.Folder, "ok"
	local := []string{"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"}
	switch {
	case d.Path != dir || d.Seen == NotLooked || d.Seen == Closed:
		which = "unknown"
	case d.Seen == Absent && j.Mode == Owner:
		which = "ok.later"
	case d.Seen == Absent:
		which = "missing"
	case !d.Mode.IsDir():
		which = "wrong.file"
	case d.Owner != j.Controller && d.Owner != "root" || d.Mode.Perm()&0o022 != 0 || d.Mode.Perm()&0o001 == 0 && j.Mode == Site:
		which = "wrong.owner"
	case !d.Open && j.Mode == Site:
		which = "wrong.closed"
	case j.machines() > 1 && slices.Contains(local, d.FS):
		which = "wrong.local"
	}
	j.say("settings.folder", which, "dir", dir, "owner", d.Owner, "mode", mode(d), "fs", d.FS, "machines", strconv.Itoa(j.machines()))
}
