package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// controller compares the controller's configuration with the cluster.
func (j *judge) controller() {
	j.say("controller.driver", when(j.Config.Driver != "slurm", "wrong"), "driver", j.Config.Driver)
	if j.Config.Mode != j.Mode {
		j.say("controller.mode", "wrong", "told", string(j.Config.Mode), "want", string(j.Mode))
	}
	j.configured("controller.task_prolog", j.Config.TaskProlog, j.prologNamed())
	s := ReadSubmit(j.Submit.Text)
	j.configured("controller.plugin", j.Config.Plugin, j.has("JobSubmitPlugins", "lua", "job_submit/lua") && (j.Submit.Seen != Present || s.Loads && s.Calls))
	all := j.partitions(func(Partition) bool { return true })
	unknown := slices.DeleteFunc(slices.Clone(j.Config.Partitions), func(name string) bool { return slices.Contains(all, name) })
	if len(unknown) > 0 && len(all) > 0 {
		j.say("controller.partitions", "wrong", "names", strings.Join(unknown, ", "), "all", strings.Join(all, ","))
	}
	hidden := j.partitions(func(p Partition) bool {
		return p.Hidden && (len(j.Config.Partitions) == 0 || slices.Contains(j.Config.Partitions, p.Name))
	})
	if len(hidden) > 0 && j.Mode == Site {
		j.say("slurm.hidden", "ok", "names", strings.Join(hidden, ", "))
	}
}

// configured compares one setting with what the cluster has.
func (j *judge) configured(name string, told, has bool) {
	site := has && !told && name == "controller.task_prolog" && j.Mode == Site
	j.say(name, pick(is{told && !has, "wrong.told"}, is{site, "wrong.site"}, is{told != has, "wrong"}), "told", strconv.FormatBool(told), "has", strconv.FormatBool(has))
}

// policy judges what the site lets stanzas do. That nothing is changed may be what the site
// wants, so it is no more than advice.
func (j *judge) policy() {
	p := j.Config.Policy
	if !p.Read {
		return
	}
	j.say("policy.mode", pick(
		is{p.Fault != "", "wrong"},
		is{p.Apply, "ok"},
		is{p.File == "" && j.Mode == Owner && j.Caller != "root", "missing.owner"},
		is{p.File == "", "missing"},
		is{true, "missing.advice"},
	), "policy", cmp.Or(p.File, "/etc/pitchpipe/site.yaml"), "fault", p.Fault)
}

// broker judges the broker of a site.
func (j *judge) broker() {
	b := j.Broker
	if j.Mode != Site {
		return
	}
	j.say("broker.socket", pick(
		is{b.Socket.Seen == Absent, "missing"},
		is{b.Socket.Seen != Present, "unknown"},
		is{b.Answer == Answers, "ok"},
		is{b.Answer == Denies && (j.Caller == j.Controller || j.Caller == "root"), "wrong.denies"},
		is{b.Answer == Denies, "ok.denies"},
		is{b.Answer == Silent, "wrong.silent"},
		is{true, "unknown.asked"},
	), "socket", b.Socket.Path, "text", b.Text)
}

// exporters judges that each node has one that answers. Nodes of which the same is to be said
// are one finding.
func (j *judge) exporters() {
	var lost []string
	var order []Exporter
	alike := map[Exporter][]string{}
	for _, e := range j.Exporters {
		if e.Address == "" {
			lost = append(lost, e.Node)
			continue
		}
		key := e
		key.Address, key.Text = strings.ReplaceAll(e.Address, e.Node, "{node}"), strings.ReplaceAll(e.Text, e.Node, "{node}")
		key.Node = ""
		if e.Answer == Silent && j.down(e.Node) {
			key.Answer, key.Text = NotAsked, "Slurm says that the node is down"
		}
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], e.Node)
	}
	for _, e := range order {
		e.Node = few(alike[e])
		if nodes := alike[e]; len(nodes) == 1 {
			e.Address, e.Text = strings.ReplaceAll(e.Address, "{node}", e.Node), strings.ReplaceAll(e.Text, "{node}", e.Node)
		}
		j.exporter(e)
	}
	if len(lost) > 0 {
		j.say("controller.exporter_nodes", "missing", "names", few(lost), "node", "{node}")
	}
}

// down reports whether Slurm itself does not reach a node, or was told not to.
func (j *judge) down(node string) bool {
	return slices.ContainsFunc(j.Nodes, func(n Node) bool {
		return n.Name == node && (strings.HasSuffix(n.State, "*") || strings.HasPrefix(n.State, "down") || strings.HasPrefix(n.State, "power"))
	})
}

// few names some of many.
func few(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (j *judge) exporter(e Exporter) {
	nodes := "node " + e.Node
	if strings.Contains(e.Node, ", ") {
		nodes = "nodes " + e.Node
	}
	vars := []string{"nodes", nodes, "names", e.Node, "address", e.Address, "text", e.Text, "steps", e.Steps, "energy", e.Energy}
	which := map[Answer]string{Silent: "missing", Denies: "wrong", NotAsked: "unknown", Answers: "ok"}[e.Answer]
	if j.say("exporter.answers", which, vars...) != OK {
		return
	}
	if j.Slurm["ProctrackType"] != "proctrack/cgroup" {
		j.say("exporter.finds_jobs", when(e.Steps != "supported", "wrong"), vars...)
	}
	j.say("exporter.joules", pick(is{e.Energy == "", "missing"}, is{e.Energy == "modelled", "wrong"}), vars...)
	// A site's exporter has to show the controller everybody's jobs. How the exporters of other
	// machines were started is not known.
	if j.Mode != Site || !strings.HasPrefix(e.Address, "/") || j.Controller == "root" {
		return
	}
	names := optionOf(j.Options.Text, "--api.readers")
	lacks := !slices.Contains(names, j.Controller) && !slices.Contains(names, j.Here.UID)
	j.say("exporter.readers", pick(is{j.Options.Seen != Present, "unknown"}, is{lacks, "missing"}), vars...)
}

// optionOf reads a flag with a list from OPTIONS="..." of a file of variables, whose last
// line counts.
func optionOf(text, flag string) (out []string) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "OPTIONS=")
		if !ok {
			continue
		}
		out = nil
		words := strings.Fields(strings.Trim(value, `"'`))
		for i, w := range words {
			name, list, joined := strings.Cut(w, "=")
			if name == flag && !joined && i+1 < len(words) {
				list = words[i+1]
			}
			if name == flag {
				out = append(out, strings.Split(list, ",")...)
			}
		}
	}
	return out
}

// proof judges what two tiny jobs showed.
func (j *judge) proof() {
	p := j.Proof
	if p == nil {
		return
	}
	found := strings.Contains(p.Bad, "line 2, column 7")
	vars := []string{"bad", p.Bad, "failed", p.Failed, "job", p.Job, "unstarted", p.Unstarted}
	j.say("try.refused", pick(is{p.Accepted && found, "ok.warned"}, is{p.Accepted, "missing"}, is{!found, "unknown"}), vars...)
	if p.Failed != "" {
		j.say("try.submitted", "wrong", vars...)
		return
	}
	j.say("try.marked", when(!strings.Contains(p.Comment, "pitchpipe:1:"), "missing"), vars...)
	of := map[Answer]string{Silent: "wrong", Answers: "ok", NotAsked: "unknown", Denies: "unknown"}
	j.say("try.variable", of[p.Variable], vars...)
	j.say("try.measured", of[p.Measured], vars...)
}
