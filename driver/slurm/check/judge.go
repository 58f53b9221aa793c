package check

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver/slurm/parse"
)

// Places of what the instructions install.
const (
	PluginFolder    = "/etc/slurm/pitchpipe"            // where the shipped job_submit.lua looks for the module
	PrologConfPlace = "/etc/pitchpipe/task_prolog.conf" // where the shipped task prolog looks for its configuration

	settingsPlace = "/srv/pitchpipe/settings"
)

// judge is what the texts and conditions of findings.yaml are about: the facts, and what
// follows from them.
type judge struct {
	Facts
	Ours submitParts // what the site's job_submit.lua does of ours
	Read PrologConf  // what task_prolog.conf says
	It   any         // of rule.Each
	out  []Finding
}

// level is an account of the accounting.
type level struct {
	Whose, Account, Level, Want string
	Known                       bool
}

// each returns the list that a rule is repeated for.
func (j *judge) each(list string) (out []any) {
	account := func(whose, name, want string) []any {
		found, known := j.Accounts.Levels[name]
		return []any{level{whose, name, cmp.Or(found, "None"), want, known}}
	}
	switch list {
	case "controller":
		return account("controller's", j.Controller, "None")
	case "broker":
		return account("broker's", j.Broker.Account, "Operator")
	case "exporters":
		return j.groups()
	}
	return []any{nil}
}

// groups puts nodes together whose exporters answer alike.
func (j *judge) groups() (out []any) {
	var order []Exporter
	alike := map[Exporter][]Node{}
	for _, n := range j.Nodes {
		if n.Answer == Absent && n.Down() {
			n.Answer, n.Text = NotLooked, "Slurm says that the node is down"
		}
		e := n.Exporter
		e.Address, e.Text = strings.ReplaceAll(e.Address, n.Name, "{node}"), strings.ReplaceAll(e.Text, n.Name, "{node}")
		if alike[e] == nil && n.Address != "" {
			order = append(order, e)
		}
		alike[e] = append(alike[e], n)
	}
	for _, e := range order {
		one := alike[e][0]
		if len(alike[e]) > 1 {
			one = Node{Name: few(named(alike[e], func(n Node) (string, bool) { return n.Name, true })), Exporter: e}
		}
		out = append(out, one)
	}
	return out
}

func few(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// named are the names of those for which something holds.
func named[T any](all []T, name func(one T) (string, bool)) (names []string) {
	for _, one := range all {
		if name, holds := name(one); holds {
			names = append(names, name)
		}
	}
	return names
}

func (j *judge) Site() bool { return j.Mode == Site }

// Fine reports whether a finding before this one is ok.
func (j *judge) Fine(name string) bool {
	return slices.ContainsFunc(j.out, func(f Finding) bool { return f.Name == name && f.Verdict == OK })
}

// Is returns a setting as a line of slurm.conf.
func (j *judge) Is(key string) string {
	if v := j.Slurm[key]; v != "" {
		return key + "=" + v
	}
	return key + " is not set"
}

// With is the line of a setting after a word was added to its list, and Without is that after
// words were taken from it, or that the line is taken out where none is left.
func (j *judge) With(key, word string) string {
	return key + "=" + strings.Join(append(parse.List(j.Slurm[key]), word), ",")
}

func (j *judge) Without(key, list string) string {
	left := slices.DeleteFunc(parse.List(j.Slurm[key]), func(have string) bool {
		return slices.ContainsFunc(parse.List(list), func(word string) bool { return strings.EqualFold(word, have) })
	})
	if len(left) == 0 {
		return "take out the line " + key + "=" + j.Slurm[key]
	}
	return key + "=" + strings.Join(left, ",")
}

// Slow names what makes a job wait that was put back into the queue.
func (j *judge) Slow() string {
	return strings.Join(slices.DeleteFunc(parse.List(j.Slurm["SchedulerParameters"]), func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		seconds, err := strconv.Atoi(value)
		return name != "defer" && (err != nil || name != "batch_sched_delay" && name != "sched_interval" || seconds <= 60)
	}), ", ")
}

// Partitions names those that give out whole nodes, and those that are hidden and looked at.
func (j *judge) Partitions(kind string) string {
	return strings.Join(named(j.Facts.Partitions, func(p parse.Partition) (string, bool) {
		chosen := len(j.Config.Partitions) == 0 || slices.Contains(j.Config.Partitions, p.Name)
		return p.Name, kind == "exclusive" && p.Exclusive || kind == "hidden" && p.Hidden && chosen
	}), ", ")
}

// UnknownPartitions names those of the controller's configuration that the cluster does not show.
func (j *judge) UnknownPartitions() string {
	return strings.Join(named(j.Config.Partitions, func(name string) (string, bool) {
		known := slices.ContainsFunc(j.Facts.Partitions, func(p parse.Partition) bool { return p.Name == name })
		return name, !known && len(j.Facts.Partitions) > 0
	}), ", ")
}

// WithoutExporter names the nodes to whose exporter the controller's configuration does not lead.
func (j *judge) WithoutExporter() string {
	return few(named(j.Nodes, func(n Node) (string, bool) { return n.Name, n.Address == "" }))
}

// before is what precedes a bracket, as in slurm(64030).
func before(text string) string {
	name, _, _ := strings.Cut(text, "(")
	return name
}

// Ctld returns the host name of slurmctld.
func (j *judge) Ctld() string {
	return cmp.Or(before(j.Slurm["SlurmctldHost[0]"]), "the machine of slurmctld")
}

// Lua reports whether slurm.conf has the plugin; PluginNamed that job_submit.lua is, or may be, ours.
func (j *judge) Lua() bool { return j.Slurm.Has("JobSubmitPlugins", "lua", "job_submit/lua") }

func (j *judge) PluginNamed() bool {
	return j.Lua() && (j.Submit.Seen != Present || j.Ours.Loads && j.Ours.Calls)
}

// PrologNamed reports whether the cluster names a TaskProlog that is, or may be, ours.
func (j *judge) PrologNamed() bool {
	return j.Slurm["TaskProlog"] != "" && (j.Prolog.Seen != Present || ours(j.Prolog.Text) || callsProlog(j.Prolog.Text))
}

// Folder returns the folder of the plugin's module.
func (j *judge) Folder() string { return cmp.Or(j.Ours.Folder, PluginFolder) }

// PluginFiles names the files of the plugin that are missing, wrong, closed to slurmctld, or unknown.
func (j *judge) PluginFiles(state string) string {
	return strings.Join(named(j.Modules, func(m File) (string, bool) {
		is := ""
		switch {
		case m.Seen == Closed || m.Seen == NotLooked:
			is = "unknown"
		case m.Seen == Absent:
			is = "missing"
		case m.Text != m.Shipped:
			is = "wrong"
		case !m.May(4) || !m.Open:
			is = "closed"
		}
		return path.Base(m.Path), is == state
	}), ", ")
}

// Dir is the folder of the settings that the task prolog reads for jobs of this controller.
func (j *judge) Dir() string { return j.Read.SettingsDir(j.Mode, j.Here.Home) }

// Lines returns the lines of task_prolog.conf that fit this controller.
func (j *judge) Lines(between string) string {
	dir := j.Config.Settings
	if j.Mode == Owner {
		if rest, ok := strings.CutPrefix(dir, j.Here.Home+"/"); ok && j.Here.Home != "" {
			dir = rest
		}
		return "owner_dir=" + dir
	}
	if strings.HasPrefix(dir, j.Config.State+"/") && j.Config.State != "" { // only the controller enters that
		dir = settingsPlace
	}
	return strings.Join([]string{
		"site_dir=" + cmp.Or(j.Read.SiteDir, dir), "site_user=" + j.Controller, "exporter=" + j.Config.Exporter, "listener=/usr/bin/pitchpipe",
	}, between)
}

// Machines returns the number of machines that the nodes share.
func (j *judge) Machines() int {
	hosts := map[string]bool{}
	for _, n := range j.Nodes {
		hosts[n.Host] = true
	}
	return len(hosts)
}

// Member reports whether the controller's account belongs to an account of the accounting.
func (j *judge) Member() bool {
	return slices.ContainsFunc(j.Accounts.Assocs, func(a Association) bool { return a.User == j.Controller })
}

// Reads reports whether the exporter of this machine was started with --api.readers for the
// controller: OPTIONS="..." of a file of variables, whose last line counts.
func (j *judge) Reads() bool {
	options := regexp.MustCompile(`(?m)^\s*OPTIONS=["']?(.*?)["']?\s*$`).FindAllStringSubmatch(j.Options.Text, -1)
	if len(options) == 0 {
		return false
	}
	for _, flag := range regexp.MustCompile(`--api\.readers[= ]+(\S+)`).FindAllStringSubmatch(options[len(options)-1][1], -1) {
		if names := parse.List(flag[1]); slices.Contains(names, j.Controller) || slices.Contains(names, j.Here.UID) {
			return true
		}
	}
	return false
}

// ours reports whether a task prolog is ours, in any version: by the line at its top.
func ours(prolog string) bool { return strings.Contains(prolog, "# The task prolog of Pitchpipe") }

// callsProlog reports whether a script starts ours: a line, comments left out, has its name.
func callsProlog(script string) bool {
	return regexp.MustCompile(`(?m)^[^#\n]*(pitchpipe[^#\n]*task_prolog|task_prolog[^#\n]*pitchpipe)`).MatchString(script)
}

// withoutConf leaves out the line that a site changes.
func withoutConf(prolog string) string {
	return regexp.MustCompile(`(?m)^conf=.*\n?`).ReplaceAllString(prolog, "")
}
