package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tested is the version of Slurm that Pitchpipe was tested with.
const tested = "22.05"

// exitOfCheckpoint is what the job files that are shipped leave with once they saved.
const exitOfCheckpoint = 85

// restartCtld and reconfigure are what makes a change of slurm.conf count.
const (
	restartCtld = "restart slurmctld: systemctl restart slurmctld"
	reconfigure = "scontrol reconfigure"
)

// cluster judges the version, the clocks, how long jobs are remembered, and how many
// there may be.
func (j *judge) cluster() {
	version := Finding{
		Name: "slurm.version", Where: j.conf(), Looked: "Slurm " + j.Slurm["SLURM_VERSION"], Verdict: OK,
		Why: "Pitchpipe was tested with Slurm " + tested + "; another version may print or do things in other ways, which it then refuses to read.",
	}
	if !strings.HasPrefix(j.Slurm["SLURM_VERSION"], tested+".") {
		version.Verdict, version.Change = Unknown, []string{"run `pitchpipe slurm check --try` as an ordinary user: it shows by two tiny jobs whether this version behaves"}
	}
	j.add(version)
	age := Finding{
		Name: "slurm.min_job_age", Where: j.conf(), Looked: j.said("MinJobAge"), Verdict: OK, Needed: both(),
		Why:    "A job that ended is forgotten after that many seconds; below a minute a controller that is restarted, or a slurmctld that is slow, never learns how it ended but from the accounting.",
		Change: []string{"MinJobAge=300"}, Then: reconfigure,
	}
	if n := j.number("MinJobAge"); n >= 0 && n < 60 && n != 0 {
		age.Verdict = Wrong
	}
	j.add(age)
	if j.Skew != nil {
		clock := Finding{
			Name: "slurm.clock", Where: "the clock of this machine", Looked: "it agrees with that of slurmctld", Verdict: OK,
			Why:    "Times of jobs come from slurmctld and are compared with this machine's, and munge refuses calls from a clock that is five minutes off.",
			Change: []string{"systemctl enable --now chrony", "chronyc makestep"},
		}
		if off := j.Skew.Abs().Round(time.Second); off > 5*time.Second {
			clock.Verdict, clock.Looked = Wrong, fmt.Sprintf("it is %v off that of slurmctld", off)
		}
		j.add(clock)
	}
	if most := j.number("MaxJobCount"); most > 0 && j.Jobs != nil && j.Jobs.Seen*10 >= most*9 {
		j.add(Finding{
			Name: "slurm.max_job_count", Where: j.conf(), Verdict: Wrong,
			Looked: fmt.Sprintf("MaxJobCount=%d, and there are %d jobs", most, j.Jobs.Seen),
			Why:    "At that number sbatch refuses every further job.",
			Change: []string{"MaxJobCount=" + strconv.Itoa(2*most)}, Then: restartCtld,
		})
	}
	j.scheduler()
}

// scheduler judges what makes a job wait that was put back into the queue.
func (j *judge) scheduler() {
	var slow []string
	for _, word := range j.list("SchedulerParameters") {
		name, value, _ := strings.Cut(word, "=")
		seconds, err := strconv.Atoi(value)
		if name == "defer" || err == nil && (name == "batch_sched_delay" || name == "sched_interval") && seconds > 60 {
			slow = append(slow, word)
		}
	}
	if len(slow) > 0 {
		j.add(Finding{
			Name: "slurm.scheduler", Where: j.conf(), Looked: "SchedulerParameters has " + strings.Join(slow, ", "), Verdict: Wrong,
			Why:    "A job that was put back into the queue starts only when the scheduler comes round, and pays for that wait with each move.",
			Change: []string{j.without("SchedulerParameters", slow...)}, Then: reconfigure,
		})
	}
	var unbound []string
	for _, p := range j.Partitions {
		if p.Exclusive {
			unbound = append(unbound, p.Name)
		}
	}
	if len(unbound) > 0 {
		j.add(Finding{
			Name: "slurm.exclusive", Where: j.conf(), Looked: "whole nodes are given out in " + strings.Join(unbound, ", "), Verdict: Wrong,
			Why:    "A job there holds all cores of its node whatever it asks for, so that fewer cores free nothing; threads and hyperparameters still count.",
			Change: []string{"OverSubscribe=NO in the line of each partition that jobs may share"}, Then: reconfigure,
		})
	}
}

// requeue judges whether jobs can be put back into the queue.
func (j *judge) requeue() {
	again := Finding{
		Name: "slurm.job_requeue", Where: j.conf(), Looked: j.said("JobRequeue"), Verdict: OK,
		Why:    "A job that may not be requeued is never moved once it runs; with JobRequeue=0 that is each job without `#SBATCH --requeue`.",
		Change: []string{"JobRequeue=1"}, Then: reconfigure,
	}
	if j.Slurm["JobRequeue"] == "0" {
		again.Verdict = Wrong
	}
	j.add(again)
	exits := Finding{
		Name: "slurm.requeue_exit", Where: j.conf(), Looked: j.said("RequeueExitHold"), Verdict: OK,
		Why: fmt.Sprintf("A job that saves and leaves with status %d has ended where neither setting names it, so only jobs that save and go on (checkpoint done=...) are moved while they run.",
			exitOfCheckpoint),
		Change: []string{fmt.Sprintf("RequeueExitHold=%d", exitOfCheckpoint)},
		Then:   reconfigure + "; it is for the whole cluster: be sure that no program here means something else by that status",
	}
	if j.Slurm["RequeueExitHold"] != "" {
		exits.Change = []string{j.with("RequeueExitHold", strconv.Itoa(exitOfCheckpoint))}
	}
	switch {
	case j.names("RequeueExitHold"):
	case j.names("RequeueExit"):
		exits.Looked = j.said("RequeueExit")
	default:
		exits.Verdict = Missing
		exits.Looked = fmt.Sprintf("no setting names the status %d: %s, %s", exitOfCheckpoint, j.said("RequeueExit"), j.said("RequeueExitHold"))
	}
	j.add(exits)
}

// names tells whether a list of statuses and of ranges of them has that of a
// checkpoint.
func (j *judge) names(key string) bool {
	return slices.ContainsFunc(j.list(key), func(part string) bool {
		from, to, isRange := strings.Cut(part, "-")
		low, err := strconv.Atoi(from)
		high := low
		if isRange {
			var err2 error
			if high, err2 = strconv.Atoi(to); err2 != nil {
				return false
			}
		}
		return err == nil && low <= exitOfCheckpoint && exitOfCheckpoint <= high
	})
}

// privacy judges what the controller's account sees of others' jobs.
func (j *judge) privacy() {
	f := Finding{
		Name: "slurm.private_data", Where: j.conf(), Looked: j.said("PrivateData"), Verdict: OK, Needed: []Mode{Site},
		Why:    "The controller of a site is an ordinary account, and a job that ordinary accounts do not see is never tuned.",
		Change: []string{j.without("PrivateData", "jobs", "all")}, Then: reconfigure,
	}
	if j.has("PrivateData", "jobs") || j.has("PrivateData", "all") {
		f.Verdict = Wrong
	}
	j.add(f)
	// Of a few jobs nothing can be told: they come and go between the two looks.
	if j.Mode != Site || j.Jobs == nil || !j.Jobs.ByController || f.Verdict == Wrong || j.Jobs.Seen < 4 {
		return
	}
	sees := Finding{
		Name: "slurm.jobs_seen", Where: j.conf(), Looked: fmt.Sprintf("%s sees %d of %d jobs", j.Controller, j.Jobs.BySite, j.Jobs.Seen),
		Verdict: OK, Needed: []Mode{Site}, Why: f.Why,
		Change: []string{"look at Hidden, AllowGroups and AllowAccounts of the partitions: `scontrol show partition`"},
	}
	if j.Jobs.BySite*2 < j.Jobs.Seen {
		sees.Verdict = Wrong
	}
	j.add(sees)
}

// tracking judges how Slurm binds and measures a job's processes.
func (j *judge) tracking() {
	groups := Finding{
		Name: "slurm.proctrack", Where: j.conf(), Looked: j.said("ProctrackType"), Verdict: OK,
		Why:    "With a cgroup for each job the exporter measures all that the job does, perf counters and memory included; without, it follows the processes and misses those that come and go between two looks.",
		Change: []string{"ProctrackType=proctrack/cgroup", "TaskPlugin=task/cgroup,task/affinity"},
		Then:   "restart slurmctld, and each slurmd while no job runs on its node",
	}
	if j.Slurm["ProctrackType"] != "proctrack/cgroup" {
		groups.Verdict = Wrong
	}
	j.add(groups)
	binds := Finding{
		Name: "slurm.task_plugin", Where: j.conf(), Looked: j.said("TaskPlugin"), Verdict: OK,
		Why:    "Where jobs are not bound to the cores that they were given, a job with fewer cores goes on using more, and nothing is learned of how many it needs.",
		Change: []string{"TaskPlugin=task/cgroup,task/affinity", "and ConstrainCores=yes in " + j.beside("cgroup.conf")},
		Then:   "restart slurmctld, and each slurmd while no job runs on its node",
	}
	constrained := strings.EqualFold(j.Slurm["ConstrainCores"], "yes")
	switch {
	case j.has("TaskPlugin", "task/cgroup") && constrained:
		binds.Looked += ", ConstrainCores=yes"
	case j.has("TaskPlugin", "task/affinity"):
	case j.has("TaskPlugin", "task/cgroup"):
		binds.Verdict, binds.Looked = Wrong, binds.Looked+", and ConstrainCores is not yes"
		binds.Change = binds.Change[1:]
	default:
		binds.Verdict = Wrong
	}
	j.add(binds)
}
