package check

import (
	"fmt"
	"slices"
	"strings"
)

// exporters judges that each node has one that answers. Nodes of which the same is to
// be told are told of together.
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
		names := alike[e]
		if e.Node = few(names); len(names) == 1 {
			e.Address, e.Text = strings.ReplaceAll(e.Address, "{node}", e.Node), strings.ReplaceAll(e.Text, "{node}", e.Node)
		}
		j.exporter(e)
	}
	if len(lost) == 0 {
		return
	}
	j.add(Finding{
		Name: "controller.exporter_nodes", Where: j.yaml(), Verdict: Missing, Needed: both(),
		Looked: "exporter.nodes is not set, and exporter.socket does not reach " + few(lost),
		Why:    "A job on a node whose exporter the controller does not reach is not measured, and so never tuned.",
		Change: []string{"exporter:", "  nodes: https://{node}:9836", "  cert: CERTIFICATE-OF-THE-CONTROLLER", "  key: ITS-KEY", "  ca: AUTHORITY-OF-THE-NODES"},
		Then:   restartController,
	})
}

// down tells whether Slurm itself does not reach a node, or was told not to.
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
	where := "node " + e.Node + ": /etc/default/pitchpipe-exporter"
	if strings.Contains(e.Node, ", ") {
		where = "nodes" + strings.TrimPrefix(where, "node")
	}
	f := Finding{
		Name: "exporter.answers", Where: where, Verdict: OK, Needed: both(), Looked: "its exporter answers at " + e.Address,
		Why:    "A job on a node whose exporter does not answer is not measured, and so never tuned.",
		Change: []string{"on " + e.Node + ": systemctl enable --now pitchpipe-exporter"},
	}
	switch e.Answer {
	case Silent:
		f.Verdict, f.Looked = Missing, "no exporter answers at "+e.Address+": "+e.Text
	case Denies:
		f.Verdict, f.Looked = Wrong, "its exporter does not answer to "+j.Caller+": "+e.Text
		f.Change = []string{"exporter.cert and exporter.key in " + j.yaml() + " have to come from the authority that this exporter believes"}
	case NotAsked:
		f.Verdict, f.Looked, f.Change = Unknown, "its exporter does not answer: "+e.Text, nil
	case Answers:
	}
	j.add(f)
	if e.Answer != Answers {
		return
	}
	if j.Slurm["ProctrackType"] != "proctrack/cgroup" {
		finds := Finding{
			Name: "exporter.finds_jobs", Where: where, Verdict: OK, Needed: both(), Looked: "it finds jobs by Slurm's step daemons",
			Why:    "Jobs have no cgroup in this cluster, so that their processes are found below Slurm's step daemons, which only root or CAP_SYS_PTRACE may look at.",
			Change: []string{"run it by its unit, pitchpipe-exporter.service, which gives it CAP_SYS_PTRACE"},
			Then:   "systemctl restart pitchpipe-exporter",
		}
		if e.Steps != "supported" {
			finds.Verdict, finds.Looked = Wrong, "it does not find jobs: "+e.Steps
		}
		j.add(finds)
	}
	joules := Finding{
		Name: "exporter.joules", Where: where, Verdict: OK, Looked: "joules come from " + e.Energy,
		Why:    "Where no meter gives joules they are modelled or missing, so that no saving of energy is claimed and no budget of joules enforced.",
		Change: []string{"on " + e.Node + ": pitchpipe-exporter doctor tells which meters the machine has and why each is not read"},
	}
	switch e.Energy {
	case "":
		joules.Verdict, joules.Looked = Missing, "there is no source of joules"
	case "modelled":
		joules.Verdict, joules.Looked = Wrong, "joules are modelled from what the cores do"
	}
	j.add(joules)
	j.reader(e, where)
}

// reader judges that the controller of a site is shown the jobs of everybody. How the
// exporters of other machines were started is not known.
func (j *judge) reader(e Exporter, where string) {
	if j.Mode != Site || !strings.HasPrefix(e.Address, "/") || j.Controller == "root" {
		return
	}
	line := `OPTIONS="--api.readers=` + j.Controller + `"`
	f := Finding{
		Name: "exporter.readers", Where: where, Verdict: OK, Needed: []Mode{Site}, Looked: "it shows all jobs to " + j.Controller,
		Why:    "An exporter shows a user his own jobs alone, and the controller of a site has none: its account has to be named.",
		Change: []string{line}, Then: "systemctl restart pitchpipe-exporter",
	}
	names := optionOf(j.Options.Text, "--api.readers")
	switch {
	case j.Options.Seen != Present:
		f.Verdict, f.Looked = Unknown, "how it was started cannot be seen"
		f.Change, f.Then = []string{"look at the command line of the exporter: it has to have --api.readers=" + j.Controller}, ""
	case !slices.Contains(names, j.Controller) && !slices.Contains(names, j.Here.UID):
		f.Verdict, f.Looked = Missing, "--api.readers does not name "+j.Controller
	}
	j.add(f)
}

// optionOf reads a flag with a list from OPTIONS="..." of a file of variables.
func optionOf(text, flag string) []string {
	var out []string
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "OPTIONS=")
		if !ok {
			continue
		}
		out = nil // the last line counts
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
	const where = "two tiny jobs (--try)"
	needed := j.pluginNeeded()
	refused := Finding{
		Name: "try.refused", Where: where, Verdict: OK, Needed: needed, Why: pluginWhy,
		Looked: "a job with `#TUNE mod=apply` was refused: " + p.Bad,
		Change: []string{"set up the submission plugin: see job_submit.lua above"},
	}
	switch {
	case p.Accepted && strings.Contains(p.Bad, "line 2, column 7"):
		refused.Looked = "a job with `#TUNE mod=apply` was accepted with a warning: " + p.Bad
	case p.Accepted:
		refused.Verdict, refused.Looked = Missing, "a job with `#TUNE mod=apply` was accepted without a word"
	case !strings.Contains(p.Bad, "line 2, column 7"):
		refused.Verdict, refused.Looked = Unknown, "a job with `#TUNE mod=apply` was refused for another reason: "+p.Bad
	}
	j.add(refused)
	if p.Failed != "" {
		j.add(Finding{
			Name: "try.submitted", Where: where, Verdict: Wrong, Looked: "a good job could not be submitted: " + p.Failed, Needed: both(),
			Why: "Where this user can submit no job there is nothing to tune.", Change: []string{"what sbatch says has to be mended first"},
		})
		return
	}
	j.marked(where, needed)
	j.ran(where)
}

func (j *judge) marked(where string, needed []Mode) {
	marked := Finding{
		Name: "try.marked", Where: where, Verdict: OK, Needed: needed, Why: pluginWhy,
		Looked: "AdminComment of job " + j.Proof.Job + " has the stanza",
		Change: []string{"set up the submission plugin: see job_submit.lua above"},
	}
	if !strings.Contains(j.Proof.Comment, "pitchpipe:1:") {
		marked.Verdict, marked.Looked = Missing, "AdminComment of job "+j.Proof.Job+", which has a stanza, does not have it"
	}
	j.add(marked)
}

func (j *judge) ran(where string) {
	p := j.Proof
	variable := Finding{
		Name: "try.variable", Where: where, Verdict: OK, Needed: when(j.Config.TaskProlog), Why: prologWhy,
		Looked: "the task prolog gave job " + p.Job + " a variable",
		Change: []string{"mend what is told of the task prolog above", "a job with a stanza says in its own output why the task prolog refused its settings"},
	}
	measured := Finding{
		Name: "try.measured", Where: where, Verdict: OK, Needed: both(), Looked: "an exporter measured job " + p.Job,
		Why: "A job that no exporter measures is never tuned.", Change: []string{"see the nodes above"},
	}
	switch p.Variable {
	case Silent:
		variable.Verdict, variable.Looked = Wrong, "job "+p.Job+" did not get the variable that its settings file has"
	case Answers:
	default:
		variable.Verdict, variable.Change = Unknown, nil
		variable.Looked = "whether the task prolog sets a variable was not seen: " + p.Unstarted
	}
	switch p.Measured {
	case Silent:
		measured.Verdict, measured.Looked = Wrong, "no exporter measured job "+p.Job
	case Answers:
	default:
		measured.Verdict, measured.Change = Unknown, nil
		measured.Looked = "whether an exporter measures it was not seen: " + p.Unstarted
	}
	j.add(variable)
	j.add(measured)
}
