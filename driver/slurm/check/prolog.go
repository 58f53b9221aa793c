package check

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// PrologConfPlace is where the shipped task prolog looks for its configuration.
const PrologConfPlace = "/etc/pitchpipe/task_prolog.conf"

// prologPlace is where the instructions put the script, and nodePackage where the
// package pitchpipe-exporter, which every node has, brings it.
const (
	prologPlace   = "/etc/slurm/pitchpipe/task_prolog"
	listenerPlace = "/usr/bin/pitchpipe"
	settingsPlace = "/srv/pitchpipe/settings"
	nodePackage   = "/usr/share/pitchpipe-exporter/slurm"
	prologWhy     = "Without it only cores, memory and the time limit of a job can be changed: threads, batch size and the like reach no job."
)

// prologNamed tells whether the cluster names a TaskProlog that is, or may be, ours.
func (j *judge) prologNamed() bool {
	return j.Slurm["TaskProlog"] != "" && (j.Prolog.Seen != Present || ours(j.Prolog.Text) || callsProlog(j.Prolog.Text))
}

// prolog judges the TaskProlog.
func (j *judge) prolog() {
	needed := when(j.Config.TaskProlog)
	named := Finding{
		Name: "slurm.task_prolog", Where: j.conf(), Looked: j.said("TaskProlog"), Verdict: OK, Needed: needed, Why: prologWhy,
		Change: []string{
			"on every node: install -D -m 755 " + nodePackage + "/task_prolog " + prologPlace,
			"on every node: install -D -m 644 " + nodePackage + "/task_prolog.conf " + PrologConfPlace,
			"and in that file: " + strings.Join(j.prologLines(), ", "),
			"then here: TaskProlog=" + prologPlace,
		},
		Then: reconfigure,
	}
	if j.Slurm["TaskProlog"] == "" {
		named.Verdict = Missing
		j.add(named)
		return
	}
	j.add(named)
	where := j.Slurm["TaskProlog"]
	copyIt := []string{"on every node: install -D -m 755 " + nodePackage + "/task_prolog " + prologPlace}
	f := Finding{Name: "prolog.script", Where: where, Verdict: OK, Needed: needed, Why: prologWhy, Change: copyIt}
	switch text := j.Prolog.Text; {
	case j.Prolog.Seen == Absent && len(j.Here.Nodes) > 0:
		f.Verdict, f.Looked, f.Needed = Missing, "there is no such file on this node", both()
		f.Why = "Slurm starts this file before each task, and writes an error into the output of every job where it is not there."
		f.Change = []string{"on every node: install -D -m 755 " + nodePackage + "/task_prolog " + where}
	case j.Prolog.Seen != Present:
		f.Verdict, f.Looked, f.Change = Unknown, j.notHere(j.Prolog), []string{"run `pitchpipe slurm check` on a node, or `pitchpipe slurm check --try` here"}
	case ours(text) && !same(text, j.Shipped.Prolog):
		f.Verdict, f.Looked = Wrong, "it is pitchpipe's, and not that of this version"
		f.Change = []string{
			"on every node: install -m 755 " + nodePackage + "/task_prolog " + where,
			"and keep your own line conf= at its top, where it is not " + PrologConfPlace,
		}
	case ours(text):
		f.Looked = "it is pitchpipe's, of this version"
	case callsProlog(text):
		f.Looked = "it is the site's own and calls pitchpipe's"
	default:
		f.Verdict, f.Looked = Missing, "it is the site's own and does not call pitchpipe's"
		f.Change = append(copyIt, "and this line in "+where+", whose output it has to become: "+prologPlace)
	}
	j.add(f)
	j.prologSafe()
}

// prologSafe judges who may change the script, and who may run it.
func (j *judge) prologSafe() {
	p := j.Prolog
	if p.Seen != Present {
		return
	}
	f := Finding{
		Name: "prolog.permissions", Where: p.Path, Looked: fmt.Sprintf("it belongs to %s, mode %04o", p.Owner, p.Mode.Perm()), Verdict: OK, Needed: both(),
		Why:    "It runs as the user of every job: each has to be able to run it, and nobody but an administrator to change it.",
		Change: []string{"on every node: chown root:root " + p.Path, "on every node: chmod 755 " + p.Path},
	}
	admin, _, _ := strings.Cut(j.Slurm["SlurmUser"], "(")
	if !slices.Contains([]string{"root", admin}, p.Owner) || p.Mode.Perm()&0o022 != 0 || p.Mode.Perm()&0o005 != 0o005 || !p.Open {
		f.Verdict = Wrong
		if !p.Open {
			f.Looked += ", in a folder that not everybody can enter"
			f.Change = append(f.Change, "on every node: chmod a+x the folders above it")
		}
	}
	j.add(f)
}

// notHere says why a file of the nodes is not known.
func (j *judge) notHere(f File) string {
	if f.Seen == Absent {
		return "the file is read on the nodes, and this machine is none"
	}
	return "it cannot be seen by " + j.Caller
}

// title stands at the top of our own script, in every version of it.
const title = "# The task prolog of Pitchpipe"

func ours(prolog string) bool { return strings.Contains(prolog, title) }

// callsProlog tells whether a script starts ours: a line, comments left out, with its
// name.
func callsProlog(prolog string) bool {
	for line := range strings.Lines(prolog) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if strings.Contains(line, "pitchpipe") && strings.Contains(line, "task_prolog") {
			return true
		}
	}
	return false
}

// same compares two scripts without the line that a site changes.
func same(a, b string) bool {
	return strings.Join(withoutConf(a), "") == strings.Join(withoutConf(b), "")
}

func withoutConf(text string) []string {
	return slices.DeleteFunc(slices.Collect(strings.Lines(text)), func(line string) bool { return strings.HasPrefix(line, "conf=") })
}

// SettingsDir is the folder that the task prolog reads for jobs of this controller:
// the site's, or that of the owner below his home.
func (c PrologConf) SettingsDir(m Mode, home string) string {
	switch {
	case m == Site:
		return c.SiteDir
	case c.OwnerDir == "" || path.IsAbs(c.OwnerDir):
		return c.OwnerDir
	}
	return path.Join(home, c.OwnerDir)
}

// settings judges task_prolog.conf and the folder that it names.
func (j *judge) settings() {
	if !j.prologNamed() {
		return // there is nobody to read it
	}
	needed := when(j.Config.TaskProlog)
	f := Finding{
		Name: "prolog.conf", Where: j.PrologConf.Path, Verdict: OK, Needed: needed,
		Why: "The task prolog reads the settings of a job from the folder that this file names, and believes only files of the account named there.",
	}
	if f.Where == "" {
		f.Where = PrologConfPlace
	}
	c := ReadPrologConf(j.PrologConf.Text)
	f.Change = j.prologLines()
	f.Then = "the same on every node; jobs that start from then on read it"
	switch {
	case j.PrologConf.Seen == Absent && len(j.Here.Nodes) > 0:
		f.Verdict, f.Looked = Missing, "there is no such file on this node"
	case j.PrologConf.Seen != Present:
		f.Verdict, f.Looked, f.Change, f.Then = Unknown, j.notHere(j.PrologConf), []string{"run this on a node"}, ""
	case j.Mode == Site && (c.SiteDir == "" || c.SiteUser == ""):
		f.Verdict, f.Looked = Missing, "site_dir and site_user are not both set"
	case j.Mode == Owner && c.OwnerDir == "":
		f.Verdict, f.Looked = Missing, "owner_dir is not set, so that no user's own controller can give settings to a job"
	case j.Mode == Site && c.SiteUser != j.Controller:
		f.Verdict, f.Looked = Wrong, fmt.Sprintf("site_user is %s, and the controller runs under %s", c.SiteUser, j.Controller)
	case j.Mode == Site:
		f.Looked = "site_dir is " + c.SiteDir + ", site_user is " + c.SiteUser
	default:
		f.Looked = "owner_dir is " + c.OwnerDir
	}
	j.add(f)
	if f.Verdict == OK {
		j.listener(c)
		j.sameFolder(c, needed)
		j.folder(c, needed)
	}
}

// prologLines are those of task_prolog.conf that fit this controller.
func (j *judge) prologLines() []string {
	if j.Mode == Site {
		return append([]string{"site_dir=" + j.siteDir(), "site_user=" + j.Controller}, j.listenerLines()...)
	}
	return []string{"owner_dir=" + j.ownerDir()}
}

// siteDir is what site_dir has to be for this controller. A folder below its state is
// none: only the controller can enter that.
func (j *judge) siteDir() string {
	if dir := ReadPrologConf(j.PrologConf.Text).SiteDir; dir != "" {
		return dir
	}
	if _, below := strings.CutPrefix(j.Config.Settings, j.Config.State+"/"); below && j.Config.State != "" {
		return settingsPlace
	}
	return j.Config.Settings
}

// listenerLines are those that a site needs so that the progress of jobs is told.
func (j *judge) listenerLines() []string {
	return []string{"exporter=" + j.Config.Exporter, "listener=" + listenerPlace}
}

// listener judges what reports the progress of a site's jobs.
func (j *judge) listener(c PrologConf) {
	if j.Mode != Site {
		return // an owner's controller starts it
	}
	f := Finding{
		Name: "prolog.listener", Where: j.PrologConf.Path, Looked: "exporter is " + c.Exporter + ", listener is " + c.Listener, Verdict: OK, Needed: []Mode{Site},
		Why:    "The output of jobs is not the site's to read: the task prolog starts a listener as each job's user, which tells the exporter of the epochs; without it no job is profiled.",
		Change: j.listenerLines(), Then: "the same on every node; jobs that start from then on read it",
	}
	l := j.Listener
	switch {
	case !strings.HasPrefix(c.Exporter, "/") || !strings.HasPrefix(c.Listener, "/"):
		f.Verdict, f.Looked = Missing, "exporter and listener are not both set"
	case l.Seen == Absent:
		f.Verdict, f.Looked = Missing, "the listener "+c.Listener+" is not there on this node"
		f.Change, f.Then = []string{"install the package pitchpipe on every node, or name the program where it is: listener=/PATH/pitchpipe"}, ""
	case l.Seen == Present && (l.Owner != "root" || l.Mode.Perm()&0o022 != 0 || l.Mode.Perm()&0o001 == 0 || !l.Open):
		f.Verdict, f.Looked = Wrong, fmt.Sprintf("the listener %s belongs to %s, mode %04o, and is not started", c.Listener, l.Owner, l.Mode.Perm())
		f.Change, f.Then = []string{"on every node: chown root:root " + c.Listener, "on every node: chmod 755 " + c.Listener}, ""
	}
	j.add(f)
}

// ownerDir is what owner_dir has to be for this controller.
func (j *judge) ownerDir() string {
	if rest, ok := strings.CutPrefix(j.Config.Settings, j.Here.Home+"/"); ok && j.Here.Home != "" {
		return rest
	}
	return j.Config.Settings
}

// sameFolder compares where the task prolog reads with where the controller writes.
func (j *judge) sameFolder(c PrologConf, needed []Mode) {
	dir := c.SettingsDir(j.Mode, j.Here.Home)
	f := Finding{
		Name: "controller.settings", Where: j.yaml(), Looked: "slurm.settings is " + j.Config.Settings, Verdict: OK, Needed: needed,
		Why:    "What the controller writes into another folder than the task prolog reads reaches no job.",
		Change: []string{"slurm:", "  settings: " + dir}, Then: "restart the controller",
	}
	if path.Clean(dir) != path.Clean(j.Config.Settings) {
		f.Verdict, f.Looked = Wrong, f.Looked+", and the task prolog reads "+dir
	}
	j.add(f)
}

// folder judges the folder of the settings.
func (j *judge) folder(c PrologConf, needed []Mode) {
	dir, user := c.SettingsDir(j.Mode, j.Here.Home), j.Controller
	f := Finding{
		Name: "settings.folder", Where: dir, Verdict: OK, Needed: needed,
		Why:    "The task prolog runs as each job's user on each node: it has to reach the folder there, and refuses one that others may write.",
		Change: []string{fmt.Sprintf("install -d -o %s -m 755 %s", user, dir)},
	}
	switch d := j.Folder; {
	case d.Path != dir || d.Seen == NotLooked || d.Seen == Closed:
		f.Verdict, f.Looked, f.Change = Unknown, "it cannot be seen by "+j.Caller, []string{"run this as root or as " + user}
	case d.Seen == Absent && j.Mode == Owner:
		f.Looked = "it is not there yet: the controller makes it"
	case d.Seen == Absent:
		f.Verdict, f.Looked = Missing, "it is not there on this machine"
	case !d.Mode.IsDir():
		f.Verdict, f.Looked = Wrong, "it is no folder"
	case d.Owner != user && d.Owner != "root" || d.Mode.Perm()&0o022 != 0 || d.Mode.Perm()&0o001 == 0 && j.Mode == Site:
		f.Verdict, f.Looked = Wrong, fmt.Sprintf("it belongs to %s, mode %04o", d.Owner, d.Mode.Perm())
		f.Change = []string{fmt.Sprintf("chown %s %s", user, dir), "chmod 755 " + dir}
	case !d.Open && j.Mode == Site:
		f.Verdict, f.Looked = Wrong, "it is in a folder that not everybody can enter"
		f.Change = []string{"put it where every account can enter all folders above it, and name it in site_dir and in slurm.settings"}
	case j.machines() > 1 && slices.Contains(localFilesystems(), d.FS):
		f.Verdict, f.Looked = Wrong, fmt.Sprintf("it is on %s, a filesystem of this machine alone, and the cluster has %d machines", d.FS, j.machines())
		f.Change = []string{"put it on a filesystem that every node mounts, and name it in site_dir and in slurm.settings"}
	default:
		f.Looked = fmt.Sprintf("it belongs to %s, mode %04o, on %s", d.Owner, d.Mode.Perm(), d.FS)
	}
	j.add(f)
}

// machines is how many the nodes are.
func (j *judge) machines() int {
	hosts := map[string]bool{}
	for _, n := range j.Nodes {
		hosts[n.Host] = true
	}
	return len(hosts)
}

func localFilesystems() []string {
	return []string{"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"}
}
