package check

import (
	"path"
	"strconv"
	"strings"
)

// Judge tells what the facts mean, in the order of the files to change. The facts
// have to have Slurm: without an answer of slurmctld there is nothing to judge.
func Judge(f Facts) Report {
	j := judge{Facts: f}
	j.cluster()
	j.requeue()
	j.privacy()
	j.tracking()
	j.submission()
	j.prolog()
	j.settings()
	j.accounting()
	j.accounts()
	j.controller()
	j.policy()
	j.broker()
	j.exporters()
	j.proof()
	r := Report{
		Cluster: f.Slurm["ClusterName"], Version: f.Slurm["SLURM_VERSION"], Mode: f.Mode, Caller: f.Caller, Passed: true,
		Findings: grouped(j.out),
	}
	for _, finding := range r.Findings {
		r.Passed = r.Passed && !finding.Fails(f.Mode)
	}
	return r
}

// grouped brings findings of one file together, the files in the order of their first.
func grouped(list []Finding) []Finding {
	var order []string
	by := map[string][]Finding{}
	for _, f := range list {
		if _, ok := by[f.Where]; !ok {
			order = append(order, f.Where)
		}
		by[f.Where] = append(by[f.Where], f)
	}
	out := make([]Finding, 0, len(list))
	for _, where := range order {
		out = append(out, by[where]...)
	}
	return out
}

// judge collects findings.
type judge struct {
	Facts
	out []Finding
}

func (j *judge) add(f Finding) {
	if f.Needed == nil {
		f.Needed = advice()
	}
	if f.Verdict == OK { // there is nothing to do
		f.Change, f.Then = nil, ""
	}
	j.out = append(j.out, f)
}

// conf is the path of slurm.conf.
func (j *judge) conf() string {
	if p := j.Slurm["SLURM_CONF"]; p != "" {
		return p
	}
	return "slurm.conf"
}

// ctld names the machine of slurmctld.
func (j *judge) ctld() string {
	host, _, _ := strings.Cut(j.Slurm["SlurmctldHost[0]"], "(")
	if host == "" {
		return "the machine of slurmctld"
	}
	return host
}

// list is a setting with commas between its words.
func (j *judge) list(key string) []string {
	return strings.FieldsFunc(j.Slurm[key], func(r rune) bool { return r == ',' || r == ' ' })
}

// number reads a number with a unit behind it, such as 300 sec; -1 where there is none.
func (j *judge) number(key string) int {
	word, _, _ := strings.Cut(j.Slurm[key], " ")
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}

// with is the line of a setting after something was added to its list.
func (j *judge) with(key, word string) string {
	return key + "=" + strings.Join(append(j.list(key), word), ",")
}

// without is the line of a setting after words were taken from its list, or that the
// line is taken out where none is left.
func (j *judge) without(key string, words ...string) string {
	var left []string
	for _, have := range j.list(key) {
		keep := true
		for _, w := range words {
			keep = keep && !strings.EqualFold(have, w)
		}
		if keep {
			left = append(left, have)
		}
	}
	if len(left) == 0 {
		return "take out the line " + key + "=" + j.Slurm[key]
	}
	return key + "=" + strings.Join(left, ",")
}

// has tells whether a list has a word, in any case.
func (j *judge) has(key, word string) bool {
	for _, have := range j.list(key) {
		if strings.EqualFold(have, word) {
			return true
		}
	}
	return false
}

// said is a setting as it is shown.
func (j *judge) said(key string) string {
	if v := j.Slurm[key]; v != "" {
		return key + "=" + v
	}
	return key + " is not set"
}

// beside is a file in the folder of slurm.conf.
func (j *judge) beside(name string) string {
	if dir := path.Dir(j.conf()); path.IsAbs(dir) {
		return path.Join(dir, name)
	}
	return "/etc/slurm/" + name
}
