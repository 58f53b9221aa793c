package check

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Places of what the packages bring, and of what the instructions install.
const (
	PluginFolder    = "/etc/slurm/pitchpipe"            // where the shipped job_submit.lua looks for the module
	PrologConfPlace = "/etc/pitchpipe/task_prolog.conf" // where the shipped task prolog looks for its configuration

	packageFolder = "/usr/share/pitchpipe/slurm"          // of the package pitchpipe
	nodePackage   = "/usr/share/pitchpipe-exporter/slurm" // of the package that every node has
	listenerPlace = "/usr/bin/pitchpipe"
	settingsPlace = "/srv/pitchpipe/settings"
)

// Judge says what the facts mean, in the order of the files to change. The facts have to have
// Slurm: without an answer of slurmctld there is nothing to judge.
func Judge(f Facts) Report {
	j := judge{Facts: f, words: map[string]words{}}
	if err := yaml.Unmarshal(findings, &j.words); err != nil {
		panic(err) // the file is part of the program, and tests read it
	}
	j.vars = j.common()
	for _, rule := range []func(){
		j.cluster, j.scheduler, j.requeue, j.privacy, j.tracking, j.submission, j.prolog, j.settings, j.accounting, j.accounts,
		j.controller, j.policy, j.broker, j.exporters, j.proof,
	} {
		rule()
	}
	r := Report{Cluster: f.Slurm["ClusterName"], Version: f.Slurm["SLURM_VERSION"], Mode: f.Mode, Caller: f.Caller, Passed: true}
	var files []string
	for _, finding := range j.out {
		r.Passed = r.Passed && !finding.Fails(f.Mode)
		if !slices.Contains(files, finding.Where) {
			files = append(files, finding.Where)
		}
	}
	slices.SortStableFunc(j.out, func(a, b Finding) int { return cmp.Compare(slices.Index(files, a.Where), slices.Index(files, b.Where)) })
	r.Findings = j.out
	return r
}

// common are the values that all words may mention.
func (j *judge) common() map[string]string {
	host, _, _ := strings.Cut(j.Slurm["SlurmctldHost[0]"], "(")
	beside := path.Dir(j.Slurm["SLURM_CONF"])
	if !path.IsAbs(beside) {
		beside = "/etc/slurm"
	}
	unseen := "it cannot be seen by " + j.Caller
	return map[string]string{
		"conf": cmp.Or(j.Slurm["SLURM_CONF"], "slurm.conf"), "beside": beside, "submit": cmp.Or(j.Submit.Path, path.Join(beside, "job_submit.lua")),
		"ctld": cmp.Or(host, "the machine of slurmctld"), "caller": j.Caller, "controller": j.Controller, "unseen": unseen,
		"yaml": cmp.Or(j.Config.File, "the controller's configuration (--config FILE)"), "package": packageFolder, "node": nodePackage,
		"script": j.Slurm["TaskProlog"], "prologConf": cmp.Or(j.PrologConf.Path, PrologConfPlace), "settings": j.Config.Settings,
		"lines": strings.Join(j.prologLines(), "\n"), "reconfigure": "scontrol reconfigure", "restartCtld": "restart slurmctld: systemctl restart slurmctld",
	}
}

// list is a setting with commas between its words.
func (j *judge) list(key string) []string {
	return strings.FieldsFunc(j.Slurm[key], func(r rune) bool { return r == ',' || r == ' ' })
}

// number reads a number with a unit behind it, such as 300 sec; -1 where there is none.
func (j *judge) number(key string) int {
	word, _, _ := strings.Cut(j.Slurm[key], " ")
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return -1
}

// with is the line of a setting after a word was added to its list, and without is that after
// words were taken from it, or that the line is taken out where none is left.
func (j *judge) with(key, word string) string {
	return key + "=" + strings.Join(append(j.list(key), word), ",")
}

func (j *judge) without(key string, words ...string) string {
	left := slices.DeleteFunc(j.list(key), func(have string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(have, w) })
	})
	if len(left) == 0 {
		return "take out the line " + key + "=" + j.Slurm[key]
	}
	return key + "=" + strings.Join(left, ",")
}

// has reports whether a list has one of the words, in any case.
func (j *judge) has(key string, words ...string) bool {
	return slices.ContainsFunc(j.list(key), func(have string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(have, w) })
	})
}

func (j *judge) cluster() {
	j.say("slurm.version", when(!strings.HasPrefix(j.Slurm["SLURM_VERSION"], "22.05."), "unknown"), "version", j.Slurm["SLURM_VERSION"])
	age := j.number("MinJobAge")
	j.say("slurm.min_job_age", when(age > 0 && age < 60, "wrong"))
	if j.Skew != nil {
		off := j.Skew.Abs().Round(time.Second)
		j.say("slurm.clock", when(off > 5*time.Second, "wrong"), "off", off.String())
	}
	if most := j.number("MaxJobCount"); most > 0 && j.Jobs != nil && j.Jobs.Seen*10 >= most*9 {
		j.say("slurm.max_job_count", "wrong", "most", strconv.Itoa(most), "jobs", strconv.Itoa(j.Jobs.Seen), "twice", strconv.Itoa(2*most))
	}
}

// scheduler judges what makes a job wait that was put back into the queue.
func (j *judge) scheduler() {
	slow := slices.DeleteFunc(j.list("SchedulerParameters"), func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		seconds, err := strconv.Atoi(value)
		return name != "defer" && (err != nil || name != "batch_sched_delay" && name != "sched_interval" || seconds <= 60)
	})
	if len(slow) > 0 {
		j.say("slurm.scheduler", "wrong", "slow", strings.Join(slow, ", "), "left", j.without("SchedulerParameters", slow...))
	}
	if names := j.partitions(func(p Partition) bool { return p.Exclusive }); len(names) > 0 {
		j.say("slurm.exclusive", "wrong", "names", strings.Join(names, ", "))
	}
}

// partitions names those of a kind.
func (j *judge) partitions(are func(Partition) bool) (names []string) {
	for _, p := range j.Partitions {
		if are(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// requeue judges whether jobs can be put back into the queue. The job files that are shipped
// leave with 85 once they saved.
func (j *judge) requeue() {
	j.say("slurm.job_requeue", when(j.Slurm["JobRequeue"] == "0", "wrong"))
	j.say("slurm.requeue_exit", pick(is{j.names("RequeueExitHold", 85), "ok"}, is{j.names("RequeueExit", 85), "ok.exit"}, is{true, "missing"}), "with", j.with("RequeueExitHold", "85"))
}

// names reports whether a list of statuses and of ranges of them has one.
func (j *judge) names(key string, status int) bool {
	return slices.ContainsFunc(j.list(key), func(part string) bool {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		return err == nil && err2 == nil && low <= status && status <= high
	})
}

// privacy judges what the controller's account sees of others' jobs. A few jobs prove nothing:
// they come and go between the two looks.
func (j *judge) privacy() {
	hidden := j.has("PrivateData", "jobs", "all")
	j.say("slurm.private_data", when(hidden, "wrong"), "left", j.without("PrivateData", "jobs", "all"))
	if j.Mode == Site && j.Jobs != nil && j.Jobs.ByController && !hidden && j.Jobs.Seen >= 4 {
		j.say("slurm.jobs_seen", when(j.Jobs.BySite*2 < j.Jobs.Seen, "wrong"), "some", strconv.Itoa(j.Jobs.BySite), "jobs", strconv.Itoa(j.Jobs.Seen))
	}
}

// tracking judges how Slurm binds and measures a job's processes.
func (j *judge) tracking() {
	j.say("slurm.proctrack", when(j.Slurm["ProctrackType"] != "proctrack/cgroup", "wrong"))
	j.say("slurm.task_plugin", pick(
		is{j.has("TaskPlugin", "task/cgroup") && strings.EqualFold(j.Slurm["ConstrainCores"], "yes"), "ok.constrained"},
		is{j.has("TaskPlugin", "task/affinity"), "ok"},
		is{j.has("TaskPlugin", "task/cgroup"), "wrong.unconstrained"},
		is{true, "wrong"},
	))
}

func (j *judge) accounting() {
	j.say("slurm.accounting", when(j.Slurm["AccountingStorageType"] != "accounting_storage/slurmdbd", "missing"))
	gather := j.Slurm["JobAcctGatherType"]
	j.say("slurm.job_acct_gather", when(gather == "" || strings.HasSuffix(gather, "/none"), "missing"))
}

// accounts judges who may do what.
func (j *judge) accounts() {
	admin, _, _ := strings.Cut(j.Slurm["SlurmUser"], "(")
	if j.Mode == Site {
		j.say("accounts.ordinary", pick(is{j.Controller == "root" || j.Controller == admin, "wrong"}, is{j.Here.UID == "", "missing"}))
	}
	if !j.Accounts.Asked {
		return // there is no accounting, which another finding says
	}
	switch {
	case j.Accounts.Denied != "":
		j.say("accounts.denied", "unknown", "denied", j.Accounts.Denied)
	case j.Mode == Site:
		j.level("accounts.controller", "controller's", j.Controller, "None")
		j.level("accounts.broker", "broker's", j.Broker.Account, "Operator")
	case j.has("AccountingStorageEnforce", "associations", "limits", "safe", "all"):
		none := !slices.ContainsFunc(j.Accounts.Assocs, func(a Association) bool { return a.User == j.Controller })
		j.say("accounts.association", when(none, "missing"))
	}
}

// level judges the administrator level of an account. One that is not known has none.
func (j *judge) level(name, whose, account, want string) {
	i := slices.IndexFunc(j.Accounts.Users, func(u User) bool { return u.Name == account })
	level := "None"
	if i >= 0 {
		level = j.Accounts.Users[i].Level
	}
	j.say(name, pick(
		is{account == "", "unknown.account"},
		is{level == want && i >= 0, "ok"},
		is{level == want, "ok.absent"},
		is{i < 0 && j.has("PrivateData", "users") && j.Caller != "root", "unknown.hidden"},
		is{i < 0, "missing"},
		is{true, "wrong"},
	), "whose", whose, "account", account, "want", want, "level", level)
}

// machines is how many the nodes are.
func (j *judge) machines() int {
	hosts := map[string]bool{}
	for _, n := range j.Nodes {
		hosts[n.Host] = true
	}
	return len(hosts)
}

func mode(f File) string { return fmt.Sprintf("%04o", f.Mode.Perm()) }
