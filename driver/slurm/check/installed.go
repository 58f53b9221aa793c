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
	j.say("slurm.job_submit_plugins", pick(is{on, "ok"}, is{j.Mode == Site && !j.Config.Scripts, "missing.site"}, is{true, "missing"}),
		"with", j.with("JobSubmitPlugins", "lua"))
	s := ReadSubmit(j.Submit.Text)
	j.say("plugin.job_submit", pick(
		is{j.Submit.Seen == Absent && !j.Here.Ctld, "unknown.elsewhere"},
		is{j.Submit.Seen == Absent && on, "missing.loaded"},
		is{j.Submit.Seen == Absent, "missing"},
		is{j.Submit.Seen != Present, "unknown.closed"},
		is{!s.Loads && !s.Calls, "missing.own"},
		is{!s.Loads || !s.Calls, "wrong.half"},
		is{s.Fault == "", "ok"},
		is{s.Fault == "reject" || s.Fault == "warn", "ok." + s.Fault},
		is{true, "wrong.fault"},
	), "fault", s.Fault)
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
		m := have[name]
		which := pick(
			is{m.Seen == Closed || m.Seen == NotLooked, "unknown"},
			is{m.Seen == Absent, "missing"},
			is{m.Text != j.Shipped.Modules[name], "wrong"},
			is{m.Mode&0o004 == 0 || !m.Open, "wrong.closed"},
		)
		names[which] = append(names[which], name)
	}
	some := func(which string) is { return is{len(names[which]) > 0, which} }
	which := pick(some("missing"), some("wrong"), some("wrong.closed"), some("unknown"))
	install := "install -D -m 644 -t " + folder + " " + packageFolder + "/pitchpipe*.lua"
	if folder == packageFolder {
		install = "install the package pitchpipe on " + j.vars["ctld"] + " in this version"
	}
	j.say("plugin.modules", which, "folder", folder, "names", strings.Join(names[which], ", "), "count", strconv.Itoa(len(j.Shipped.Modules)), "install", install)
}

// prolog judges the TaskProlog: its script, who may change it, and who may run it.
func (j *judge) prolog() {
	p := j.Prolog
	if j.say("slurm.task_prolog", when(j.Slurm["TaskProlog"] == "", "missing"), "lines", strings.Join(j.prologLines(), ", ")) != OK {
		return
	}
	j.say("prolog.script", pick(
		is{p.Seen == Absent && len(j.Here.Nodes) > 0, "missing.absent"},
		is{p.Seen != Present, "unknown"},
		is{ours(p.Text) && withoutConf(p.Text) != withoutConf(j.Shipped.Prolog), "wrong"},
		is{ours(p.Text), "ok"},
		is{callsProlog(p.Text), "ok.calls"},
		is{true, "missing.own"},
	), "unseen", j.notHere(p))
	if p.Seen != Present {
		return
	}
	admin, _, _ := strings.Cut(j.Slurm["SlurmUser"], "(")
	wrong := p.Owner != "root" && p.Owner != admin || p.Mode.Perm()&0o022 != 0 || p.Mode.Perm()&0o005 != 0o005
	j.say("prolog.permissions", pick(is{!p.Open, "wrong.closed"}, is{wrong, "wrong"}), "script", p.Path, "owner", p.Owner, "mode", mode(p))
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
	c := ReadPrologConf(j.PrologConf.Text)
	dir := c.SettingsDir(j.Mode, j.Here.Home)
	which := pick(
		is{j.PrologConf.Seen == Absent && len(j.Here.Nodes) > 0, "missing.absent"},
		is{j.PrologConf.Seen != Present, "unknown"},
		is{j.Mode == Site && (c.SiteDir == "" || c.SiteUser == "") || j.Mode == Owner && c.OwnerDir == "", "missing." + string(j.Mode)},
		is{j.Mode == Site && c.SiteUser != j.Controller, "wrong"},
		is{true, "ok." + string(j.Mode)},
	)
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
	l := j.Listener
	j.say("prolog.listener", pick(
		is{!strings.HasPrefix(c.Exporter, "/") || !strings.HasPrefix(c.Listener, "/"), "missing"},
		is{l.Seen == Absent, "missing.absent"},
		is{l.Seen == Present && (l.Owner != "root" || l.Mode.Perm()&0o022 != 0 || l.Mode.Perm()&0o001 == 0 || !l.Open), "wrong"},
	), "exporter", c.Exporter, "listener", c.Listener, "owner", l.Owner, "mode", mode(l), "lines", strings.Join(j.listenerLines(), "\n"))
}

// folder judges the folder of the settings.
func (j *judge) folder(dir string) {
	d := j.Folder
	local := []string{"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"}
	j.say("settings.folder", pick(
		is{d.Path != dir || d.Seen == NotLooked || d.Seen == Closed, "unknown"},
		is{d.Seen == Absent && j.Mode == Owner, "ok.later"},
		is{d.Seen == Absent, "missing"},
		is{!d.Mode.IsDir(), "wrong.file"},
		is{d.Owner != j.Controller && d.Owner != "root" || d.Mode.Perm()&0o022 != 0 || d.Mode.Perm()&0o001 == 0 && j.Mode == Site, "wrong.owner"},
		is{!d.Open && j.Mode == Site, "wrong.closed"},
		is{j.machines() > 1 && slices.Contains(local, d.FS), "wrong.local"},
	), "dir", dir, "owner", d.Owner, "mode", mode(d), "fs", d.FS, "machines", strconv.Itoa(j.machines()))
}
