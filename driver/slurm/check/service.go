package check

import (
	"fmt"
	"slices"
	"strings"
)

// yaml is the file of the controller's configuration.
func (j *judge) yaml() string {
	if j.Config.File != "" {
		return j.Config.File
	}
	return "the controller's configuration (--config FILE)"
}

const (
	restartController = "restart the controller"
	brokerConf        = "/etc/pitchpipe/broker.yaml"
)

// controller compares what the controller was told with the cluster.
func (j *judge) controller() {
	drv := Finding{
		Name: "controller.driver", Where: j.yaml(), Looked: "driver is " + j.Config.Driver, Verdict: OK, Needed: both(),
		Why: "With another driver the controller sees no job of Slurm.", Change: []string{"driver: slurm"}, Then: restartController,
	}
	if j.Config.Driver != "slurm" {
		drv.Verdict = Wrong
	}
	j.add(drv)
	if j.Config.Mode != j.Mode {
		j.add(Finding{
			Name: "controller.mode", Where: j.yaml(), Looked: fmt.Sprintf("slurm.mode is %s", j.Config.Mode), Verdict: Wrong, Needed: []Mode{j.Mode},
			Why:    "The controller tunes the jobs of its own account in mode owner, and those of everybody in mode site.",
			Change: []string{"slurm:", "  mode: " + string(j.Mode)}, Then: restartController,
		})
	}
	j.told("task_prolog", j.Config.TaskProlog, j.prologNamed(), "the cluster's TaskProlog",
		"The controller changes variables of jobs only where it is told that the task prolog is there, and must not be told so where it is not.")
	plugin := j.has("JobSubmitPlugins", "lua") || j.has("JobSubmitPlugins", "job_submit/lua")
	if j.Submit.Seen == Present {
		s := ReadSubmit(j.Submit.Text)
		plugin = plugin && s.Loads && s.Calls
	}
	j.told("plugin", j.Config.Plugin, plugin, "the site's job_submit.lua",
		"Told that there is a plugin, the controller looks at marked jobs alone: without the plugin at none; not told so, it reads the script of every job.")
	var unknown, hidden []string
	for _, want := range j.Config.Partitions {
		if !slices.ContainsFunc(j.Partitions, func(p Partition) bool { return p.Name == want }) {
			unknown = append(unknown, want)
		}
	}
	for _, p := range j.Partitions {
		if p.Hidden && (len(j.Config.Partitions) == 0 || slices.Contains(j.Config.Partitions, p.Name)) {
			hidden = append(hidden, p.Name)
		}
	}
	if len(unknown) > 0 && len(j.Partitions) > 0 {
		j.add(Finding{
			Name: "controller.partitions", Where: j.yaml(), Looked: "slurm.partitions names " + strings.Join(unknown, ", ") + ", which the cluster does not have, or not for " + j.Caller,
			Verdict: Wrong, Needed: both(), Why: "Jobs of other partitions than those named are not seen.",
			Change: []string{"slurm:", "  partitions: " + partitions(j.Partitions)}, Then: restartController,
		})
	}
	if len(hidden) > 0 && j.Mode == Site {
		j.add(Finding{
			Name: "slurm.hidden", Where: j.conf(), Looked: "Hidden=YES in " + strings.Join(hidden, ", "), Verdict: OK,
			Why: "The controller asks for hidden partitions, too.",
		})
	}
}

func partitions(list []Partition) string {
	var out []string
	for _, p := range list {
		out = append(out, p.Name)
	}
	return strings.Join(out, ",")
}

// told compares one setting with what the cluster has.
func (j *judge) told(key string, told, has bool, what, why string) {
	f := Finding{
		Name: "controller." + key, Where: j.yaml(), Looked: fmt.Sprintf("slurm.%s is %t", key, told), Verdict: OK, Why: why,
		Change: []string{"slurm:", fmt.Sprintf("  %s: %t", key, has)}, Then: restartController,
	}
	switch {
	case told && !has:
		f.Verdict, f.Needed = Wrong, both()
		f.Looked += ", and " + what + " is not pitchpipe's"
		f.Change = append(f.Change, "or set it up: see above")
	case !told && has && key == "task_prolog" && j.Mode == Site:
		f.Verdict, f.Looked, f.Needed = Wrong, f.Looked+", and "+what+" is pitchpipe's", []Mode{Site}
	case !told && has:
		f.Verdict, f.Looked = Wrong, f.Looked+", and "+what+" is pitchpipe's"
	}
	j.add(f)
}

// broker judges the broker of a site.
func (j *judge) broker() {
	if j.Mode != Site {
		return
	}
	b := j.Broker
	f := Finding{
		Name: "broker.socket", Where: "the broker, " + b.Socket.Path, Verdict: OK, Needed: []Mode{Site},
		Why:    "What changes a job of others goes through the broker; without it the controller can only watch.",
		Change: []string{"systemctl enable --now pitchpipe-broker"}, Then: "slurm.broker of the controller names the same socket",
	}
	switch {
	case b.Socket.Seen == Absent:
		f.Verdict, f.Looked = Missing, "there is no such socket on this machine"
	case b.Socket.Seen != Present:
		f.Verdict, f.Looked, f.Change, f.Then = Unknown, "it cannot be seen by "+j.Caller, []string{"run this as root or as " + j.Controller}, ""
	case b.Answer == Answers:
		f.Looked = "it answers to " + j.Caller
	case b.Answer == Denies && (j.Caller == j.Controller || j.Caller == "root"):
		f.Verdict, f.Looked = Wrong, "it does not answer to "+j.Caller+": "+b.Text
		f.Change, f.Then = []string{"in " + brokerConf + ":", "broker:", "  controller: " + j.Controller}, "systemctl restart pitchpipe-broker"
	case b.Answer == Denies:
		f.Looked = "it is there, and answers only to the controller, as it should"
	case b.Answer == Silent:
		f.Verdict, f.Looked = Wrong, "nobody answers there: "+b.Text
		f.Change = []string{"systemctl restart pitchpipe-broker", "journalctl -u pitchpipe-broker"}
	default:
		f.Verdict, f.Looked, f.Change, f.Then = Unknown, "it was not asked", nil, ""
	}
	j.add(f)
}
